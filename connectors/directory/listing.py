"""Lists the files to read in a folder."""

from __future__ import annotations

import os
import zlib
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

__all__ = ["NANOSECONDS", "Listing", "SourceFile", "is_hidden", "modified_ns"]

NANOSECONDS: Final = 1_000_000_000


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file as it was when the folder was scanned. ``name`` is its path in the folder."""

    name: str
    path: str
    device: int
    inode: int
    size: int
    modified_ns: int

    def is_settled(self, now: float, settle_seconds: float) -> bool:
        """Return whether it has not changed for long enough to count as complete."""
        return now - self.modified_ns / NANOSECONDS >= settle_seconds


class Listing:
    """The files of a folder that match a pattern and belong to one task, by hash or as those of its split."""

    def __init__(
        self,
        folder: str,
        pattern: str,
        *,
        recursive: bool,
        index: int,
        count: int,
        left_out: str | None,
        names: Collection[str] | None = None,
    ) -> None:
        self._folder = os.path.abspath(folder)  # noqa: PTH100 - pathlib has no such function that leaves links alone
        self._pattern = pattern
        self._recursive = recursive
        self._index = index
        self._count = count
        self._names = names
        self._left_out = os.path.abspath(left_out) if left_out else None  # noqa: PTH100

    def files(self) -> list[SourceFile]:
        """Return the files in order of their names. Raises ``FileNotFoundError`` if the folder is missing."""
        return sorted(self._walk(self._folder, ""), key=lambda file: file.name)

    def matches(self, name: str) -> bool:
        """Return whether a path in the folder, or in an archive, is to be read."""
        subject = name if "/" in self._pattern else name.rpartition("/")[2]
        return not is_hidden(name) and fnmatchcase(subject, self._pattern)

    def _walk(self, folder: str, prefix: str) -> Iterator[SourceFile]:
        with os.scandir(folder) as entries:
            for entry in entries:
                name = prefix + entry.name
                if is_hidden(entry.name):
                    continue
                try:
                    if entry.is_dir(follow_symlinks=False):
                        if self._recursive and entry.path != self._left_out:
                            yield from self._walk(entry.path, f"{name}/")
                    elif self.matches(name) and self._is_mine(name) and entry.is_file():
                        yield _source_file(name, entry)
                except FileNotFoundError:
                    # It was removed during the scan.
                    continue

    def _is_mine(self, name: str) -> bool:
        """Return whether a file belongs to this task; all tasks agree without communicating, for new files as well."""
        if self._names is not None:
            return name in self._names
        return zlib.crc32(os.fsencode(name)) % self._count == self._index


def _source_file(name: str, entry: os.DirEntry[str]) -> SourceFile:
    status = entry.stat()
    path = str(Path(entry.path))
    return SourceFile(name, path, status.st_dev, status.st_ino, status.st_size, modified_ns(status))


def modified_ns(status: os.stat_result) -> int:
    """Return the time of the last change. A time in the future is replaced by the time at which it was set."""
    return min(status.st_mtime_ns, status.st_ctime_ns)


def is_hidden(name: str) -> bool:
    """Return whether the name begins with a dot, as many tools name files while they copy them."""
    return name.rpartition("/")[2].startswith(".")
