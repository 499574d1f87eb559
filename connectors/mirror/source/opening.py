"""Opens the journal of a task: what was known of its partitions when the mirror ended, and what has changed since."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from connect.data import TopicPartition
from connect.errors import DataError
from connectors.mirror.asking import Asking, Wait
from connectors.mirror.clients import Clients, Cluster
from connectors.mirror.config.source import MirrorSourceTaskConfig
from connectors.mirror.internal_topics import READING, InternalTopics
from connectors.mirror.policies import ReplicationPolicy
from connectors.mirror.run_records import StoredRuns
from connectors.mirror.runs import Generation, Runs
from connectors.mirror.source.gaps import Gap, Reason
from connectors.mirror.source.journal import JournalTopics, OffsetJournal, is_other
from connectors.mirror.topics.cluster import ClusterTopics

__all__ = ["JournalOpening"]

logger = logging.getLogger(__name__)

_READ_SECONDS: Final = 60.0
_ASK_SECONDS: Final = 10.0


class JournalOpening:
    """Looks at both clusters before a task mirrors partitions, and tells ``meet`` of gaps. For the task's thread."""

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
        """The journal, and the partitions whose stored offsets speak of a topic that is no more.

        What is written of the latter stays as it is until their offsets are reset. ``stored`` says where each partition
        is to be read from; they join those of ``journal``. Raises what ``meet``
        does, a ``RetriableError`` if a cluster does not answer, and :class:`~connectors.mirror.asking.StoppedError`.
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
        """The topics that there are now of each partition, by their ids."""
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
        topics = InternalTopics(consumer, (topic,), Asking(self._alias(at), _READ_SECONDS, wait))
        try:
            for message in topics.to_end():
                try:
                    records.read(message.key(), message.value())
                except DataError as error:
                    logger.warning("The record %s of %s is left out: %s", message.offset(), topic, error)
        finally:
            topics.close()
        return records

    def _resume(self, runs: Runs, position: int | None) -> None:
        """Go on with runs; what was mirrored after their end is not known, if anything was."""
        end = runs.upstream_end
        if not position:
            if position == 0 or self._from_beginning:
                # Before the oldest record there is none.
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
    """What has happened to the topics of a partition while nothing was mirrored; ``end`` is where the target ends."""
    if before is None or not position:
        return None
    if is_other(before.generation.source, now.source):
        return Gap(partition, Reason.SOURCE_ANEW, position, None, 0)
    if _has_lost(before, now, end):
        return Gap(partition, Reason.TARGET_ANEW, 0, position - 1, position)
    return None


def _has_lost(runs: Runs, now: Generation, end: int | None) -> bool:
    """Whether the target does not have any more what runs tell of; ``end`` is where it ends."""
    return is_other(runs.generation.target, now.target) or (end is not None and end < (runs.downstream_end or 0))
