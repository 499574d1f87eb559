"""What readers of columns give, and how they say that they cannot."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from connect.data import Column, Schema

__all__ = ["ColumnReader", "DoubtError", "Reading"]


class DoubtError(Exception):
    """These values are out of the ordinary: ask the converter."""


class Reading(NamedTuple):
    """Values as a column, and the paths of fields left out because their type is not known yet."""

    column: Column
    untyped: frozenset[str] = frozenset()


ColumnReader = Callable[[Any, Schema | None], Reading]
"""Reads an array of bytes for a table of this schema. If that is ``None``, only the schema of what is read counts."""
