"""Decoders turn parsed JSON into values of a schema. They are built once per schema.

They are as lenient as Kafka Connect: text where a number is expected is 0, and a number where text is expected is null.
A container where a scalar is expected is refused, and unlike in Kafka Connect an integer that is too large as well.
"""

from __future__ import annotations

import base64
import binascii
import copy
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Context, Decimal, Inexact, InvalidOperation
from typing import Any, Final, TypeAlias

from connect.data import Schema, Type, logical
from connect.data.excerpt import excerpt
from connect.data.hash_collisions import refuse_colliding_keys
from connect.data.numerals import halves_single, integer_range, single, to_single
from connect.data.schema import INTEGER_BITS
from connect.errors import DataError, SchemaError
from converters.json.errors import InexactError, UnfitError, kind_of, place_of
from converters.json.passthrough import SCHEMALESS, StructWork, untouched_types

__all__ = ["Decode", "decode_schemaless", "decoder"]

Decode: TypeAlias = Callable[[Any], Any]
"""Returns the value of parsed JSON, which it may modify.

Raises ``UnfitError`` if the JSON does not match the schema, and ``InexactError`` if a float has to be read again,
exactly, from its text.
"""


@dataclass(frozen=True, slots=True)
class Rules:
    """The reading rules that do not depend on the schema."""

    replace_null: bool
    """A null is replaced with the default of the schema, if there is one."""

    brief: bool
    """No number in the text has more digits than a float can hold, so floats determine the numbers in the text."""


Make: TypeAlias = Callable[[Schema, Rules, bool], Decode]
"""Builds the decoder of a schema; the last argument says whether the value is part of another value."""

_MOST_PLACES: Final = 2000
_EXACT: Final = Context(prec=_MOST_PLACES, Emax=999999, Emin=-999999, traps=[Inexact, InvalidOperation])
_BEYOND_INT64: Final = 20
"""The place of a digit that no integer of 64 bits has."""
_UNLIKE_NUMBERS: Final[Mapping[str | bool, float]] = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
"""The floats that JSON has no numbers for, by the text that is written for them."""
_MOST_SCALE: Final = 2**31 - 1
_DIRECT: Final = {Type.STRING: str, Type.BOOLEAN: bool, Type.FLOAT64: float}
"""The Python types of parsed JSON that are already values of a schema."""


def decoder(schema: Schema | None, *, replace_null: bool, nested: bool = False, brief: bool = False) -> Decode:
    """Return the decoder of a schema, or of schemaless values if it is ``None``.

    ``replace_null``: a null becomes the default of the schema, where it has one. ``nested``: the value is part of
    another, where a lenient null is not allowed unless the schema allows it. ``brief``: the text is
    :func:`~converters.json.text.is_brief`, so that floats stand for exact numbers.
    """
    return _decoder(schema, Rules(replace_null, brief), nested=nested)


def _decoder(schema: Schema | None, rules: Rules, *, nested: bool) -> Decode:
    if schema is None:
        return decode_schemaless
    make = _BY_NAME.get(schema.name or "") or _BY_TYPE[schema.type]
    return make(schema, rules, nested)


def null_value(schema: Schema, rules: Rules) -> Any:
    """Return the value that a null represents. Raises ``UnfitError`` if the schema requires a value."""
    if rules.replace_null and schema.default is not None:
        return schema.default if schema.type.is_primitive else copy.deepcopy(schema.default)
    if schema.optional:
        return None
    raise UnfitError(f"Invalid null value for required {schema.type.name} field")


# -- containers --------------------------------------------------------------------------------------------------


def _array(schema: Schema, rules: Rules, _nested: bool) -> Decode:
    decode_item = _decoder(schema.value_schema, rules, nested=True)

    def decode(node: Any) -> Any:
        if node.__class__ is list:
            items: list[Any] = []
            try:
                for item in node:
                    items.append(decode_item(item))  # noqa: PERF401 - its length says where an error is
            except UnfitError as error:
                error.within(f"[{len(items)}]")
                raise
            return items
        if node is None:
            return null_value(schema, rules)
        raise UnfitError(f"Arrays should be encoded as JSON arrays, but found {kind_of(node)}")

    return decode


