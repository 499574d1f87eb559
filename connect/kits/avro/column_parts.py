"""Reads values that hold others from many Avro messages at once, into Arrow arrays: unions, records, arrays, maps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from connect.kits.avro.column_leaves import Absent, Part, rows_of
from connect.kits.columns.arrays import Spread, list_offsets, merged, repetitive
from connect.kits.columns.cursors import Cursor, Vector

__all__ = ["Items", "Maps", "Member", "Record", "Union"]

_FEW: Final = 8
"""The number of messages from which it pays to read another element of each at once."""
_SHORT: Final = 64
"""The number of members and symbols of which each is written as one byte."""


@dataclass(frozen=True, slots=True)
class Union(Part):
    """A union, whose members all give values of one type; ``None`` for a member that the reader cannot read."""

    members: tuple[Part | None, ...]
    data_type: Any

    def read(self, cursor: Cursor, spread: Spread | None = None) -> Any:
        found = [(member, places) for member, places in self._chosen(cursor) if not isinstance(member, Absent)]
        count = len(cursor)
        if len(found) == 1 and len(found[0][1]) == count and spread is None:
            return found[0][0].read(cursor)
        places = [placed if spread is None else spread.places[placed] for _, placed in found]
        length = rows_of(count, spread)
        if len(found) == 1:
            return self._read(cursor, *found[0], Spread(places[0], length))
        if not found:
            return pa.nulls(length, self.data_type)
        arrays = [self._read(cursor, member, placed) for member, placed in found]
        return merged(arrays, places, length)

    def _read(self, cursor: Cursor, member: Part, places: Vector, spread: Spread | None = None) -> Any:
        part = cursor.part(places)
        values = member.read(part, spread)
        cursor.at[places] = part.at
        return values

    def skip(self, cursor: Cursor) -> None:
        for member, places in self._chosen(cursor):
            part = cursor.part(places)
            member.skip(part)
            cursor.at[places] = part.at

    def _chosen(self, cursor: Cursor) -> Iterator[tuple[Part, Vector]]:
        """Yield the members that occur, with the places of their values. Other messages are marked."""
        index = cursor.byte() if len(self.members) <= _SHORT else cursor.unsigned()
        left = len(index)
        for number, member in enumerate(self.members):
            places = np.flatnonzero(index == 2 * number)
            if not len(places):
                continue
            left -= len(places)
            if member is None:
                cursor.mark_at(places)
            else:
                yield member, places
            if not left:
                return
        cursor.mark((index >= 2 * len(self.members)) | (index & index.dtype.type(1) == 1))


@dataclass(frozen=True, slots=True)
class Member(Part):
    """A member of a union that Connect has as a struct with one field for each member."""

    part: Part
    number: int
    """The number of the field."""
    data_type: Any

    def read(self, cursor: Cursor, spread: Spread | None = None) -> Any:
        values = self.part.read(cursor)
        children = [
            values if number == self.number else pa.nulls(len(cursor), field.type)
            for number, field in enumerate(self.data_type)
        ]
        made = pa.StructArray.from_arrays(children, fields=list(self.data_type))
        return made if spread is None else spread.apply(made)

    def skip(self, cursor: Cursor) -> None:
        self.part.skip(cursor)


@dataclass(frozen=True, slots=True)
class Record(Part):
    """A record. ``steps`` are the fields in the order they are written, each with its place in the struct, if any."""

    steps: tuple[tuple[Part, int | None], ...]
    data_type: Any
    """The struct's type; ``None`` if the fields are to stay apart."""

    @property
    def size(self) -> int | None:
        sizes = [part.size for part, _ in self.steps]
        return None if None in sizes else sum(filter(None, sizes))

    def fields(self, cursor: Cursor) -> list[Any]:
        """Return the arrays of the fields."""
        found: dict[int, Any] = {}
        for part, place in self.steps:
            if place is None:
                part.skip(cursor)
            else:
                found[place] = part.read(cursor)
        return [found[place] for place in sorted(found)]

    def read(self, cursor: Cursor, spread: Spread | None = None) -> Any:
        made = pa.StructArray.from_arrays(self.fields(cursor), fields=list(self.data_type))
        return made if spread is None else spread.apply(made)

    def skip(self, cursor: Cursor) -> None:
        for part, _ in self.steps:
            part.skip(cursor)


