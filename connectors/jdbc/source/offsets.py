"""Where to continue reading a table: source partitions and offsets in the form of the Java connector."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self, overload

from connect.data import Offset
from connect.data.logical import EPOCH
from connect.errors import ConnectError
from connectors.jdbc.dialects.column import TableId

__all__ = ["Position", "RowOffsets", "partitions_of_table", "query_partition", "safe_times"]

_TABLE: Final = "table"
_PROTOCOL: Final = "protocol"
_INCREMENTING: Final = "incrementing"
_TIMESTAMP: Final = "timestamp"
_NANOS: Final = "timestamp_nanos"
_MICROSECOND: Final = dt.timedelta(microseconds=1)
_SECOND: Final = 1_000_000
_QUERY: Final[Offset] = {"query": "query"}


@dataclass(frozen=True, slots=True)
class Position:
    """The position after a row: its number, and its time in microseconds since 1970, as far as the mode uses them."""

    incrementing: int | None = None
    micros: int | None = None

    @classmethod
    def from_offset(cls, offset: Offset | None) -> Self:
        """Return the position of a source offset. Raises :class:`~connect.errors.ConnectError` if it is invalid."""
        if not offset:
            return cls()
        incrementing = _whole(offset, _INCREMENTING)
        millis, nanos = _whole(offset, _TIMESTAMP), _whole(offset, _NANOS)
        if millis is None:
            return cls(incrementing)
        # The nanoseconds are those of the whole second; milliseconds of it are in both.
        if nanos is None:
            return cls(incrementing, millis * 1000)
        if not 0 <= nanos < 1_000_000_000:
            raise ConnectError(
                f"The value for the '{_NANOS}' key in the offset is {nanos}: it must be from 0 to 999999999."
            )
        return cls(incrementing, millis // 1000 * _SECOND + nanos // 1000)

    def to_offset(self) -> dict[str, Any]:
        """Return the source offset."""
        offset: dict[str, Any] = {}
        if self.incrementing is not None:
            offset[_INCREMENTING] = self.incrementing
        if self.micros is not None:
            offset[_TIMESTAMP] = self.micros // 1000
            offset[_NANOS] = self.micros % _SECOND * 1000
        return offset

    @property
    def moment(self) -> dt.datetime:
        """The time; the beginning of 1970 if there is none."""
        return EPOCH + _MICROSECOND * (self.micros or 0)


class RowOffsets(Sequence[Offset]):
    """The source offsets of rows, each created on access."""

    __slots__ = ("_micros", "_numbers")

    def __init__(self, numbers: Sequence[int] | None, micros: Sequence[int | None] | None) -> None:
        self._numbers = numbers
        self._micros = micros

    def position(self, index: int) -> Position:
        """Return the position after a row."""
        return Position(
            None if self._numbers is None else self._numbers[index],
            None if self._micros is None else self._micros[index],
        )

    def take(self, indices: Sequence[int]) -> RowOffsets:
        """Return the offsets of some rows."""
        return RowOffsets(
            None if self._numbers is None else [self._numbers[index] for index in indices],
            None if self._micros is None else [self._micros[index] for index in indices],
        )

    def __len__(self) -> int:
        return len(self._numbers if self._numbers is not None else self._micros or ())

    def __iter__(self) -> Iterator[Offset]:
        return (self[index] for index in range(len(self)))

    @overload
    def __getitem__(self, index: int) -> Offset: ...
    @overload
    def __getitem__(self, index: slice) -> RowOffsets: ...
    def __getitem__(self, index: int | slice) -> Offset | RowOffsets:
        if isinstance(index, slice):
            return self.take(range(*index.indices(len(self))))
        return self.position(index).to_offset()


def safe_times(times: Sequence[int], following: int | None, before: int | None) -> list[int | None]:
    """Return for each row the latest time after which reading can continue without losing a row.

    The rows are in order; ``following`` is the time of the row after them, ``None`` if there is none, and ``before``
    the safe time of the row before them.
    """
    found: list[int | None] = []
    for time, after in zip(times, [*times[1:], following], strict=True):
        if after is None or after > time:
            before = time
        found.append(before)
    return found


def partitions_of_table(table: TableId, database: str) -> list[Offset]:
    """Return the source partitions that may hold the offset of a table; new offsets are written to the first.

    Versions of the Java connector and of JDBC drivers differ in which parts of the name are included.
    """
    full = str(table)
    named = [full, f"{database}.{full}", table.name] if table.schema else [full, table.name]
    found: list[Offset] = [{_PROTOCOL: "1", _TABLE: name} for name in dict.fromkeys(named)]
    return [*found, {_TABLE: table.name}]


def query_partition() -> Offset:
    """Return the source partition of a query."""
    return dict(_QUERY)


def _whole(offset: Offset, name: str) -> int | None:
    value = offset.get(name)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool):
        raise ConnectError(f"The value for the '{name}' key in the offset is {value!r}: give an integer.")
    return value
