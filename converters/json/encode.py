"""Encoders turn values of a schema into nodes that orjson writes as Jackson does. They are built once per schema.

Where orjson would write a value differently (numeric decimals, floats in scientific notation), it is passed to orjson
as a finished fragment.
"""

from __future__ import annotations

import binascii
import datetime as dt
import math
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from enum import StrEnum
from typing import Any, Final

import orjson

from connect.data import Schema, Type, logical
from connect.data.numerals import INT64_MAX, INT64_MIN, double_text, float_text, single
from connect.data.schema import INTEGER_RANGES
from connect.errors import DataError
from converters.json.errors import UnfitError, WrongTypeError, place_of
from converters.json.passthrough import SCHEMALESS, StructWork, untouched_types
from converters.json.text import MOST_DIGITS

__all__ = [
    "DecimalFormat",
    "Encode",
    "array_encoder",
    "encode_decimal_column",
    "encode_float64_column",
    "encode_schemaless",
    "encoder",
]

Encode = Callable[[Any], Any]
"""Returns the node that orjson writes for a value. Raises ``UnfitError`` if the value does not match the schema."""


class DecimalFormat(StrEnum):
    """How decimals are written."""

    NUMERIC = "NUMERIC"
    BASE64 = "BASE64"


_EXACT_IN_DOUBLE: Final = 2**53
_MOST_BITS: Final = (10**MOST_DIGITS).bit_length() - 1
_DIRECT: Final = {Type.STRING: str, Type.BOOLEAN: bool}
"""The Python types that orjson can write unchanged, without inspecting the value."""


def encoder(schema: Schema | None, *, replace_null: bool, decimal_format: DecimalFormat) -> Encode:
    """Return the encoder of a schema, or of schemaless values if it is ``None``.

    ``replace_null``: a null is written as the default of the schema, if there is one.
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
        encode = array_encoder(of(schema.value_schema))
    elif schema.type is Type.MAP:
        encode = _map(schema, of(schema.key_schema), of(schema.value_schema))
    else:
        encode = _struct(
            schema,
            [
                (field.name, untouched_types(field.schema, _DIRECT, replace_null=replace_null), of(field.schema))
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


def _float64(value: Any) -> Any:
    """Return the node for a float: the float itself if Java, too, writes it in plain decimals."""
    number = value if value.__class__ is float else _number(value)
    if 1e-3 <= number < 1e7 or -1e7 < number <= -1e-3 or number == 0:
        return float(number)
    text = double_text(number)
    return orjson.Fragment(text.encode()) if math.isfinite(number) else text


def encode_float64_column(column: Sequence[Any]) -> Sequence[Any]:
    """Return the nodes for many floats: the column itself if Java writes all of them in plain decimals."""
    sizes = list(map(abs, column))
    # Min and max may miss a NaN, but it makes the sum NaN.
    if not math.isnan(sum(sizes)) and max(sizes) < 1e7 and min(filter(None, sizes), default=1.0) >= 1e-3:
        return column
    return list(map(_float64, column))


def encode_decimal_column(column: Sequence[Any], scale: int) -> Sequence[Any]:
    """Return the base64 texts of many decimals."""
    return [
        binascii.b2a_base64(unscaled, newline=False).decode()
        for unscaled in logical.unscaled_from_decimals(column, scale)
    ]


def _float32(value: Any) -> Any:
    """Return the node for a float of single precision."""
    number = _number(value)
    rounded = single(number)
    if not math.isfinite(rounded):
        if math.isfinite(number):
            raise WrongTypeError("it is too large for single precision")
        return float_text(rounded)
    short = float(f"{rounded:.6g}")
    if single(short) == rounded and 1e-3 <= abs(short) < 1e7:
        return short  # orjson's text for this double is Java's text for the single
    return orjson.Fragment(float_text(rounded).encode())


def _number(value: Any) -> float:
    if isinstance(value, float):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        if abs(value) > _EXACT_IN_DOUBLE:
            raise WrongTypeError("it cannot be held exactly as a float; pass a float to have it rounded")
        return float(value)
    raise WrongTypeError


def _bytes(value: Any) -> str:
    """Return bytes as base64 text."""
    if isinstance(value, memoryview):
        value = value.tobytes()
    if isinstance(value, (bytes, bytearray)):
        return binascii.b2a_base64(value, newline=False).decode()
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
            return _bytes(logical.unscaled_from_decimal(value, scale))
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


def array_encoder(encode_item: Encode) -> Encode:
    """Return the encoder of arrays whose items this one encodes."""

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
    work = StructWork(members)

    def encode(value: Any) -> Any:
        if value.__class__ is not dict or tuple(value) != names:
            return encode_any(value)
        encoded = value
        name = ""
        try:
            for name, encode_field in work[tuple(map(type, value.values()))]:
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


# -- without a schema --------------------------------------------------------------------------------------------


def encode_schemaless(value: Any) -> Any:
    """Return the node for a value without a schema. Raises ``UnfitError`` if JSON has no corresponding type.

    A map with a key that is not a string becomes an array of pairs. The value itself is not modified.
    """
    kind = value.__class__
    if kind in SCHEMALESS:
        return value
    if kind is float:
        return _float64(value)
    if kind is not dict and kind is not list:
        return _encode_unusual(value)
    parts, of_places = (value.items(), str) if kind is dict else (enumerate(value), int)
    encoded = value
    place: Any = None
    try:
        for place, item in parts:
            if place.__class__ is not of_places:
                return _encode_unusual(value)
            kind = item.__class__
            if (
                kind in SCHEMALESS
                or (kind is int and INT64_MIN <= item <= INT64_MAX)
                or (kind is float and 1e-3 <= item < 1e7)
            ):
                continue
            # One Python frame per level, so the nesting limit bounds the recursion.
            after = encode_schemaless(item)
            if after is not item:
                if encoded is value:
                    encoded = value.copy()
                encoded[place] = after
    except UnfitError as error:
        error.within(place_of(place))
        raise
    return encoded


def _long_number(value: int) -> Any:
    """Return the node for a whole number of more than 64 bits, which orjson does not write."""
    if value.bit_length() > _MOST_BITS:
        raise UnfitError(f"the whole number has more than {MOST_DIGITS} digits")
    return orjson.Fragment(str(int(value)).encode())


def _encode_unusual(value: Any) -> Any:
    """Encode subclasses and other implementations of Python's interfaces; reject values that JSON cannot express."""
    match value:
        case str():
            return str(value)
        case int():
            return int(value) if INT64_MIN <= value <= INT64_MAX else _long_number(value)
        case float():
            return _float64(value)
        case Mapping():
            pairs = [[encode_schemaless(key), encode_schemaless(item)] for key, item in value.items()]
            return dict(pairs) if all(isinstance(key, str) for key in value) else pairs
        case bytes() | bytearray() | memoryview():
            return _bytes(value)
        case Sequence():
            return encode_schemaless(list(value))
        case _:
            raise UnfitError(f"Python class {type(value).__name__} does not have corresponding schema type.")


_SCALARS: Final[dict[Type, Encode]] = {
    Type.FLOAT32: _float32,
    Type.FLOAT64: _float64,
    Type.BOOLEAN: _boolean,
    Type.STRING: _string,
    Type.BYTES: _bytes,
}
_BY_NAME: Final[dict[str | None, Encode]] = {
    logical.DATE_NAME: _date,
    logical.TIME_NAME: _time,
    logical.TIMESTAMP_NAME: _timestamp,
}
