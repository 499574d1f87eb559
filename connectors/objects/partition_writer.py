"""The writer of one topic partition: which file each record goes to, and when the files end.

It belongs to the thread of the task. Files are sent and made visible by others, one span at a time: what is durable is
everything before the span that is being published, or is open.
"""

from __future__ import annotations

import logging
from bisect import bisect_right
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import partial

from connect.data import SinkBatch, TopicPartition
from connect.errors import ConnectError, DataError
from connect.internals.crash import crash_point
from connect.kits.files.rotation import Reason, Rows, Span, admit, next_scheduled
from connectors.objects.arrivals import Arrivals, Places, Plan
from connectors.objects.cuts import Cut, Cuts
from connectors.objects.open_files import FileGroup, KeyFile
from connectors.objects.open_span import OpenSpan
from connectors.objects.publishing import EARLY_PART_BYTES, BusyError, Publication, from_offset, store_error, window

__all__ = ["PartitionWriter"]

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _OpenSpan(OpenSpan):
    """An open span of a partition, and what earlier runs have said of it."""

    cut: Cut | None = None
    ceiling: int | None = None


class PartitionWriter:
    """Takes the records of a partition in order."""

    def __init__(self, plan: Plan, partition: TopicPartition, cuts: Cuts) -> None:
        self.partition = partition
        self.cuts = cuts
        self.is_ready = False
        self._plan = plan
        own = replace(
            plan.uploads.settings, staging=f"{plan.uploads.settings.staging}/{partition.topic}/{partition.partition}"
        )
        self._uploads = replace(plan.uploads, settings=own)
        self._arrivals = Arrivals(plan, partition.partition)
        self._open: _OpenSpan | None = None
        self._publishing: tuple[Publication, int] | None = None
        """What is being made visible, and at which offset that begins."""
        self._position: int | None = None
        """The offset from which on records were not taken yet."""
        self._again: int | None = None
        """The offset from which on records have to come again, until they do."""
        self._ends: list[int] = []

    def load(self) -> None:
        """Read what earlier runs have left."""
        self.cuts.load()
        self.is_ready = True

    # -- what others ask -----------------------------------------------------------------------------------------

    @property
    def shown(self) -> str:
        """What errors call it."""
        return f"{self.partition.topic}-{self.partition.partition}"

    @property
    def staging(self) -> str:
        """The folder for files that have not got their names yet, where the store needs one."""
        return self._uploads.settings.staging

    def owns(self, path: str) -> bool:
        """Whether a file is of this partition."""
        return self._plan.placing.is_of(path, *self.partition)

    @property
    def held(self) -> int:
        """The bytes in memory."""
        under_way = 0 if self._publishing is None else self._publishing[0].held
        return under_way if self._open is None else under_way + self._open.held

    @property
    def opened_ms(self) -> int | None:
        """Since when it has files open that may be ended; ``None`` if there are none."""
        is_free = self._open is not None and self._open.cut is None and self._open.files
        return self._open.span.opened_ms if is_free and self._open is not None else None

    @property
    def is_publishing(self) -> bool:
        """Whether files are being made visible."""
        return self._publishing is not None

    def durable(self, partition: TopicPartition, delivered: int) -> int:  # noqa: ARG002 - it has but one
        """Return the offset before which everything is durable; ``delivered`` is the one after the last record."""
        starts = self._starts() if self._again is None else [self._again]
        return min([*starts, delivered])

    def _starts(self) -> list[int]:
        """Return where spans begin that are not durable."""
        starts = [] if self._publishing is None else [self._publishing[1]]
        return starts if self._open is None else [*starts, self._open.span.start]

    def committed(self, partition: TopicPartition, offset: int) -> None:  # noqa: ARG002 - it has but one
        """Remember that an offset may be committed, and remove what is only needed before it."""
        self._ends = [*self._ends[-2:], offset]
        if len(self._ends) == 3 and self._publishing is None and self.is_ready:
            try:
                self.cuts.forget(self._ends[0])
            except (ConnectError, OSError) as error:
                _log.debug("Old cuts of %s are removed later: %s", self.partition, error)

    # -- records -------------------------------------------------------------------------------------------------

    def take(self, partition: TopicPartition, batch: SinkBatch, now_ms: int) -> None:  # noqa: ARG002 - it has but one
        """Take records of this partition. A :class:`~connect.errors.RetriableError` asks for all of them again; those
        that were taken are skipped then.
        """
        self._again = None
        if self._open is not None and self._open.ending is not None:
            self.end(self._open.ending)
        if self._position is not None:
            batch = from_offset(batch, self._position)
        if not len(batch):
            return
        rows_batch, rows = self._arrivals.placed(batch, now_ms, self._revised)
        if len(rows_batch):
            self._take_placed(rows_batch, rows, now_ms)
        self._position = batch.original_offsets[-1] + 1
        self._arrivals.passed(self._position)

    def _take_placed(self, batch: SinkBatch, rows: Rows, now_ms: int) -> None:
        first = 0
        while first < len(batch):
            opened = self._opened(rows.offsets[first], now_ms)
            cut_end = None if opened.cut is None else opened.cut.end
            stop = first if opened.cut is None and opened.rotates(batch) else len(batch)
            seen = rows if stop == len(batch) else window(rows, stop)
            admission = admit(self._plan.rules, opened.span, seen, first, cut_end, opened.ceiling)
            reason = Reason.SCHEMA if stop == first else admission.reason
            if admission.stop > first:
                opened.span.last_ms = now_ms
                opened.write(batch.slice(first, admission.stop), rows, first, self._arrivals)
            if reason is Reason.RECORDS and not opened.is_full():
                reason = None
            first = admission.stop
            if first < len(batch):
                self._position = rows.offsets[first]
            elif first:
                self._position = rows.offsets[first - 1] + 1
            if reason is not None:
                self.end(reason)

    def _revised(self, batch: SinkBatch, places: Places) -> Places:
        """Return the places that an earlier run gave records by the clock."""
        if not self.cuts.reach(batch.original_offsets[0]):
            return places
        found = list(places)
        for at, offset in enumerate(batch.original_offsets):
            cut = self.cuts.covering(offset)
            if cut is not None and cut.places and not isinstance(found[at], DataError):
                found[at] = _place_at(cut, offset)
        return found

    # -- files ---------------------------------------------------------------------------------------------------

    def _opened(self, offset: int, now_ms: int) -> _OpenSpan:
        if self._open is None:
            cut = self.cuts.covering(offset)
            span = Span(offset, now_ms, next_scheduled(self._plan.rules, now_ms), end=offset, last_ms=now_ms)
            ceiling = self.cuts.next_start(offset)
            self._open = _OpenSpan(self._plan, self._uploads, self._path, span, cut=cut, ceiling=ceiling)
            if cut is not None:
                _log.info("%s: offsets %d to %d are written as an earlier run began to.", *self._told(cut))
        return self._open

    def _path(self, place: str, offset: int) -> Callable[[str, str], str]:
        return partial(self._plan.placing.path, place, *self.partition, offset)

    def _told(self, cut: Cut) -> tuple[str, int, int]:
        return self.shown, cut.start, cut.end - 1

    # -- ends ----------------------------------------------------------------------------------------------------

    def end_if_due(self, now_ms: int) -> None:
        """End the open files if the clock or their size says so."""
        opened = self._open
        if opened is not None and opened.cut is None and (reason := opened.reason(now_ms)) is not None:
            self.end(reason)

    def end_if_reached(self, partition: TopicPartition, delivered: int) -> None:  # noqa: ARG002 - it has but one
        """End files that an earlier run ended, if all records before that end came, and the last of them are gone."""
        opened = self._open
        if opened is not None and opened.cut is not None and delivered >= opened.cut.end:
            self.end(Reason.CUT)

    def due_ms(self) -> int | None:
        """Return when the clock next ends the open files; ``None`` if it does not."""
        opened = self._open
        return None if opened is None or opened.cut is not None else opened.due_ms()

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
            raise BusyError(self.shown)
        self._open = None
        if not opened.files:
            return
        _log.debug("%s: the files from offset %d end because of %s.", self.partition, opened.span.start, reason.value)
        cut = self._cut(opened, reason)
        groups = list(opened.files.values())
        done = self._plan.publishers.submit(_publish, self.cuts, cut, groups, self._plan.uploads.threads)
        self._publishing = Publication(opened.held, done), opened.span.start

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
        if self._publishing is not None and self._publishing[0].is_over(seconds):
            self._publishing = None

    def start_again(self) -> Mapping[TopicPartition, int]:
        """Give up what is not durable; return the offset from which on records have to be read again."""
        self._again = min([*self._starts(), *([] if self._again is None else [self._again])], default=None)
        self.discard()
        return {} if self._again is None else {self.partition: self._again}

    def leave(self, partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, int]:  # noqa: ARG002 - as above
        """Give up what is open, as the partition goes elsewhere."""
        self.discard()
        return {}

    def discard(self) -> None:
        """Give up what is open."""
        if self._publishing is not None:
            self._publishing[0].end()
        if self._open is not None:
            self._open.discard()
        self._open, self._publishing, self._position = None, None, None

    def send_early(self) -> None:
        """Send what waits in memory, where it is enough for a part."""
        if self._open is not None:
            self._open.send_early(EARLY_PART_BYTES)


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
            raise store_error(error) from error
        raise


def _place_at(cut: Cut, offset: int) -> str:
    at = bisect_right([start for start, _ in cut.places], offset) - 1
    return cut.places[max(at, 0)][1]
