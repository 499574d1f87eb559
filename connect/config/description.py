"""Descriptions of keys and values as JSON objects of Kafka Connect's REST API, and as reference pages."""

from __future__ import annotations

import inspect
from typing import TypedDict

from connect.config.config import Config
from connect.config.option import ConfigKey
from connect.config.types import format_value
from connect.config.validation import ConfigValue

__all__ = ["ConfigInfo", "ConfigKeyInfo", "ConfigValueInfo", "config_info", "key_info", "to_markdown", "value_info"]


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
    """The result of validating a key."""

    name: str
    value: str | None
    recommended_values: list[str | None]
    errors: list[str]
    visible: bool


class ConfigInfo(TypedDict):
    """The definition of a key and the result of validating it."""

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
    """Return the result of validating a key as its JSON object."""
    return {
        "name": value.name,
        "value": format_value(value.value),
        "recommended_values": [format_value(item) for item in value.recommended_values],
        "errors": list(value.errors),
        "visible": value.visible,
    }


def config_info(key: ConfigKey | None, value: ConfigValue) -> ConfigInfo:
    """Return one of the ``configs`` in the answer to a validation; an undeclared key has no definition."""
    return {"definition": None if key is None else key_info(key), "value": value_info(value)}


def to_markdown(config_class: type[Config], *, heading: int = 3) -> str:
    """Return the documentation of every option of ``config_class``, in declared order, at level ``heading``."""
    sections = [_section(key, "#" * heading) for key in config_class.definitions() if not key.internal]
    introduction = inspect.cleandoc(vars(config_class).get("__doc__") or "")
    return "\n".join(filter(None, [introduction and f"{introduction}\n", *sections]))


def _section(key: ConfigKey, marks: str) -> str:
    facts = {
        "Type": key.type.lower(),
        "Default": _default(key),
        "Valid values": key.validator.description if key.validator else "",
        "Importance": key.importance.lower(),
        "Depends on it": ", ".join(f"`{name}`" for name in key.dependents),
    }
    lines = [f"- {name}: {fact}" for name, fact in facts.items() if fact]
    return "\n".join([f"{marks} `{key.name}`", "", inspect.cleandoc(key.documentation), "", *lines, ""])


def _default(key: ConfigKey) -> str:
    if key.required:
        return "none, it is required"
    text = format_value(key.default)
    if text is None:
        return "null"
    return f"`{text}`" if text else "empty"
