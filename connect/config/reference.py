"""The reference documentation of a config class."""

from __future__ import annotations

import inspect

from connect.config.config import Config
from connect.config.formatting import format_value
from connect.config.key import ConfigKey

__all__ = ["to_markdown"]


def to_markdown(config_class: type[Config], *, heading: int = 3) -> str:
    """Return a section on every option of ``config_class``, in declared order, at level ``heading``."""
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
