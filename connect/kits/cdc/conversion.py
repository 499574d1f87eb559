"""Conversions: how the values of one column become those of a Connect schema."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from connect.data import Schema
from connect.kits.cdc.tables import Column

__all__ = ["Conversion", "Dialect"]


class Conversion(NamedTuple):
    """A schema, required and without a default, and the function that makes its values of the database's.

    ``convert`` is not called for null. It raises a ``ValueError`` or ``DataError`` for what the schema cannot hold.
    """

    schema: Schema
    convert: Callable[[Any], Any]

    def after(self, read: Callable[[Any], Any]) -> Conversion:
        """Return the conversion that first reads the database's value."""
        convert = self.convert
        return self._replace(convert=lambda value: convert(read(value)))


class Dialect(Protocol):
    """What a database adds to the kit: the conversions of its types."""

    def conversion(self, column: Column) -> Conversion | None:
        """Return how values of the column are converted; None leaves the column out of its table's records."""
