"""Remembers what was worked out for each schema, so that it is worked out once and not once a record."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from connect.data import Schema

__all__ = ["SchemaCache"]

T = TypeVar("T")


class SchemaCache(Generic[T]):
    """Calls ``compute`` with a schema and keeps the answers for the last ``limit`` schemas (invariant I9)."""

    __slots__ = ("_compute", "_entries", "_limit")

    def __init__(self, compute: Callable[[Schema | None], T], limit: int = 64) -> None:
        self._compute = compute
        self._limit = limit
        # Schemas are interned: their identity is enough, and held here it cannot pass to another schema.
        self._entries: dict[int, tuple[Schema | None, T]] = {}

    def __call__(self, schema: Schema | None) -> T:
        """What ``compute`` says of the schema."""
        entry = self._entries.get(id(schema))
        if entry is None:
            entry = (schema, self._compute(schema))
            if len(self._entries) >= self._limit:
                del self._entries[next(iter(self._entries))]
            self._entries[id(schema)] = entry
        return entry[1]
