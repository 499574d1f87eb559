"""The result of a reader of columns, and the error that leaves the column to the converter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from connect.data import Column, Schema

__all__ = ["ColumnReader", "Reading", "UncertainReadingError"]


class UncertainReadingError(Exception):
    """Values are out of the ordinary, so that the converter has to be asked."""


class Reading(NamedTuple):
    """Values as a column, and the paths of fields left out because their type is not known yet."""

    column: Column
    untyped: frozenset[str] = frozenset()


ColumnReader = Callable[[Any, Schema | None], Reading]
"""Reads an array of bytes for a table of this schema. If that is ``None``, only the schema of what is read counts."""
