"""Lists the files to read in a folder."""

from __future__ import annotations

import os
import time
import zlib
from collections.abc import Callable, Collection
from fnmatch import fnmatchcase

from connect.kits.files.systems.address import Address
from connect.kits.files.systems.system import NANOSECONDS, FileStatus, FileSystem, FoundFile, SourceFile, is_hidden

__all__ = ["Listing", "matcher"]


class Listing:
    """The files of a folder that match a pattern and belong to one task, by hash or as those of its split.

    Whether a file elsewhere changes is told by comparing scans, since the clock there may be wrong: it is unchanged
    since the first scan that found it as it is now.
    """

    def __init__(
        self,
        system: FileSystem,
        folder: Address,
        matches: Callable[[str], bool],
        *,
        recursive: bool,
        index: int = 0,
        count: int = 1,
        left_out: Collection[str] = (),
        names: Collection[str] | None = None,
        marker: str | None = None,
        order: Callable[[list[SourceFile]], list[SourceFile]] | None = None,
    ) -> None:
        self._system = system
        self._folder = folder
        self._matches = matches
        self._recursive = recursive
        self._index = index
        self._count = count
        self._names = names
        self._left_out = {_relative(each, folder.path) for each in left_out}
        self._order = order
        self._marker = marker
        self._since: dict[str, tuple[FileStatus, int]] = {}

    def files(self) -> list[SourceFile]:
        """Return the files, by default in order of their names. Raises ``FileNotFoundError`` for a missing folder."""
        found = list(self._system.walk(self._folder.path, recursive=self._recursive, enters=self._enters))
        marked = self._marked(found)
        chosen = [file for file in found if self.matches(file.name) and self._is_mine(file.name)]
        if marked is not None:
            chosen = [file for file in chosen if file.name in marked]
        since = {file.name: (file.status, self._unchanged_since(file)) for file in chosen}
        self._since = since
        files = sorted((self._source_file(file) for file in chosen), key=lambda file: file.name)
        return files if self._order is None else self._order(files)

    def matches(self, name: str) -> bool:
        """Whether a path in the folder, or in an archive, is to be read."""
        is_marker = self._marker is not None and name.endswith(self._marker)
        return not is_hidden(name) and not is_marker and self._matches(name)

    def _enters(self, folder: str) -> bool:
        return folder not in self._left_out

    def _marked(self, found: Collection[FoundFile]) -> frozenset[str] | None:
        """Return the names of the files that have a marker beside them; ``None`` if none is needed."""
        if self._marker is None:
            return None
        return frozenset(file.name.removesuffix(self._marker) for file in found if file.name.endswith(self._marker))

    def _unchanged_since(self, file: FoundFile) -> int:
        if not self._system.files_grow:
            return 0
        if self._system.is_local:
            return file.status.modified_ns
        before = self._since.get(file.name)
        return before[1] if before is not None and before[0] == file.status else int(time.time() * NANOSECONDS)

    def _source_file(self, file: FoundFile) -> SourceFile:
        return SourceFile(
            file.name,
            self._system.shown(file.place),
            file.place,
            file.status,
            self._since[file.name][1],
            self._system.files_grow,
        )

    def _is_mine(self, name: str) -> bool:
        """Whether a file belongs to this task; all tasks agree without communicating, for new files as well."""
        if self._names is not None:
            return name in self._names
        return zlib.crc32(os.fsencode(name)) % self._count == self._index


def matcher(pattern: str) -> Callable[[str], bool]:
    """Return what tells whether a path matches a pattern: by its name, or as a whole if the pattern has a slash."""
    if "/" in pattern:
        return lambda name: fnmatchcase(name, pattern)
    return lambda name: fnmatchcase(name.rpartition("/")[2], pattern)


def _relative(folder: str, parent: str) -> str | None:
    """Return the path of a folder in another one; ``None`` if it is elsewhere."""
    start = f"{parent.rstrip('/')}/" if parent else ""
    return folder.removeprefix(start) if folder.startswith(start) else None
