"""Reads whole columns of bytes instead of asking the converter: the interface, its result, and the error for uncertain
values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from connect.data import Column, Schema

__all__ = ["ColumnReader", "Reading", "UncertainReadingError"]


class UncertainReadingError(Exception):
    """The values are unusual, so the converter must decide."""


class Reading(NamedTuple):
    """Values as a column, and the paths of fields left out because their type is not known yet."""

    column: Column
    untyped: frozenset[str] = frozenset()


ColumnReader = Callable[[Any, Schema | None], Reading]
"""Reads an array of bytes for a table of this schema. If that is ``None``, only the schema of what is read counts."""
