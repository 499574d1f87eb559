"""The source connector of a mirror: records of one Kafka cluster go to another as they are."""

from __future__ import annotations

import json
import logging
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Final
from uuid import UUID

from confluent_kafka import OFFSET_BEGINNING, OFFSET_END

from connect.data import Offset, SourceBatch, TopicPartition
from connect.errors import ConnectError
from connect.kafka.settings.kind import ClientKind
from connect.source import Delivered, ExactlyOnceSupport, SourceConnector, SourceTask
from connectors.mirror.clients import Clients, Cluster, Role, java_settings
from connectors.mirror.compacted import TO_END, read_to_end
from connectors.mirror.config.source import MirrorSourceConfig, MirrorSourceTaskConfig
from connectors.mirror.policies import ReplicationPolicy, replication_policy
from connectors.mirror.run_records import StoredRuns
from connectors.mirror.runs import Generation, Runs
from connectors.mirror.source.columns import RecordOffsets, mirrored
from connectors.mirror.source.journal import JournalTopics, OffsetJournal, is_other
from connectors.mirror.source.monitor import TopicMonitor
from connectors.mirror.source.offsets import check_offset, position, source_partition
from connectors.mirror.source.reader import SourceReader
from connectors.mirror.source.sharing import ASSIGNED, INDEX, assigned, shared, written
from connectors.mirror.topics.cluster import ClusterTopics

__all__ = ["MirrorSourceConnector", "MirrorSourceTask"]

logger = logging.getLogger(__name__)

_FIRST_LOOK: Final = 20.0
_MOST: Final = 10_000
_WAIT: Final = 0.1
"""Seconds that a poll waits at most: what is acknowledged meanwhile is seen to between two polls."""
_JOURNAL_SECONDS: Final = 60.0
_ID_SECONDS: Final = 10.0
_CONSUMER: Final = Role(Cluster.SOURCE, ClientKind.CONSUMER, "replication-consumer")


