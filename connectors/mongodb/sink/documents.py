"""Keys and values of records as documents of MongoDB.

A struct or a map becomes a document; a string is read as Extended JSON, and bytes as BSON. Whole numbers keep their
width: an int64 is written as int64 even if it is small, as the Java connector does.
"""

from __future__ import annotations

import datetime as dt
import decimal
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final, TypeAlias

from bson import decode
from bson.codec_options import CodecOptions, DatetimeConversion
from bson.datetime_ms import DatetimeMS
from bson.decimal128 import Decimal128
from bson.errors import BSONError
from bson.int64 import Int64

from connect.data import Schema, Type
from connect.data.excerpt import excerpt
from connect.data.logical import (
    DATE_NAME,
    DECIMAL_NAME,
    TIME_NAME,
    TIMESTAMP_NAME,
    milliseconds_from_time,
    milliseconds_from_timestamp,
)
from connect.errors import DataError
from connect.kits.mongodb.extended_json import parse_document

__all__ = ["LOSSLESS", "Document", "SinkDocument", "document_of"]

Document: TypeAlias = dict[str, Any]
_Convert: TypeAlias = Callable[[Any], Any]

LOSSLESS: Final[CodecOptions[Document]] = CodecOptions(datetime_conversion=DatetimeConversion.DATETIME_MS)
"""Options with which BSON is read and written again unchanged."""

_INT64: Final = range(-(1 << 63), 1 << 63)
_DAY_MS: Final = 86_400_000
_DEEPEST: Final = 100
"""How deeply MongoDB allows documents to be nested."""


class SinkDocument:
    """The key and the value of a record as documents, each converted when it is first asked for.

    A key that no document can be made of, such as a number, is an error only if something needs it.
    """

    __slots__ = ("_key", "_key_schema", "_raw_key", "_raw_value", "_value", "_value_schema")

    def __init__(self, key: Any, key_schema: Schema | None, value: Any, value_schema: Schema | None) -> None:
        self._raw_key, self._key_schema = key, key_schema
        self._raw_value, self._value_schema = value, value_schema
        self._key: Document | None = None
        self._value: Document | None = None

    @property
    def key(self) -> Document | None:
        """The key as a document; ``None`` if the record has none."""
        if self._key is None and self._raw_key is not None:
            self._key = document_of(self._raw_key, self._key_schema, "key")
        return self._key

    @property
    def key_fields(self) -> Document | None:
        """The key as a document; ``None`` if the record has none, or one without fields, such as a number."""
        try:
            return self.key
        except DataError:
            return None

    @property
    def value(self) -> Document | None:
        """The value as a document; ``None`` if the record has none."""
        if self._value is None and self._raw_value is not None:
            self._value = document_of(self._raw_value, self._value_schema, "value")
        return self._value

    @property
    def has_key(self) -> bool:
        """Whether the record has a key."""
        return self._raw_key is not None

    @property
    def has_value(self) -> bool:
        """Whether the record has a value."""
        return self._raw_value is not None

    def required_value(self) -> Document:
        """Return the value; raises a ``DataError`` if there is none."""
        if (value := self.value) is None:
            raise DataError("The record has no value, and the write model needs one.")
        return value


