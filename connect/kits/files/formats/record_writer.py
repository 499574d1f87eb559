"""What writes the records of one file, and what a format knows about its files."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from connect.data import Column, Schema

__all__ = ["ByteSink", "FileFormat", "RecordWriter"]


class RecordWriter(Protocol):
    """Writes values of one schema to one file. What is written depends on the values alone, not on the clock."""

    @property
    def held(self) -> int:
        """Return about how many bytes are in memory and were not passed on yet."""

    def write(self, column: Column) -> None:
        """Write values: all of them, or none and a :class:`~connect.errors.DataError`."""

    def close(self) -> None:
        """Pass on the rest, with the footer if the format has one."""


class FileFormat(Protocol):
    """A format: the end of its files' names, and the writer of a file."""

    @property
    def extension(self) -> str:
        """The end of the names of files, such as ``.json.gz``."""

    @property
    def needs_struct(self) -> bool:
        """Whether only structs and maps have a form: keys and headers are then put into one."""

    def writer(self, sink: Callable[[bytes], object], schema: Schema | None, seed: str) -> RecordWriter:
        """Return the writer of a file whose bytes go to ``sink``; files of one ``seed`` and content are equal.

        Raises :class:`~connect.errors.SchemaError` if files cannot hold values of the schema.
        """


class ByteSink:
    """A file for libraries that write to one; it passes on what it is given."""

    closed = False

    def __init__(self, sink: Callable[[bytes], object]) -> None:
        self._sink = sink
        self._position = 0

    def write(self, data: bytes) -> int:
        """Pass on bytes."""
        content = bytes(data)
        self._sink(content)
        self._position += len(content)
        return len(content)

    def tell(self) -> int:
        """Return the number of bytes written."""
        return self._position

    def writable(self) -> bool:
        """Return that it can be written."""
        return True

    def readable(self) -> bool:
        """Return that it cannot be read."""
        return False

    def seekable(self) -> bool:
        """Return that it has no other position than its end."""
        return False

    def flush(self) -> None:
        """Do nothing: everything is passed on at once."""

    def close(self) -> None:
        """Accept nothing more."""
        self.closed = True
