"""Files that the tasks of Spark write from their Python: where they go, and when they count."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from connect.crash import crash_point

__all__ = ["FolderPlace", "PartAttempt", "PartPlace", "PartStream", "PieceStream"]


class PartStream(Protocol):
    """A file that is written from its beginning to its end."""

    def write(self, data: Any, /) -> Any:
        """Write bytes."""

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
