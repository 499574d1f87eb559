"""Rotation: when the open files of a topic partition end, and new ones begin.

Pure decisions. A *span* is what the open files of a topic partition have in common: the records from its first offset
on. All files of a span end together, at one offset, so that one number says what is in them.

Rules that depend on the records alone end a span at the same offset whenever the records are read again. The others
(the clock, the size in bytes, memory) do not: whoever applies them writes down the offset before any file is visible.
"""

from __future__ import annotations

import datetime as dt
from bisect import bisect_left
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Final
from zoneinfo import ZoneInfo

from connect.data import Constant

__all__ = ["Admission", "Reason", "RotationRules", "Rows", "Span", "admit", "due_by_clock", "next_scheduled"]

MOST_STRANDS: Final = 64
"""How many schemas may have files open in one span."""


class Reason(Enum):
    """Why a span ends. ``repeatable`` ones come at the same offset when the records are read again."""

    RECORDS = "flush.size"
    TIME = "rotate.interval.ms"
    FOLDER = "rotate.file.on.partition.change"
    FILES = "partitioner.max.open.files"
    SCHEMA = "schema.compatibility"
    CUT = "an earlier run"
    BYTES = "file.max.bytes"
    SCHEDULE = "rotate.schedule.interval.ms"
    IDLE = "rotate.idle.interval.ms"
    MEMORY = "buffer.max.bytes"
    COMMIT = "the commit of offsets"

    @property
    def repeatable(self) -> bool:
        """Whether the records alone decide."""
        return self in _REPEATABLE


_REPEATABLE: Final = (Reason.RECORDS, Reason.TIME, Reason.FOLDER, Reason.FILES, Reason.SCHEMA, Reason.CUT)


@dataclass(frozen=True, slots=True)
class RotationRules:
    """When spans end; ``None`` where there is no such rule."""

    records: int | None = None
    time_ms: int | None = None
    on_folder_change: bool = False
    most_files: int | None = None
    most_bytes: int | None = None
    schedule_ms: int | None = None
    timezone: str = "UTC"
    idle_ms: int | None = None


@dataclass(slots=True)
class Strand:
    """The records of one schema in a span, which Java's sinks would write one after the other."""

    records: int = 0
    first_time: int = 0
    place: str = ""


@dataclass(slots=True)
class Span:
    """What the open files of a topic partition hold, from the offset ``start`` on."""

    start: int
    opened_ms: int
    """When it was opened, by the clock."""
    scheduled_ms: int | None = None
    """When it ends, by the clock."""
    end: int = 0
    """The offset after its last record."""
    last_ms: int = 0
    """When its last record came."""
    bytes: int = 0
    strands: dict[Hashable, Strand] = field(default_factory=dict)
    files: set[tuple[Hashable, str]] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Rows:
    """Records of a topic partition, in order: what rotation has to know of them."""

    offsets: Sequence[int]
    strands: Sequence[Hashable]
    places: Sequence[str]
    times: Sequence[int]


@dataclass(frozen=True, slots=True)
class Admission:
    """The rows up to ``stop`` belong to the span, which ends there if there is a ``reason``."""

    stop: int
    reason: Reason | None


def admit(rules: RotationRules, span: Span, rows: Rows, first: int, cut: int | None, ceiling: int | None) -> Admission:
    """Count the rows from ``first`` on that belong to the span, and say whether it ends before the next one.

    ``cut`` is the offset at which an earlier run ended this very span: then nothing else ends it. ``ceiling`` is the
    offset at which an earlier run began another one.
    """
    last = len(rows.offsets)
    bound = cut if cut is not None else ceiling
    stop = last if bound is None else bisect_left(rows.offsets, bound, first)
    if cut is not None:
        rules = RotationRules()
    if isinstance(rows.strands, Constant) and isinstance(rows.places, Constant) and rules.time_ms is None:
        admission = _admit_alike(rules, span, rows, first, stop)
    else:
        admission = _admit_each(rules, span, rows, first, stop)
    span.end = max(span.end, rows.offsets[admission.stop - 1] + 1) if admission.stop > first else span.end
    if admission.reason is None and admission.stop == stop and stop < last:
        return Admission(stop, Reason.CUT)
    if admission.reason is None and bound is not None and span.end >= bound:
        return Admission(admission.stop, Reason.CUT)
    return admission


def _admit_alike(rules: RotationRules, span: Span, rows: Rows, first: int, stop: int) -> Admission:
    """Count rows that all belong to one file."""
    if first >= stop:
        return Admission(first, None)
    key, place = rows.strands[first], rows.places[first]
    if reason := _refused(rules, span, key, place, 0):
        return Admission(first, reason)
    strand = _joined(span, key, place, rows.times[first])
    room = stop - first if rules.records is None else max(1, rules.records - strand.records)
    taken = min(room, stop - first)
    strand.records += taken
    is_full = rules.records is not None and strand.records >= rules.records
    return Admission(first + taken, Reason.RECORDS if is_full else None)


def _admit_each(rules: RotationRules, span: Span, rows: Rows, first: int, stop: int) -> Admission:
    parts = (rows.strands[first:stop], rows.places[first:stop], rows.times[first:stop])
    for index, (key, place, time) in enumerate(zip(*parts, strict=True), first):
        if reason := _refused(rules, span, key, place, time):
            return Admission(index, reason)
        strand = _joined(span, key, place, time)
        strand.records += 1
        if rules.records is not None and strand.records >= rules.records:
            return Admission(index + 1, Reason.RECORDS)
    return Admission(stop, None)


def _refused(rules: RotationRules, span: Span, key: Hashable, place: str, time: int) -> Reason | None:
    """Return why a record begins a new span."""
    strand = span.strands.get(key)
    if strand is not None and rules.time_ms is not None and time - strand.first_time >= rules.time_ms:
        return Reason.TIME
    if strand is not None and rules.on_folder_change and place != strand.place:
        return Reason.FOLDER
    if strand is None and len(span.strands) >= MOST_STRANDS:
        return Reason.SCHEMA
    is_new = (key, place) not in span.files
    if is_new and rules.most_files is not None and len(span.files) >= rules.most_files:
        return Reason.FILES
    return None


def _joined(span: Span, key: Hashable, place: str, time: int) -> Strand:
    strand = span.strands.get(key)
    if strand is None:
        strand = span.strands[key] = Strand(first_time=time)
    strand.place = place
    span.files.add((key, place))
    return strand


def due_by_clock(rules: RotationRules, span: Span, now_ms: int) -> Reason | None:
    """Return why a span ends now, whatever records come."""
    if span.scheduled_ms is not None and now_ms >= span.scheduled_ms:
        return Reason.SCHEDULE
    if rules.idle_ms is not None and now_ms - span.last_ms >= rules.idle_ms:
        return Reason.IDLE
    if rules.most_bytes is not None and span.bytes >= rules.most_bytes:
        return Reason.BYTES
    return None


def next_scheduled(rules: RotationRules, now_ms: int) -> int | None:
    """Return the next instant of ``rotate.schedule.interval.ms``, which is counted from midnight in the time zone."""
    if rules.schedule_ms is None:
        return None
    now = dt.datetime.fromtimestamp(now_ms / 1000, ZoneInfo(rules.timezone))
    midnight = int(now.replace(hour=0, minute=0, second=0, microsecond=0).timestamp() * 1000)
    return midnight + ((now_ms - midnight) // rules.schedule_ms + 1) * rules.schedule_ms
