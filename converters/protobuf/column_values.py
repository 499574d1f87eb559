"""Reads values from many Protobuf messages at once, into Arrow arrays: scalars, and the messages of logical types."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np
import pyarrow as pa

from connect.data import logical
from connect.kits.columns.arrays import Spread, bits, fixed_size, spans, texts
from connect.kits.columns.cursors import Cursor, Vector
from connect.kits.columns.decimals import decimals

__all__ = [
    "LENGTH_DELIMITED",
    "Boolean",
    "Bytes",
    "Dates",
    "Decimals",
    "Enum",
    "Fixed",
    "Gaps",
    "Times",
    "Timestamps",
    "Value",
    "Whole",
    "Wrapped",
    "sized",
]

LENGTH_DELIMITED: Final = 2
_MOST_BYTES_OF_A_LENGTH: Final = 5
_MILLISECOND_NS: Final = 1_000_000
_MOST_SECONDS: Final = 10**12
_UINT32: Final = np.uint64(0xFFFFFFFF)
_ONE: Final = np.uint64(1)
_DAYS_OF_MONTHS: Final = np.array([0, 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31])


class Gaps(Spread):
    """Where values stand among all the messages of a cursor, and what the others have: null, or the default."""

    def __init__(self, places: Vector, cursor: Cursor, *, is_null: bool) -> None:
        super().__init__(places, len(cursor))
        self.is_null = is_null
        self.rows = cursor.rows
        self._at = np.minimum(cursor.at, cursor.ends)

    @property
    def nullable(self) -> Spread | None:
        """The gaps, if they are nulls."""
        return self if self.is_null else None

    def filled(self, values: Vector) -> Vector:
        """Return the values, with defaults between them unless the gaps are nulls."""
        return values if self.is_null else self.over(values)

    def among(self, positions: Vector) -> Vector:
        """Return positions of values among those of all messages."""
        full = self._at.copy()
        full[self.places] = positions
        return full


class Value(ABC):
    """Reads one type."""

    __slots__ = ()

    wire_type: int

    @abstractmethod
    def read(self, cursor: Cursor, gaps: Gaps | None) -> Any:
        """Return one value for each position of the cursor as an Arrow array, with gaps between them if given."""

    @abstractmethod
    def skip(self, cursor: Cursor) -> None:
        """Move the cursor behind the values."""


class Parsed(Protocol):
    """The fields of a message."""

    def fields(self, cursor: Cursor) -> list[Any]:
        """Return the arrays of the fields, and move the cursor behind them."""


def sized(cursor: Cursor) -> tuple[Vector, Vector]:
    """Read bytes after their length: return where they begin and end. These never decrease."""
    before = cursor.at
    sizes = cursor.unsigned().view(np.int64)
    cursor.mark(cursor.at - before > _MOST_BYTES_OF_A_LENGTH)
    return cursor.spans(sizes)


# -- numbers -----------------------------------------------------------------------------------------------------


def _zigzag(raw: Vector) -> Vector:
    return (raw >> _ONE).view(np.int64) ^ -((raw & _ONE).view(np.int64))


@dataclass(frozen=True, slots=True)
class Whole(Value):
    """A whole number in groups of seven bits: of 32 bits or 64, with zigzag or not, unsigned or not."""

    data_type: Any
    is_short: bool
    is_zigzag: bool = False
    is_unsigned: bool = False
    limits: tuple[int, int] | None = None
    """The lowest and highest allowed value."""
    wire_type: int = 0

    def numbers(self, cursor: Cursor) -> Vector:
        """Return the numbers, of 64 bits."""
        raw = cursor.unsigned()
        if self.is_short:
            raw = raw & _UINT32
        if self.is_zigzag:
            return _zigzag(raw)
        if self.is_short and not self.is_unsigned:
            return raw.astype(np.uint32).view(np.int32).astype(np.int64)
        numbers: Vector = raw.view(np.int64)
        if self.is_unsigned:
            cursor.mark(numbers < 0)
        return numbers

    def read(self, cursor: Cursor, gaps: Gaps | None) -> Any:
        values = self.numbers(cursor)
        if self.limits is not None:
            low, high = self.limits
            cursor.mark((values < low) | (values > high))
        return _numbers(self.data_type, values.astype(self.data_type.to_pandas_dtype(), copy=False), gaps)

    def skip(self, cursor: Cursor) -> None:
        cursor.unsigned()


@dataclass(frozen=True, slots=True)
class Fixed(Value):
    """A number of four or eight bytes, of a numpy type."""

    data_type: Any
    written: str
    wire_type: int

    def read(self, cursor: Cursor, gaps: Gaps | None) -> Any:
        values = cursor.fixed(self.written)
        if self.written == "<u8":
            cursor.mark(values.astype(np.uint64).view(np.int64) < 0)
        return _numbers(self.data_type, values.astype(self.data_type.to_pandas_dtype(), copy=False), gaps)

    def skip(self, cursor: Cursor) -> None:
        cursor.at = cursor.at + np.dtype(self.written).itemsize


@dataclass(frozen=True, slots=True)
class Boolean(Value):
    """A ``bool``."""

    wire_type: int = 0

    def read(self, cursor: Cursor, gaps: Gaps | None) -> Any:
        values = (cursor.unsigned() != 0).astype(np.uint8)
        return bits(values, None) if gaps is None else bits(gaps.filled(values), gaps.nullable)

    def skip(self, cursor: Cursor) -> None:
        cursor.unsigned()


@dataclass(frozen=True, slots=True)
class Enum(Value):
    """An enum, as its symbols or its numbers. Messages with a number that it lacks are marked."""

    known: Vector
    """The numbers in ascending order."""
    symbols: Any
    """The symbol of each number; ``None`` where numbers are wanted."""
    accepts_all: bool = False
    wire_type: int = 0

    def read(self, cursor: Cursor, gaps: Gaps | None) -> Any:
        values = (cursor.unsigned() & _UINT32).astype(np.uint32).view(np.int32)
        found = self._found(values)
        if not self.accepts_all:
            cursor.mark(self.known[found] != values)
        if self.symbols is None:
            return _numbers(pa.int32(), values, gaps)
        if gaps is None:
            return self.symbols.take(pa.array(found.astype(np.int32)))
        if gaps.is_null:
            return self.symbols.take(gaps.numbers(found))
        places = np.full(gaps.length, self._found(np.zeros(1, np.int32))[0], np.int32)
        places[gaps.places] = found
        return self.symbols.take(pa.array(places))

    def _found(self, values: Vector) -> Vector:
        return np.minimum(np.searchsorted(self.known, values), len(self.known) - 1)

    def skip(self, cursor: Cursor) -> None:
        cursor.unsigned()


def _numbers(data_type: Any, values: Vector, gaps: Gaps | None) -> Any:
    if gaps is None:
        return fixed_size(data_type, values)
    return fixed_size(data_type, gaps.filled(values), gaps.nullable)


# -- bytes -------------------------------------------------------------------------------------------------------


class _Sized(Value):
    """A value that follows its length."""

    __slots__ = ()

    wire_type = LENGTH_DELIMITED

    def skip(self, cursor: Cursor) -> None:
        sized(cursor)


@dataclass(frozen=True, slots=True)
class Bytes(_Sized):
    """A ``string`` or ``bytes``."""

    is_text: bool

    def read(self, cursor: Cursor, gaps: Gaps | None) -> Any:
        starts, ends = sized(cursor)
        if gaps is not None and not gaps.is_null:
            # Nothing is the default.
            starts, ends = gaps.among(starts), gaps.among(ends)
            cursor = Cursor(cursor.messages, starts, ends, gaps.rows)
        spread = None if gaps is None else gaps.nullable
        return texts(cursor, starts, ends, spread) if self.is_text else spans(cursor.messages, starts, ends, spread)


# -- logical types -----------------------------------------------------------------------------------------------


def _inner(cursor: Cursor) -> Cursor:
    """Return a cursor within the messages at the positions of another, which moves behind them."""
    starts, ends = sized(cursor)
    return Cursor(cursor.messages, starts.copy(), ends, cursor.rows)


@dataclass(frozen=True, slots=True)
class Wrapped(_Sized):
    """A message that stands for its only field."""

    parsed: Parsed

    def read(self, cursor: Cursor, gaps: Gaps | None) -> Any:
        inner = _inner(cursor)
        (array,) = self.parsed.fields(inner)
        inner.close()
        return array if gaps is None else gaps.apply(array)


class _Logical(_Sized):
    """A message of whole numbers that together are one number. A message that is not there is null."""

    __slots__ = ()

    parsed: Parsed
    data_type: Any

    def read(self, cursor: Cursor, gaps: Gaps | None) -> Any:
        inner = _inner(cursor)
        numbers = [each.to_numpy().astype(np.int64) for each in self.parsed.fields(inner)]
        inner.close()
        values, bad = self.joined(*numbers)
        cursor.mark(bad)
        kind = f"i{self.data_type.bit_width // 8}"
        return fixed_size(self.data_type, np.where(bad, 0, values).astype(kind), gaps)

    @abstractmethod
    def joined(self, *numbers: Vector) -> tuple[Vector, Vector]:
        """Return the values, and which of them are bad."""


@dataclass(frozen=True, slots=True)
class Timestamps(_Logical):
    """A ``google.protobuf.Timestamp``."""

    parsed: Parsed
    data_type: Any

    def joined(self, *numbers: Vector) -> tuple[Vector, Vector]:
        seconds, nanos = numbers
        bad = (seconds > _MOST_SECONDS) | (seconds < -_MOST_SECONDS)
        values = np.where(bad, 0, seconds) * 1000 + nanos // _MILLISECOND_NS
        low, high = logical.TEMPORAL_RANGES[logical.TIMESTAMP_NAME]
        return values, bad | (values < low) | (values > high)


@dataclass(frozen=True, slots=True)
class Dates(_Logical):
    """A ``google.type.Date``."""

    parsed: Parsed
    data_type: Any

    def joined(self, *numbers: Vector) -> tuple[Vector, Vector]:
        years, months, days = numbers
        bad = (years < 1) | (years > 9999) | (months < 1) | (months > 12) | (days < 1)
        years, months = np.where(bad, 2000, years), np.where(bad, 1, months)
        is_leap = (years % 4 == 0) & ((years % 100 != 0) | (years % 400 == 0))
        bad |= days > _DAYS_OF_MONTHS[months] - ((months == 2) & ~is_leap)
        first = ((years - 1970) * 12 + months - 1).astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)
        return first + days - 1, bad


@dataclass(frozen=True, slots=True)
class Times(_Logical):
    """A ``google.type.TimeOfDay``."""

    parsed: Parsed
    data_type: Any

    def joined(self, *numbers: Vector) -> tuple[Vector, Vector]:
        hours, minutes, seconds, nanos = numbers
        milliseconds = nanos // _MILLISECOND_NS
        bad = _outside(hours, 24) | _outside(minutes, 60) | _outside(seconds, 60) | _outside(milliseconds, 1000)
        return ((hours * 60 + minutes) * 60 + seconds) * 1000 + milliseconds, bad


def _outside(values: Vector, end: int) -> Vector:
    found: Vector = (values < 0) | (values >= end)
    return found


@dataclass(frozen=True, slots=True)
class Decimals(_Sized):
    """A ``confluent.type.Decimal``. One of another scale than its field's marks its message."""

    parsed: Parsed
    data_type: Any

    def read(self, cursor: Cursor, gaps: Gaps | None) -> Any:
        inner = _inner(cursor)
        unscaled, _, scales = self.parsed.fields(inner)
        inner.close()
        offsets = np.frombuffer(unscaled.buffers()[1], np.int32, len(unscaled) + 1).astype(np.int64)
        data = unscaled.buffers()[2]
        messages = type(cursor.messages)(b"" if data is None else memoryview(data)[: offsets[-1]], offsets[1:])
        values, bad = decimals(messages, messages.starts, messages.ends, self.data_type)
        cursor.mark(bad | (scales.to_numpy() != self.data_type.scale))
        return fixed_size(self.data_type, values, gaps)
