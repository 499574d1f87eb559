"""Records where each record lies at both ends, as MirrorMaker's offset syncs and as runs."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, TypeAlias
from uuid import UUID

from confluent_kafka import KafkaError, Message, Producer

from connect.data import TopicPartition
from connect.errors import DataError
from connectors.mirror.clients import Clients, Cluster
from connectors.mirror.config.source import MirrorSourceTaskConfig
from connectors.mirror.internal_topics import READING, InternalTopics
from connectors.mirror.patience import Patience, Wait
from connectors.mirror.policies import ReplicationPolicy
from connectors.mirror.records import OffsetSync
from connectors.mirror.run_records import RunWriter, StoredRuns
from connectors.mirror.runs import UNKNOWN, Generation, Runs
from connectors.mirror.source.gaps import Gap, Reason
from connectors.mirror.topics.cluster import ClusterTopics

__all__ = ["JournalOpening", "JournalTopics", "OffsetJournal", "Pair", "SyncSchedule", "in_step", "is_other"]

logger = logging.getLogger(__name__)

Pair: TypeAlias = tuple[int, int]
"""The offsets of a record at the source and at the target."""


class SyncSchedule:
    """Decides which offset syncs of one partition are due, as MirrorMaker 2 does. For one thread.

    A sync is due at once for the first record, after a hole at the source, when the target has gone back, and when the
    target is more than ``lag`` records past the last immediate sync. Otherwise the newest pair waits for the next
    commit.
    """

    def __init__(self, lag: int) -> None:
        self._lag = lag
        self._last: Pair | None = None
        self._synced: int | None = None
        self._delayed: Pair | None = None

    def acknowledged(self, upstream: int, downstream: int, length: int = 1) -> list[Pair]:
        """Take ``length`` records in step from these offsets on; return the syncs that are due at once, in order."""
        due: list[Pair] = []
        at = 0 if self._is_due(upstream, downstream) else self._next(downstream, 0)
        while at < length:
            due.append((upstream + at, downstream + at))
            self._synced = downstream + at
            at = self._next(downstream, at + 1)
        self._last = upstream + length - 1, downstream + length - 1
        self._delayed = None if due and due[-1] == self._last else self._last
        return due

    def committed(self) -> Pair | None:
        """Return the sync that is due at a commit, if one waits."""
        delayed, self._delayed = self._delayed, None
        return delayed

    def _is_due(self, upstream: int, downstream: int) -> bool:
        if self._last is None or self._synced is None:
            return True
        return upstream != self._last[0] + 1 or downstream < self._last[1]

    def _next(self, downstream: int, least: int) -> int:
        """Return how far after ``downstream`` the next sync is due by its distance, at least ``least``."""
        assert self._synced is not None
        return max(least, self._synced + 1 + self._lag - downstream)


_RUNS_SECONDS: Final = 1.0
"""How long runs may wait to be written while records arrive."""
_FLUSH_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True)
class JournalTopics:
    """The names of the two topics of a journal."""

    syncs: str
    runs: str


@dataclass(slots=True)
class _Partition:
    schedule: SyncSchedule
    runs: Runs
    writer: RunWriter
    written: float = 0.0


class OffsetJournal:
    """Writes the offset syncs and runs of one task's partitions. For the task's thread.

    ``lag`` is MirrorMaker's ``offset.lag.max``. A failed write is logged and repeated later; records are not held up by
    it.
    """

    def __init__(self, producer: Producer, topics: JournalTopics, lag: int) -> None:
        self._producer = producer
        self._topics = topics
        self._lag = lag
        self._partitions: dict[TopicPartition, _Partition] = {}

    def open(self, partition: TopicPartition, stored: StoredRuns, generation: Generation) -> Runs:
        """Return the runs of a partition: those that are stored, or none if one of its topics was recreated.

        Call :meth:`settle` afterwards.
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
        """Wait until the topic ids of the partitions are written, before any of their offsets is stored.

        Crash point: a kill between the two in the other order would have the next start mistake another topic for this
        one.
        """
        self._flush()

    def acknowledged(
        self, partition: TopicPartition, upstream: Sequence[int], downstream: Sequence[int | None]
    ) -> None:
        """Note where records lie, and write the syncs that are due at once."""
        kept = self._partitions[partition]
        is_partial = None in downstream
        for first, at, length in in_step(upstream, downstream):
            # A record with an unknown offset may lie anywhere, so nothing is known of what lies between two runs.
            kept.runs.add(first, at, length, since=first if is_partial else None)
            self._sync(partition, kept.schedule.acknowledged(first, at, length))
        if is_partial:
            kept.runs.forget_position()
        if time.monotonic() >= kept.written + _RUNS_SECONDS:
            self._write_runs(kept)
        self._producer.poll(0)

    def begin_anew(self, partition: TopicPartition, generation: Generation) -> None:
        """Forget the runs of a partition whose topic was recreated. Call :meth:`settle` afterwards."""
        kept = self._partitions[partition]
        kept.runs.clear(generation)
        kept.runs.resume(0)
        kept.schedule = SyncSchedule(self._lag)
        self._write_runs(kept)

    def committed(self) -> None:
        """Write what has waited for an offset commit."""
        for partition, kept in self._partitions.items():
            waiting = kept.schedule.committed()
            self._sync(partition, () if waiting is None else (waiting,))
            self._write_runs(kept)
        self._producer.poll(0)

    def close(self) -> None:
        """Write everything that is left, and wait for it for some seconds."""
        self.committed()
        self._flush()

    def _flush(self) -> None:
        if left := self._producer.flush(_FLUSH_SECONDS):
            logger.warning("%d records of offset syncs and runs have not been written yet.", left)

    def _sync(self, partition: TopicPartition, due: Iterable[Pair]) -> None:
        for upstream, downstream in due:
            sync = OffsetSync(partition.topic, partition.partition, upstream, downstream)
            self._produce(self._topics.syncs, sync.key(), sync.value(), None)

    def _write_runs(self, kept: _Partition) -> None:
        for key, value in kept.writer.records(kept.runs):
            self._produce(self._topics.runs, key, value, kept.runs)
        kept.written = time.monotonic()

    def _produce(self, topic: str, key: bytes, value: bytes | None, runs: Runs | None) -> None:
        def on_delivery(error: KafkaError | None, _: Message) -> None:
            if error is not None:
                logger.warning("A record for topic %s could not be written: %s", topic, error.str())
                if runs is not None:
                    runs.touch()

        try:
            self._producer.produce(topic, value, key, 0, on_delivery=on_delivery)
        except BufferError:
            # The topic cannot be written to. Runs are written again later; a lost sync only makes translations coarser.
            if runs is not None:
                runs.touch()


