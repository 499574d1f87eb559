"""Reads the fields of many Protobuf messages at once, into Arrow arrays: single and repeated ones, maps, oneofs.

Fields are expected in the order of their numbers, as serializers write them, each but the repeated ones once. Messages
in which anything else occurs are not read to their end, and so marked.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from connect.kits.columns.arrays import list_offsets, repetitive
from connect.kits.columns.cursors import Cursor, Vector
from converters.protobuf.column_values import LENGTH_DELIMITED, Gaps, Value, sized

__all__ = ["Entries", "Items", "Packed", "Record", "RootStruct", "RootValue", "Single", "Step", "Struct", "Tag"]

_FEW: Final = 32
"""The number of messages from which it pays to read another element of each at once."""
_ALWAYS: Final = 4
"""The number of elements that are read of however few messages."""


class Tag:
    """The number and the wire type of a field, as messages have them before its value."""

    __slots__ = ("_code", "_mask", "size")

    def __init__(self, number: int, wire_type: int) -> None:
        rest, code, self.size = number << 3 | wire_type, 0, 0
        while rest or not self.size:
            more = 0x80 if rest > 0x7F else 0
            code |= (rest & 0x7F | more) << 8 * self.size
            rest >>= 7
            self.size += 1
        self._code = np.uint64(code)
        self._mask = np.uint64((1 << 8 * self.size) - 1)

    def places(self, cursor: Cursor) -> Vector:
        """Return the places of a cursor where this field comes next."""
        at, messages = np.minimum(cursor.at, cursor.messages.last), cursor.messages
        if self.size == 1:
            found = messages.data[at] == self._code
        else:
            found = messages.words("<u8")[at] & self._mask == self._code
        return np.flatnonzero(found & (cursor.at + self.size <= cursor.ends))


class Step(ABC):
    """Reads one field of all messages, where it comes next."""

    __slots__ = ()

    @abstractmethod
    def read(self, cursor: Cursor) -> Any:
        """Return one value for each message of the cursor, as an Arrow array."""


@dataclass(frozen=True, slots=True)
class Single(Step):
    """A field that is there once or not at all: then it is null, or its default."""

    tag: Tag
    value: Value
    data_type: Any
    is_null: bool
    is_required: bool = False
    """Whether messages without the field are marked."""

    def read(self, cursor: Cursor) -> Any:
        places = self.tag.places(cursor)
        if len(places) == len(cursor):
            cursor.at = cursor.at + self.tag.size
            return self.value.read(cursor, None)
        if self.is_required:
            absent = np.ones(len(cursor), np.bool_)
            absent[places] = False
            cursor.mark(absent)
        if self.is_null and not len(places):
            return pa.nulls(len(cursor), self.data_type)
        gaps = Gaps(places, cursor, is_null=self.is_null)
        part = cursor.part(places)
        part.at += self.tag.size
        array = self.value.read(part, gaps)
        cursor.at[places] = part.at
        return array


# -- messages ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Record:
    """The fields of a message, in the order of their numbers; and what becomes of them, in the order of the schema."""

    steps: tuple[Step, ...]
    columns: tuple[int | tuple[tuple[int, ...], Any], ...]
    """The number of a step, or the numbers of the steps that are members of a oneof, with the type of its struct."""
    oneofs: tuple[tuple[int, ...], ...] = ()
    """The numbers of steps of which a message has one at most."""

    def fields(self, cursor: Cursor) -> list[Any]:
        """Return the arrays of the fields."""
        found = [step.read(cursor) for step in self.steps]
        present = {members: self._present(cursor, [found[place] for place in members]) for members in self.oneofs}
        return [
            found[column]
            if isinstance(column, int)
            else structs([found[place] for place in column[0]], column[1], len(cursor), ~present[column[0]])
            for column in self.columns
        ]

    @staticmethod
    def _present(cursor: Cursor, members: list[Any]) -> Vector:
        """Return which messages have a member of a oneof; mark those that have several."""
        counts = np.zeros(len(cursor), np.int64)
        for member in members:
            if member.null_count < len(cursor):
                counts += member.is_valid().to_numpy(zero_copy_only=False)
        cursor.mark(counts > 1)
        return counts > 0


def structs(children: list[Any], data_type: Any, length: int, absent: Vector | None = None) -> Any:
    """Return an array of structs, null where they are absent."""
    mask = None if absent is None or not absent.any() else pa.array(absent)
    if not children:
        return pa.array([{}] * length, data_type) if mask is None else pa.nulls(length, data_type)
    return pa.StructArray.from_arrays(children, fields=list(data_type), mask=mask)


@dataclass(frozen=True, slots=True)
class Struct(Value):
    """A message as a struct."""

    record: Record
    data_type: Any
    wire_type: int = LENGTH_DELIMITED

    def read(self, cursor: Cursor, gaps: Gaps | None) -> Any:
        starts, ends = sized(cursor)
        rows, absent = cursor.rows, None
        if gaps is not None:
            # What is not there is read as an empty message, and then covered if it is null.
            starts, ends, rows = gaps.among(starts), gaps.among(ends), gaps.rows
            absent = gaps.mask.to_numpy(zero_copy_only=False) if gaps.is_null else None
        inner = Cursor(cursor.messages, starts.copy(), ends, rows)
        return self.within(inner, absent)

    def within(self, cursor: Cursor, absent: Vector | None = None) -> Any:
        """Return the structs of the messages that a cursor is within."""
        fields = self.record.fields(cursor)
        cursor.close()
        if not fields and absent is not None and absent.any():
            return pa.array([None if gone else {} for gone in absent.tolist()], self.data_type)
        return structs(fields, self.data_type, len(cursor), absent)

    def skip(self, cursor: Cursor) -> None:
        sized(cursor)


@dataclass(frozen=True, slots=True)
class RootStruct:
    """The root of messages that are structs."""

    struct: Struct

    def read(self, cursor: Cursor) -> Any:
        """Return the structs."""
        return self.struct.within(cursor)


@dataclass(frozen=True, slots=True)
class RootValue:
    """The root of messages that stand for their only field."""

    record: Record

    def read(self, cursor: Cursor) -> Any:
        """Return the values of the field."""
        (array,) = self.record.fields(cursor)
        return array


# -- elements ----------------------------------------------------------------------------------------------------


def _walked(cursor: Cursor, tag: Tag, value: Value) -> Iterator[tuple[Vector, Vector]]:
    """Go past a repeated field: yield the places and positions of the first elements, of the second ones, and so on."""
    places, count = tag.places(cursor), 0
    while len(places):
        if len(places) < _FEW and count >= _ALWAYS:
            cursor.mark_at(places)
            # Where they end is not known, so that nothing after them is read.
            cursor.at[places] = cursor.ends[places] + 1
            return
        part = cursor.part(places)
        part.at += tag.size
        yield places, part.at.copy()
        value.skip(part)
        cursor.at[places] = part.at
        places, count = places[tag.places(part)], count + 1


def _elements(cursor: Cursor, tag: Tag, value: Value) -> tuple[Cursor, Vector]:
    """Return a cursor at the elements of a repeated field, message by message, and their owners."""
    found = list(_walked(cursor, tag, value))
    nothing = np.zeros(0, np.int64)
    owner = np.concatenate([owners for owners, _ in found]) if found else nothing
    at = np.concatenate([positions for _, positions in found]) if found else nothing
    if len(found) > 1:
        order = np.argsort(owner, kind="stable")
        owner, at = owner[order], at[order]
    return Cursor(cursor.messages, at, cursor.ends[owner], cursor.rows[owner]), owner


@dataclass(frozen=True, slots=True)
class Items(Step):
    """A repeated field with a tag before each element."""

    tag: Tag
    value: Value
    data_type: Any

    def read(self, cursor: Cursor) -> Any:
        elements, owner = _elements(cursor, self.tag, self.value)
        offsets, _ = list_offsets(np.bincount(owner, minlength=len(cursor)), None)
        return pa.ListArray.from_arrays(offsets, self.value.read(elements, None), type=self.data_type)


@dataclass(frozen=True, slots=True)
class Packed(Step):
    """A repeated field of numbers that stand together behind their length."""

    tag: Tag
    value: Value
    data_type: Any
    size: int | None
    """The number of bytes of each number, if they all have the same."""

    def read(self, cursor: Cursor) -> Any:
        places = self.tag.places(cursor)
        part = cursor.part(places)
        part.at += self.tag.size
        starts, ends = sized(part)
        cursor.at[places] = part.at
        part = Cursor(cursor.messages, starts, ends, part.rows)
        at, owner = self._even(part) if self.size is not None else self._uneven(part)
        elements = Cursor(cursor.messages, at, ends[owner], part.rows[owner])
        items = self.value.read(elements, None)
        # Each has to end where the next one begins.
        behind = np.append(at[1:], 0)
        is_last = np.append(owner[1:] != owner[:-1], True)
        elements.mark(elements.at != np.where(is_last, elements.ends, behind))
        offsets, _ = list_offsets(np.bincount(places[owner], minlength=len(cursor)), None)
        return pa.ListArray.from_arrays(offsets, items, type=self.data_type)

    def _even(self, part: Cursor) -> tuple[Vector, Vector]:
        assert self.size is not None
        sizes = part.ends - part.at
        part.mark(sizes % self.size != 0)
        counts = sizes // self.size
        owner = np.repeat(np.arange(len(part)), counts)
        number = np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)
        return part.at[owner] + number * self.size, owner

    @staticmethod
    def _uneven(part: Cursor) -> tuple[Vector, Vector]:
        """Return where numbers of seven bits a byte begin: at the start, and behind each byte that ends one."""
        sizes = part.ends - part.at
        owner = np.repeat(np.arange(len(part)), sizes)
        number = np.arange(len(owner)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        at = part.at[owner] + number
        begins = part.messages.data[at - 1] < 0x80
        begins[number == 0] = True
        return at[begins], owner[begins]


@dataclass(frozen=True, slots=True)
class Entries(Step):
    """A map. Messages in which a key occurs twice in a map are marked."""

    tag: Tag
    entry: Struct
    """The key and the value."""
    data_type: Any

    def read(self, cursor: Cursor) -> Any:
        elements, owner = _elements(cursor, self.tag, self.entry)
        starts, ends = sized(elements)
        inner = Cursor(cursor.messages, starts.copy(), ends, elements.rows)
        keys, values = self.entry.record.fields(inner)
        inner.close()
        counts = np.bincount(owner, minlength=len(cursor))
        if len(keys) and counts.max() > 1:
            cursor.mark_at(repetitive(keys, owner))
        offsets, _ = list_offsets(counts, None)
        return pa.MapArray.from_arrays(offsets, keys, values, type=self.data_type)
