"""Keys and values as the JSON objects of Kafka Connect's REST API."""

from __future__ import annotations

from typing import TypedDict

from connect.config.formatting import format_value
from connect.config.key import ConfigKey
from connect.config.validation import ConfigValue

__all__ = ["ConfigInfo", "ConfigKeyInfo", "ConfigValueInfo", "config_info", "key_info", "value_info"]


class ConfigKeyInfo(TypedDict):
    """The definition of a key."""

    name: str
    type: str
    required: bool
    default_value: str | None
    importance: str
    documentation: str
    group: str | None
    order_in_group: int
    width: str
    display_name: str
    dependents: list[str]


class ConfigValueInfo(TypedDict):
    """What validation says of a key."""

    name: str
    value: str | None
    recommended_values: list[str | None]
    errors: list[str]
    visible: bool


class ConfigInfo(TypedDict):
    """A key and its value, as validation answers them."""

    definition: ConfigKeyInfo | None
    value: ConfigValueInfo


def key_info(key: ConfigKey) -> ConfigKeyInfo:
    """Return the definition of ``key``."""
    return {
        "name": key.name,
        "type": str(key.type),
        "required": key.required,
        "default_value": None if key.required else format_value(key.default),
        "importance": str(key.importance),
        "documentation": key.documentation,
        "group": key.group,
        "order_in_group": key.order_in_group,
        "width": str(key.width),
        "display_name": key.display_name,
        "dependents": list(key.dependents),
    }


def value_info(value: ConfigValue) -> ConfigValueInfo:
    """Return what validation said in ``value``."""
    return {
        "name": value.name,
        "value": format_value(value.value),
        "recommended_values": [format_value(item) for item in value.recommended_values],
        "errors": list(value.errors),
        "visible": value.visible,
    }


def config_info(key: ConfigKey | None, value: ConfigValue) -> ConfigInfo:
    """Return one of the ``configs`` that a validation answers; an undeclared key has no definition."""
    return {"definition": None if key is None else key_info(key), "value": value_info(value)}
