"""A task's share of the folder: the files it reads, and how far each has been read."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, field
from typing import Final

from connect.errors import MissingError
from connectors.directory.bookmark import Bookmark
from connectors.directory.config import DirectoryTaskConfig
from connectors.directory.finished_files import FinishedFile
from connectors.directory.format_detection import Opened, file_format, is_read_whole
from connectors.directory.listing import Listing, SourceFile

__all__ = ["FileState", "TaskFiles"]

# I9: names are not kept for ever. Beyond this number a new file is told from the old one by its fingerprint.
_REMEMBERED: Final = 10_000

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class FileState:
    """The state of a file in its task: how it was when last read, and the last place in each member."""

    file: SourceFile
    is_complete: bool = False
    is_refused: bool = False
    is_new: bool = False
    """Whether a file of this name was finished before, so that the committed offset belongs to that one."""
    has_reports: bool = False
    """Whether malformed rows were reported since the last commit."""
    places: dict[str | None, Bookmark] = field(default_factory=dict)
    opened: dict[str | None, Opened] = field(default_factory=dict)


class TaskFiles:
    """The files of one task."""

    def __init__(self, config: DirectoryTaskConfig) -> None:
        self._config = config
        self._settle_seconds = config.settle_ms / 1000
        self._states: dict[str, FileState] = {}
        self._finished_names: dict[str, None] = {}
        self._unknown: set[str] = set()
        self._missing = False
        self.listing = Listing(
            config.path,
            config.pattern,
            recursive=config.recursive,
            index=config.task_index,
            count=config.task_count,
            left_out=config.finished_folder,
            names=config.names_of_split,
        )

    def to_read(self) -> list[FileState]:
        """Scan the folder and return the files that have something to read now, in order of their names."""
        try:
            listed = self.listing.files()
        except FileNotFoundError as error:
            self._missing = True
            raise MissingError(
                f"Folder {self._config.path} does not exist; the source waits until it does. Create it, or correct the "
                "key path.",
                self._config.scan_interval_ms / 1000,
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

    def remaining_bytes(self) -> int:
        """Return the bytes after the last rows read, in the files as of the last scan.

        A compressed file or a table counts in full until it is read.
        """
        return sum(self._left(state) for state in self._states.values())

    def forget(self, finished: FinishedFile) -> None:
        """Forget a file that was moved or deleted: another one of its name is read from the beginning."""
        self._finished_names[finished.file.name] = None
        if len(self._finished_names) > _REMEMBERED:
            del self._finished_names[next(iter(self._finished_names))]
        self._states.pop(finished.file.name, None)

    def _state(self, file: SourceFile) -> FileState:
        state = self._states.get(file.name)
        if state is None:
            state = FileState(file, is_new=file.name in self._finished_names)
            self._finished_names.pop(file.name, None)
            self._states[file.name] = state
        elif state.file != file and not (self._config.split_files and state.is_complete):
            state.file, state.is_complete, state.is_refused = file, False, False
        return state

    def _is_wanted(self, state: FileState, file: SourceFile, now: float) -> bool:
        if state.is_complete or state.is_refused:
            return False
        return not is_read_whole(self._config, file.name) or file.is_settled(now, self._settle_seconds)

    def _left(self, state: FileState) -> int:
        if state.is_complete or state.is_refused:
            return 0
        place = None if is_read_whole(self._config, state.file.name) else state.places.get(None)
        return max(0, state.file.size - (place.position if place is not None else 0))

    def _has_format(self, file: SourceFile) -> bool:
        """Return whether the format of a file is known; if not, warn once that it is not read (I4)."""
        if file.path.lower().endswith(".zip") or file_format(self._config, file.name) is not None:
            return True
        if file.name not in self._unknown:
            self._unknown.add(file.name)
            _log.warning(
                "Skipping %s: its format cannot be told from its name. Set 'format', or exclude the file with "
                "'pattern'.",
                file.path,
            )
        return False