def _map(schema: Schema, rules: Rules, nested: bool) -> Decode:
    assert schema.key_schema is not None
    if schema.key_schema.type is not Type.STRING:
        return _pairs(schema, rules, nested)
    decode_item = _decoder(schema.value_schema, rules, nested=True)

    def decode(node: Any) -> Any:
        if node.__class__ is dict:
            key = ""
            items = {}
            try:
                for key, item in node.items():
                    items[key] = decode_item(item)
            except UnfitError as error:
                error.within(place_of(key))
                raise
            return items
        if node is None:
            return null_value(schema, rules)
        raise UnfitError(f"Maps with string fields should be encoded as JSON objects, but found {kind_of(node)}")

    return decode


def _pairs(schema: Schema, rules: Rules, _nested: bool) -> Decode:
    assert schema.key_schema is not None
    is_decimal = schema.key_schema.name == logical.DECIMAL_NAME
    decode_key = _decoder(schema.key_schema, rules, nested=True)
    decode_item = _decoder(schema.value_schema, rules, nested=True)

    def decode_pair(pair: Any) -> tuple[Any, Any]:
        if pair.__class__ is not list:
            raise UnfitError(f"Found invalid map entry instead of array tuple: {kind_of(pair)}")
        if len(pair) != 2:
            raise UnfitError(f"Found invalid map entry, expected length 2 but found :{len(pair)}")
        return decode_key(pair[0]), decode_item(pair[1])

    def decode(node: Any) -> Any:
        if node is None:
            return null_value(schema, rules)
        if node.__class__ is not list:
            kind = kind_of(node)
            raise UnfitError(f"Maps with non-string fields should be encoded as JSON array of tuples, but found {kind}")
        pairs: list[tuple[Any, Any]] = []
        try:
            pairs.extend(map(decode_pair, node))
        except UnfitError as error:
            error.within(f"[{len(pairs)}]")
            raise
        if is_decimal:
            _check_decimal_keys(pairs)
        try:
            return dict(pairs)
        except TypeError as error:
            raise UnfitError("An array, a map or a struct cannot be the key of a map in Python") from error

    return decode


def _check_decimal_keys(pairs: list[tuple[Any, Any]]) -> None:
    try:
        refuse_colliding_keys([key for key, _ in pairs])
    except DataError as error:
        raise UnfitError(str(error)) from error


def _struct(schema: Schema, rules: Rules, _nested: bool) -> Decode:
    names = schema.field_names
    members = [
        (
            field.name,
            untouched_types(field.schema, _DIRECT, replace_null=rules.replace_null),
            _decoder(field.schema, rules, nested=True),
        )
        for field in schema.fields
    ]
    work = StructWork(members)

    def decode(node: Any) -> Any:
        if node.__class__ is not dict:
            if node is None:
                return null_value(schema, rules)
            raise UnfitError(f"Structs should be encoded as JSON objects, but found {kind_of(node)}")
        name = ""
        try:
            if tuple(node) == names:
                for name, decode_field in work[tuple(map(type, node.values()))]:
                    node[name] = decode_field(node[name])
                return node
            values = {}
            for name, _, decode_field in members:
                values[name] = decode_field(node.get(name))
        except UnfitError as error:
            error.within(f".{name}")
            raise
        return values

    return decode


# -- numbers -----------------------------------------------------------------------------------------------------


def _integer(schema: Schema, rules: Rules, _nested: bool) -> Decode:
    low, high = integer_range(INTEGER_BITS[schema.type])

    def decode(node: Any) -> Any:
        if node.__class__ is int and low <= node <= high:
            return node
        if node is None:
            return null_value(schema, rules)
        number = _whole(schema, _as_text_had_it(node, rules))
        if not low <= number <= high:
            shown = str(number) if isinstance(number, Decimal) else excerpt(number)
            raise UnfitError(f"The whole number {shown} does not fit {schema.type.name}: use a wider type")
        return int(number)

    return decode


def _as_text_had_it(node: Any, rules: Rules) -> Any:
    """Return the node with exact numbers in place of floats.

    Raises ``InexactError`` if a float does not determine its number.
    """
    if node.__class__ is not float:
        return node
    if not rules.brief:
        raise InexactError
    return Decimal(repr(node))


