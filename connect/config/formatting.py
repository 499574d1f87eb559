"""Writes values as Kafka does, for the REST API and for error messages."""

from __future__ import annotations

import math
from decimal import Decimal

from connect.config.password import Password

__all__ = ["display_value", "format_value", "original_text"]


def format_value(value: object) -> str | None:
    """Return ``value`` as a property holds it: ``true``, ``1000.0``, ``a,b``; a password is ``[hidden]``."""
    if value is None:
        return None
    if isinstance(value, tuple | list):
        return ",".join(display_value(item) for item in value)
    return display_value(value)


def display_value(value: object) -> str:
    """Return ``value`` as error messages show it: ``null``, ``true``, ``[a, b]``, a password ``[hidden]``."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case float():
            return _format_double(value)
        case tuple() | list():
            return f"[{', '.join(display_value(item) for item in value)}]"
        case _:
            return str(value)


def original_text(value: object) -> str | None:
    """Return the text that ``value`` is parsed from. Unlike in ``format_value`` a password is told."""
    return value.value if isinstance(value, Password) else format_value(value)


def _format_double(value: float) -> str:
    """Return the text of Java's ``Double.toString``: plain from 0.001 up to ten million, else ``1.0E10``."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        text = format(Decimal(repr(value)), "f")
        return text if "." in text else f"{text}.0"
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    assert isinstance(exponent, int)
    fraction = "".join(map(str, digits[1:])) or "0"
    return f"{'-' if sign else ''}{digits[0]}.{fraction}E{exponent + len(digits) - 1}"
