"""Decoders of scalars: from a parsed JSON value to that of a schema without parts.

They are as lenient as Kafka Connect: text where a number is due is 0, a number where text is due is null, a whole
number too large keeps its low bits. A container where a scalar is due is refused.
"""

from __future__ import annotations

import base64
import binascii
import copy
import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Context, Decimal, Inexact, InvalidOperation
from typing import Any, Final, TypeAlias

from connect.data import Schema, Type, logical
from connect.data.numerals import (
    INT32_MAX,
    INTEGER_BITS,
    INTEGER_RANGES,
    halves_single,
    integer_range,
    single,
    to_single,
    wrapped,
)
from connect.errors import DataError, SchemaError
from converters.json.errors import InexactError, UnfitError, kind_of

__all__ = ["SCALARS", "SCALARS_BY_NAME", "Decode", "Make", "Rules", "null_value", "wrapped"]

Decode: TypeAlias = Callable[[Any], Any]
"""Gives the value of parsed JSON, which it may change.

Raises ``UnfitError`` when there is none and ``InexactError`` when a float stands where its text must be read exactly.
"""


@dataclass(frozen=True, slots=True)
class Rules:
    """How text is read, apart from what the schema says."""

    replace_null: bool
    """A null becomes the default of the schema, where it has one."""

    brief: bool
    """No number in the text has more digits than a float holds, so that the float tells what the text was."""


Make: TypeAlias = Callable[[Schema, Rules, bool], Decode]
"""Makes the decoder of a schema, given whether the value is part of another."""

_MOST_PLACES: Final = 2000
_EXACT: Final = Context(prec=_MOST_PLACES, Emax=999999, Emin=-999999, traps=[Inexact, InvalidOperation])
_MOST_EXPONENT: Final = 64
_MOST_SCALE: Final = INT32_MAX


def null_value(schema: Schema, rules: Rules) -> Any:
    """What a null stands for; ``UnfitError`` when the schema wants a value."""
    if rules.replace_null and schema.default is not None:
        return schema.default if schema.type.is_primitive else copy.deepcopy(schema.default)
    if schema.optional:
        return None
    raise UnfitError(f"Invalid null value for required {schema.type.name} field")


# -- numbers -----------------------------------------------------------------------------------------------------


def _integer(schema: Schema, rules: Rules, _nested: bool) -> Decode:
    bits = INTEGER_BITS[schema.type]
    low, high = INTEGER_RANGES[schema.type]

    def decode(node: Any) -> Any:
        if node.__class__ is int and low <= node <= high:
            return node
        if node is None:
            return null_value(schema, rules)
        return wrapped(_whole(schema, _as_text_had_it(node, rules)), bits)

    return decode


def _as_text_had_it(node: Any, rules: Rules) -> Any:
    """A node, exact numbers for floats; ``InexactError`` when the float does not tell."""
    if node.__class__ is not float:
        return node
    if not rules.brief:
        raise InexactError
    return Decimal(repr(node))


def _whole(schema: Schema, node: Any) -> int:
    """The whole number in a JSON scalar, as far as its low 64 bits go."""
    _check_scalar(schema, node)
    if isinstance(node, (str, bool)):
        return 0
    if isinstance(node, int):
        return node
    exponent = node.as_tuple().exponent
    return int(node) if exponent < _MOST_EXPONENT and node.adjusted() >= 0 else 0


def _float64(schema: Schema, rules: Rules, _nested: bool) -> Decode:
    def decode(node: Any) -> Any:
        if node.__class__ is float:
            return node
        if node is None:
            return null_value(schema, rules)
        _check_scalar(schema, node)
        return 0.0 if isinstance(node, (str, bool)) else _to_double(node)

    return decode


def _to_double(number: int | Decimal) -> float:
    """The float nearest to an exact number."""
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def _float32(schema: Schema, rules: Rules, _nested: bool) -> Decode:
    def decode(node: Any) -> Any:
        if node.__class__ is float:
            return to_single(_as_text_had_it(node, rules)) if halves_single(node) else single(node)
        if node is None:
            return null_value(schema, rules)
        _check_scalar(schema, node)
        return 0.0 if isinstance(node, (str, bool)) else to_single(node)

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
    """The null that a scalar other than text is read as, where text is due."""
    _check_scalar(schema, node)
    if nested and not schema.optional:
        raise UnfitError(f"{kind_of(node)} where {schema.type.name} is expected, which may not be null")


def _check_scalar(schema: Schema, node: Any) -> None:
    if isinstance(node, (list, dict)):
        raise UnfitError(f"{kind_of(node)} where {schema.type.name} is expected")


def _from_base64(text: str, complaint: str) -> bytes:
    """The bytes of base64 text, white space aside."""
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
    """The same number with ``scale`` digits after the point; ``None`` if it has more. Zero has no sign, as in Java."""
    try:
        scaled = number.quantize(Decimal((0, (1,), -scale)), context=_EXACT)
    except (Inexact, InvalidOperation):
        return None
    return scaled or scaled.copy_abs()


def _with_its_own_scale(number: Decimal, scale: int) -> Decimal:
    """A number that does not fit the scale, which Kafka Connect hands out as it is in the text.

    One that would fill the memory as soon as somebody writes it out is refused.
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


SCALARS: Final[dict[Type, Make]] = {
    Type.INT8: _integer,
    Type.INT16: _integer,
    Type.INT32: _integer,
    Type.INT64: _integer,
    Type.FLOAT32: _float32,
    Type.FLOAT64: _float64,
    Type.BOOLEAN: _boolean,
    Type.STRING: _string,
    Type.BYTES: _bytes,
}
SCALARS_BY_NAME: Final[dict[str, Make]] = {
    logical.DECIMAL_NAME: _decimal,
    logical.DATE_NAME: _logical_number("Date", 32, logical.date_from_days),
    logical.TIME_NAME: _logical_number("Time", 32, logical.time_from_milliseconds),
    logical.TIMESTAMP_NAME: _logical_number("Timestamp", 64, logical.timestamp_from_milliseconds),
}
