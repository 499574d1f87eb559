"""A visit to one file: reads all its rows from the last place to its current end."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import replace

from connect.data import Offset
from connect.errors import DataError
from connectors.directory.bookmark import Bookmark
from connectors.directory.config import DirectorySourceConfig
from connectors.directory.content import Content, file_errors, is_compressed, members
from connectors.directory.opening import file_format, open_layout
from connectors.directory.reader import FileReader, Rows
from connectors.directory.share import FileState

__all__ = ["KeptPlace", "Visit", "source_partition", "visit"]

KeptPlace = Callable[[Offset], Bookmark | None]
"""Returns the place that was committed for a source partition."""

Visit = Generator[tuple[str | None, Rows], None, None]
"""The rows of one visit, each with the archive member they are from; closing it closes the file."""

_log = logging.getLogger(__name__)


def source_partition(state: FileState, member: str | None) -> dict[str, str]:
    """The source partition of a file, or of a member of an archive."""
    partition = {"filename": state.file.path}
    return partition if member is None else {**partition, "member": member}


def visit(config: DirectorySourceConfig, state: FileState, matches: Callable[[str], bool], kept: KeptPlace) -> Visit:
    """The rows and the member they are from; at the end ``state.is_complete`` says whether the whole file was read.

    Raises :class:`~connect.errors.DataError` when the file cannot be read further, and ``FileNotFoundError`` when it is
    gone.
    """
    is_complete = True
    with file_errors(state.file.path):
        parts = members(state.file.path, matches)
    for member in parts:
        with file_errors(state.file.path):
            content = Content(state.file.path, member)
        with closing(content):
            place = state.places.get(member) or (None if state.is_new else kept(source_partition(state, member)))
            with file_errors(content.name):
                if _is_read(content, place):
                    continue
                if is_compressed(content.path):
                    content.verify()
                reader = _reader(config, state, content, place)
            if reader is None:
                is_complete = False
                continue
            while (rows := reader.read()) is not None:
                yield member, rows
            is_complete = is_complete and reader.is_complete
    state.is_complete = is_complete


def _is_read(content: Content, place: Bookmark | None) -> bool:
    """Whether the end of a compressed file was reached before, so it need not be unpacked again."""
    return place is not None and place.finished == content.size and content.has_fingerprint(place.fingerprint)


def _reader(
    config: DirectorySourceConfig, state: FileState, content: Content, place: Bookmark | None
) -> FileReader | None:
    """A reader from that place on; ``None`` if too little of the file has been written yet."""
    form = file_format(config, content.member or state.file.name)
    if form is None:
        raise DataError(
            f"{content.name} is not read: its name does not tell its format. Set 'format', or change 'pattern'."
        )
    if place is not None and not content.has_fingerprint(place.fingerprint):
        _log.warning("%s is not the file that was read before: reading it from the beginning.", content.name)
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
        _log.warning(
            "%s is shorter than the part of it that was read before: reading it from the beginning.", content.name
        )
        return FileReader(config, content, opened.layout, first_row)
    here = replace(place, fingerprint=content.fingerprint, finished=None)
    return FileReader(config, content, opened.layout, here)
