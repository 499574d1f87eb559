"""A flow between two clusters whose syncs and runs a test writes, in place of the source connector."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import uuid4

from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition

from connectors.mirror.records import OffsetSync
from connectors.mirror.run_records import RunWriter
from connectors.mirror.runs import Runs
from equipment.brokers.topics import admin_client, create_topic, ordered_producer
from equipment.waiting import wait_until

__all__ = ["WrittenFlow", "commit", "write"]


class WrittenFlow:
    """A flow between the two clusters of the test run, with its own aliases and topics."""

    def __init__(self, source: str, target: str) -> None:
        unique = uuid4().hex[:8]
        self.source, self.target = source, target
        self.a, self.b = f"a{unique}", f"b{unique}"
        self.topic, self.group = f"orders-{unique}", f"group-{unique}"
        self.remote = f"{self.a}.{self.topic}"
        self._runs = Runs()
        self._writer = RunWriter(self.topic, 0)
        create_topic(source, self.topic)
        create_topic(target, self.remote)

    @property
    def props(self) -> dict[str, str]:
        """The configuration of its connectors."""
        return {
            "source.cluster.alias": self.a,
            "target.cluster.alias": self.b,
            "source.cluster.bootstrap.servers": self.source,
            "target.cluster.bootstrap.servers": self.target,
            "topics": self.topic,
            "groups": f"{self.group}.*",
            "consumer.poll.timeout.ms": "50",
            "emit.checkpoints.interval.seconds": "0",
            "sync.group.offsets.interval.seconds": "0",
            "checkpoints.topic.replication.factor": "1",
            "heartbeats.topic.replication.factor": "1",
        }

    def write_syncs(self, *pairs: tuple[int, int]) -> None:
        """Write offset syncs as the source task does."""
        syncs = [OffsetSync(self.topic, 0, upstream, downstream) for upstream, downstream in pairs]
        write(self.source, f"mm2-offset-syncs.{self.b}.internal", [(sync.key(), sync.value()) for sync in syncs])

    def write_runs(self, *added: tuple[int, int, int]) -> None:
        """Write runs as the source task does."""
        for run in added:
            self._runs.add(*run)
        write(self.source, f"mm2-offset-runs.{self.b}.internal", list(self._writer.records(self._runs)))

    def commit(self, offset: int, group: str | None = None) -> None:
        """Commit an offset of a group at the source."""
        commit(self.source, group or self.group, self.topic, offset)


def write(bootstrap: str, topic: str, records: Sequence[tuple[bytes, bytes | None]]) -> None:
    """Write records to an internal topic, and create it if it is missing."""
    if topic not in admin_client(bootstrap).list_topics(timeout=30).topics:
        create_topic(bootstrap, topic, **{"cleanup.policy": "compact"})
    producer = ordered_producer(bootstrap)
    for key, value in records:
        producer.produce(topic, value, key, partition=0)
    assert producer.flush(30) == 0


def commit(bootstrap: str, group: str, topic: str, offset: int) -> None:
    """Commit an offset for a group without members."""
    admin = admin_client(bootstrap)

    def is_done() -> bool:
        place = TopicPartition(topic, 0, offset, "noted")
        asked = admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(group, [place])])
        (done,) = asked[group].result(30).topic_partitions
        # A broker that has only just started has no coordinator yet.
        return done.error is None

    wait_until("the offset is committed", is_done)
