"""The writer of one topic partition: which file each record goes to, and when the files end.

It belongs to the thread of the task. Files are sent and made visible by others, one span at a time: what is durable is
everything before the span that is being published, or is open.
"""

from __future__ import annotations

import errno
import logging
from bisect import bisect_right
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field, replace
from typing import Any, Final

from connect.data import Constant, Schema, SinkBatch, SinkRecord, TopicPartition
from connect.errors import ConnectError, DataError, RetriableError
from connect.internals.crash import crash_point
from connect.kits.files.record_time import RecordTimes
from connect.kits.files.rotation import (
    Reason,
    RotationRules,
    Rows,
    Span,
    admit,
    due_by_clock,
    next_scheduled,
)
from connectors.objects.cuts import Cut, Cuts
from connectors.objects.open_files import FileGroup, KeyFile, Uploads
from connectors.objects.placing import TOMBSTONE, Placing, strands_of
from connectors.objects.record_views import RecordView
from connectors.objects.schema_changes import Change, SchemaChanges, projected

__all__ = ["BusyError", "PartitionWriter", "Plan", "staging_of"]

_log = logging.getLogger(__name__)
_EARLY_PART_BYTES: Final = 5 << 20
"""The least size of a part of an upload to S3 that is not the last one."""

_PERMANENT: Final = frozenset({errno.EROFS, errno.ENAMETOOLONG, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK})

Report = Callable[[SinkRecord, DataError], None]


class BusyError(RetriableError):
    """The same records have to be put again a little later; none has to be read again."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What all writers of a task have in common."""

    rules: RotationRules
    placing: Placing
    times: RecordTimes
    changes: SchemaChanges
    views: Sequence[RecordView]
    uploads: Uploads
    publishers: Executor
    on_null: str
    """``write``, ``ignore`` or ``fail``; ``keep`` where records without a value are as good as others."""
    patience: float
    """For how many seconds a put may wait for files to be published."""
    report: Report
    skip_null: Callable[[SinkRecord], None]


@dataclass(slots=True)
class _OpenSpan:
    """A span, its files, and the schemas these have."""

    span: Span
    cut: Cut | None
    ceiling: int | None
    files: dict[tuple[Hashable, str], FileGroup | KeyFile] = field(default_factory=dict)
    schemas: dict[Hashable, Schema | None] = field(default_factory=dict)
    places: list[tuple[int, str]] = field(default_factory=list)
    """From which offset on records went to which place, by the clock."""
    ending: Reason | None = None

    @property
    def held(self) -> int:
        return sum(group.held for group in self.files.values())


@dataclass(slots=True)
class _Publishing:
    """A span whose files are being made visible by another thread."""

    start: int
    end: int
    held: int
    done: Future[None]


