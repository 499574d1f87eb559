"""The writer of all partitions of a topic, which share files.

As :class:`~connectors.objects.partition_writer.PartitionWriter`, it belongs to the thread of the task, and others send
and publish its files, one span at a time. What a kill costs is in :mod:`connectors.objects.commits`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from functools import partial
from uuid import uuid4

from connect.data import SinkBatch, TopicPartition
from connect.kits.files.names import SHARED
from connect.kits.files.rotation import Reason, Rows, Span, admit, next_scheduled
from connectors.objects.arrivals import Arrivals, Plan
from connectors.objects.commits import Commits
from connectors.objects.open_files import FileGroup
from connectors.objects.open_span import OpenSpan
from connectors.objects.placing import FolderPlacing
from connectors.objects.publishing import EARLY_PART_BYTES, BusyError, Publication, from_offset, store_error, window

__all__ = ["TopicWriter"]

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _OpenSpan(OpenSpan):
    """An open span, and the first offset and the one after the last of each partition in it."""

    starts: dict[int, int] = field(default_factory=dict)
    ends: dict[int, int] = field(default_factory=dict)


class TopicWriter:
    """Takes the records of the partitions of a topic, those of each in order."""

    def __init__(self, plan: Plan, placing: FolderPlacing, topic: str, commits: Commits) -> None:
        self.shown = topic
        self.is_ready = False
        self._plan = plan
        self._placing = placing
        self._topic = topic
        self._commits = commits
        own = replace(plan.uploads.settings, staging=f"{plan.uploads.settings.staging}/{topic}/{SHARED}")
        self._uploads = replace(plan.uploads, settings=own, stages=True)
        self._arrivals: dict[int, Arrivals] = {}
        self._open: _OpenSpan | None = None
        self._publishing: tuple[Publication, Mapping[int, int]] | None = None
        """What is being made visible, and at which offsets that begins."""
        self._positions: dict[int, int] = {}
        """The offsets from which on records were not taken yet."""
        self._again: dict[int, int] = {}
        """The offsets from which on records have to come again, until they do."""

    def load(self) -> None:
        """Publish what earlier runs have committed, and remove what they have not."""
        self._commits.take_over()
        self._uploads.store.remove_tree(self.staging)
        self.is_ready = True

    # -- what others ask -----------------------------------------------------------------------------------------

    @property
    def staging(self) -> str:
        """The folder for files that have not got their names yet, where the store needs one."""
        return self._uploads.settings.staging

    def owns(self, path: str) -> bool:
        """Whether a file is one of those that partitions share."""
        return self._placing.is_shared(path, self._topic)

    @property
    def held(self) -> int:
        """The bytes in memory."""
        under_way = 0 if self._publishing is None else self._publishing[0].held
        return under_way if self._open is None else under_way + self._open.held

    @property
    def opened_ms(self) -> int | None:
        """Since when it has files open; ``None`` if there are none."""
        return self._open.span.opened_ms if self._open is not None and self._open.files else None

    @property
    def is_publishing(self) -> bool:
        """Whether files are being made visible."""
        return self._publishing is not None

    def durable(self, partition: TopicPartition, delivered: int) -> int:
        """Return the offset before which everything is durable; ``delivered`` is the one after the last record."""
        return min(self._starts().get(partition.partition, delivered), delivered)

    def _starts(self) -> dict[int, int]:
        """Return where each partition's records begin that are not durable."""
        opened = {} if self._open is None else self._open.starts
        under_way = {} if self._publishing is None else self._publishing[1]
        return {**opened, **under_way, **self._again}

    def committed(self, partition: TopicPartition, offset: int) -> None:
        """Do nothing: commits are removed as others follow."""

    # -- records -------------------------------------------------------------------------------------------------

    def take(self, partition: TopicPartition, batch: SinkBatch, now_ms: int) -> None:
        """Take records of a partition. A :class:`~connect.errors.RetriableError` asks for all of them again; those
        that were taken, or are in files, are skipped.
        """
        number = partition.partition
        self._again.pop(number, None)
        if self._open is not None and self._open.ending is not None:
            self.end(self._open.ending)
        batch = from_offset(batch, max(self._positions.get(number, 0), self._commits.positions.get(number, 0)))
        if not len(batch):
            return
        arrivals = self._arrivals.setdefault(number, Arrivals(self._plan, number))
        rows_batch, rows = arrivals.placed(batch, now_ms)
        if len(rows_batch):
            self._take_placed(number, rows_batch, rows, now_ms)
        self._positions[number] = batch.original_offsets[-1] + 1
        arrivals.passed(self._positions[number])

    def _take_placed(self, number: int, batch: SinkBatch, rows: Rows, now_ms: int) -> None:
        first = 0
        while first < len(batch):
            opened = self._opened(number, rows.offsets[first], now_ms)
            stop = first if opened.rotates(batch) else len(batch)
            admission = admit(self._plan.rules, opened.span, window(rows, stop), first, None, None)
            reason = Reason.SCHEMA if stop == first else admission.reason
            if admission.stop > first:
                opened.span.last_ms = now_ms
                opened.starts.setdefault(number, rows.offsets[first])
                opened.write(batch.slice(first, admission.stop), rows, first, self._arrivals[number])
                opened.ends[number] = self._positions[number] = rows.offsets[admission.stop - 1] + 1
            if reason is Reason.RECORDS and not opened.is_full():
                reason = None
            first = admission.stop
            if reason is not None:
                self.end(reason)

    def _opened(self, number: int, offset: int, now_ms: int) -> _OpenSpan:
        if self._open is None:
            span = Span(offset, now_ms, next_scheduled(self._plan.rules, now_ms), end=offset, last_ms=now_ms)
            before = sum({**self._commits.positions, **self._positions, number: offset}.values())
            self._open = _OpenSpan(self._plan, self._uploads, partial(self._path, before), span)
        return self._open

    def _path(self, before: int, place: str, offset: int) -> Callable[[str, str], str]:  # noqa: ARG002 - of a partition
        return partial(self._placing.shared_path, place, self._topic, before, uuid4().hex[:8])

    # -- ends ----------------------------------------------------------------------------------------------------

    def end_if_due(self, now_ms: int) -> None:
        """End the open files if the clock or their size says so."""
        if self._open is not None and (reason := self._open.reason(now_ms)) is not None:
            self.end(reason)

    def end_if_reached(self, partition: TopicPartition, delivered: int) -> None:
        """Do nothing: no end was decided by an earlier run."""

    def due_ms(self) -> int | None:
        """Return when the clock next ends the open files; ``None`` if it does not."""
        return None if self._open is None else self._open.due_ms()

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
        # The records before a commit are passed over from then on, bad ones too.
        self._plan.flush_reports()
        self._open = None
        if not opened.files:
            return
        _log.debug("%s: the files of all partitions end because of %s.", self._topic, reason.value)
        groups = [group for group in opened.files.values() if isinstance(group, FileGroup)]
        threads = self._plan.uploads.threads
        done = self._plan.publishers.submit(_publish, self._commits, opened.ends, groups, threads)
        self._publishing = Publication(opened.held, done), opened.starts

    def settle(self, seconds: float = 0.0) -> None:
        """Learn whether the files that are being published are visible, waiting for it for so long.

        Raises what went wrong; everything since the last durable offset has to be read again then, from
        :meth:`start_again`.
        """
        if self._publishing is not None and self._publishing[0].is_over(seconds):
            self._publishing = None

    def start_again(self) -> Mapping[TopicPartition, int]:
        """Give up what is not durable; return the offsets from which on records have to be read again."""
        self._again = self._starts()
        self.discard()
        # What became of the last commit is not known.
        self.is_ready = False
        return {TopicPartition(self._topic, number): offset for number, offset in self._again.items()}

    def leave(self, partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, int]:
        """Give up what is open, as some partitions go elsewhere; return where the others have to be read again."""
        again = self.start_again()
        for partition in partitions:
            self._again.pop(partition.partition, None)
            self._arrivals.pop(partition.partition, None)
        return {partition: offset for partition, offset in again.items() if partition not in partitions}

    def discard(self) -> None:
        """Give up what is open."""
        if self._publishing is not None:
            self._publishing[0].end()
        if self._open is not None:
            self._open.discard()
        self._open, self._publishing, self._positions = None, None, {}

    def send_early(self) -> None:
        """Send what waits in memory, where it is enough for a part."""
        if self._open is not None:
            self._open.send_early(EARLY_PART_BYTES)


def _publish(commits: Commits, ends: Mapping[int, int], groups: Sequence[FileGroup], threads: Executor) -> None:
    """Send files, commit them, and make them visible, in a thread of its own."""
    try:
        staged = [each for sent in [threads.submit(group.stage) for group in groups] for each in sent.result()]
    except BaseException as error:
        for group in groups:
            group.discard()
        if isinstance(error, OSError):
            raise store_error(error) from error
        raise
    try:
        commits.commit(ends, staged)
    except OSError as error:
        raise store_error(error) from error
