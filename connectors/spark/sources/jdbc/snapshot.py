"""Decides how a table is read in partitions, and how far reading has got, without querying the database.

A snapshot does not show a single point in time: each partition is read in its own transaction, and those of one load at
the same time. Its bounds are stored with the offset, so that an interrupted snapshot continues with the partitions that
are left.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import pairwise
from typing import Any, Final, Self

from connect.errors import ConfigError

__all__ = ["Bounds", "Snapshot", "bounds_of", "predicates"]

_EPOCH: Final = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - databases have times without a zone, too
_DAY: Final = dt.date(1970, 1, 1)
_KINDS: Final = ("whole", "decimal", "date", "timestamp")
_MICROSECOND: Final = dt.timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Bounds:
    """The minimum and maximum of a column as numbers; times are days or microseconds since 1970."""

    kind: str
    lower: int
    upper: int

    def borders(self, count: int) -> list[str]:
        """Return the SQL literals of the borders between this many partitions; fewer if there are not enough values."""
        span = self.upper - self.lower
        borders = {self.lower + span * place // count for place in range(1, count)} - {self.lower}
        return [self._literal(border) for border in sorted(borders)]

    def _literal(self, number: int) -> str:
        if self.kind == "date":
            return f"'{_DAY + dt.timedelta(days=number)}'"
        if self.kind == "timestamp":
            return f"'{_EPOCH + dt.timedelta(microseconds=number)}'"
        return str(number)


def bounds_of(column: str, lower: object, upper: object) -> Bounds | None:
    """Return the bounds of a column with these minimum and maximum values; ``None`` if it has no values.

    Raises :class:`~connect.errors.ConfigError` if one cannot count from one to the other.
    """
    if lower is None or upper is None:
        return None
    first, last = _number(lower), _number(upper)
    if first is None or last is None or first[0] != last[0]:
        reason = f"Its values are of type {type(lower).__name__}: name a column of numbers, dates or times."
        raise ConfigError("partition.column", column, reason)
    # A bound that is not a whole number lies within: the outer partitions have no outer border.
    return Bounds(first[0], first[1], last[1])


def predicates(column: str, bounds: Bounds | None, count: int) -> Sequence[str]:
    """Return the conditions that divide a table so that each row meets exactly one; a single partition gets a condition
    that is always true.
    """
    borders = bounds.borders(count) if bounds is not None else []
    if not borders:
        return ("1 = 1",)
    inner = [f"{column} >= {low} AND {column} < {high}" for low, high in pairwise(borders)]
    return (f"{column} < {borders[0]} OR {column} IS NULL", *inner, f"{column} >= {borders[-1]}")


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A snapshot in progress: when it began, in milliseconds since 1970, and how many partitions have been sent."""

    begun: int
    bounds: Bounds | None
    count: int
    sent: int = 0
    is_complete: bool = False

    def after(self, partitions: int, of: int) -> Snapshot:
        """Return the snapshot after this many more of its partitions have been sent."""
        sent = self.sent + partitions
        return replace(self, sent=sent, is_complete=sent >= of)

    def is_due_again(self, now: int, interval: int | None) -> bool:
        """Return whether the next snapshot is due now; without an interval there is no next one."""
        return self.is_complete and interval is not None and now >= self.begun + interval

    def offset(self) -> dict[str, Any]:
        """Return the snapshot as a source offset."""
        bounds = self.bounds
        return {
            "snapshot": self.begun,
            "partitions": self.count,
            "sent": self.sent,
            "complete": self.is_complete,
            "kind": None if bounds is None else bounds.kind,
            "lower": None if bounds is None else str(bounds.lower),
            "upper": None if bounds is None else str(bounds.upper),
        }

    @classmethod
    def of(cls, offset: Mapping[str, Any] | None) -> Self | None:
        """Return the snapshot in a source offset, if there is one."""
        if offset is None:
            return None
        try:
            kind = offset["kind"]
            bounds = None if kind is None else Bounds(kind, int(offset["lower"]), int(offset["upper"]))
            begun, count, sent = (int(offset[key]) for key in ("snapshot", "partitions", "sent"))
            if kind not in (None, *_KINDS) or count < 1 or not isinstance(offset["complete"], bool):
                raise ValueError
        except (KeyError, TypeError, ValueError):
            reason = "The offset of a snapshot is written by this source: remove it to begin another snapshot."
            raise ConfigError("snapshot", offset.get("snapshot"), reason) from None
        return cls(begun, bounds, count, sent, offset["complete"])


def _number(value: object) -> tuple[str, int] | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return "whole", value
    if isinstance(value, float | Decimal):
        return "decimal", int(value)
    if isinstance(value, dt.datetime):
        return "timestamp", (value.replace(tzinfo=None) - _EPOCH) // _MICROSECOND
    if isinstance(value, dt.date):
        return "date", (value - _DAY).days
    return None
