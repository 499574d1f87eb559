"""File systems: one interface, and what it tells of files."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import IO, BinaryIO, Final, Protocol

__all__ = [
    "NANOSECONDS",
    "FileStatus",
    "FileSystem",
    "FoundFile",
    "OpenedFile",
    "SourceFile",
    "is_hidden",
    "is_part",
    "part_name",
]

NANOSECONDS: Final = 1_000_000_000
_PART: Final = ".part"


@dataclass(frozen=True, slots=True)
class FileStatus:
    """The state of a file: two that are equal are taken to be of the same content.

    ``identity`` is whatever else the system tells: an inode, an entity tag, a version.
    """

    identity: str
    size: int
    modified_ns: int


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file that was found below a folder: its path relative to that folder, and its path in the system."""

    name: str
    place: str
    status: FileStatus


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file to read, as it was when its folder was scanned.

    ``name`` is its path in the folder, ``path`` what users see and source offsets hold, ``place`` what the system is
    asked for. ``unchanged_since_ns`` is by the clock of this machine.
    """

    name: str
    path: str
    place: str
    status: FileStatus
    unchanged_since_ns: int
    grows: bool = True
    """Whether it may be seen while it is being written."""

    @property
    def size(self) -> int:
        """The size in bytes."""
        return self.status.size

    def is_settled(self, now: float, settle_seconds: float) -> bool:
        """Whether it has not changed for long enough to count as complete."""
        return now - self.unchanged_since_ns / NANOSECONDS >= settle_seconds


@dataclass(frozen=True, slots=True)
class OpenedFile:
    """An open file: its bytes, and its present state."""

    stream: BinaryIO
    status: Callable[[], FileStatus]


class FileSystem(Protocol):
    """The files of one machine, server or bucket. Used by one thread.

    A missing file is a :class:`FileNotFoundError`. Of the errors of remote systems, those that trying again may cure
    are :class:`~connect.errors.RetriableError`: the next call connects anew. What cannot be cured so is a
    :class:`~connect.errors.ConnectError`.
    """

    @property
    def is_local(self) -> bool:
        """Whether the files are at paths of this machine, and their times are by its clock."""

    @property
    def reads_ranges(self) -> bool:
        """Whether files can be read from any position; others are copied before they are read."""

    @property
    def files_grow(self) -> bool:
        """Whether a file may be seen while it is being written; otherwise files appear whole."""

    def shown(self, place: str) -> str:
        """Return the path or URL of a file for users, without secrets."""

    def walk(self, folder: str, *, recursive: bool, enters: Callable[[str], bool]) -> Iterator[FoundFile]:
        """Yield the files in a folder; with ``recursive``, also those in the folders below it that ``enters`` accepts.

        Names that begin with a dot are left out, and so are links to folders. Raises :class:`FileNotFoundError` if the
        folder does not exist.
        """

    def status(self, place: str) -> FileStatus:
        """Return the present state of a file."""

    def open(self, place: str) -> OpenedFile:
        """Open a file for random reads."""

    def copy(self, place: str, target: IO[bytes]) -> None:
        """Write the content of a file to a local one."""

    def remove(self, place: str) -> None:
        """Remove a file."""

    def move(self, place: str, target: str) -> None:
        """Move a file, making folders as needed. Raises :class:`FileExistsError` if the target exists."""

    def writing(self, place: str) -> AbstractContextManager[BinaryIO]:
        """Open a file to be written whole: it appears when the ``with`` block ends without an error, and is durable.

        It is written under a hidden name beside it and renamed, and replaces a file of the same name.
        """

    def remove_parts(self, folder: str, start: str) -> None:
        """Remove what :meth:`writing` has left in a folder when its process was killed.

        ``start`` is what the names of the files begin with.
        """

    def close(self) -> None:
        """End the connection."""


def part_name(name: str) -> str:
    """Return a hidden name for a file while it is written, which nobody else has."""
    return f".{name}.{uuid.uuid4().hex}{_PART}"


def is_part(name: str, start: str) -> bool:
    """Whether the name is that of a file which is or was being written, and whose own name begins with ``start``."""
    return name.startswith(f".{start}") and name.endswith(_PART)


def is_hidden(name: str) -> bool:
    """Whether the name begins with a dot, as many tools name files while they copy them."""
    return name.rpartition("/")[2].startswith(".")