class MirrorSourceTask(SourceTask[MirrorSourceTaskConfig]):
    """Mirrors its partitions, each from the record after the one that was mirrored last.

    Crash points: records that were acknowledged after the last commit of offsets are mirrored again; with exactly-once
    support none are. Runs do not know of what was mirrored in the last second: with exactly-once support offsets there
    are translated a little early, else they may be translated too late until these records are mirrored again.
    """

    def start(self) -> None:
        config = self.config
        self._policy: ReplicationPolicy = replication_policy(config.originals)
        self._clients = Clients(config.originals, config.task_index)
        self._share = assigned(config.task_assigned_partitions)
        self._pending: deque[SourceBatch] = deque()
        self._reader: SourceReader | None = None
        self._journal: OffsetJournal | None = None
        settings = java_settings(config.originals, _CONSUMER)
        self._most = int(settings.get("max.poll.records", _MOST))
        self._wait = min(_WAIT, config.consumer_poll_timeout_ms / 1000)
        self._at_first = OFFSET_END if settings["auto.offset.reset"] == "latest" else OFFSET_BEGINNING

    def poll(self) -> SourceBatch | None:
        if not self._pending:
            reader = self._reader if self._reader is not None else self._opened()
            for partition, messages in reader.poll(self._most, self._wait):
                place = source_partition(self.config.source_cluster_alias, partition)
                remote = self._remote(partition.topic)
                self._pending.append(mirrored(messages, remote, partition.partition, place))
            while reader.anew:
                self._begin_anew(reader.anew.pop())
        return self._pending.popleft() if self._pending else None

    def remaining(self) -> Mapping[str, int]:
        """How many records are not mirrored yet."""
        lag = None if self._reader is None else self._reader.lag()
        return {} if lag is None else {"records": lag + sum(map(len, self._pending))}

    def delivered(self, delivered: Delivered) -> None:
        if self._journal is None:
            return
        place, offsets = delivered.source_partition, delivered.source_offsets
        upstream = offsets.numbers if isinstance(offsets, RecordOffsets) else [each["offset"] for each in offsets]
        self._journal.acknowledged(TopicPartition(place["topic"], place["partition"]), upstream, delivered.offsets)

    def commit(self) -> None:
        if self._journal is not None:
            self._journal.committed()

    def stop(self) -> None:
        journal, self._journal = getattr(self, "_journal", None), None
        reader, self._reader = getattr(self, "_reader", None), None
        if journal is not None:
            journal.close()
        if reader is not None:
            reader.close()

    def _opened(self) -> SourceReader:
        """The reader, once it is known where each partition is to be read from."""
        alias = self.config.source_cluster_alias
        kept = self.context.offset_storage_reader.offsets([source_partition(alias, each) for each in self._share])
        stored = {partition: position(offset) for partition, offset in zip(self._share, kept, strict=True)}
        starts = {partition: self._at_first if at is None else at for partition, at in stored.items()}
        if self.config.emit_offset_syncs_enabled:
            starts |= dict.fromkeys(self._open_journal(stored), OFFSET_BEGINNING)
        consumer = self._clients.consumer(Cluster.SOURCE, _CONSUMER.name, self._forced())
        self._reader = SourceReader(consumer, continues=self.config.mirror_gap_policy == "continue")
        self._reader.assign(starts)
        return self._reader

    def _forced(self) -> dict[str, str]:
        # MirrorMaker's consumer makes a topic again that somebody deletes at the source.
        creates = java_settings(self.config.originals, _CONSUMER).get("allow.auto.create.topics", "false")
        isolation = self.config.isolation_level
        return {"auto.offset.reset": "none", "isolation.level": isolation, "allow.auto.create.topics": creates}

    def _open_journal(self, stored: Mapping[TopicPartition, int | None]) -> list[TopicPartition]:
        """Go on with the syncs and runs; the partitions whose stored offsets speak of a topic that is no more."""
        at, alias = Cluster(self.config.offset_syncs_topic_location), self.config.alias_in_syncs
        topics = JournalTopics(self._policy.offset_syncs_topic(alias), self._policy.offset_runs_topic(alias))
        records = self._stored_runs(at, topics.runs)
        ids = {cluster: self._ids(cluster) for cluster in Cluster}
        producer = self._clients.producer(at, f"offset-syncs-{at}-producer")
        self._journal = OffsetJournal(producer, topics, self.config.offset_lag_max)
        anew: list[TopicPartition] = []
        for partition in self._share:
            topic = partition.topic
            now = Generation(ids[Cluster.SOURCE].get(topic), ids[Cluster.TARGET].get(self._remote(topic)))
            before = records.runs(*partition)
            if stored[partition] is not None and before is not None and is_other(before.generation.source, now.source):
                self._refuse_gap(partition)
                anew.append(partition)
            runs = self._journal.open(partition, records, now)
            if partition in anew or (stored[partition] is None and self._at_first == OFFSET_BEGINNING):
                # Before the oldest record there is none.
                runs.resume(0)
            else:
                _resume(runs, stored[partition])
        return anew

    def _stored_runs(self, at: Cluster, topic: str) -> StoredRuns:
        records = StoredRuns()
        consumer = self._clients.consumer(at, "offset-runs-consumer", TO_END)
        try:
            read_to_end(consumer, topic, records.read, _JOURNAL_SECONDS)
        finally:
            consumer.close()
        return records

    def _ids(self, cluster: Cluster) -> Mapping[str, UUID]:
        config, is_source = self.config, cluster is Cluster.SOURCE
        topics = {each.topic if is_source else self._remote(each.topic) for each in self._share}
        alias = config.source_cluster_alias if is_source else config.target_cluster_alias
        admin = self._clients.admin(cluster, f"replication-{cluster}-admin")
        return ClusterTopics(admin, alias, _ID_SECONDS).ids(topics)

    def _refuse_gap(self, partition: TopicPartition) -> None:
        told = (
            f"Topic {partition.topic} was made anew at the source, so that the stored offset of partition "
            f"{partition.partition} means nothing in it."
        )
        if self.config.mirror_gap_policy == "fail":
            raise ConnectError(
                f"{told} Reset the offsets of the partition by the REST API to mirror the new topic from its "
                "beginning, or set mirror.gap.policy=continue."
            )
        logger.error("%s The new topic is mirrored from its beginning.", told)

    def _begin_anew(self, partition: TopicPartition) -> None:
        if self._journal is not None:
            ids = {cluster: self._ids(cluster) for cluster in Cluster}
            remote = self._remote(partition.topic)
            now = Generation(ids[Cluster.SOURCE].get(partition.topic), ids[Cluster.TARGET].get(remote))
            self._journal.begin_anew(partition, now)

    def _remote(self, topic: str) -> str:
        return self._policy.format_remote_topic(self.config.source_cluster_alias, topic)


class MirrorSourceConnector(SourceConnector[MirrorSourceConfig]):
    """Mirrors topics of one Kafka cluster to another, with their settings and ACLs, as MirrorMaker 2 does."""

    task_class = MirrorSourceTask
    default_converter = "org.apache.kafka.connect.converters.ByteArrayConverter"

    def start(self) -> None:
        self._shares: Sequence[Sequence[TopicPartition]] = ()
        self._monitor: TopicMonitor | None = None
        if self.config.enabled:
            self._monitor = TopicMonitor(self.config, self.context)
            self._monitor.start()

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str | None]]:
        if self._monitor is None:
            return []
        self._shares = shared(self._monitor.partitions(_FIRST_LOOK), max_tasks, self._shares)
        return [
            {**self.config.originals, ASSIGNED: written(share), INDEX: str(index)}
            for index, share in enumerate(self._shares)
        ]

    def stop(self) -> None:
        monitor, self._monitor = getattr(self, "_monitor", None), None
        if monitor is not None:
            monitor.stop()

    @classmethod
    def exactly_once_support(cls, config: MirrorSourceConfig) -> ExactlyOnceSupport:
        """Supported if only committed records of the source are read, as they are unless a key says otherwise."""
        committed = config.isolation_level == "read_committed"
        return ExactlyOnceSupport.SUPPORTED if committed else ExactlyOnceSupport.UNSUPPORTED

    @classmethod
    def alter_offsets(cls, config: MirrorSourceConfig, offsets: Mapping[str, Offset | None]) -> bool:  # noqa: ARG003
        for partition, offset in offsets.items():
            check_offset(json.loads(partition), offset)
        return True


def _resume(runs: Runs, at: int | None) -> None:
    """Go on with runs at this offset; what was mirrored after their end is not known, if anything was."""
    end = runs.upstream_end
    if at is not None and end is not None and at <= end:
        runs.resume(at)
