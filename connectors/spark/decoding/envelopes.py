"""Reads JSON with its schema in an envelope by column.

The messages of a topic mostly begin with the same bytes, up to the payload. The converter reads those bytes once, and
the payloads become columns with the types that the schema names.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import Any, Final

import pyarrow.compute as pc

from connect.converter import Converter
from connect.data import ArrowColumn, Schema, Type
from connect.data.arrow import arrow_type
from connect.errors import DataError
from connectors.spark.decoding.column_reader import Reading, UncertainReadingError
from connectors.spark.decoding.json_text import is_natural, parse_json, select
from connectors.spark.schema import table_schema

__all__ = ["EnvelopeReader"]

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

    def __call__(self, array: Any, _table: Schema | None) -> Reading:
        """Read whole messages that all begin like the first one, up to the payload."""
        prefix = _prefix(array[0].as_py())
        if not _are_all_like(array, prefix):
            raise UncertainReadingError
        return self._read(pc.binary_slice(array, len(prefix), -1), prefix)

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
