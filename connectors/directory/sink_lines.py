"""Records as lines of files."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping
from typing import Any, Final

from connect.data import Schema, SinkRecord
from connect.errors import DataError
from connect.kits.json_text import json_text
from connectors.directory.sink_config import DirectorySinkConfig, SinkFormat

__all__ = ["Line", "line_of"]

Line = tuple[tuple[str, ...] | None, bytes]
"""The columns of the file that the line belongs to, if it has columns, and the line."""


def line_of(config: DirectorySinkConfig) -> Callable[[SinkRecord], Line]:
    """Return what turns a record into a line. It raises :class:`~connect.errors.DataError` for one that cannot be."""
    if config.format is SinkFormat.CSV:
        return lambda record: _row(record, config.delimiter)
    return _FORMATS[config.format]


def header_line(columns: tuple[str, ...], delimiter: str) -> bytes:
    """Return the first line of a file with columns."""
    return _csv(columns, delimiter)


def _json(record: SinkRecord) -> Line:
    return None, f"{json_text(record.value, schema=record.value_schema)}\n".encode()


def _text(record: SinkRecord) -> Line:
    value = record.value
    if not isinstance(value, str):
        raise DataError(f"{_where(record)} has a value of type {type(value).__name__}, and format=text writes texts.")
    if "\n" in value or "\r" in value:
        raise DataError(f"{_where(record)} has a line ending in its text, which would make two lines of it.")
    return None, f"{value}\n".encode()


def _bytes(record: SinkRecord) -> Line:
    if not isinstance(record.value, bytes | bytearray | memoryview):
        found = type(record.value).__name__
        raise DataError(f"{_where(record)} has a value of type {found}, and format=bytes writes bytes.")
    return None, bytes(record.value)


def _row(record: SinkRecord, delimiter: str) -> Line:
    value = record.value
    if not isinstance(value, Mapping) or not value or not all(isinstance(name, str) for name in value):
        raise DataError(f"{_where(record)} has no columns: format=csv writes structs and objects with fields.")
    fields = {field.name: field.schema for field in record.value_schema.fields} if record.value_schema else {}
    names = tuple(fields or sorted(value))
    return names, _csv([_cell(value.get(name), fields.get(name)) for name in names], delimiter)


def _cell(value: Any, schema: Schema | None) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json_text(value, schema=schema).strip('"')


def _csv(cells: list[str] | tuple[str, ...], delimiter: str) -> bytes:
    line = io.StringIO()
    # A row of one empty value would be a blank line, which is no row.
    only_empty = len(cells) == 1 and not cells[0]
    quoting: Any = csv.QUOTE_ALL if only_empty else csv.QUOTE_MINIMAL
    csv.writer(line, delimiter=delimiter, lineterminator="\n", quoting=quoting).writerow(cells)
    return line.getvalue().encode()


def _where(record: SinkRecord) -> str:
    return f"The record at offset {record.original_offset} of {record.original_topic}-{record.original_partition}"


_FORMATS: Final[Mapping[SinkFormat, Callable[[SinkRecord], Line]]] = {
    SinkFormat.JSONL: _json,
    SinkFormat.TEXT: _text,
    SinkFormat.BYTES: _bytes,
}
