"""Libraries that only some transformations need, and that are installed as extras."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from connect.config import ConfigRuleError

__all__ = ["optional_library"]


def optional_library(module: str, extra: str, key: str) -> Any:
    """The module, imported now. If it is missing, the error about the option ``key`` says how to install it."""
    try:
        return import_module(module)
    except ImportError as error:
        text = f"{key} needs the Python module {module}, which is not installed: pip install 'sluice[{extra}]'"
        raise ConfigRuleError(text, key) from error
