"""Decimals and bytes by ``decimal.handling.mode`` and ``binary.handling.mode``."""

from __future__ import annotations

import base64
import decimal
from collections.abc import Callable
from enum import StrEnum
from typing import Any, Final

from connect.data import Schema, decimal_schema
from connect.data.logical import unscaled_from_decimal
from connect.data.numerals import EXACT
from connect.errors import DataError
from connect.kits.cdc.conversion import Conversion
from connect.kits.cdc.semantic_types import VARIABLE_SCALE_DECIMAL

__all__ = [
    "BinaryHandlingMode",
    "DecimalHandlingMode",
    "binary_conversion",
    "decimal_conversion",
    "plain_text",
    "variable_scale_conversion",
]

_PRECISION: Final = "connect.decimal.precision"


class DecimalHandlingMode(StrEnum):
    """The values of ``decimal.handling.mode``."""

    PRECISE = "precise"
    DOUBLE = "double"
    STRING = "string"


class BinaryHandlingMode(StrEnum):
    """The values of ``binary.handling.mode``."""

    BYTES = "bytes"
    BASE64 = "base64"
    BASE64_URL_SAFE = "base64-url-safe"
    HEX = "hex"


def decimal_conversion(mode: DecimalHandlingMode, precision: int | None, scale: int) -> Conversion:
    """Return the conversion of decimals given as text or ``Decimal`` to exactly ``scale`` digits after the point."""
    if mode is DecimalHandlingMode.DOUBLE:
        return Conversion(Schema.float64(), float)
    unit = decimal.Decimal((0, (1,), -scale))

    def exact(value: Any) -> decimal.Decimal:
        number = decimal.Decimal(value)
        if not number.is_finite():
            raise DataError(f"{number} has no place in a Decimal: set decimal.handling.mode to string or double.")
        if number.same_quantum(unit):
            return number
        fitted = number.quantize(unit, context=EXACT)
        if fitted != number:
            raise DataError(f"{number} has more than {scale} digits after the point.")
        return fitted

    if mode is DecimalHandlingMode.STRING:
        return Conversion(Schema.string(), lambda value: plain_text(_scaled(value, exact)))
    parameters = {} if precision is None else {_PRECISION: str(precision)}
    return Conversion(decimal_schema(scale, parameters=parameters), exact)


def _scaled(value: Any, exact: Callable[[Any], decimal.Decimal]) -> decimal.Decimal:
    number = decimal.Decimal(value)
    return exact(number) if number.is_finite() else number


def variable_scale_conversion(mode: DecimalHandlingMode) -> Conversion:
    """Return the conversion of decimals of any scale, given as text or ``Decimal``."""
    if mode is DecimalHandlingMode.DOUBLE:
        return Conversion(Schema.float64(), float)
    if mode is DecimalHandlingMode.STRING:
        return Conversion(Schema.string(), lambda value: plain_text(decimal.Decimal(value)))
    return Conversion(VARIABLE_SCALE_DECIMAL, _variable_scale)


def _variable_scale(value: Any) -> dict[str, Any]:
    number = decimal.Decimal(value)
    if not number.is_finite():
        raise DataError(f"{number} has no place in a decimal: set decimal.handling.mode to string or double.")
    number = number.normalize(EXACT) if number else decimal.Decimal(0)
    scale = max(0, -int(number.as_tuple().exponent))
    return {
        "scale": scale,
        "value": unscaled_from_decimal(number.quantize(decimal.Decimal((0, (1,), -scale)), context=EXACT), scale),
    }


def plain_text(number: decimal.Decimal) -> str:
    """Return a decimal without an exponent, with all its digits; ``NaN`` and ``Infinity`` by these names."""
    return f"{number:f}"


_BINARY: Final[dict[BinaryHandlingMode, Callable[[bytes], str]]] = {
    BinaryHandlingMode.BASE64: lambda value: base64.b64encode(value).decode(),
    BinaryHandlingMode.BASE64_URL_SAFE: lambda value: base64.urlsafe_b64encode(value).decode(),
    BinaryHandlingMode.HEX: bytes.hex,
}


def binary_conversion(mode: BinaryHandlingMode) -> Conversion:
    """Return the conversion of bytes."""
    if mode is BinaryHandlingMode.BYTES:
        return Conversion(Schema.bytes(), bytes)
    return Conversion(Schema.string(), _BINARY[mode])
