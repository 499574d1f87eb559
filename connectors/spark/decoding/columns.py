"""Reads values as columns, without a Python object for each, where the converter's result is known.

A reader returns what the converter of the same name returns, which a test checks. Where that is not certain, it raises
:class:`~connectors.spark.decoding.column_reader.UncertainReadingError`, and the converter decides. A reader gets only
values that are not null.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

import pyarrow as pa
from pyarrow import types as kinds

from connect.converter import Converter
from connect.data import ArrowColumn, Schema
from connect.data.arrow import arrow_type
from connect.internals.plugins import class_name
from connectors.spark.decoding.column_reader import ColumnReader, Reading, UncertainReadingError
from connectors.spark.decoding.envelopes import EnvelopeReader
from connectors.spark.decoding.json_text import is_natural, parse_json, select

__all__ = ["column_reader"]

_STRING: Final = Schema.string(optional=True)
_BYTES: Final = Schema.bytes(optional=True)


def column_reader(converter: Converter[Any]) -> ColumnReader | None:
    """Return the reader that can replace a converter, if there is one."""
    config: Any = converter.config
    match class_name(converter):
        case "converters.byte_array.ByteArrayConverter":
            return _read_bytes
        case "converters.string.StringConverter":
            return _read_text if config.converter_encoding.upper() in ("UTF-8", "UTF8") else None
        case "converters.json.converter.JsonConverter":
            if not config.schemas_enable:
                return _read_json
            return None if config.schema_content else EnvelopeReader(converter)
    return None


def _read_bytes(array: Any, _table: Schema | None) -> Reading:
    return Reading(ArrowColumn(array, _BYTES))


def _read_text(array: Any, _table: Schema | None) -> Reading:
    try:
        return Reading(ArrowColumn(array.cast(pa.string()), _STRING))
    except pa.ArrowInvalid as error:
        raise UncertainReadingError from error


# -- JSON without schemas ----------------------------------------------------------------------------------------


def _read_json(array: Any, table: Schema | None) -> Reading:
    """Read JSON objects as structs, with fields of the types their values show."""
    rows = parse_json(array, None if table is None else _expected(table))
    if table is not None and _has_instants(rows.type):
        raise UncertainReadingError  # text that looks like an instant has been rewritten
    schema = _schema_of(rows.type) or Schema.struct({})
    return Reading(ArrowColumn(select(rows, schema), schema.as_required()), _untyped(rows.type))


@lru_cache(maxsize=64)
def _expected(table: Schema) -> Any:
    if not is_natural(table):
        raise UncertainReadingError
    return arrow_type(table)


def _schema_of(data_type: Any) -> Schema | None:
    """Return the schema of a type that pyarrow has inferred from JSON; ``None`` if the values show no type."""
    if kinds.is_struct(data_type):
        found = {field.name: _schema_of(field.type) for field in data_type}
        fields = {name: schema for name, schema in found.items() if schema is not None}
        return Schema.struct(fields, optional=True) if fields else None
    if kinds.is_list(data_type):
        items = _schema_of(data_type.value_type)
        return None if items is None else Schema.array(items, optional=True)
    for is_kind, make in _KINDS:
        if is_kind(data_type):
            return make(optional=True)
    return None


@lru_cache(maxsize=64)
def _has_instants(data_type: Any) -> bool:
    if kinds.is_struct(data_type):
        return any(_has_instants(field.type) for field in data_type)
    if kinds.is_list(data_type):
        return _has_instants(data_type.value_type)
    return bool(kinds.is_timestamp(data_type))


@lru_cache(maxsize=64)
def _untyped(data_type: Any, path: str = "") -> frozenset[str]:
    """Return the paths of the fields that hold only empty arrays and objects."""
    if kinds.is_struct(data_type):
        if not data_type.num_fields and path:
            return frozenset({path})
        prefix = f"{path}." if path else ""
        return frozenset().union(*(_untyped(field.type, prefix + field.name) for field in data_type))
    if kinds.is_list(data_type):
        if kinds.is_null(data_type.value_type):
            return frozenset({path})
        return _untyped(data_type.value_type, f"{path}[]")
    return frozenset()


_KINDS: Final[tuple[tuple[Callable[[Any], bool], Callable[..., Schema]], ...]] = (
    (kinds.is_string, Schema.string),
    # Text that pyarrow takes for an instant is still text.
    (kinds.is_timestamp, Schema.string),
    (kinds.is_int64, Schema.int64),
    (kinds.is_int32, Schema.int32),
    (kinds.is_int16, Schema.int16),
    (kinds.is_int8, Schema.int8),
    (kinds.is_float64, Schema.float64),
    (kinds.is_boolean, Schema.boolean),
)
