"""Splits of the folder: the files with something to read, divided by their sizes."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing

from connect.data import Offset
from connect.errors import ConnectError, DataError
from connect.kits.files.folders.folder import Folder
from connect.kits.files.folders.task_files import TaskFiles, divided
from connect.kits.files.readers.bookmark import Bookmark
from connect.kits.files.readers.content import Content, is_archive, is_compressed, members
from connect.kits.files.readers.format_detection import file_format
from connect.kits.files.readers.visit import FileState, source_partition
from connect.kits.files.systems.system import FileStatus
from connect.source import OffsetStorageReader

__all__ = ["FileSplits"]


class FileSplits:
    """Finds the files not read to their end, by the stored offsets. Used by the connector's thread alone.

    A file to be moved or deleted is found until it is gone.
    """

    def __init__(self, folder: Folder, offsets: OffsetStorageReader) -> None:
        self._folder = folder
        self._options = folder.reading.options
        self._offsets = offsets
        self._files = TaskFiles(folder)
        self._read: dict[str, FileStatus] = {}

    def next(self, max_splits: int) -> list[list[str]]:
        """Return the names of the files of each split."""
        files = [state for state in self._files.to_read() if self._read.get(state.file.name) != state.file.status]
        unread = self._unread(files)
        return divided([(state.file.name, state.file.size) for state in unread], max_splits)

    def _unread(self, states: Sequence[FileState]) -> list[FileState]:
        parts = [(state, member) for state in states for member in self._members(state)]
        kept = self._offsets.offsets([source_partition(state.file, member) for state, member in parts]) if parts else ()
        unread = {
            state.file.name
            for (state, member), offset in zip(parts, kept, strict=True)
            if not (self._folder.finisher is None and self._is_read(state, member, offset))
        }
        self._read |= {state.file.name: state.file.status for state in states if state.file.name not in unread}
        return [state for state in states if state.file.name in unread]

    def _members(self, state: FileState) -> Sequence[str | None]:
        if not self._folder.reading.system.is_local and is_archive(state.file.path):
            return [None]  # what is in it is told only by a copy, which its task makes
        try:
            return members(state.file, state.file.place, self._folder.listing.matches)
        except (DataError, OSError):
            return [None]  # what is wrong with it is for the task to say

    def _is_read(self, state: FileState, member: str | None, offset: Offset | None) -> bool:
        """Return whether the stored offset is at the end of the file, or of a member of it."""
        try:
            place = Bookmark.from_offset(offset)
        except ConnectError:
            return False
        if place is None:
            return state.file.size == 0
        form = file_format(self._options, member or state.file.name)
        if form is not None and form.is_table:
            return place.finished == state.file.size
        end = place.finished if is_compressed(state.file.path) else place.position
        if not self._folder.reading.system.is_local:
            return end == state.file.size
        try:
            with closing(Content(state.file, self._folder.reading.system.open(state.file.place), member)) as content:
                return end == content.size and content.has_fingerprint(place.fingerprint)
        except (DataError, OSError):
            return False
