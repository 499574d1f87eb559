"""Reads values that hold no others from many Avro messages at once, into Arrow arrays."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from connect.kits.columns.arrays import Spread, bits, fixed_size, spans, texts
from connect.kits.columns.cursors import Cursor, Vector
from connect.kits.columns.decimals import decimals

__all__ = [
    "Absent",
    "Boolean",
    "Decimals",
    "Floating",
    "Part",
    "Repeated",
    "Sized",
    "Symbols",
    "Whole",
    "rows_of",
]


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
        return fixed_size(self.data_type, values.astype(self.kind, copy=False), spread)

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
        return fixed_size(self.data_type, values.astype(self.kind, copy=False), spread)

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
        return bits(values, spread)

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
        found = texts(cursor, starts, ends, spread) if self.is_text else spans(cursor.messages, starts, ends, spread)
        return found.view(self.data_type)


@dataclass(frozen=True, slots=True)
class Decimals(_Bytes):
    """A decimal: whole numbers of up to 16 bytes, the highest first."""

    data_type: Any
    exact: int | None = None
    is_rest: bool = False

    def read(self, cursor: Cursor, spread: Spread | None = None) -> Any:
        starts, ends = self.spans(cursor)
        values, bad = decimals(cursor.messages, starts, ends, self.data_type)
        cursor.mark(bad)
        return fixed_size(self.data_type, values, spread)