# -- elements ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Items(Part):
    """An array."""

    item: Part
    data_type: Any

    def read(self, cursor: Cursor, spread: Spread | None = None) -> Any:
        items, counts = _elements(cursor, self.item)
        offsets, mask = list_offsets(counts, spread)
        return pa.ListArray.from_arrays(offsets, self.item.read(items), type=self.data_type, mask=mask)

    def skip(self, cursor: Cursor) -> None:
        _elements(cursor, self.item)


@dataclass(frozen=True, slots=True)
class Maps(Part):
    """A map, or an array of entries that is one. Messages in which a key occurs twice in a map are marked."""

    entry: Record
    """The key and the value."""
    data_type: Any

    def read(self, cursor: Cursor, spread: Spread | None = None) -> Any:
        entries, counts = _elements(cursor, self.entry)
        keys, values = self.entry.fields(entries)
        if len(keys) and counts.max() > 1:
            cursor.mark_at(repetitive(keys, np.repeat(np.arange(len(counts)), counts)))
        offsets, mask = list_offsets(counts, spread)
        return pa.MapArray.from_arrays(offsets, keys, values, type=self.data_type, mask=mask)

    def skip(self, cursor: Cursor) -> None:
        _elements(cursor, self.entry)


def _elements(cursor: Cursor, item: Part) -> tuple[Cursor, Vector]:
    """Go past arrays: return a cursor at their elements, array by array, and the number of each array's elements."""
    owners: list[Vector] = []
    positions: list[Vector] = []
    for places, at in _walked(cursor, item):
        owners.append(places)
        positions.append(at)
    nothing = np.zeros(0, np.int64)
    owner = np.concatenate(owners) if owners else nothing
    at = np.concatenate(positions) if positions else nothing
    if len(owners) > 1:
        order = np.argsort(owner, kind="stable")
        owner, at = owner[order], at[order]
    counts = np.bincount(owner, minlength=len(cursor))
    return Cursor(cursor.messages, at, cursor.ends[owner], cursor.rows[owner]), counts


def _walked(cursor: Cursor, item: Part) -> Iterator[tuple[Vector, Vector]]:
    """Yield elements: the places of the arrays, and the elements' positions. The elements of an array are in order."""
    places = np.arange(len(cursor))
    while len(places):
        if len(places) < _FEW:
            cursor.mark_at(places)
            return
        part = cursor.part(places)
        left = part.count(item.size or 1)
        cursor.at[places] = part.at
        places, left = places[left > 0], left[left > 0]
        if item.size is not None:
            yield _even(cursor, places, left, item.size)
        else:
            yield from _one_by_one(cursor, item, places, left)
        # One that has run over its end has nothing to follow.
        places = places[(cursor.at <= cursor.ends)[places]]


def _even(cursor: Cursor, places: Vector, left: Vector, size: int) -> tuple[Vector, Vector]:
    """Return the elements of a group, which all have the same size."""
    owners = np.repeat(places, left)
    firsts = np.cumsum(left) - left
    at = cursor.at[owners] + size * (np.arange(len(owners)) - np.repeat(firsts, left))
    cursor.at[places] += left * size
    return owners, at


def _one_by_one(cursor: Cursor, item: Part, places: Vector, left: Vector) -> Iterator[tuple[Vector, Vector]]:
    """Yield the first elements of a group, then the second ones, and so on."""
    while len(places):
        if len(places) < _FEW:
            cursor.mark_at(places)
            # Where they end is not known, so that nothing after them is read.
            cursor.at[places] = cursor.ends[places] + 1
            return
        part = cursor.part(places)
        yield places, part.at.copy()
        item.skip(part)
        cursor.at[places] = part.at
        left = left - 1
        goes_on = (left > 0) & (part.at <= part.ends)
        places, left = places[goes_on], left[goes_on]
