"""Options shared by many transformations, validators for lists of fields, and imports of optional libraries."""

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
from connect.internals.extras import how_to_install
from connect.transforms.fields.field_path import FieldSyntax

__all__ = [
    "field_syntax_version",
    "optional_library",
    "parse_pairs",
    "rename_pairs",
    "replace_null_with_default",
    "split_at_colons",
    "unique_names",
]

unique_names = all_of(non_empty_list, unique_list)
"""A non-empty list without duplicates."""


def replace_null_with_default() -> bool:
    """Declare the option ``replace.null.with.default``."""
    return option(
        default=True,
        importance=MEDIUM,
        doc="Whether a null field whose schema has a default is read as that default.",
    )


def field_syntax_version() -> FieldSyntax:
    """Declare the option ``field.syntax.version``."""
    return option(
        default="V1",
        ignore_case=True,
        importance=HIGH,
        doc="Syntax of field names. V1: a name, at the top of the key or value. V2: a path such as "
        "customer.address.city; put a name that contains a dot between backticks.",
    )


def split_at_colons(text: str) -> list[str]:
    """Split ``text`` at colons. As in Java, empty parts at the end are dropped."""
    parts = text.split(":")
    while len(parts) > 1 and not parts[-1]:
        parts.pop()
    return parts


@validator("list of colon-delimited pairs, e.g. <code>foo:bar,abc:xyz</code>")
def rename_pairs(key: str, value: Collection[str]) -> None:
    """Refuse an item that does not consist of two names separated by a colon."""
    for item in value:
        if len(split_at_colons(item)) != 2:
            raise invalid_value(key, value, f"Invalid rename mapping: {item}")


def parse_pairs(items: Iterable[str]) -> dict[str, str]:
    """Parse pairs such as ``old:new`` to a map."""
    parts = [split_at_colons(item) for item in items]
    return {pair[0]: pair[1] for pair in parts}


def optional_library(module: str, extra: str, key: str) -> Any:
    """Import a module; if it is missing, raise an error about the option ``key`` that says how to install it."""
    try:
        return import_module(module)
    except ImportError as error:
        text = f"{key} needs the Python module {module}, which is not installed: {how_to_install(extra)}"
        raise ConfigRuleError(text, key) from error