class PartitionWriter:
    """Takes the records of a partition in order."""

    def __init__(self, plan: Plan, partition: TopicPartition, cuts: Cuts) -> None:
        self.partition = partition
        self.cuts = cuts
        self.is_ready = False
        self._plan = plan
        own = replace(plan.uploads.settings, staging=staging_of(plan, partition))
        self._uploads = replace(plan.uploads, settings=own)
        self._open: _OpenSpan | None = None
        self._publishing: _Publishing | None = None
        self._position: int | None = None
        """The offset from which on records were not taken yet."""
        self._again: int | None = None
        """The offset from which on records have to come again, until they do."""
        self._reported = -1
        """Up to here, bad records were given up."""
        self._ends: list[int] = []
        self._held = 0

    # -- what others ask -----------------------------------------------------------------------------------------

    @property
    def held(self) -> int:
        """The bytes in memory."""
        return self._held + (0 if self._publishing is None else self._publishing.held)

    @property
    def opened_ms(self) -> int | None:
        """Since when it has files open that may be ended; ``None`` if there are none."""
        is_free = self._open is not None and self._open.cut is None and self._open.files
        return self._open.span.opened_ms if is_free and self._open is not None else None

    @property
    def is_publishing(self) -> bool:
        """Whether files are being made visible."""
        return self._publishing is not None

    def durable(self, delivered: int) -> int:
        """Return the offset before which everything is durable; ``delivered`` is the one after the last record."""
        starts = self._starts() if self._again is None else [self._again]
        return min([*starts, delivered])

    def _starts(self) -> list[int]:
        """Return where spans begin that are not durable."""
        starts = [] if self._publishing is None else [self._publishing.start]
        return starts if self._open is None else [*starts, self._open.span.start]

    def committed(self, offset: int) -> None:
        """Remember that an offset may be committed, and remove what is only needed before it."""
        self._ends = [*self._ends[-2:], offset]
        if len(self._ends) == 3 and self._publishing is None and self.is_ready:
            try:
                self.cuts.forget(self._ends[0])
            except (ConnectError, OSError) as error:
                _log.debug("Old cuts of %s are removed later: %s", self.partition, error)

    # -- records -------------------------------------------------------------------------------------------------

    def take(self, batch: SinkBatch, now_ms: int) -> None:
        """Take records of this partition. A :class:`~connect.errors.RetriableError` asks for all of them again; those
        that were taken are skipped then.
        """
        self._again = None
        if self._open is not None and self._open.ending is not None:
            self.end(self._open.ending)
        if self._position is not None:
            batch = _from(batch, self._position)
        if not len(batch):
            return
        rows_batch, rows = self._placed(self._with_values(batch), now_ms)
        if len(rows_batch):
            self._take_placed(rows_batch, rows, now_ms)
        self._position = batch.original_offsets[-1] + 1

    def _take_placed(self, batch: SinkBatch, rows: Rows, now_ms: int) -> None:
        first = 0
        while first < len(batch):
            opened = self._opened(rows.offsets[first], now_ms)
            cut_end = None if opened.cut is None else opened.cut.end
            rules, stop = self._plan.rules, len(batch)
            if self._rotates(opened, batch, first):
                stop = first
            window = rows if stop == len(batch) else _window(rows, stop)
            admission = admit(rules, opened.span, window, first, cut_end, opened.ceiling)
            reason = Reason.SCHEMA if stop == first else admission.reason
            if admission.stop > first:
                opened.span.last_ms = now_ms
                self._write(opened, batch.slice(first, admission.stop), rows, first)
            if reason is Reason.RECORDS and not _is_full(rules, opened.span):
                reason = None
            first = admission.stop
            if first < len(batch):
                self._position = rows.offsets[first]
            elif first:
                self._position = rows.offsets[first - 1] + 1
            if reason is not None:
                self.end(reason)

    def _with_values(self, batch: SinkBatch) -> SinkBatch:
        """Return the records without those that have no value and are not written."""
        if self._plan.on_null in ("write", "keep") or not batch.value.has_nulls():
            return batch
        empty = [at for at, value in enumerate(batch.value.values()) if value is None]
        for at in empty:
            (record,) = batch.slice(at, at + 1)
            if self._plan.on_null == "fail":
                self._report(
                    record,
                    DataError("The record has no value: behavior.on.null.values says whether to ignore or write such."),
                )
            elif record.original_offset > self._reported:
                self._plan.skip_null(record)
                self._reported = record.original_offset
        missing = set(empty)
        return batch.take([at for at in range(len(batch)) if at not in missing])

    def _placed(self, batch: SinkBatch, now_ms: int) -> tuple[SinkBatch, Rows]:
        """Return the records that have a place, and their places; the others are given up."""
        if not len(batch):
            return batch, Rows((), (), (), ())
        times = self._times(batch, now_ms)
        places = self._places(batch, times)
        if bad := self._refused(places, times):
            for at, reason in sorted(bad.items()):
                (record,) = batch.slice(at, at + 1)
                self._report(record, reason)
            kept = [at for at in range(len(batch)) if at not in bad]
            batch = batch.take(kept)
            places, times = [places[at] for at in kept], [times[at] for at in kept]
        return batch, Rows(batch.original_offsets, self._strands(batch), places, times)  # type: ignore[arg-type]

    def _refused(self, places: Sequence[str | DataError], times: Sequence[Any]) -> dict[int, DataError]:
        """Return what is wrong with records that have no place, or no time where that is needed."""
        found: dict[int, DataError] = {}
        if self._plan.rules.time_ms is not None and not self._plan.times.by_clock:
            found = {at: time for at, time in enumerate(times) if isinstance(time, DataError)}
        if isinstance(places, Constant) and not isinstance(places.value, DataError):
            return found
        return found | {at: place for at, place in enumerate(places) if isinstance(place, DataError)}

    def _strands(self, batch: SinkBatch) -> Sequence[Hashable]:
        """Return what tells apart records that cannot share a file: their schemas."""
        plan = self._plan
        if plan.placing.by_key:
            # The last record of a key counts, whatever its schema is.
            return Constant(None, len(batch))
        first, *beside = plan.views
        own = first.schema_key(batch) if self._is_enveloped else plan.changes.strand(batch.value.schema)
        key = (own, *(view.schema_key(batch) for view in beside))
        return strands_of(batch, key, splits_nulls=plan.on_null == "write")

    @property
    def _is_enveloped(self) -> bool:
        return self._plan.on_null == "keep"

    def _times(self, batch: SinkBatch, now_ms: int) -> Sequence[Any]:
        times = self._plan.times
        if times.by_clock:
            return Constant(now_ms, len(batch))
        needed = self._plan.rules.time_ms is not None or self._plan.placing.by_time
        if not needed:
            return Constant(0, len(batch))
        values = batch.value.values()
        found: list[Any] = times.of(values, batch.timestamps)
        if self._plan.on_null == "write":
            # A record without a value has no field that tells its time.
            for at, value in enumerate(values):
                found[at] = (batch.timestamps[at] or 0) if value is None else found[at]
        return found

    def _places(self, batch: SinkBatch, times: Sequence[Any]) -> Sequence[str | DataError]:
        places = self._plan.placing.places(batch, self.partition.partition, times)
        if not self._plan.placing.by_clock or not self.cuts.reach(batch.original_offsets[0]):
            return places
        found = list(places)
        for at, offset in enumerate(batch.original_offsets):
            cut = self.cuts.covering(offset)
            if cut is not None and cut.places and not isinstance(found[at], DataError):
                found[at] = _place_at(cut, offset)
        return found

    def _rotates(self, opened: _OpenSpan, batch: SinkBatch, first: int) -> bool:
        """Whether the schema of the records ends the open files; raises nothing: bad ones are found when written."""
        if opened.cut is not None or self._plan.changes.compatibility == "NONE" or self._is_enveloped:
            return False
        strand = self._plan.changes.strand(batch.value.schema)
        current = opened.schemas.get(strand)
        try:
            change = self._plan.changes.change(current, batch.value.schema)
        except DataError:
            return False
        return change is Change.ROTATE and bool(opened.files) and first < len(batch)

    # -- files ---------------------------------------------------------------------------------------------------

    def _opened(self, offset: int, now_ms: int) -> _OpenSpan:
        if self._open is None:
            cut = self.cuts.covering(offset)
            span = Span(offset, now_ms, next_scheduled(self._plan.rules, now_ms), end=offset, last_ms=now_ms)
            self._open = _OpenSpan(span, cut, self.cuts.next_start(offset))
            if cut is not None:
                _log.info("%s: offsets %d to %d are written as an earlier run began to.", *self._shown(cut))
        return self._open

    def _shown(self, cut: Cut) -> tuple[str, int, int]:
        return f"{self.partition.topic}-{self.partition.partition}", cut.start, cut.end - 1

    def _write(self, opened: _OpenSpan, batch: SinkBatch, rows: Rows, first: int) -> None:
        """Write admitted records, each file's together."""
        if isinstance(rows.places, Constant) and isinstance(rows.strands, Constant):
            self._write_file(opened, rows.strands.value, rows.places.value, batch)
            return
        chosen: dict[tuple[Hashable, str], list[int]] = {}
        for at in range(len(batch)):
            chosen.setdefault((rows.strands[first + at], rows.places[first + at]), []).append(at)
        for (strand, place), indices in chosen.items():
            self._write_file(opened, strand, place, batch.take(indices))

    def _write_file(self, opened: _OpenSpan, strand: Hashable, place: str, batch: SinkBatch) -> None:
        if self._plan.placing.by_clock and (not opened.places or opened.places[-1][1] != place):
            opened.places.append((batch.original_offsets[0], place))
        try:
            self._write_rows(opened, strand, place, batch)
        except DataError as error:
            if len(batch) == 1:
                (record,) = batch
                self._report(record, error)
                # It does not count for flush.size.
                opened.span.strands[strand].records -= 1
                return
            middle = len(batch) // 2
            self._write_file(opened, strand, place, batch.slice(0, middle))
            self._write_file(opened, strand, place, batch.slice(middle, len(batch)))

    def _write_rows(self, opened: _OpenSpan, strand: Hashable, place: str, batch: SinkBatch) -> None:
        key = (strand, place)
        if strand != TOMBSTONE and not self._is_enveloped:
            batch = self._in_schema(opened, batch)
        group = opened.files.get(key)
        is_new = group is None
        if group is None:
            group = self._new_group(strand, place, batch)
        before = group.held
        try:
            opened.span.bytes += group.write(batch)
        except DataError:
            if is_new:
                group.discard()
            raise
        opened.files[key] = group
        self._held += group.held - (0 if is_new else before)

    def _in_schema(self, opened: _OpenSpan, batch: SinkBatch) -> SinkBatch:
        schema = batch.value.schema
        strand = self._plan.changes.strand(schema)
        current = opened.schemas.setdefault(strand, schema)
        if self._plan.changes.change(current, schema) is Change.WRITE or current is None:
            return batch
        return batch.replace(value=projected(batch.value, current))

    def _new_group(self, strand: Hashable, place: str, batch: SinkBatch) -> FileGroup | KeyFile:
        plan, (topic, partition) = self._plan, self.partition
        views = plan.views[1:] if strand == TOMBSTONE else plan.views
        offset = batch.original_offsets[0]
        paths = [
            plan.placing.path(place, topic, partition, offset, view.infix, view.format.extension) for view in views
        ]
        if plan.placing.by_key:
            return KeyFile(self._uploads, views[0], paths[0])
        return FileGroup(self._uploads, views, batch, paths)

    def _report(self, record: SinkRecord, error: DataError) -> None:
        if record.original_offset > self._reported:
            self._plan.report(record, error)
            self._reported = record.original_offset

    # -- ends ----------------------------------------------------------------------------------------------------

    def end_if_due(self, now_ms: int) -> None:
        """End the open files if the clock or their size says so."""
        opened = self._open
        if opened is None or opened.cut is not None:
            return
        reason = opened.ending or due_by_clock(self._plan.rules, opened.span, now_ms)
        if reason is None and self._plan.times.by_clock and self._plan.rules.time_ms is not None:
            oldest = min((strand.first_time for strand in opened.span.strands.values()), default=now_ms)
            reason = Reason.TIME if now_ms - oldest >= self._plan.rules.time_ms else None
        if reason is not None:
            self.end(reason)

    def end_if_reached(self, delivered: int) -> None:
        """End files that an earlier run ended, if all records before that end came, and the last of them are gone."""
        opened = self._open
        if opened is not None and opened.cut is not None and delivered >= opened.cut.end:
            self.end(Reason.CUT)

    def due_ms(self, now_ms: int) -> int | None:
        """Return when the clock next ends the open files; ``None`` if it does not."""
        opened, rules = self._open, self._plan.rules
        if opened is None or opened.cut is not None:
            return None
        due = [] if opened.span.scheduled_ms is None else [opened.span.scheduled_ms]
        if rules.idle_ms is not None:
            due.append(opened.span.last_ms + rules.idle_ms)
        if rules.time_ms is not None and self._plan.times.by_clock:
            due.append(opened.span.opened_ms + rules.time_ms)
        if opened.ending is not None:
            due.append(now_ms)
        return min(due, default=None)

    def end(self, reason: Reason) -> None:
        """End the open files, and have them published.

        Raises :class:`~connect.errors.RetriableError` if those before them are not yet visible.
        """
        opened = self._open
        if opened is None:
            return
        opened.ending = reason
        self.settle(self._plan.patience)
        if self._publishing is not None:
            raise BusyError(
                f"The store takes its time: files of {self.partition.topic}-{self.partition.partition} are still being "
                "written.",
                retry_after=0.05,
            )
        self._open = None
        held, self._held = self._held, 0
        if not opened.files:
            return
        _log.debug("%s: the files from offset %d end because of %s.", self.partition, opened.span.start, reason.value)
        cut = self._cut(opened, reason)
        groups = list(opened.files.values())
        done = self._plan.publishers.submit(_publish, self.cuts, cut, groups, self._plan.uploads.threads)
        self._publishing = _Publishing(opened.span.start, opened.span.end, held, done)

    def _cut(self, opened: _OpenSpan, reason: Reason) -> Cut | None:
        """Return what has to be written down before the files are visible."""
        by_clock = self._plan.placing.by_clock or (reason is Reason.TIME and self._plan.times.by_clock)
        if opened.cut is not None or (reason.repeatable and not by_clock):
            return None
        return Cut(opened.span.start, opened.span.end, tuple(opened.places))

    def settle(self, seconds: float = 0.0) -> None:
        """Learn whether the files that are being published are visible, waiting for it for so long.

        Raises what went wrong; everything since the last durable offset has to be read again then, from
        :meth:`start_again`.
        """
        publishing = self._publishing
        if publishing is None or (not seconds and not publishing.done.done()):
            return
        try:
            publishing.done.result(seconds)
        except TimeoutError:
            if not publishing.done.done():
                return
            raise
        self._publishing = None

    def start_again(self) -> int | None:
        """Give up what is not durable; return the offset from which on records have to be read again."""
        self._again = min([*self._starts(), *([] if self._again is None else [self._again])], default=None)
        self.discard()
        return self._again

    def discard(self) -> None:
        """Give up what is open."""
        if self._publishing is not None and not self._publishing.done.cancel():
            self._publishing.done.exception()
        if self._open is not None:
            for group in self._open.files.values():
                group.discard()
        self._open, self._publishing, self._position, self._held = None, None, None, 0

    def send_early(self) -> None:
        """Send what waits in memory, where it is enough for a part."""
        if self._open is not None:
            for group in self._open.files.values():
                if group.held >= _EARLY_PART_BYTES:
                    group.send_early(_EARLY_PART_BYTES)
            self._held = self._open.held


