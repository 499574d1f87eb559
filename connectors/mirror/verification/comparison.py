"""Compares the records that runs say are the same, at the source and at the target. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any

from connectors.mirror.runs import Run
from connectors.mirror.verification.stretches import Content, Stretch

__all__ = ["Difference", "Part", "PartitionReport", "Piece", "compared", "hole", "pieces"]


class Part(Enum):
    """What is known of a piece of a source partition."""

    COPIED = "copied"
    """Its records are at the target."""

    EMPTY = "empty"
    """It has no record, according to the runs."""

    UNKNOWN = "unknown"
    """No run covers it."""

    WAITING = "waiting"
    """It lies after everything that was mirrored."""


@dataclass(frozen=True, slots=True)
class Piece:
    """The offsets from ``first`` up to ``end`` of a source partition, which lie at the target from ``there`` on."""

    part: Part
    first: int
    end: int
    there: int = 0


@dataclass(frozen=True, slots=True)
class Difference:
    """The first record of a partition that differs between both ends."""

    offset: int
    offset_there: int | None
    what: str


@dataclass(frozen=True, slots=True)
class PartitionReport:
    """The result for one partition."""

    topic: str
    partition: int
    topic_there: str
    equal: int = 0
    """Records that are the same at both ends."""

    expired: int = 0
    """Records that are left at one end only, because of retention or compaction."""

    unknown: int = 0
    """Records of the source whose offset at the target is unknown, and which were not compared."""

    waiting: int = 0
    """Records that have not been mirrored yet."""

    difference: Difference | None = None

    def document(self) -> dict[str, Any]:
        """Return the report as JSON has it."""
        found = self.difference
        return {
            "topic": self.topic,
            "partition": self.partition,
            "topic_there": self.topic_there,
            "equal": self.equal,
            "expired": self.expired,
            "unknown": self.unknown,
            "waiting": self.waiting,
            "difference": None
            if found is None
            else {"offset": found.offset, "offset_there": found.offset_there, "what": found.what},
        }


def pieces(runs: Iterable[Run], first: int, end: int) -> Iterator[Piece]:
    """Yield the pieces of a source partition between two offsets, in order and without a gap."""
    at = first
    for run in sorted(runs, key=lambda run: run.upstream):
        if run.upstream_end <= at or run.upstream >= end:
            continue
        if at < run.since:
            yield Piece(Part.UNKNOWN, at, run.since)
            at = run.since
        if at < run.upstream:
            yield Piece(Part.EMPTY, at, run.upstream)
            at = run.upstream
        last = min(run.upstream_end, end)
        yield Piece(Part.COPIED, at, last, run.downstream + at - run.upstream)
        at = last
    if at < end:
        yield Piece(Part.WAITING, at, end)


def compared(piece: Piece, here: Stretch, there: Stretch) -> tuple[int, int, Difference | None]:
    """Return how many records of a piece are equal, how many are left at one end only, and the first difference.

    Only offsets that were reached at both ends count.
    """
    equal = expired = 0
    for step in range(min(piece.end, here.reached) - piece.first):
        offset, place = piece.first + step, piece.there + step
        if place >= there.reached:
            break
        mine, copy = here.records.get(offset), there.records.get(place)
        if mine is not None and copy is not None:
            if (what := _unequal(mine, copy)) is not None:
                return equal, expired, Difference(offset, place, what)
            equal += 1
        elif mine is not None or copy is not None:
            lacks, at = (here, offset) if mine is None else (there, place)
            if not lacks.may_lack(at):
                what = "only the target has this record" if mine is None else "missing at the target"
                return equal, expired, Difference(offset, place, what)
            expired += 1
    return equal, expired, None


def hole(here: Stretch) -> Difference | None:
    """Return the first record of a piece that should have none."""
    offset = min(here.records, default=None)
    return None if offset is None else Difference(offset, None, "not mirrored")


def _unequal(mine: Content, copy: Content) -> str | None:
    """Return what differs between a record and its copy."""
    for name, left, right in zip(("key", "value", "headers", "timestamp"), mine, copy, strict=True):
        is_comparable = name != "timestamp" or (left is not None and right is not None)
        if left != right and is_comparable:
            return f"different {name}"
    return None
