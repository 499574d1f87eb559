"""A visit to one file: reads all its rows from the last place to the current end."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import replace
from typing import TypeAlias

from connect.data import Offset
from connect.errors import DataError
from connectors.directory.bookmark import Bookmark
from connectors.directory.config import DirectorySourceConfig, FileFormat
from connectors.directory.content import Content, file_errors, is_compressed, members
from connectors.directory.format_detection import file_format, open_layout
from connectors.directory.partitions import Partitions
from connectors.directory.reader import FileReader, Rows
from connectors.directory.tables import table_rows
from connectors.directory.task_files import FileState

__all__ = ["KeptPlace", "Visit", "source_partition", "visit"]

KeptPlace = Callable[[Offset], Bookmark | None]
"""Returns the place that was committed for a source partition."""

Visit = Generator[tuple[str | None, Rows], None, None]
"""The rows of one visit, each with the archive member they are from; closing it closes the file."""

_Source: TypeAlias = Generator[Rows, None, bool]
"""The rows of a part of a file; it returns whether the part was read to its end."""

_Visited: TypeAlias = Generator[tuple[str | None, Rows], None, bool]

_log = logging.getLogger(__name__)


def source_partition(state: FileState, member: str | None) -> dict[str, str]:
    """Return the source partition of a file, or of a member of an archive."""
    partition = {"filename": state.file.path}
    return partition if member is None else {**partition, "member": member}


def visit(config: DirectorySourceConfig, state: FileState, matches: Callable[[str], bool], kept: KeptPlace) -> Visit:
    """Yield the rows with the member they are from; at the end ``state.is_complete`` says whether all was read.

    Raises :class:`~connect.errors.DataError` when the file cannot be read further, and ``FileNotFoundError`` when it is
    gone.
    """
    partitions = Partitions(config, state.file.name)
    is_complete = True
    with file_errors(state.file.path):
        parts = members(state.file.path, matches)
    for member in parts:
        place = state.places.get(member) or (None if state.is_new else kept(source_partition(state, member)))
        form = _format(config, state, member)
        source = _table(config, state, form, place) if form.is_table else _content(config, state, member, form, place)
        is_complete = (yield from _of_member(source, member, partitions)) and is_complete
    state.is_complete = is_complete


def _of_member(source: _Source, member: str | None, partitions: Partitions) -> _Visited:
    """Yield the rows of a part of the file with the partition fields; return whether it was read to its end."""
    with closing(source):
        while True:
            try:
                rows = next(source)
            except StopIteration as end:
                return bool(end.value)
            yield member, replace(rows, column=partitions.added(rows.column))


def _format(config: DirectorySourceConfig, state: FileState, member: str | None) -> FileFormat:
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


def _table(config: DirectorySourceConfig, state: FileState, form: FileFormat, place: Bookmark | None) -> _Source:
    yield from table_rows(config, state.file, form, place)
    return True


def _content(
    config: DirectorySourceConfig, state: FileState, member: str | None, form: FileFormat, place: Bookmark | None
) -> _Source:
    with file_errors(state.file.path):
        content = Content(state.file.path, member)
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
    """Return whether the end of a compressed file was already reached, so it need not be decompressed again."""
    return place is not None and place.finished == content.size and content.has_fingerprint(place.fingerprint)


def _reader(
    config: DirectorySourceConfig, state: FileState, content: Content, form: FileFormat, place: Bookmark | None
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
