"""Counts the records of the source that are not at the target yet."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

from connect.data import TopicPartition
from connectors.mirror.clients import Clients, Cluster
from connectors.mirror.config.source import MirrorSourceConfig
from connectors.mirror.offset_topics import OffsetTopics, alias_of, patience_with
from connectors.mirror.patience import Wait
from connectors.mirror.policies import replication_policy
from connectors.mirror.selection import TopicSelection
from connectors.mirror.topics.cluster import ClusterTopics
from connectors.mirror.verification.stretches import STRETCHES, StretchReader

__all__ = ["Drain"]


class Drain:
    """Counts the records that a flow has not mirrored, by the configuration of its source connector. For one thread.

    Offset syncs and runs tell what is mirrored, so a record counts until these are written, about a second later. Each
    method raises a ``ConnectError`` if a cluster does not answer.
    """

    def __init__(self, props: Mapping[str, str], wait: Wait = lambda _: True) -> None:
        self._config = config = MirrorSourceConfig.parse(props)
        clients = Clients(props)
        policy = replication_policy(props)
        self._selection = TopicSelection.configured(props)
        waiting = patience_with(config, Cluster.SOURCE, wait)
        alias = alias_of(config, Cluster.SOURCE)
        self._cluster = ClusterTopics(clients.admin(Cluster.SOURCE, "drain-source-admin"), alias, waiting.seconds)
        self._offsets = OffsetTopics(config, clients, policy, wait)
        forced = {**STRETCHES, "isolation.level": config.isolation_level}
        self._reader = StretchReader(clients.consumer(Cluster.SOURCE, "drain-source-consumer", forced), waiting)
        self._is_read = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._offsets.close()
        self._reader.close()

    def left(self) -> dict[TopicPartition, int]:
        """Return how many records of each partition are left to mirror, without partitions that have none."""
        if self._is_read:
            self._offsets.follow()
        else:
            self._offsets.read_to_end()
            self._is_read = True
        left = {}
        for topic, count in sorted(self._cluster.partitions().items()):
            if topic in self._selection and not self._selection.policy.is_heartbeats_topic(topic):
                for partition in range(count):
                    if found := self._left(topic, partition):
                        left[TopicPartition(topic, partition)] = found
        return left

    def _left(self, topic: str, partition: int) -> int:
        start, end = self._reader.bounds(topic, partition)
        first = max(start, self._mirrored(topic, partition))
        # Transaction markers take offsets too, so records have to be read to be counted.
        return len(self._reader.read(topic, partition, first, end)) if first < end else 0

    def _mirrored(self, topic: str, partition: int) -> int:
        """Return the offset up to which the partition is mirrored."""
        translator = self._offsets.translator
        runs = translator.runs.runs(topic, partition)
        ends = [sync.upstream + 1 for sync in translator.syncs.kept(topic, partition)[:1]]
        if runs is not None and runs.upstream_end is not None:
            ends.append(runs.upstream_end)
        return max(ends, default=0)
