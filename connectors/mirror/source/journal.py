"""Writes where records lie at both ends: MirrorMaker's offset syncs, and runs."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final
from uuid import UUID

from confluent_kafka import KafkaError, Message, Producer

from connect.data import TopicPartition
from connectors.mirror.records import OffsetSync
from connectors.mirror.run_records import RunWriter, StoredRuns
from connectors.mirror.runs import UNKNOWN, Generation, Runs
from connectors.mirror.source.syncs import Pair, SyncSchedule

__all__ = ["JournalTopics", "OffsetJournal", "in_step", "is_other"]

logger = logging.getLogger(__name__)

_RUNS_SECONDS: Final = 1.0
"""How long runs may wait to be written while records come."""
_FLUSH_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True)
class JournalTopics:
    """The names of the two topics."""

    syncs: str
    runs: str


@dataclass(slots=True)
class _Partition:
    schedule: SyncSchedule
    runs: Runs
    writer: RunWriter
    written: float = 0.0


class OffsetJournal:
    """Keeps both for the partitions of one task; for the task's thread. ``lag`` is MirrorMaker's ``offset.lag.max``.

    What cannot be written is logged, and written again later: the records themselves are not held up.
    """

    def __init__(self, producer: Producer, topics: JournalTopics, lag: int) -> None:
        self._producer = producer
        self._topics = topics
        self._lag = lag
        self._partitions: dict[TopicPartition, _Partition] = {}

    def open(self, partition: TopicPartition, stored: StoredRuns, generation: Generation) -> Runs:
        """Go on with what is stored of a partition, unless one of its topics was made anew; the runs that there are.

        :meth:`settle` is to follow.
        """
        known = stored.runs(*partition)
        runs = Runs(UNKNOWN) if known is None else known
        before = runs.generation
        if is_other(before.source, generation.source) or is_other(before.target, generation.target):
            runs.clear(generation)
        elif before != generation:
            runs.generation = generation
            runs.touch()
        kept = _Partition(SyncSchedule(self._lag), runs, stored.writer(*partition))
        self._partitions[partition] = kept
        self._write_runs(kept)
        return runs

    def settle(self) -> None:
        """Wait until it is written which topics the partitions have, before any of their offsets is stored.

        Crash point: a kill after that would have the next start take another topic of the same name for this one.
        """
        self._flush()

    def acknowledged(
        self, partition: TopicPartition, upstream: Sequence[int], downstream: Sequence[int | None]
    ) -> None:
        """Note where records lie, and write the syncs that are due at once."""
        kept = self._partitions[partition]
        is_partial = None in downstream
        for first, at, length in in_step(upstream, downstream):
            # A record whose place is not known may lie anywhere, so nothing may be said of what is between two runs.
            kept.runs.add(first, at, length, since=first if is_partial else None)
            self._sync(partition, kept.schedule.acknowledged(first, at, length))
        if is_partial:
            kept.runs.forget_position()
        if time.monotonic() >= kept.written + _RUNS_SECONDS:
            self._write_runs(kept)
        self._producer.poll(0)

    def begin_anew(self, partition: TopicPartition, generation: Generation) -> None:
        """Forget what is known of a partition, whose topic is another now. :meth:`settle` is to follow."""
        kept = self._partitions[partition]
        kept.runs.clear(generation)
        kept.runs.resume(0)
        kept.schedule = SyncSchedule(self._lag)
        self._write_runs(kept)

    def committed(self) -> None:
        """Write what has waited for a commit."""
        for partition, kept in self._partitions.items():
            waiting = kept.schedule.committed()
            self._sync(partition, () if waiting is None else (waiting,))
            self._write_runs(kept)
        self._producer.poll(0)

    def close(self) -> None:
        """Write all there is, and wait for it a while."""
        self.committed()
        self._flush()

    def _flush(self) -> None:
        if left := self._producer.flush(_FLUSH_SECONDS):
            logger.warning("%d records of offset syncs and runs are not written yet.", left)

    def _sync(self, partition: TopicPartition, due: Iterable[Pair]) -> None:
        for upstream, downstream in due:
            sync = OffsetSync(partition.topic, partition.partition, upstream, downstream)
            self._produce(self._topics.syncs, sync.key(), sync.value(), None)

    def _write_runs(self, kept: _Partition) -> None:
        for key, value in kept.writer.records(kept.runs):
            self._produce(self._topics.runs, key, value, kept.runs)
        kept.written = time.monotonic()

    def _produce(self, topic: str, key: bytes, value: bytes | None, runs: Runs | None) -> None:
        def told(error: KafkaError | None, _: Message) -> None:
            if error is not None:
                logger.warning("A record for topic %s could not be written: %s", topic, error.str())
                if runs is not None:
                    runs.touch()

        try:
            self._producer.produce(topic, value, key, 0, on_delivery=told)
        except BufferError:
            # The topic is away. Runs are facts that are told again; a sync that is lost makes translations coarser.
            if runs is not None:
                runs.touch()


def is_other(stored: UUID | None, now: UUID | None) -> bool:
    """Whether a topic is another than it was by its ids; an unknown one is the same."""
    return None not in (stored, now) and stored != now


def in_step(upstream: Sequence[int], downstream: Sequence[int | None]) -> Iterator[tuple[int, int, int]]:
    """The stretches in which both offsets go on by one: the first of each and the length.

    A record whose place is not known ends a stretch.
    """
    length = len(upstream)
    first, last = (downstream[0], downstream[-1]) if length else (None, None)
    if (
        first is not None
        and last is not None
        and last - first == upstream[-1] - upstream[0] == length - 1
        and downstream == list(range(first, last + 1))
    ):
        yield upstream[0], first, length
        return
    known = [(here, there) for here, there in zip(upstream, downstream, strict=True) if there is not None]
    if not known:
        return
    breaks = [index for index, (one, other) in enumerate(pairwise(known), start=1) if other != (one[0] + 1, one[1] + 1)]
    for start, stop in pairwise([0, *breaks, len(known)]):
        yield known[start][0], known[start][1], stop - start
