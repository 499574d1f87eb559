"""Where a reset puts a consumer group: a function of where its partitions begin and end and where the group stands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, assert_never

__all__ = ["ResetTo", "Spot", "reset_offset"]

ResetTo: TypeAlias = Literal["earliest", "latest", "current", "offset", "shift", "timestamp"]
"""The ways of a reset. Date-times and durations are timestamps by the time they come here."""


@dataclass(frozen=True, slots=True)
class Spot:
    """One topic partition: its first offset, the offset after its last record, and the group's.

    ``entry`` is where the group begins if it has committed nothing. ``at`` is where the first record of the
    timestamp that was asked for is, if there is one.
    """

    begin: int
    end: int
    committed: int | None
    entry: int
    at: int | None = None


def reset_offset(to: ResetTo, number: int, spot: Spot) -> int:
    """The next offset to consume after the reset, which is always one that is there, or the end.

    ``number`` is the offset of ``offset`` and how far ``shift`` goes, and means nothing to the others.
    """
    stands = spot.entry if spot.committed is None else spot.committed
    match to:
        case "earliest":
            return spot.begin
        case "latest":
            return spot.end
        case "current":
            wanted = stands
        case "offset":
            wanted = number
        case "shift":
            wanted = stands + number
        case "timestamp":
            wanted = spot.end if spot.at is None else spot.at
        case _:
            assert_never(to)
    return max(spot.begin, min(wanted, spot.end))
