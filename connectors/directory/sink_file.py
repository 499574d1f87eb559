"""The file that is being filled for one partition of a topic, and the names of those that are written."""

from __future__ import annotations

import gzip
import re
import shutil
import tempfile
import time
from collections.abc import Iterable
from typing import IO, Any, BinaryIO, Final, cast

from connect.data import TopicPartition

__all__ = ["GrowingFile", "file_name", "folder_name", "next_offset", "shown_partition"]

_IN_MEMORY_BYTES: Final = 256 * 1024
_NAME: Final = re.compile(r"(.+)\+(\d+)\+(\d+)\+(\d+)\.[^+]*")


class GrowingFile:
    """Consecutive records of a partition that are not in a file yet: in memory at first, then in a temporary file."""

    def __init__(self, following: int) -> None:
        self.following = following
        """The offset after the last record that was passed on, whether it became a line or not."""
        self.first: int | None = None
        """The offset of the first line; ``None`` while there is none."""
        self.last = -1
        self.columns: tuple[str, ...] | None = None
        self._count = 0
        self._size = 0
        self._began = 0.0
        self._lines: IO[bytes] | None = None

    @property
    def is_empty(self) -> bool:
        """Whether it has no line."""
        return self.first is None

    def add(self, offset: int, line: bytes) -> None:
        """Add the line of a record."""
        if self._lines is None:
            self._lines = cast("IO[bytes]", tempfile.SpooledTemporaryFile(_IN_MEMORY_BYTES))  # noqa: SIM115
        if self.first is None:
            self.first, self._began = offset, time.monotonic()
        self._lines.write(line)
        self._count += 1
        self._size += len(line)
        self.last = offset

    def is_full(self, count: int, size: int) -> bool:
        """Whether it has so many records, or bytes."""
        return self._count >= count or self._size >= size

    def due_in(self, seconds: float) -> float:
        """Return the time until it is complete, if that is so many seconds after its first record."""
        return self._began + seconds - time.monotonic()

    def copy(self, target: BinaryIO, header: bytes, *, compress: bool) -> None:
        """Write the lines to a stream."""
        lines = cast("IO[bytes]", self._lines)
        lines.seek(0)
        # Without a time of writing, the same records are the same bytes.
        stream: Any = gzip.GzipFile(fileobj=target, mode="wb", mtime=0, filename="") if compress else target
        stream.write(header)
        shutil.copyfileobj(lines, stream)
        if compress:
            stream.close()
        lines.seek(0, 2)

    def clear(self) -> None:
        """Begin the next file."""
        if self._lines is not None:
            self._lines.close()
        self._lines, self.first, self.columns = None, None, None
        self._count = self._size = 0


def folder_name(partition: TopicPartition) -> str:
    """Return the folder for the files of a partition, below that of the sink."""
    return f"{partition.topic}/partition={partition.partition}"


def shown_partition(partition: TopicPartition) -> str:
    """Return a partition as Kafka's own tools write it."""
    return f"{partition.topic}-{partition.partition}"


def file_name(partition: TopicPartition, first: int, last: int, extension: str) -> str:
    """Return the name of the file with the records from one offset to another."""
    return f"{partition.topic}+{partition.partition}+{first:010}+{last:010}{extension}"


def next_offset(partition: TopicPartition, names: Iterable[str]) -> int:
    """Return the offset after the last record in files with these names."""
    found = (match for match in map(_NAME.fullmatch, names) if match is not None)
    own = (match for match in found if match[1] == partition.topic and int(match[2]) == partition.partition)
    return max((int(match[4]) + 1 for match in own), default=0)