def _whole(schema: Schema, node: Any) -> int | Decimal:
    """Return the whole number in a JSON scalar, without its fraction."""
    _check_scalar(schema, node)
    if isinstance(node, (str, bool)):
        return 0
    if isinstance(node, int):
        return node
    # The integer of 1e999999 would fill the memory.
    return node if node.adjusted() >= _BEYOND_INT64 else int(node)


def _float64(schema: Schema, rules: Rules, _nested: bool) -> Decode:
    def decode(node: Any) -> Any:
        if node.__class__ is float:
            return node
        if node is None:
            return null_value(schema, rules)
        _check_scalar(schema, node)
        return _UNLIKE_NUMBERS.get(node, 0.0) if isinstance(node, (str, bool)) else _to_double(node)

    return decode


def _to_double(number: int | Decimal) -> float:
    """Return the float nearest to an exact number."""
    try:
        return _finite(float(number), number, Type.FLOAT64)
    except OverflowError as error:
        raise UnfitError(_too_large(number, Type.FLOAT64)) from error


def _finite(number: float, written: float | Decimal, kind: Type) -> float:
    """Return a float that was read from a number; one that is too large must not become infinite."""
    if math.isinf(number):
        raise UnfitError(_too_large(written, kind))
    return number


def _too_large(number: float | Decimal, kind: Type) -> str:
    shown = str(number) if isinstance(number, Decimal) else excerpt(number)
    return f"The number {shown} is too large for {kind.name}: use a wider type or a Decimal"


def _float32(schema: Schema, rules: Rules, _nested: bool) -> Decode:
    def decode(node: Any) -> Any:
        if node.__class__ is float:
            rounded = to_single(_as_text_had_it(node, rules)) if halves_single(node) else single(node)
            return _finite(rounded, node, Type.FLOAT32)
        if node is None:
            return null_value(schema, rules)
        _check_scalar(schema, node)
        if isinstance(node, (str, bool)):
            return _UNLIKE_NUMBERS.get(node, 0.0)
        return _finite(to_single(node), node, Type.FLOAT32)

    return decode


# -- other scalars -----------------------------------------------------------------------------------------------


def _boolean(schema: Schema, rules: Rules, _nested: bool) -> Decode:
    def decode(node: Any) -> Any:
        if node.__class__ is bool:
            return node
        if node is None:
            return null_value(schema, rules)
        _check_scalar(schema, node)
        return False

    return decode


def _string(schema: Schema, rules: Rules, nested: bool) -> Decode:
    def decode(node: Any) -> Any:
        if node.__class__ is str:
            return node
        if node is None:
            return null_value(schema, rules)
        return _lenient_null(schema, node, nested)

    return decode


def _bytes(schema: Schema, rules: Rules, nested: bool) -> Decode:
    def decode(node: Any) -> Any:
        if node.__class__ is str:
            return _from_base64(node, "Invalid bytes field")
        if node is None:
            return null_value(schema, rules)
        return _lenient_null(schema, node, nested)

    return decode


def _lenient_null(schema: Schema, node: Any, nested: bool) -> None:
    """Read any scalar that is not text as null, where text is expected."""
    _check_scalar(schema, node)
    if nested and not schema.optional:
        raise UnfitError(f"{kind_of(node)} where {schema.type.name} is expected, which may not be null")


def _check_scalar(schema: Schema, node: Any) -> None:
    if isinstance(node, (list, dict)):
        raise UnfitError(f"{kind_of(node)} where {schema.type.name} is expected")


def _from_base64(text: str, complaint: str) -> bytes:
    """Decode base64 text, ignoring white space."""
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        try:
            return base64.b64decode("".join(text.split()), validate=True)
        except (binascii.Error, ValueError) as error:
            raise UnfitError(f"{complaint}: it is not base64: {error}") from error


# -- logical types -----------------------------------------------------------------------------------------------


def _decimal(schema: Schema, rules: Rules, _nested: bool) -> Decode:
    scale = logical.decimal_scale(schema)
    if abs(scale) > _MOST_SCALE:
        raise SchemaError(f"Invalid scale parameter found in Decimal schema: {scale} is more than {_MOST_SCALE}")

    def decode(node: Any) -> Any:
        if node.__class__ is str:
            return _unscaled(node, scale)
        if node is None:
            return null_value(schema, rules)
        if node.__class__ is float:
            number = _rescaled(_as_text_had_it(node, rules), scale)
            if number is None:
                raise InexactError
            return number
        if node.__class__ is int or node.__class__ is Decimal:
            number = _rescaled(Decimal(node), scale)
            return _with_its_own_scale(Decimal(node), scale) if number is None else number
        kind = kind_of(node)
        raise UnfitError(
            f"Invalid type for Decimal, underlying representation should be numeric or bytes but was {kind}"
        )

    return decode