def is_other(stored: UUID | None, now: UUID | None) -> bool:
    """Return whether two topic ids differ; an unknown id equals any other."""
    return None not in (stored, now) and stored != now


def in_step(upstream: Sequence[int], downstream: Sequence[int | None]) -> Iterator[tuple[int, int, int]]:
    """Yield the stretches in which both offsets increase by one.

    Each has its first offset at the source, the one at the target, and its length. A record whose offset at the target
    is unknown ends a stretch.
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


_READ_SECONDS: Final = 60.0
_ASK_SECONDS: Final = 10.0


class JournalOpening:
    """Opens the journal of a task and reports gaps since the last run to ``meet``. For the task's thread."""

    def __init__(
        self,
        config: MirrorSourceTaskConfig,
        policy: ReplicationPolicy,
        meet: Callable[[Gap], None],
        *,
        from_beginning: bool,
    ) -> None:
        self._config = config
        self._policy = policy
        self._meet = meet
        self._from_beginning = from_beginning
        self._clients = Clients(config.originals, config.task_index)

    def open(
        self, stored: Mapping[TopicPartition, int | None], wait: Wait, journal: OffsetJournal | None
    ) -> tuple[OffsetJournal, set[TopicPartition]]:
        """Return the journal, and the partitions whose stored offsets belong to a topic that no longer exists.

        The runs of the latter stay as they are until their offsets are reset. ``stored`` has the offset at which each
        partition is to be read; an existing ``journal`` is extended. Raises what ``meet`` does, a ``RetriableError`` if
        a cluster does not answer, and :class:`~connectors.mirror.patience.StoppedError`.
        """
        at, alias = Cluster(self._config.offset_syncs_topic_location), self._config.alias_in_syncs
        topics = JournalTopics(self._policy.offset_syncs_topic(alias), self._policy.offset_runs_topic(alias))
        records = self._stored_runs(at, topics.runs, wait)
        source, target = self._topics(Cluster.SOURCE), self._topics(Cluster.TARGET)
        share = tuple(stored)
        now = self._generations(share, source, target)
        remotes = {partition: TopicPartition(self._remote(partition), partition.partition) for partition in share}
        upstream_ends = source.ends(share)
        downstream_ends = target.ends(remotes.values())
        if journal is None:
            producer = self._clients.producer(at, f"offset-syncs-{at}-producer")
            journal = OffsetJournal(producer, topics, self._config.offset_lag_max)
        anew: set[TopicPartition] = set()
        for partition in share:
            position, end = stored[partition], downstream_ends.get(remotes[partition])
            before = records.runs(*partition)
            if (gap := _gap(partition, before, now[partition], position, end)) is not None:
                self._meet(gap)
            if before is not None and gap is not None and gap.reason is Reason.SOURCE_ANEW:
                anew.add(partition)
                journal.open(partition, records, before.generation)
                continue
            runs = journal.open(partition, records, now[partition])
            if _has_lost(runs, now[partition], end):
                runs.clear(now[partition])
            self._resume(runs, position)
            if end is not None:
                runs.await_copies(max(0, end - (runs.downstream_end or 0)), upstream_ends.get(partition, 0))
        journal.settle()
        return journal, anew

    def generations(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, Generation]:
        """Return the current topic ids of each partition."""
        return self._generations(partitions, self._topics(Cluster.SOURCE), self._topics(Cluster.TARGET))

    def _generations(
        self, partitions: Sequence[TopicPartition], source: ClusterTopics, target: ClusterTopics
    ) -> dict[TopicPartition, Generation]:
        upstream = source.ids({partition.topic for partition in partitions})
        downstream = target.ids({self._remote(partition) for partition in partitions})
        return {
            partition: Generation(upstream.get(partition.topic), downstream.get(self._remote(partition)))
            for partition in partitions
        }

    def _stored_runs(self, at: Cluster, topic: str, wait: Wait) -> StoredRuns:
        records = StoredRuns()
        consumer = self._clients.consumer(at, "offset-runs-consumer", READING)
        topics = InternalTopics(consumer, (topic,), Patience(self._alias(at), _READ_SECONDS, wait))
        try:
            for message in topics.to_end():
                try:
                    records.read(message.key(), message.value())
                except DataError as error:
                    logger.warning("Skipping record %s of %s: %s", message.offset(), topic, error)
        finally:
            topics.close()
        return records

    def _resume(self, runs: Runs, position: int | None) -> None:
        """Continue runs at ``position``. What was mirrored after their end is unknown."""
        end = runs.upstream_end
        if not position:
            if position == 0 or self._from_beginning:
                # There is nothing before the oldest record.
                runs.resume(0)
        elif end is not None and position <= end:
            runs.resume(position)

    def _topics(self, cluster: Cluster) -> ClusterTopics:
        admin = self._clients.admin(cluster, f"replication-{cluster}-admin")
        return ClusterTopics(admin, self._alias(cluster), _ASK_SECONDS)

    def _alias(self, cluster: Cluster) -> str:
        config = self._config
        return config.source_cluster_alias if cluster is Cluster.SOURCE else config.target_cluster_alias

    def _remote(self, partition: TopicPartition) -> str:
        return self._policy.format_remote_topic(self._config.source_cluster_alias, partition.topic)


def _gap(
    partition: TopicPartition, before: Runs | None, now: Generation, position: int | None, end: int | None
) -> Gap | None:
    """Return the gap, if a topic of the partition changed since the last run; ``end`` is the end of the target."""
    if before is None or not position:
        return None
    if is_other(before.generation.source, now.source):
        return Gap(partition, Reason.SOURCE_ANEW, position, None, 0)
    if _has_lost(before, now, end):
        return Gap(partition, Reason.TARGET_ANEW, 0, position - 1, position)
    return None


def _has_lost(runs: Runs, now: Generation, end: int | None) -> bool:
    """Return whether the target no longer has the records of some runs; ``end`` is the end of the target."""
    return is_other(runs.generation.target, now.target) or (end is not None and end < (runs.downstream_end or 0))
