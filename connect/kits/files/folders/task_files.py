"""A task's share of the folder: the files it reads, and how far each has been read."""

from __future__ import annotations

import heapq
import logging
import time
from collections.abc import Mapping, Sequence
from typing import Final

from connect.errors import MissingError
from connect.kits.files.folders.folder import Folder
from connect.kits.files.readers.content import is_archive
from connect.kits.files.readers.format_detection import file_format, is_read_whole
from connect.kits.files.readers.visit import FileState
from connect.kits.files.systems.system import SourceFile

__all__ = ["TaskFiles", "divided"]

# I9: names are not kept for ever. Beyond this number a new file is told from the old one by its fingerprint.
_REMEMBERED: Final = 10_000

_A_FILE: Final = 64 * 1024
"""The cost of opening a file, in bytes."""

_log = logging.getLogger(__name__)


class TaskFiles:
    """The files of one task."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._options = folder.reading.options
        self._settle_seconds = folder.reading.options.settle_ms / 1000
        self._states: dict[str, FileState] = {}
        self._finished_names: dict[str, None] = {}
        self._unknown: set[str] = set()
        self._missing = False

    has_more = False
    """Each scan finds all files."""

    def to_read(self) -> list[FileState]:
        """Scan the folder and return the files that have something to read now, in order."""
        try:
            listed = self._folder.listing.files()
        except FileNotFoundError as error:
            self._missing = True
            raise MissingError(
                f"Folder {self._folder.shown} does not exist; the source waits until it does. Create it, or correct "
                f"the key {self._folder.key}.",
                self._folder.scan_seconds,
            ) from error
        self._missing = False
        names = {file.name for file in listed}
        self._unknown &= names
        files = [file for file in listed if self._has_format(file)]
        self._states = {name: state for name, state in self._states.items() if name in names}
        now = time.time()
        return [state for file in files if self._is_wanted(state := self._state(file), file, now)]

    def is_drained(self) -> bool:
        """Return whether at the last scan every file had been read to its end, with nothing left to wait for."""
        return not self._missing and all(state.is_complete or state.is_refused for state in self._states.values())

    def remaining(self) -> Mapping[str, int]:
        """Return the bytes after the last rows read, and the files that have them, as of the last scan.

        A compressed file or a table counts in full until it is read.
        """
        unread = [state for state in self._states.values() if not (state.is_complete or state.is_refused)]
        return {"bytes": sum(map(self._left, unread)), "files": len(unread)}

    def total(self) -> Mapping[str, int]:
        """Return the bytes and number of the files that are there and not refused, as of the last scan."""
        sizes = [state.file.size for state in self._states.values() if not state.is_refused]
        return {"bytes": sum(sizes), "files": len(sizes)}

    def complete(self, state: FileState) -> None:
        """Do nothing: the state itself says so."""

    def forget(self, file: SourceFile) -> None:
        """Forget a file that was moved or deleted: another one of its name is read from the beginning."""
        self._finished_names[file.name] = None
        if len(self._finished_names) > _REMEMBERED:
            del self._finished_names[next(iter(self._finished_names))]
        self._states.pop(file.name, None)

    def _state(self, file: SourceFile) -> FileState:
        state = self._states.get(file.name)
        if state is None:
            state = FileState(file, is_new=file.name in self._finished_names)
            self._finished_names.pop(file.name, None)
            self._states[file.name] = state
        elif state.file.status != file.status and not (self._folder.is_split and state.is_complete):
            state.file, state.is_complete, state.is_refused = file, False, False
        return state

    def _is_wanted(self, state: FileState, file: SourceFile, now: float) -> bool:
        if state.is_complete or state.is_refused:
            return False
        waits = not self._folder.reading.system.is_local or is_read_whole(self._options, file.name)
        return not waits or file.is_settled(now, self._settle_seconds)

    def _left(self, state: FileState) -> int:
        place = None if is_read_whole(self._options, state.file.name) else state.places.get(None)
        return max(0, state.file.size - (place.position if place is not None else 0))

    def _has_format(self, file: SourceFile) -> bool:
        """Whether the format of a file is known; if not, warn once that it is not read (I4)."""
        if is_archive(file.path) or file_format(self._options, file.name) is not None:
            return True
        if file.name not in self._unknown:
            self._unknown.add(file.name)
            _log.warning(
                "Skipping %s: its format cannot be told from its name. Set 'format', or exclude the file with "
                "'pattern'.",
                file.path,
            )
        return False


def divided(sizes: Sequence[tuple[str, int]], most: int) -> list[list[str]]:
    """Divide the names into at most ``most`` parts of about the same bytes, each in order."""
    parts: list[list[str]] = [[] for _ in range(min(most, len(sizes)))]
    loads = [(0, index) for index in range(len(parts))]
    for name, size in sorted(sizes, key=lambda each: (-each[1], each[0])):
        load, index = heapq.heappop(loads)
        parts[index].append(name)
        heapq.heappush(loads, (load + size + _A_FILE, index))
    return [sorted(part) for part in parts]
