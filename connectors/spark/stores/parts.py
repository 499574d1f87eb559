"""Files that Spark's tasks write from Python: where they go, and when they become visible."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from connect.internals.crash import crash_point
from connect.kits.objects.local import sync_path

__all__ = [
    "DataFolder",
    "DataPlace",
    "FolderPlace",
    "PartAttempt",
    "PartPlace",
    "PartStream",
]


class PartStream(Protocol):
    """A file that is written sequentially."""

    def write(self, data: Any, /) -> Any:
        """Write bytes."""

    def tell(self) -> int:
        """Return the number of bytes written."""

    def close(self) -> Any:
        """Finish the file: its whole content has reached its destination."""


class PartAttempt(Protocol):
    """The files of one attempt at a split. They are invisible, and do not count, before :meth:`finish`."""

    def open(self, name: str) -> PartStream:
        """Begin a file."""

    def finish(self) -> None:
        """Make the closed files count; if another attempt's files count already, those may stay."""

    def discard(self) -> None:
        """Remove the files of an unfinished attempt, as far as possible; they may be open."""


class PartPlace(Protocol):
    """A location for the files of a pass; plain data, sent to the executors."""

    def begin(self, split: int, attempt: int) -> PartAttempt:
        """Begin an attempt at a split; a later one has a larger number."""


@dataclass(frozen=True, slots=True)
class FolderPlace:
    """A folder that executors can reach. If two attempts finish, the files of the first stay.

    Both have the same rows in the same files, so if an attempt is killed between two names, the next one completes it.
    """

    folder: str

    def begin(self, split: int, attempt: int) -> PartAttempt:  # noqa: ARG002
        """Begin an attempt that writes to its own hidden names."""
        return _FolderAttempt(Path(self.folder), attempt)


class _FolderAttempt:
    def __init__(self, folder: Path, attempt: int) -> None:
        self._folder = folder
        self._attempt = attempt
        self._written: list[tuple[Path, Path]] = []

    def open(self, name: str) -> PartStream:
        import pyarrow as pa  # noqa: PLC0415 - slow to import, and stores are opened without it

        self._folder.mkdir(parents=True, exist_ok=True)
        path = self._folder / name
        beside = path.with_name(f".{name}.{self._attempt}")
        self._written.append((beside, path))
        stream: PartStream = pa.OSFile(str(beside), "wb")
        return stream

    def finish(self) -> None:
        for beside, path in self._written:
            with suppress(FileExistsError):
                path.hardlink_to(beside)
            crash_point("mid-link")
            beside.unlink()

    def discard(self) -> None:
        for beside, _ in self._written:
            beside.unlink(missing_ok=True)


class DataPlace(PartPlace, Protocol):
    """A place whose files do not count until a table names them, so each attempt uses its own names.

    The report that reaches the driver decides which attempt counts. The files of other attempts stay if their process
    is killed.
    """

    def names(self, mark: str) -> list[str]:
        """Return the files whose names begin with a mark."""


@dataclass(frozen=True, slots=True)
class DataFolder:
    """A folder that executors can reach; a :class:`DataPlace`."""

    folder: str

    def begin(self, split: int, attempt: int) -> PartAttempt:  # noqa: ARG002
        """Begin an attempt that writes to the names it is given."""
        return _DataAttempt(Path(self.folder))

    def names(self, mark: str) -> list[str]:
        """Return the files whose names begin with a mark."""
        return sorted(path.name for path in Path(self.folder).glob(f"{mark}-*"))


class _DataAttempt:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._written: list[Path] = []

    def open(self, name: str) -> PartStream:
        import pyarrow as pa  # noqa: PLC0415 - slow to import, and stores are opened without it

        self._folder.mkdir(parents=True, exist_ok=True)
        path = self._folder / name
        self._written.append(path)
        stream: PartStream = pa.OSFile(str(path), "wb")
        return stream

    def finish(self) -> None:
        """Make the files durable, because the version of the table that will name them is durable."""
        if self._written:
            for path in (*self._written, self._folder):
                sync_path(path)
        self._written = []

    def discard(self) -> None:
        for path in self._written:
            path.unlink(missing_ok=True)
