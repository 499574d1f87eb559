"""Encoders: from the value of a schema to what orjson writes as Jackson does, put together once a schema.

What orjson writes otherwise (numeric decimals) is handed to it as a ready fragment.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from enum import StrEnum
from types import NoneType
from typing import Any, Final

import orjson

from connect.data import Schema, Type, logical
from connect.data.numerals import INTEGER_RANGES
from connect.errors import DataError
from converters.json.errors import UnfitError, WrongTypeError, place_of
from converters.json.schemaless import encode_schemaless
from converters.json.shapes import Shapes
from converters.json.written import encode_bytes, encode_float32, encode_float64

__all__ = ["INTEGER_RANGES", "DecimalFormat", "Encode", "encoder"]

Encode = Callable[[Any], Any]
"""Gives what orjson is to write for a value. Raises ``UnfitError`` when the value is not what the schema says."""


class DecimalFormat(StrEnum):
    """How decimals are written."""

    NUMERIC = "NUMERIC"
    BASE64 = "BASE64"


def encoder(schema: Schema | None, *, replace_null: bool, decimal_format: DecimalFormat) -> Encode:
    """The encoder of a schema; ``None`` is that of no schema.

    ``replace_null``: a null is written as the default of the schema, where it has one.
    """
    if schema is None:
        return encode_schemaless

    def of(part: Schema | None) -> Encode:
        return encoder(part, replace_null=replace_null, decimal_format=decimal_format)

    if schema.name == logical.DECIMAL_NAME:
        encode = _decimal(schema, decimal_format)
    elif schema.name in _BY_NAME:
        encode = _BY_NAME[schema.name]
    elif schema.type in INTEGER_RANGES:
        encode = _integer(*INTEGER_RANGES[schema.type])
    elif schema.type in _SCALARS:
        encode = _SCALARS[schema.type]
    elif schema.type is Type.ARRAY:
        encode = _array(of(schema.value_schema))
    elif schema.type is Type.MAP:
        encode = _map(schema, of(schema.key_schema), of(schema.value_schema))
    else:
        encode = _struct(
            schema,
            [
                (field.name, untouched(field.schema, replace_null=replace_null), of(field.schema))
                for field in schema.fields
            ],
        )
    return _nullable(schema, encode, replace_null)


def _nullable(schema: Schema, encode: Encode, replace_null: bool) -> Encode:
    instead = encode(schema.default) if schema.default is not None and replace_null else None

    def encode_any(value: Any) -> Any:
        if value is None:
            if instead is None and not schema.optional:
                raise UnfitError("Conversion error: null value for field that is required and has no default value")
            return instead
        try:
            return encode(value)
        except WrongTypeError as error:
            expected = f"{schema.name} ({schema.type.name})" if schema.name in logical.LOGICAL_NAMES else None
            raise UnfitError(
                f"{type(value).__name__} where {expected or schema.type.name} is expected{error.reason}"
            ) from None

    return encode_any


def untouched(schema: Schema, *, replace_null: bool) -> frozenset[type]:
    """The types of values of a schema that orjson can be given as they are, without a look at the value."""
    direct: dict[Type, set[type]] = {Type.STRING: {str}, Type.BOOLEAN: {bool}}
    kinds = set() if schema.name in logical.LOGICAL_NAMES else direct.get(schema.type, set())
    if schema.optional and (schema.default is None or not replace_null):
        kinds.add(NoneType)
    return frozenset(kinds)


# -- scalars -----------------------------------------------------------------------------------------------------


def _integer(low: int, high: int) -> Encode:
    def encode(value: Any) -> Any:
        if value.__class__ is int and low <= value <= high:
            return value
        if not isinstance(value, int) or isinstance(value, bool):
            raise WrongTypeError
        if not low <= value <= high:
            raise WrongTypeError(f"it is not within {low} and {high}")
        return int(value)

    return encode


def _boolean(value: Any) -> Any:
    if value is True or value is False:
        return value
    raise WrongTypeError


def _string(value: Any) -> Any:
    if isinstance(value, str):
        return str(value)
    raise WrongTypeError


# -- logical types -----------------------------------------------------------------------------------------------


def _decimal(schema: Schema, decimal_format: DecimalFormat) -> Encode:
    scale = logical.decimal_scale(schema)

    def as_number(value: Any) -> Any:
        if not isinstance(value, Decimal) or not value.is_finite():
            raise WrongTypeError
        # Java has no negative zero.
        return orjson.Fragment(str(value or value.copy_abs()).encode())

    def as_bytes(value: Any) -> Any:
        if not isinstance(value, Decimal):
            raise WrongTypeError
        try:
            return encode_bytes(logical.unscaled_from_decimal(value, scale))
        except (DataError, ArithmeticError) as error:
            raise UnfitError(str(error)) from error

    return as_number if decimal_format is DecimalFormat.NUMERIC else as_bytes


def _date(value: Any) -> Any:
    if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        return logical.days_from_date(value)
    raise WrongTypeError


def _time(value: Any) -> Any:
    if not isinstance(value, dt.time):
        raise WrongTypeError
    if value.tzinfo is not None:
        raise WrongTypeError("a time of day has no time zone")
    return logical.milliseconds_from_time(value)


def _timestamp(value: Any) -> Any:
    if not isinstance(value, dt.datetime):
        raise WrongTypeError
    if value.utcoffset() is None:
        raise WrongTypeError("the datetime has no time zone: give it one, such as datetime.UTC")
    return logical.milliseconds_from_timestamp(value)


# -- containers --------------------------------------------------------------------------------------------------


def _array(encode_item: Encode) -> Encode:
    def encode(value: Any) -> Any:
        if not isinstance(value, Sequence) or isinstance(value, (str, bytes, bytearray, memoryview)):
            raise WrongTypeError
        items: list[Any] = []
        try:
            for item in value:
                items.append(encode_item(item))  # noqa: PERF401 - its length says where an error is
        except UnfitError as error:
            error.within(f"[{len(items)}]")
            raise
        return items

    return encode


def _map(schema: Schema, encode_key: Encode, encode_item: Encode) -> Encode:
    assert schema.key_schema is not None
    as_object = schema.key_schema.type is Type.STRING

    def encode(value: Any) -> Any:
        if not isinstance(value, Mapping):
            raise WrongTypeError
        key: Any = None
        pairs = []
        try:
            for key, item in value.items():
                if key is None and as_object:
                    raise UnfitError("null cannot be the name of a member of a JSON object")
                pairs.append((encode_key(key), encode_item(item)))
        except UnfitError as error:
            error.within(place_of(key))
            raise
        return dict(pairs) if as_object else pairs

    return encode


def _struct(schema: Schema, members: Sequence[tuple[str, frozenset[type], Encode]]) -> Encode:
    names = schema.field_names
    shapes = Shapes(members)

    def encode(value: Any) -> Any:
        if value.__class__ is not dict or tuple(value) != names:
            return encode_any(value)
        encoded = value
        name = ""
        try:
            for name, encode_field in shapes[tuple(map(type, value.values()))]:
                before = value[name]
                after = encode_field(before)
                if after is not before:
                    if encoded is value:
                        encoded = value.copy()
                    encoded[name] = after
        except UnfitError as error:
            error.within(f".{name}")
            raise
        return encoded

    def encode_any(value: Any) -> Any:
        if not isinstance(value, Mapping):
            raise WrongTypeError
        name = ""
        encoded = {}
        try:
            for name, _, encode_field in members:
                encoded[name] = encode_field(value.get(name))
        except UnfitError as error:
            error.within(f".{name}")
            raise
        if not encoded.keys() >= value.keys():
            unknown = next(name for name in value if name not in encoded)
            shown = unknown if isinstance(unknown, str) else place_of(unknown)
            raise UnfitError(f"{shown} is not a valid field name; the struct has {', '.join(names)}")
        return encoded

    return encode


_SCALARS: Final[dict[Type, Encode]] = {
    Type.FLOAT32: encode_float32,
    Type.FLOAT64: encode_float64,
    Type.BOOLEAN: _boolean,
    Type.STRING: _string,
    Type.BYTES: encode_bytes,
}
_BY_NAME: Final[dict[str | None, Encode]] = {
    logical.DATE_NAME: _date,
    logical.TIME_NAME: _time,
    logical.TIMESTAMP_NAME: _timestamp,
}
