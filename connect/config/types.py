"""The types of configuration values, and the text form of values."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, TypeAlias

from connect.config.password import Password
from connect.data.numerals import double_text

__all__ = ["ConfigType", "Long", "ParsedValue", "PluginName", "Short", "display_value", "format_value", "original_text"]


class ConfigType(StrEnum):
    """The type to which a value is parsed, under the names of the REST API."""

    BOOLEAN = "BOOLEAN"
    STRING = "STRING"
    INT = "INT"
    SHORT = "SHORT"
    LONG = "LONG"
    DOUBLE = "DOUBLE"
    LIST = "LIST"
    CLASS = "CLASS"
    PASSWORD = "PASSWORD"  # noqa: S105 (the name of a type)


Short = Annotated[int, ConfigType.SHORT]
"""An integer of 16 bits."""

Long = Annotated[int, ConfigType.LONG]
"""An integer of 64 bits; plain ``int`` is one of 32."""

PluginName = Annotated[str, ConfigType.CLASS]
"""The name of a plugin: a dotted path, a simple name, or the Java class that the plugin replaces."""

ParsedValue: TypeAlias = str | int | float | bool | Password | tuple[str, ...] | None
"""A value after parsing, as validators are given it and ``ConfigValue`` holds it."""


def format_value(value: object) -> str | None:
    """Return ``value`` as property text: ``true``, ``1000.0``, ``a,b``; a password is ``[hidden]``."""
    if value is None:
        return None
    if isinstance(value, tuple | list):
        return ",".join(display_value(item) for item in value)
    return display_value(value)


def display_value(value: object) -> str:
    """Return ``value`` as shown in error messages: ``null``, ``true``, ``[a, b]``; a password is ``[hidden]``."""
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
    """Return the text from which ``value`` was parsed. Unlike ``format_value`` it does not hide passwords."""
    return value.value if isinstance(value, Password) else format_value(value)
