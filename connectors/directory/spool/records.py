"""Rows of files as records with keys, timestamps, and headers about the file."""

from __future__ import annotations

import datetime as dt
import posixpath
from collections.abc import Callable, Iterator
from typing import Any, Final

from connect.data import Header, Headers, Schema, SourceRecord, timestamp_schema
from connect.errors import DataError
from connect.kits.files.folders.folder import RowFault, Shape
from connect.kits.files.readers.row_reader import Rows
from connect.kits.files.readers.visit import FileState, source_partition
from connect.kits.files.systems.system import SourceFile
from connect.kits.json_text import json_text
from connectors.directory.spool.config import (
    MetadataLocation,
    SpoolConfig,
    SpoolSchemaConfig,
    SpoolTextJsonConfig,
    TimestampMode,
)

__all__ = ["shape_of"]

_MS: Final = 1_000_000
_TEXT: Final = Schema.string()
_NUMBER: Final = Schema.int64()
_TIME: Final = timestamp_schema()
_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)

Made = tuple[Schema | None, Any, Schema | None, Any, int | None]
"""The key, the value, each after its schema, and the timestamp."""


def shape_of(config: SpoolConfig) -> Shape:
    """Return how rows become records: as structs, as the text of JSON, or as they are."""
    if isinstance(config, SpoolSchemaConfig):
        return _struct_shape(config)
    if isinstance(config, SpoolTextJsonConfig):
        return _shape(config, lambda _, value: (None, None, _TEXT, json_text(value), None))
    return _shape(config, lambda schema, value: (None, None, schema, value, None))


def _struct_shape(config: SpoolSchemaConfig) -> Shape:
    """Return the shape of rows that become structs, with a key of some of their fields."""
    schemas = config.schemas
    name = config.timestamp_field if config.timestamp_mode is TimestampMode.FIELD else None

    def made(_: Schema | None, row: Any) -> Made:
        if not isinstance(row, dict):
            raise ValueError(f"it is not an object but {type(row).__name__}")  # noqa: TRY004 - as others
        schema = schemas.schema_of(tuple(row))
        value = schemas.values(schema, row)
        key_schema = schemas.key_schema_of(schema)
        # A key may have fields in other types than the value has.
        key = None if key_schema is None else schemas.values(key_schema, row)
        time = None if name is None else round((value[name] - _EPOCH) / dt.timedelta(milliseconds=1))
        return key_schema, key, schema, value, time

    return _shape(config, made)


def _shape(config: SpoolConfig, made: Callable[[Schema | None, Any], Made]) -> Shape:
    by_line = config.form in ("csv", "text")
    has_headers = config.metadata_location is MetadataLocation.HEADERS
    by_file = config.timestamp_mode is TimestampMode.FILE_TIME

    def shape(rows: Rows, state: FileState, member: str | None) -> list[SourceRecord]:
        return list(records(rows, state, member))

    def records(rows: Rows, state: FileState, member: str | None) -> Iterator[SourceRecord]:
        partition = source_partition(state.file, member)
        file_headers = _headers(state.file) if has_headers else Headers()
        file_time = state.file.status.modified_ns // _MS if by_file else None
        for index, (value, offset) in enumerate(zip(rows.column, rows.offsets, strict=True)):
            place = offset["line" if by_line else "row"]
            try:
                key_schema, key, schema, shown, time = made(rows.column.schema, value)
            except ValueError as error:
                told = f"{state.file.path}, line or record {place}: the row is malformed: {error}."
                raise RowFault(index, DataError(told)) from error
            except DataError as error:
                raise RowFault(index, DataError(f"{state.file.path}, line or record {place}: {error}")) from error
            headers = file_headers.add("file.offset", place, _NUMBER) if has_headers else file_headers
            yield SourceRecord(
                config.topic_name,
                shown,
                schema,
                key,
                key_schema,
                timestamp=file_time if time is None else time,
                headers=headers,
                source_partition=partition,
                source_offset=offset,
            )

    return shape


def _headers(file: SourceFile) -> Headers:
    name = posixpath.basename(file.name)
    modified = _EPOCH + dt.timedelta(milliseconds=file.status.modified_ns // _MS)
    told = [
        Header("file.name", name, _TEXT),
        Header("file.name.without.extension", posixpath.splitext(name)[0], _TEXT),
        Header("file.path", file.path, _TEXT),
        Header("file.parent.dir.name", posixpath.basename(posixpath.dirname(file.path)), _TEXT),
        Header("file.length", file.size, _NUMBER),
        Header("file.last.modified", modified, _TIME),
    ]
    if folder := posixpath.dirname(file.name):
        told.append(Header("file.relative.path", folder, _TEXT))
    return Headers(told)