def staging_of(plan: Plan, partition: TopicPartition) -> str:
    """Return the folder for files of a partition that have not got their names yet, where the store needs one."""
    return f"{plan.uploads.settings.staging}/{partition.topic}/{partition.partition}"


def _publish(cuts: Cuts, cut: Cut | None, groups: Sequence[FileGroup | KeyFile], threads: Executor) -> None:
    """Make files visible, in a thread of its own."""
    try:
        if cut is not None:
            crash_point("objects-before-cut")
            cuts.create(cut)
            crash_point("objects-after-cut")
        for finished in [threads.submit(group.finish) for group in groups]:
            finished.result()
        crash_point("objects-after-files")
    except BaseException as error:
        for group in groups:
            group.discard()
        if isinstance(error, OSError):
            raise _told(error) from error
        raise


def _told(error: OSError) -> ConnectError:
    """Return what an error of a folder means."""
    if isinstance(error, PermissionError) or error.errno in _PERMANENT:
        return ConnectError(
            f"The folder cannot be written: {error}. It has to be on a file system with hard links, and the user of "
            "the worker needs the right to write there."
        )
    return RetriableError(f"The files cannot be written now: {error}")


def _from(batch: SinkBatch, position: int) -> SinkBatch:
    """Return the records from an offset on."""
    offsets = batch.original_offsets
    if not len(offsets) or offsets[0] >= position:
        return batch
    first = next((at for at, offset in enumerate(offsets) if offset >= position), len(offsets))
    return batch.slice(first, len(batch))


def _is_full(rules: RotationRules, span: Span) -> bool:
    """Whether a file has the records of flush.size, without those that were given up."""
    return any(strand.records >= (rules.records or 0) for strand in span.strands.values())


def _window(rows: Rows, stop: int) -> Rows:
    return Rows(rows.offsets[:stop], rows.strands[:stop], rows.places[:stop], rows.times[:stop])


def _place_at(cut: Cut, offset: int) -> str:
    at = bisect_right([start for start, _ in cut.places], offset) - 1
    return cut.places[max(at, 0)][1]
