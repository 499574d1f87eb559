"""Reads whole columns of bytes instead of calling the converter: the interface, its result, and the error for uncertain
values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from connect.data import Column, Schema

__all__ = ["ColumnReader", "Reading", "UncertainReadingError"]


class UncertainReadingError(Exception):
    """Raised when the values are unusual, so that the converter must decide."""


class Reading(NamedTuple):
    """Values as a column, and the paths of fields left out because their type is not known yet."""

    column: Column
    untyped: frozenset[str] = frozenset()


ColumnReader = Callable[[str, Any, Schema | None], Sequence[Reading]]
"""Reads an array of bytes of a topic for a table of this schema; with ``None``, the schema follows from the bytes.
Returns consecutive columns, usually just one.
"""
