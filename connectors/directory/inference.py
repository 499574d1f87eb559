"""Infers the type of a column from the texts of its values.

Only texts that a type gives back as they were are taken for it: 0123 is no number, so that no postcode loses
its zero.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from connectors.directory.column_type import ColumnType, column_type

__all__ = ["inferred_type"]

_FORMS: Final = tuple(
    (name, re.compile(form))
    for name, form in (
        ("boolean", r"true|false|True|False|TRUE|FALSE"),
        ("int64", r"0|-?[1-9][0-9]*"),
        ("float64", r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"),
        ("date", r"[0-9]{4}-[0-9]{2}-[0-9]{2}"),
        ("timestamp", r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}.*"),
    )
)


def inferred_type(texts: Iterable[str]) -> ColumnType:
    """The first type that can read all ``texts``, which are no nulls; string if none can, or there are none."""
    values = set(texts)
    if values:
        for name, form in _FORMS:
            found = column_type(name)
            if all(form.fullmatch(value) for value in values) and _reads(found, values):
                return found
    return column_type("string")


def _reads(found: ColumnType, texts: Iterable[str]) -> bool:
    try:
        for text in texts:
            found.parse(text)
    except ValueError:
        return False
    return True
