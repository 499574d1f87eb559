"""The options that many transformations share, the validators of lists of fields, and the libraries of extras."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from importlib import import_module
from typing import Any

from connect.config import (
    HIGH,
    MEDIUM,
    ConfigRuleError,
    all_of,
    invalid_value,
    non_empty_list,
    option,
    unique_list,
    validator,
)
from connect.transforms.fields.field_path import FieldSyntax

__all__ = [
    "field_syntax_version",
    "names",
    "optional_library",
    "pairs",
    "parse_pairs",
    "replace_null_with_default",
    "split_pair",
]

names = all_of(non_empty_list, unique_list)
"""A list that names something, and nothing twice."""


def replace_null_with_default() -> bool:
    """Declare the option ``replace.null.with.default``."""
    return option(
        default=True,
        importance=MEDIUM,
        doc="Whether a field that is null and has a default value in its schema is read as that default.",
    )


def field_syntax_version() -> FieldSyntax:
    """Declare the option ``field.syntax.version``."""
    return option(
        default="V1",
        ignore_case=True,
        importance=HIGH,
        doc="How fields are named. V1: by their name, at the top of the key or value. V2: by a path such as "
        "customer.address.city; a name that holds a dot stands between backticks.",
    )


def split_pair(text: str) -> list[str]:
    """The parts of ``text`` between colons. As in Java, empty ones at the end do not count."""
    parts = text.split(":")
    while len(parts) > 1 and not parts[-1]:
        parts.pop()
    return parts


@validator("list of colon-delimited pairs, e.g. <code>foo:bar,abc:xyz</code>")
def pairs(key: str, value: Collection[str]) -> None:
    """Refuse an item that is not two names with a colon between them."""
    for item in value:
        if len(split_pair(item)) != 2:
            raise invalid_value(key, value, f"Invalid rename mapping: {item}")


def parse_pairs(items: Iterable[str]) -> dict[str, str]:
    """The pairs as a map."""
    parts = [split_pair(item) for item in items]
    return {pair[0]: pair[1] for pair in parts}


def optional_library(module: str, extra: str, key: str) -> Any:
    """The module, imported now. If it is missing, the error about the option ``key`` says how to install it."""
    try:
        return import_module(module)
    except ImportError as error:
        text = f"{key} needs the Python module {module}, which is not installed: pip install 'sluice[{extra}]'"
        raise ConfigRuleError(text, key) from error
