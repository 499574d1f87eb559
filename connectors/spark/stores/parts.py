"""Files that the tasks of Spark write from their Python: where they go, and when they count."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from connect.crash import crash_point

__all__ = ["DataFolder", "DataPlace", "FolderPlace", "PartAttempt", "PartPlace", "PartStream", "PieceStream"]


class PartStream(Protocol):
    """A file that is written from its beginning to its end."""

    def write(self, data: Any, /) -> Any:
        """Write bytes."""

    def tell(self) -> int:
        """How many bytes were written."""

    def close(self) -> Any:
        """End it: all of it is where it goes."""


class PieceStream:
    """A file of which ``send`` is given pieces of a size, in order, and in the end the rest: at least one piece."""

    def __init__(self, size: int, send: Callable[[bytes], None]) -> None:
        self.sent = 0
        """How many bytes were sent."""
        self.closed = False
        self._size = size
        self._send = send
        self._waiting = bytearray()

    def write(self, data: Any, /) -> int:
        """Send what fills a piece; what is written to a closed one goes nowhere."""
        if not self.closed:
            self._waiting += data
            while len(self._waiting) >= self._size:
                self._send_piece(self._size)
        return len(data)

    def tell(self) -> int:
        """How much was written."""
        return self.sent + len(self._waiting)

    def flush(self) -> None:
        """Nothing: pieces have a size."""

    def close(self) -> None:
        """Send the rest."""
        if not self.closed:
            self.closed = True
            if self._waiting or not self.sent:
                self._send_piece(len(self._waiting))

    def drop(self) -> None:
        """Send nothing more."""
        self.closed = True

    def _send_piece(self, size: int) -> None:
        piece = bytes(self._waiting[:size])
        del self._waiting[:size]
        self._send(piece)
        self.sent += size


class PartAttempt(Protocol):
    """The files of one attempt at a split. They do not count, and nobody sees them, before :meth:`finish`."""

    def open(self, name: str) -> PartStream:
        """Begin a file."""

    def finish(self) -> None:
        """Have the files count, which are closed; where another attempt's count already, those may stay."""

    def discard(self) -> None:
        """Remove the files of an attempt that is not finished, as far as that is possible; they may be open."""


class PartPlace(Protocol):
    """A place for the files of a pass; plain data, for it is sent to the executors."""

    def begin(self, split: int, attempt: int) -> PartAttempt:
        """Begin an attempt at a split; a later one has a larger number."""


@dataclass(frozen=True, slots=True)
class FolderPlace:
    """A folder that executors can reach. Where two attempts come to their ends, the files of the first stay.

    Both have the same rows in the same files, so an attempt that was killed between two names is completed by the next.
    """

    folder: str

    def begin(self, split: int, attempt: int) -> PartAttempt:  # noqa: ARG002
        """An attempt that writes to hidden names of its own."""
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
    """A place whose files do not count before a table names them, so that each attempt has names of its own.

    Which attempt counts, the report says that reaches the driver. The files of others stay if their process is killed.
    """

    def names(self, mark: str) -> list[str]:
        """The files whose names begin with a mark."""


@dataclass(frozen=True, slots=True)
class DataFolder:
    """A folder that executors can reach; a :class:`DataPlace`."""

    folder: str

    def begin(self, split: int, attempt: int) -> PartAttempt:  # noqa: ARG002
        """An attempt that writes to the names that it is given."""
        return _DataAttempt(Path(self.folder))

    def names(self, mark: str) -> list[str]:
        """The files whose names begin with a mark."""
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
        """Make the files durable: the version of the table that will name them is."""
        if self._written:
            for path in (*self._written, self._folder):
                _sync(path)
        self._written = []

    def discard(self) -> None:
        for path in self._written:
            path.unlink(missing_ok=True)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
