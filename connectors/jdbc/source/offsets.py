"""Where to continue reading a table: source partitions and offsets in the form of the Java connector."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self, overload

from connect.data import Offset
from connect.data.logical import EPOCH
from connect.errors import ConnectError
from connect.kits.sql.column import TableId
from connectors.jdbc.source.local_times import LocalTimes

__all__ = ["Position", "RowOffsets", "filled", "partitions_of_table", "query_partition", "safe_times"]

_TABLE: Final = "table"
_PROTOCOL: Final = "protocol"
_INCREMENTING: Final = "incrementing"
_TIMESTAMP: Final = "timestamp"
_NANOS: Final = "timestamp_nanos"
_LOCAL: Final = "timestamp_local"
_MICROSECOND: Final = dt.timedelta(microseconds=1)
_SECOND: Final = 1_000_000
_QUERY: Final[Offset] = {"query": "query"}
_INSTANTS: Final = LocalTimes()


@dataclass(frozen=True, slots=True)
class Position:
    """The position after a row: its number, and its time in microseconds since 1970, as far as the mode uses them.

    ``local`` is a time that the clock in ``db.timezone`` skips; no instant stands for it, so ``micros`` is earlier.
    """

    incrementing: int | None = None
    micros: int | None = None
    local: int | None = None

    @classmethod
    def from_offset(cls, offset: Offset | None) -> Self:
        """Return the position of a source offset. Raises :class:`~connect.errors.ConnectError` if it is invalid."""
        if not offset:
            return cls()
        incrementing = _whole(offset, _INCREMENTING)
        millis, nanos = _whole(offset, _TIMESTAMP), _whole(offset, _NANOS)
        if millis is None:
            return cls(incrementing)
        # The nanoseconds are those within the second, so they include the milliseconds.
        if nanos is None:
            return cls(incrementing, millis * 1000, _local(offset))
        if not 0 <= nanos < 1_000_000_000:
            raise ConnectError(
                f"The value for the '{_NANOS}' key in the offset is {nanos}: it must be from 0 to 999999999."
            )
        return cls(incrementing, millis // 1000 * _SECOND + nanos // 1000, _local(offset))

    def to_offset(self) -> dict[str, Any]:
        """Return the source offset."""
        offset: dict[str, Any] = {}
        if self.incrementing is not None:
            offset[_INCREMENTING] = self.incrementing
        if self.micros is not None:
            offset[_TIMESTAMP] = self.micros // 1000
            offset[_NANOS] = self.micros % _SECOND * 1000
        if self.local is not None:
            offset[_LOCAL] = (EPOCH + _MICROSECOND * self.local).replace(tzinfo=None).isoformat()
        return offset

    def local_time(self, times: LocalTimes) -> int:
        """Return the time by which rows are compared."""
        micros = self.micros or 0
        if self.local is not None and times.instant(self.local) == micros:
            return self.local
        return times.of(micros)

    @property
    def moment(self) -> dt.datetime:
        """The time; the beginning of 1970 if there is none."""
        return EPOCH + _MICROSECOND * (self.micros or 0)


class RowOffsets(Sequence[Offset]):
    """The source offsets of rows, each created on access."""

    __slots__ = ("_micros", "_numbers", "_times")

    def __init__(
        self,
        numbers: Sequence[int] | None,
        micros: Sequence[int | None] | None,
        times: LocalTimes = _INSTANTS,
    ) -> None:
        self._numbers = numbers
        self._micros = micros
        self._times = times

    def position(self, index: int) -> Position:
        """Return the position after a row."""
        number = None if self._numbers is None else self._numbers[index]
        time = self.time(index)
        if time is None:
            return Position(number)
        return Position(number, self._times.instant(time), time if self._times.is_skipped(time) else None)

    def time(self, index: int) -> int | None:
        """Return the time by which a row is compared."""
        return None if self._micros is None else self._micros[index]

    def take(self, indices: Sequence[int]) -> RowOffsets:
        """Return the offsets of some rows."""
        return RowOffsets(
            None if self._numbers is None else [self._numbers[index] for index in indices],
            None if self._micros is None else [self._micros[index] for index in indices],
            self._times,
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


def safe_times(times: Sequence[int | None], following: int | None, before: int | None) -> list[int | None]:
    """Return for each row the latest time after which reading can continue without losing a row.

    The rows are in order; ``following`` is the time of the row after them, ``None`` if there is none, and ``before``
    the safe time of the row before them. A row without a readable time has ``None``, and never that of another row.
    """
    found: list[int | None] = []
    for time, after in zip(times, [*times[1:], following], strict=True):
        if time is not None and (after is None or after > time):
            before = time
        found.append(before)
    return found


def filled(values: Sequence[Any], times: Sequence[int | None], before: Any) -> list[Any]:
    """Return the values of rows, where rows without a time have that of the row before: at first ``before``."""
    found = []
    for value, time in zip(values, times, strict=False):
        before = before if time is None else value
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


def _local(offset: Offset) -> int | None:
    text = offset.get(_LOCAL)
    if text is None:
        return None
    try:
        moment = dt.datetime.fromisoformat(text)
        elapsed: int = (moment.replace(tzinfo=dt.UTC) - EPOCH) // _MICROSECOND
    except (TypeError, ValueError):
        raise ConnectError(
            f"The value for the '{_LOCAL}' key in the offset is {text!r}: write it as 2024-03-31T02:30:00, or leave "
            "it out."
        ) from None
    return elapsed


def _whole(offset: Offset, name: str) -> int | None:
    value = offset.get(name)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool):
        raise ConnectError(f"The value for the '{name}' key in the offset is {value!r}: give an integer.")
    return value
