"""Reads values that hold no others from many Avro messages at once, into Arrow arrays."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
import pyarrow as pa

from connect.kits.avro.cursors import Cursor, Messages, Vector

__all__ = [
    "MOST_DECIMAL_BYTES",
    "Absent",
    "Boolean",
    "Decimals",
    "Floating",
    "Part",
    "Repeated",
    "Sized",
    "Spread",
    "Symbols",
    "UnorderedError",
    "Whole",
    "rows_of",
]

_SHORT: Final = 8
MOST_DECIMAL_BYTES: Final = 16
"""The size of a decimal that is read here."""
_EXACT_DIGITS: Final = 18
"""Every decimal of as many digits fits 64 bits."""


class UnorderedError(Exception):
    """Raised for texts that do not follow each other, which no message causes: it guards what Arrow does not check."""


def _buffer(values: Vector) -> Any:
    data: Any = np.ascontiguousarray(values)
    return pa.py_buffer(data)


class Spread:
    """Where values stand in a longer array, which is null elsewhere."""

    def __init__(self, places: Vector, length: int) -> None:
        self.places = places
        self.length = length

    @cached_property
    def validity(self) -> Any:
        """The bitmap of an array that has values at these places."""
        present = np.zeros(self.length, np.bool_)
        present[self.places] = True
        return _buffer(np.packbits(present, bitorder="little"))

    @property
    def nulls(self) -> int:
        """The number of nulls."""
        return self.length - len(self.places)

    @cached_property
    def mask(self) -> Any:
        """An array that is true where the value is null."""
        absent = np.ones(self.length, np.bool_)
        absent[self.places] = False
        return pa.array(absent)

    def numbers(self, numbers: Vector) -> Any:
        """Return an array of numbers at these places, and nulls elsewhere."""
        return _of_buffers(pa.int32(), self.over(numbers.astype(np.int32)), self)

    def over(self, values: Vector) -> Vector:
        """Return the values at their places, with zeros elsewhere."""
        full = np.zeros((self.length, *values.shape[1:]), values.dtype)
        full[self.places] = values
        return full

    def apply(self, array: Any) -> Any:
        """Return an array of values at these places."""
        return array.take(self.numbers(np.arange(len(self.places))))


class Part(ABC):
    """Reads one type of a schema."""

    __slots__ = ()

    @property
    def size(self) -> int | None:
        """The number of bytes of every value, if they all have the same."""
        return None

    @abstractmethod
    def read(self, cursor: Cursor, spread: Spread | None = None) -> Any:
        """Return one value for each position of the cursor, as an Arrow array, with nulls between them if spread."""

    @abstractmethod
    def skip(self, cursor: Cursor) -> None:
        """Move the cursor behind the values. Marks no message that :meth:`read` does not mark."""


def _of_buffers(data_type: Any, values: Vector, spread: Spread | None = None) -> Any:
    """Return an array of fixed-size values; ``values`` are already spread."""
    data = _buffer(values)
    if spread is None:
        return pa.Array.from_buffers(data_type, len(values), [None, data], 0)
    return pa.Array.from_buffers(data_type, spread.length, [spread.validity, data], spread.nulls)


def _fixed_size(data_type: Any, values: Vector, spread: Spread | None) -> Any:
    return _of_buffers(data_type, values if spread is None else spread.over(values), spread)


def rows_of(count: int, spread: Spread | None) -> int:
    """Return the length of an array for so many values."""
    return count if spread is None else spread.length


@dataclass(frozen=True, slots=True)
class Absent(Part):
    """A type whose only value is null."""

    data_type: Any

    def read(self, cursor: Cursor, spread: Spread | None = None) -> Any:
        return pa.nulls(rows_of(len(cursor), spread), self.data_type)

    def skip(self, cursor: Cursor) -> None:
        """There is nothing to skip."""


@dataclass(frozen=True, slots=True)
class Repeated(Part):
    """A value that takes no bytes: the default of a field that the messages lack."""

    value: Any
    """An array of this value alone."""

    @property
    def size(self) -> int:
        return 0

    def read(self, cursor: Cursor, spread: Spread | None = None) -> Any:
        made = self.value.take(pa.array(np.zeros(len(cursor), np.int32)))
        return made if spread is None else spread.apply(made)

    def skip(self, cursor: Cursor) -> None:
        """There is nothing to skip."""


# -- numbers -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Whole(Part):
    """An ``int`` or ``long``, of a numpy and an Arrow type."""

    is_int: bool
    kind: str
    data_type: Any
    limits: tuple[int, int] | None = None
    """The lowest and highest allowed value."""

    def read(self, cursor: Cursor, spread: Spread | None = None) -> Any:
        values = cursor.whole(is_int=self.is_int)
        if self.limits is not None:
            low, high = self.limits
            cursor.mark((values < low) | (values > high))
        if self.kind == "f4":
            values = values.astype(np.float64)
        # 8- and 16-bit integers keep the low bits.
        return _fixed_size(self.data_type, values.astype(self.kind, copy=False), spread)

    def skip(self, cursor: Cursor) -> None:
        cursor.unsigned()


@dataclass(frozen=True, slots=True)
class Floating(Part):
    """A ``float`` or ``double``."""

    written: str
    kind: str
    data_type: Any

    @property
    def size(self) -> int:
        return np.dtype(self.written).itemsize

    def read(self, cursor: Cursor, spread: Spread | None = None) -> Any:
        values = cursor.fixed(self.written)
        return _fixed_size(self.data_type, values.astype(self.kind, copy=False), spread)

    def skip(self, cursor: Cursor) -> None:
        cursor.at = cursor.at + self.size


@dataclass(frozen=True, slots=True)
class Boolean(Part):
    """A ``boolean``."""

    @property
    def size(self) -> int:
        return 1

    def read(self, cursor: Cursor, spread: Spread | None = None) -> Any:
        values = cursor.byte()
        cursor.mark(values > 1)
        full = values if spread is None else spread.over(values)
        bits = _buffer(np.packbits(full, bitorder="little"))
        validity, nulls = (None, 0) if spread is None else (spread.validity, spread.nulls)
        return pa.Array.from_buffers(pa.bool_(), len(full), [validity, bits], nulls)

    def skip(self, cursor: Cursor) -> None:
        cursor.at = cursor.at + 1


@dataclass(frozen=True, slots=True)
class Symbols(Part):
    """An ``enum``; the symbols that the reader does not know are null."""

    symbols: Any
    known: Vector

    def read(self, cursor: Cursor, spread: Spread | None = None) -> Any:
        raw = cursor.unsigned()
        count = len(self.known)
        bad = (raw >= 2 * count) | ((raw & np.uint64(1)) == 1)
        numbers = np.where(bad, 0, raw >> np.uint64(1)).astype(np.int32)
        cursor.mark(bad | ~self.known[numbers])
        return self.symbols.take(pa.array(numbers) if spread is None else spread.numbers(numbers))

    def skip(self, cursor: Cursor) -> None:
        cursor.unsigned()


# -- bytes -------------------------------------------------------------------------------------------------------


class _Bytes(Part):
    """Values that are some bytes of the message: ``string``, ``bytes``, ``fixed``."""

    __slots__ = ()

    exact: int | None
    is_rest: bool

    def spans(self, cursor: Cursor) -> tuple[Vector, Vector]:
        if self.is_rest:
            return cursor.rest()
        return cursor.sized() if self.exact is None else cursor.exactly(self.exact)

    def skip(self, cursor: Cursor) -> None:
        self.spans(cursor)

    @property
    def size(self) -> int | None:
        return self.exact


@dataclass(frozen=True, slots=True)
class Sized(_Bytes):
    """A ``string``, ``bytes`` or ``fixed``."""

    data_type: Any
    is_text: bool
    exact: int | None = None
    """The size of a ``fixed``."""
    is_rest: bool = False
    """Whether the value is the rest of the message."""

    def read(self, cursor: Cursor, spread: Spread | None = None) -> Any:
        starts, ends = self.spans(cursor)
        found = _taken(cursor.messages, starts, ends, spread)
        if self.is_text:
            try:
                found = found.cast(pa.string())
            except pa.ArrowInvalid:
                texts = _taken(cursor.messages, starts, ends, None).to_pylist()
                good = np.fromiter(map(_is_text, texts), np.bool_, len(texts))
                cursor.mark(~good)
                found = _taken(cursor.messages, starts, np.where(good, ends, starts), spread).cast(pa.string())
        return found.view(self.data_type)


def _is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _taken(messages: Messages, starts: Vector, ends: Vector, spread: Spread | None) -> Any:
    """Return the bytes between positions that never decrease."""
    count = len(starts)
    # As one array, these spans and what lies between them alternate; Arrow copies every second one.
    offsets = np.empty(2 * count + 1, np.int32)
    offsets[:-1:2] = starts
    offsets[1::2] = ends
    offsets[-1] = messages.last
    if (np.diff(offsets) < 0).any():
        raise UnorderedError
    data = [None, _buffer(offsets), _buffer(messages.data)]
    both = pa.Array.from_buffers(pa.binary(), 2 * count, data, 0)
    numbers: Any = np.arange(0, 2 * count, 2, dtype=np.int32)
    wanted: Any = pa.array(numbers) if spread is None else spread.numbers(numbers)
    return both.take(wanted)


@dataclass(frozen=True, slots=True)
class Decimals(_Bytes):
    """A decimal: whole numbers of up to 16 bytes, the highest first."""

    data_type: Any
    exact: int | None = None
    is_rest: bool = False

    def read(self, cursor: Cursor, spread: Spread | None = None) -> Any:
        starts, ends = self.spans(cursor)
        sizes = ends - starts
        bad = (sizes == 0) | (sizes > MOST_DECIMAL_BYTES)
        words = cursor.messages.words(">u8")
        low = words[ends - _SHORT].astype(np.uint64).view(np.int64)
        # The word also holds what stands before the number.
        surplus = 8 * np.clip(_SHORT - sizes, 0, 7)
        low = (low << surplus) >> surplus
        high = low >> 63
        longer = np.flatnonzero(sizes > _SHORT)
        if len(longer):
            beyond = words[ends[longer] - MOST_DECIMAL_BYTES].astype(np.uint64).view(np.int64)
            surplus = 8 * np.clip(MOST_DECIMAL_BYTES - sizes[longer], 0, 7)
            high[longer] = (beyond << surplus) >> surplus
        values = np.stack((low, high), axis=1)
        bad |= self._exceeds(low, high)
        if bad.any():
            cursor.mark(bad)
            values[bad] = 0
        if self.data_type.bit_width == 2 * 8 * MOST_DECIMAL_BYTES:
            sign = values[:, 1:] >> 63
            values = np.concatenate((values, sign, sign), axis=1)
        return _fixed_size(self.data_type, values, spread)

    def _exceeds(self, low: Vector, high: Vector) -> Vector:
        """Return which numbers have more digits than the type, or may have."""
        precision = self.data_type.precision
        short = (low >> 63) == high
        if precision <= _EXACT_DIGITS:
            most = 10**precision - 1
            exceeds: Vector = ~short | (low > most) | (low < -most)
            return exceeds
        if precision > 38:
            return np.zeros(len(low), np.bool_)
        # A number of 64 bits has at most 19 digits; longer ones are looked at one by one.
        exceeds = np.zeros(len(low), np.bool_)
        for place in np.flatnonzero(~short).tolist():
            number = (int(high[place]) << 64) | (int(low[place]) & 0xFFFF_FFFF_FFFF_FFFF)
            exceeds[place] = abs(number) >= 10**precision
        return exceeds
