"""Reads values as columns, without a Python object for each, where the converter's result is known.

A reader returns what the converter of the same name returns, which a test checks. Where that is not certain, it raises
:class:`~connectors.spark.decoding.column_reader.UncertainReadingError`, and the converter decides. A reader gets only
values that are not null.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as kinds

from connect.converter import Converter
from connect.data import ArrowColumn, Schema, Type
from connect.data.arrow import arrow_type
from connect.errors import ConnectError, DataError
from connect.internals.plugins import class_name
from connectors.spark.decoding.column_reader import ColumnReader, Reading, UncertainReadingError
from connectors.spark.decoding.json_text import is_natural, parse_json, select
from connectors.spark.schema import table_schema

__all__ = ["EnvelopeReader", "column_reader"]

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
        case (
            "converters.apicurio.avro.ApicurioAvroConverter"
            | "converters.avro.converter.AvroConverter"
            | "converters.glue.converter.GlueAvroConverter"
            | "converters.protobuf.converter.ProtobufConverter"
            | "converters.json_schema.converter.JsonSchemaConverter"
        ):
            return partial(_read_registered, converter)
    return None


def _read_bytes(_topic: str, array: Any, _table: Schema | None) -> list[Reading]:
    return [Reading(ArrowColumn(array, _BYTES))]


def _read_text(_topic: str, array: Any, _table: Schema | None) -> list[Reading]:
    try:
        return [Reading(ArrowColumn(array.cast(pa.string()), _STRING))]
    except pa.ArrowInvalid as error:
        raise UncertainReadingError from error


def _read_registered(converter: Any, topic: str, array: Any, _table: Schema | None) -> list[Reading]:
    """Read messages whose schema is in a registry, with a new column where the schema changes."""
    try:
        columns = converter.to_connect_arrow(topic, array)
    except ConnectError as error:
        # Whether one message is bad or the registry is away, the chain knows what to do about it.
        raise UncertainReadingError from error
    if any(column.schema is None or column.to_arrow().null_count for column in columns):
        raise UncertainReadingError
    return [Reading(column) for column in columns]


# -- JSON without schemas ----------------------------------------------------------------------------------------


def _read_json(_topic: str, array: Any, table: Schema | None) -> list[Reading]:
    """Read JSON objects as structs, with fields of the types their values show."""
    rows = parse_json(array, None if table is None else _expected(table))
    if table is not None and _has_instants(rows.type):
        raise UncertainReadingError  # text that looks like an instant has been rewritten
    schema = _schema_of(rows.type) or Schema.struct({})
    return [Reading(ArrowColumn(select(rows, schema), schema.as_required()), _untyped(rows.type))]


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


_SPACE: Final = r"[ \t\r\n]*"
_SCHEMA: Final = re.compile(rf'{_SPACE}\{{{_SPACE}"schema"{_SPACE}:{_SPACE}')
_PAYLOAD: Final = re.compile(rf'{_SPACE},{_SPACE}"payload"{_SPACE}:{_SPACE}')
_DECODER: Final = json.JSONDecoder()


class EnvelopeReader:
    """The :data:`~connectors.spark.decoding.column_reader.ColumnReader` that replaces a JsonConverter with
    ``schemas.enable=true``.
    """

    def __init__(self, converter: Converter[Any]) -> None:
        self._schema_of = lru_cache(maxsize=64)(lambda prefix: _schema(converter, prefix))

    def __call__(self, _topic: str, array: Any, _table: Schema | None) -> list[Reading]:
        """Read whole messages that all begin like the first one, up to the payload."""
        prefix = _prefix(array[0].as_py())
        if not _are_all_like(array, prefix):
            raise UncertainReadingError
        return [self._read(pc.binary_slice(array, len(prefix), -1), prefix)]

    def _read(self, payloads: Any, prefix: bytes) -> Reading:
        schema = self._schema_of(prefix)
        if schema is None:
            raise UncertainReadingError
        # Nulls are accepted here and checked below: pyarrow would also refuse them inside a null.
        rows = parse_json(payloads, arrow_type(table_schema(schema)))
        _check_nulls(rows, schema)
        return Reading(ArrowColumn(select(rows, schema), schema))


def _are_all_like(array: Any, prefix: bytes) -> bool:
    begins, ends = pc.starts_with(array, prefix.decode()), pc.ends_with(array, "}")
    return bool(pc.all(begins).as_py() and pc.all(ends).as_py())


def _prefix(message: bytes) -> bytes:
    """Return the bytes before the payload of an envelope whose schema comes first."""
    try:
        text = message.decode()
        start = _SCHEMA.match(text)
        if start is None:
            raise UncertainReadingError
        _, end = _DECODER.raw_decode(text, start.end())
    except (ValueError, RecursionError) as error:
        raise UncertainReadingError from error
    payload = _PAYLOAD.match(text, end)
    if payload is None:
        raise UncertainReadingError
    return text[: payload.end()].encode()


def _schema(converter: Converter[Any], prefix: bytes) -> Schema | None:
    """Return the schema in an envelope; ``None`` if its values need special treatment."""
    envelope = json.loads(prefix + b"null}")
    if not isinstance(envelope["schema"], dict):
        return None
    optional = envelope["schema"].get("optional") is True
    # An optional payload may be null, and a null is the one payload that fits whatever its fields are.
    envelope["schema"]["optional"] = True
    try:
        schema = converter.to_connect("", json.dumps(envelope).encode()).schema
    except DataError:
        return None
    if schema is None or schema.type is not Type.STRUCT or not schema.fields or not is_natural(schema):
        return None
    return None if _has_default(schema) else schema.replace(optional=optional)


def _has_default(schema: Schema) -> bool:
    parts = [schema.value_schema, *(field.schema for field in schema.fields)]
    return schema.default is not None or any(part is not None and _has_default(part) for part in parts)


def _check_nulls(array: Any, schema: Schema) -> None:
    """Refuse nulls that the schema does not allow: the converter reports what is wrong with them."""
    if array.null_count and not schema.optional:
        raise UncertainReadingError
    present = array.drop_null() if array.null_count else array
    if schema.type is Type.STRUCT:
        for field in schema.fields:
            _check_nulls(present.field(field.name), field.schema)
    elif schema.type is Type.ARRAY and schema.value_schema is not None:
        _check_nulls(present.flatten(), schema.value_schema)
