"""Writes values as Kafka does, for the REST API and for error messages."""

from __future__ import annotations

from connect.config.password import Password
from connect.data.numerals import double_text

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
            return double_text(value)
        case tuple() | list():
            return f"[{', '.join(display_value(item) for item in value)}]"
        case _:
            return str(value)


def original_text(value: object) -> str | None:
    """Return the text that ``value`` is parsed from. Unlike in ``format_value`` a password is told."""
    return value.value if isinstance(value, Password) else format_value(value)
