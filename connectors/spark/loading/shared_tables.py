"""Decides which topics to load again when several that were loaded in parallel changed the same tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from connect.data import Schema

__all__ = ["agreed_tables", "disagreeing_loads"]


def disagreeing_loads(known: Mapping[str, Schema], loads: Sequence[Mapping[str, Schema]]) -> list[int]:
    """Return the indexes of loads that gave a table a different new schema than an earlier load did.

    ``known`` are the tables before, ``loads`` those that each load has written on its own. When repeated with the
    others' tables known, a load adds to their schemas or finds that its records do not fit.
    """
    changed: dict[str, Schema] = {}
    found: list[int] = []
    for place, tables in enumerate(loads):
        own = _changes(known, tables)
        if any(changed.get(name, schema) != schema for name, schema in own.items()):
            found.append(place)
        else:
            changed |= own
    return found


def agreed_tables(known: Mapping[str, Schema], loads: Sequence[Mapping[str, Schema]]) -> dict[str, Schema]:
    """Return the schemas of all tables of loads that agree: the new schema where any load changed a table."""
    written = {name: schema for tables in loads for name, schema in tables.items()}
    changed = {name: schema for tables in loads for name, schema in _changes(known, tables).items()}
    return written | changed


def _changes(known: Mapping[str, Schema], tables: Mapping[str, Schema]) -> dict[str, Schema]:
    return {name: schema for name, schema in tables.items() if known.get(name) != schema}
