"""Visits to files: a visit reads all rows of one from the last place to its current end."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TypeAlias

from connect.data import Offset
from connect.errors import DataError
from connect.kits.files.readers.bookmark import Bookmark
from connect.kits.files.readers.content import Content, file_errors, is_compressed, members
from connect.kits.files.readers.format_detection import Opened, file_format, is_read_whole, open_layout
from connect.kits.files.readers.options import FileFormat, ReadingOptions
from connect.kits.files.readers.partitions import Partitions
from connect.kits.files.readers.row_reader import FileReader, Rows
from connect.kits.files.readers.tables import table_rows
from connect.kits.files.systems.copies import local_path
from connect.kits.files.systems.system import FileSystem, OpenedFile, SourceFile

__all__ = ["FileState", "KeptPlace", "Reading", "Visit", "source_partition"]

KeptPlace = Callable[[Offset], Bookmark | None]
"""Returns the place that was committed for a source partition."""

Visit = Generator[tuple[str | None, Rows], None, None]
"""The rows of one visit, each with the archive member they are from; closing it closes the file."""

_Source: TypeAlias = Generator[Rows, None, bool]
"""The rows of a part of a file; it returns whether the part was read to its end."""

_Visited: TypeAlias = Generator[tuple[str | None, Rows], None, bool]

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


@dataclass(frozen=True, slots=True)
class Reading:
    """How files are read, and from where."""

    options: ReadingOptions
    system: FileSystem
    matches: Callable[[str], bool]
    """Whether a member of an archive is to be read, by its name."""
    kept: KeptPlace
    """The place that was committed for a source partition."""
    partition: Callable[[SourceFile, str | None], dict[str, str]] = field(default_factory=lambda: source_partition)
    """The source partition of a file, or of a member of an archive."""
    options_of: Callable[[SourceFile], ReadingOptions] | None = None
    """How a file is read, if not all are read alike."""

    def visit(self, state: FileState) -> Visit:
        """Yield the rows with the member they are from; at the end ``state.is_complete`` says whether all was read.

        Raises :class:`~connect.errors.DataError` when the file cannot be read further, and ``FileNotFoundError`` when
        it is gone.
        """
        file = state.file
        options = self.options if self.options_of is None else self.options_of(file)
        partitions = Partitions(options, file.name)
        is_complete = True
        with ExitStack() as held:
            path = file.place
            if not self.system.is_local and (not self.system.reads_ranges or is_read_whole(options, file.name)):
                with file_errors(file.path):
                    path = held.enter_context(local_path(self.system, file))
            with file_errors(file.path):
                parts = members(file, path, self.matches)
            for member in parts:
                place = state.places.get(member)
                place = place or (None if state.is_new else self.kept(self.partition(file, member)))
                form = _format(options, state, member)
                if form.is_table:
                    source = _table(options, file, path, form, place)
                else:
                    source = _content(options, state, partial(self._opened, file, path), member, form, place)
                is_complete = (yield from _of_member(source, member, partitions)) and is_complete
        state.is_complete = is_complete

    def _opened(self, file: SourceFile, path: str) -> OpenedFile:
        """Open the file itself, or the copy of it at ``path``."""
        if self.system.is_local or path == file.place:
            return self.system.open(file.place)
        return OpenedFile(Path(path).open("rb"), lambda: file.status)


def source_partition(file: SourceFile, member: str | None) -> dict[str, str]:
    """Return the source partition of a file, or of a member of an archive."""
    partition = {"filename": file.path}
    return partition if member is None else {**partition, "member": member}


def _of_member(source: _Source, member: str | None, partitions: Partitions) -> _Visited:
    """Yield the rows of a part of the file with the partition fields; return whether it was read to its end."""
    with closing(source):
        while True:
            try:
                rows = next(source)
            except StopIteration as end:
                return bool(end.value)
            yield member, replace(rows, column=partitions.added(rows.column))


def _format(config: ReadingOptions, state: FileState, member: str | None) -> FileFormat:
    name = member or state.file.name
    form = file_format(config, name)
    if form is None:
        raise DataError(
            f"Cannot read {name}: its format cannot be told from its name. Set 'format', or change 'pattern'."
        )
    if form.is_table and is_compressed(state.file.path):
        raise DataError(
            f"Cannot read {state.file.path}: {form} files have their own compression. Decompress it, or exclude it "
            "with 'pattern'."
        )
    return form


def _table(config: ReadingOptions, file: SourceFile, path: str, form: FileFormat, place: Bookmark | None) -> _Source:
    yield from table_rows(config, file, path, form, place)
    return True


def _content(
    config: ReadingOptions,
    state: FileState,
    opened: Callable[[], OpenedFile],
    member: str | None,
    form: FileFormat,
    place: Bookmark | None,
) -> _Source:
    with file_errors(state.file.path):
        content = Content(state.file, opened(), member)
    with closing(content):
        with file_errors(content.name):
            if _is_read(content, place):
                return True
            if is_compressed(content.path):
                content.verify()
            reader = _reader(config, state, content, form, place)
        if reader is None:
            return False
        while (rows := reader.read()) is not None:
            yield rows
        return reader.is_complete


def _is_read(content: Content, place: Bookmark | None) -> bool:
    """Whether the end of a compressed file was already reached, so it need not be decompressed again."""
    return place is not None and place.finished == content.size and content.has_fingerprint(place.fingerprint)


def _reader(
    config: ReadingOptions, state: FileState, content: Content, form: FileFormat, place: Bookmark | None
) -> FileReader | None:
    """Return a reader from that place on; ``None`` if too little of the file has been written yet."""
    if place is not None and not content.has_fingerprint(place.fingerprint):
        _log.warning("%s was replaced by another file: reading it from the beginning.", content.name)
        place = None
        state.opened.pop(content.member, None)
    opened = state.opened.get(content.member) or open_layout(config, content, form)
    if opened is None:
        return None
    state.opened[content.member] = opened
    first_row = replace(opened.first_row, fingerprint=content.fingerprint)
    if place is None or place.position < first_row.position:
        return FileReader(config, content, opened.layout, first_row)
    if not content.seek(place.position):
        _log.warning("%s was truncated before the last row read: reading it from the beginning.", content.name)
        return FileReader(config, content, opened.layout, first_row)
    here = replace(place, fingerprint=content.fingerprint, finished=None)
    return FileReader(config, content, opened.layout, here)
