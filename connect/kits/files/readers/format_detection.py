"""Determines how to read a file: the format from its name, columns and types from its first rows."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass
from itertools import islice
from typing import Final

from connect.errors import DataError
from connect.kits.files.readers.bookmark import Bookmark
from connect.kits.files.readers.content import Content, is_compressed
from connect.kits.files.readers.delimited import Delimited, Dialect
from connect.kits.files.readers.layout import Chunks, JsonLines, JsonValues, Layout, TextLines
from connect.kits.files.readers.options import FileFormat, ReadingOptions
from connect.kits.files.readers.records import Records

__all__ = ["Opened", "file_format", "is_read_whole", "open_layout"]

_HEAD_BYTES: Final = 64 * 1024
_FORMATS: Final = {
    "csv": FileFormat.CSV,
    "tsv": FileFormat.TSV,
    "tab": FileFormat.TSV,
    "jsonl": FileFormat.JSONL,
    "ndjson": FileFormat.JSONL,
    "json": FileFormat.JSONL,
    "txt": FileFormat.TEXT,
    "log": FileFormat.TEXT,
    "avro": FileFormat.AVRO,
    "parquet": FileFormat.PARQUET,
    "orc": FileFormat.ORC,
}


@dataclass(frozen=True, slots=True)
class Opened:
    """The layout of a file, and where its first row begins."""

    layout: Layout
    first_row: Bookmark


def file_format(config: ReadingOptions, name: str) -> FileFormat | None:
    """Return the format of a file with that name; ``None`` if neither the configuration nor the name determines it."""
    if config.format is not FileFormat.AUTO:
        return config.format
    plain = name.lower().removesuffix(".gz").removesuffix(".zip")
    return _FORMATS.get(plain.rpartition(".")[2])


def is_read_whole(config: ReadingOptions, name: str) -> bool:
    """Whether a file with that name must be complete before any of it can be read."""
    form = file_format(config, name)
    is_whole = form is not None and (
        form.is_table or (form is FileFormat.BYTES and not config.bytes_chunk_size and not config.bytes_separator)
    )
    return is_compressed(name) or is_whole


def open_layout(config: ReadingOptions, content: Content, form: FileFormat) -> Opened | None:
    """Determine how to read a file from its beginning; ``None`` if too little of it has been written yet."""
    if form is FileFormat.BYTES:
        return Opened(Chunks(config.bytes_chunk_size, config.separator), Bookmark(fingerprint=content.fingerprint))
    content.seek(0)
    is_marked = config.has_mark and config.is_utf8 and content.read(3) == codecs.BOM_UTF8
    mark = len(codecs.BOM_UTF8) if is_marked else 0
    if form is FileFormat.JSON:
        return Opened(JsonValues(config.encoding, is_utf8=config.is_utf8), Bookmark(mark, 0, 0, content.fingerprint))
    start = _after_lines(config, content, mark)
    if start is None:
        return None
    if form is FileFormat.TEXT:
        return Opened(TextLines(config.encoding), start)
    if form is FileFormat.JSONL:
        return Opened(JsonLines(config.encoding, is_utf8=config.is_utf8), start)
    return _open_delimited(config, content, form, start)


def _after_lines(config: ReadingOptions, content: Content, mark: int) -> Bookmark | None:
    """Return the place after the lines to pass over; ``None`` if they have not been written yet."""
    position, left = mark, config.skip_lines
    content.seek(position)
    while left:
        data = content.read(_HEAD_BYTES)
        ends = [match.end() for match in islice(re.finditer(b"\n", data), left)]
        left -= len(ends)
        if not left:
            position += ends[-1]
        elif len(data) == _HEAD_BYTES:
            position += len(data)
        elif content.is_settled(config.settle_ms / 1000):
            position, left = position + len(data), 0
        else:
            return None
    return Bookmark(position, 0, config.skip_lines, content.fingerprint)


def _open_delimited(config: ReadingOptions, content: Content, form: FileFormat, start: Bookmark) -> Opened | None:
    dialect = Dialect(config, form)
    count = config.infer_rows + 1 if config.infer_rows or config.header else 1
    records = _first_records(config, content, dialect, start.position, count)
    if records is None:
        return None
    first: list[list[str]] = []
    for index in range(min(count, len(records))):
        try:
            first.append(dialect.texts(records, index))
        except ValueError as error:
            if index == 0 and config.header:
                raise DataError(
                    f"The header of {content.name} cannot be read: {error}. Correct it, or set 'columns' and "
                    "header=false."
                ) from error
            # A malformed row does not help to infer types; it is reported when it is read.
            first.append([])
    layout = Delimited.of(config, dialect, first, content.name)
    if not config.header or not len(records):
        return Opened(layout, start)
    lines = (start.line or 0) + records.lines[0]
    header = Bookmark(start.position + records.ends[0], 0, lines, content.fingerprint)
    return Opened(layout, header)


def _first_records(
    config: ReadingOptions, content: Content, dialect: Dialect, start: int, count: int
) -> Records | None:
    """Return the first ``count`` records, or all if the file is complete; ``None`` if more may come."""
    content.seek(start)
    data, size = b"", _HEAD_BYTES
    while True:
        more = content.read(size)
        data += more
        ended = len(more) < size
        records = dialect.cut(data, ended and content.is_settled(config.settle_ms / 1000))
        if len(records) >= count:
            return records
        if ended:
            return records if content.is_settled(config.settle_ms / 1000) else None
        if not len(records) and len(data) > config.record_max_bytes:
            raise DataError(
                f"The first row of {content.name} is longer than record.max.bytes={config.record_max_bytes}. "
                "Raise it, or exclude the file with 'pattern'."
            )
        size *= 2