def document_of(value: Any, schema: Schema | None, part: str) -> Document:
    """Return the document that a key or a value stands for; a ``DataError`` if it cannot be one."""
    if isinstance(value, str):
        return parse_document(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return _from_bson(bytes(value), part)
    if isinstance(value, dict):
        made = _plain(value, 0) if schema is None else _converter(schema)(value)
        if isinstance(made, dict):
            return made
    raise DataError(
        f"No document can be made of the {part} {excerpt(value)}: it must be a struct, a map, a JSON object as text or "
        "BSON as bytes. Choose another converter, or make a struct of it with the transformation HoistField."
    )


def _from_bson(data: bytes, part: str) -> Document:
    try:
        return decode(data, LOSSLESS)
    except (BSONError, ValueError, OverflowError, RecursionError) as error:
        raise DataError(f"The bytes of the {part} are not a BSON document: {error}") from error


# -- with a schema ------------------------------------------------------------------------------------------------


@lru_cache(1024)
def _converter(schema: Schema) -> _Convert:
    """Return the function that converts values of a schema."""
    plain = _by_type(schema)
    default = None if schema.default is None else plain(schema.default)

    def convert(value: Any) -> Any:
        return default if value is None else plain(value)

    return convert


def _by_type(schema: Schema) -> _Convert:
    if schema.name in _LOGICAL:
        return _LOGICAL[schema.name]
    make = _NESTED.get(schema.type)
    return make(schema) if make is not None else _SIMPLE.get(schema.type, _same)


def _same(value: Any) -> Any:
    return value


def _array(schema: Schema) -> _Convert:
    assert schema.value_schema is not None
    element = _converter(schema.value_schema)
    return lambda values: [element(value) for value in values]


def _struct(schema: Schema) -> _Convert:
    fields = [(field.name, _converter(field.schema)) for field in schema.fields]
    return lambda value: {name: convert(value.get(name)) for name, convert in fields}


def _map(schema: Schema) -> _Convert:
    assert schema.key_schema is not None
    assert schema.value_schema is not None
    if schema.key_schema.type is not Type.STRING:
        raise DataError(f"The keys of a map must be strings to become field names, not {schema.key_schema.type.value}.")
    element = _converter(schema.value_schema)
    return lambda value: {name: element(item) for name, item in value.items()}


def _decimal(value: decimal.Decimal) -> Decimal128:
    try:
        return Decimal128(value)
    except (decimal.DecimalException, ValueError) as error:
        raise DataError(f"Decimal {excerpt(value)} does not fit MongoDB's type: at most 34 digits.") from error


def _date(value: dt.date) -> DatetimeMS:
    return DatetimeMS((value.toordinal() - _EPOCH_DAY) * _DAY_MS)


def _time(value: dt.time) -> DatetimeMS:
    return DatetimeMS(milliseconds_from_time(value))


def _timestamp(value: dt.datetime) -> DatetimeMS:
    return DatetimeMS(milliseconds_from_timestamp(value))


_NESTED: Final = {Type.STRUCT: _struct, Type.ARRAY: _array, Type.MAP: _map}
_SIMPLE: Final[dict[Type, _Convert]] = {Type.INT64: Int64, Type.BYTES: bytes}
_EPOCH_DAY: Final = dt.date(1970, 1, 1).toordinal()
_LOGICAL: Final[dict[str | None, _Convert]] = {
    DECIMAL_NAME: _decimal,
    DATE_NAME: _date,
    TIME_NAME: _time,
    TIMESTAMP_NAME: _timestamp,
}


# -- without a schema ---------------------------------------------------------------------------------------------


def _plain(value: Any, depth: int) -> Any:
    """Convert a value by its Python type."""
    kind = type(value)
    if kind is str or value is None or kind is bool:
        return value
    if kind is int:
        return _int64(value)
    if kind is float:
        return value
    if depth > _DEEPEST:
        raise DataError(f"The value is nested more than {_DEEPEST} levels deep, which MongoDB does not allow.")
    if isinstance(value, dict):
        return {_name(name): _plain(item, depth + 1) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item, depth + 1) for item in value]
    return _rare(value)


def _rare(value: Any) -> Any:
    if isinstance(value, decimal.Decimal):
        return _decimal(value)
    if isinstance(value, dt.datetime):
        return _timestamp(value)
    if isinstance(value, dt.date):
        return _date(value)
    if isinstance(value, dt.time):
        return _time(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    raise DataError(f"A {type(value).__name__} cannot be written to MongoDB.")


def _int64(value: int) -> Int64:
    if value not in _INT64:
        raise DataError(f"The number {excerpt(value)} does not fit into 64 bits.")
    return Int64(value)


def _name(name: object) -> str:
    if not isinstance(name, str):
        raise DataError(f"The keys of a map must be strings to become field names, not {type(name).__name__}.")
    return name
