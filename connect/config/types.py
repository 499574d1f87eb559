"""The types of configuration values, and the text of values of each."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, TypeAlias

from connect.config.password import Password
from connect.data.numerals import double_text

__all__ = ["ConfigType", "Long", "ParsedValue", "PluginName", "Short", "display_value", "format_value", "original_text"]


class ConfigType(StrEnum):
    """The type that a value is parsed to. The names are those of the REST API."""

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
    """Return the text that ``value`` is parsed from. Unlike ``format_value`` it does not hide a password."""
    return value.value if isinstance(value, Password) else format_value(value)
