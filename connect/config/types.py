"""The types a configuration value can have, and the annotations that stand for them."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, TypeAlias

from connect.config.password import Password

__all__ = ["ConfigType", "Long", "ParsedValue", "PluginName", "Short"]


class ConfigType(StrEnum):
    """What a value is parsed to. The names are those of the REST API."""

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
"""The name of a plugin: a dotted path, a simple name or the Java class it stands for."""

ParsedValue: TypeAlias = str | int | float | bool | Password | tuple[str, ...] | None
"""A value after parsing: what validators are given and ``ConfigValue`` holds."""