def _unscaled(text: str, scale: int) -> Decimal:
    data = _from_base64(text, "Invalid bytes for Decimal field")
    try:
        return logical.decimal_from_unscaled(data, scale)
    except (DataError, ValueError, ArithmeticError) as error:
        raise UnfitError(f"Invalid bytes for Decimal field, of which there are {len(data)}: {error}") from error


def _rescaled(number: Decimal, scale: int) -> Decimal | None:
    """Return the same number with ``scale`` digits after the point, or ``None`` if it has more.

    Zero has no sign, as in Java.
    """
    try:
        scaled = number.quantize(Decimal((0, (1,), -scale)), context=_EXACT)
    except (Inexact, InvalidOperation):
        return None
    return scaled or scaled.copy_abs()


def _with_its_own_scale(number: Decimal, scale: int) -> Decimal:
    """Return a number that does not fit the scale unchanged, as Kafka Connect does.

    Rejects a number that would fill the memory as soon as it is written out.
    """
    exponent = number.as_tuple().exponent
    assert isinstance(exponent, int)
    if max(abs(exponent), abs(number.adjusted())) > _MOST_PLACES:
        raise UnfitError(f"The number {number} does not fit a Decimal of scale {scale}")
    return number or number.copy_abs()


def _logical_number(kind: str, bits: int, convert: Callable[[int], Any]) -> Make:
    expected = "integer" if bits == INTEGER_BITS[Type.INT32] else "integral"
    low, high = integer_range(bits)

    def make(schema: Schema, rules: Rules, _nested: bool) -> Decode:
        def decode(node: Any) -> Any:
            if node.__class__ is int and low <= node <= high:
                try:
                    return convert(node)
                except DataError as error:
                    raise UnfitError(str(error)) from error
            if node is None:
                return null_value(schema, rules)
            raise UnfitError(
                f"Invalid type for {kind}, underlying representation should be {expected} but was {kind_of(node)}"
            )

        return decode

    return make


# -- without a schema --------------------------------------------------------------------------------------------


def decode_schemaless(node: Any) -> Any:
    """Return the value of JSON without a schema. Whole numbers are exact, others are floats. Modifies the node."""
    kind = node.__class__
    if kind in SCHEMALESS or kind is int:
        return node
    if kind is float:
        # An integer of more than 64 bits is a float to orjson but an integer to Kafka Connect.
        if abs(node) >= 2.0**63 and node.is_integer():
            raise InexactError
        return node
    # One Python frame per level, so the nesting limit bounds the recursion.
    if kind is dict:
        name = ""
        try:
            for name, item in node.items():
                if item.__class__ not in SCHEMALESS:
                    node[name] = decode_schemaless(item)
        except UnfitError as error:
            error.within(place_of(name))
            raise
        return node
    if kind is list:
        index = 0
        try:
            for index, item in enumerate(node):
                if item.__class__ not in SCHEMALESS:
                    node[index] = decode_schemaless(item)
        except UnfitError as error:
            error.within(f"[{index}]")
            raise
        return node
    return _to_double(node)


_BY_TYPE: Final[dict[Type, Make]] = {
    Type.INT8: _integer,
    Type.INT16: _integer,
    Type.INT32: _integer,
    Type.INT64: _integer,
    Type.FLOAT32: _float32,
    Type.FLOAT64: _float64,
    Type.BOOLEAN: _boolean,
    Type.STRING: _string,
    Type.BYTES: _bytes,
    Type.ARRAY: _array,
    Type.MAP: _map,
    Type.STRUCT: _struct,
}
_BY_NAME: Final[dict[str, Make]] = {
    logical.DECIMAL_NAME: _decimal,
    logical.DATE_NAME: _logical_number("Date", 32, logical.date_from_days),
    logical.TIME_NAME: _logical_number("Time", 32, logical.time_from_milliseconds),
    logical.TIMESTAMP_NAME: _logical_number("Timestamp", 64, logical.timestamp_from_milliseconds),
}
