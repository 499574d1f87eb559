"""A client that tells programs which move between clusters what was mirrored to a cluster."""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Self

from confluent_kafka import KafkaException

from connect.data import TopicPartition
from connect.errors import DataError
from connectors.mirror.clients import Clients, Cluster
from connectors.mirror.internal_topics import READING, InternalTopics
from connectors.mirror.patience import Patience, refusal
from connectors.mirror.policies import ReplicationPolicy, hops, replication_policy, upstream_clusters
from connectors.mirror.records import Checkpoint

__all__ = ["MirrorClient", "MirrorTopics", "RemoteOffset"]

logger = logging.getLogger(__name__)

_SECONDS: Final = 60.0
_NAMES: Final[Mapping[str, str | None]] = {
    "name": "mirror-client",
    "source.cluster.alias": "client",
    "target.cluster.alias": "cluster",
}
"""Parts of the client ids that brokers see."""


@dataclass(frozen=True, slots=True)
class RemoteOffset:
    """The offset at which a group continues in a mirrored partition, and the metadata committed with it."""

    offset: int
    metadata: str = ""


@dataclass(frozen=True, slots=True)
class MirrorTopics:
    """The topics of a cluster, interpreted by a replication policy."""

    policy: ReplicationPolicy
    names: Collection[str]

    def heartbeat_topics(self) -> frozenset[str]:
        """Return the topics that contain heartbeats."""
        return frozenset(name for name in self.names if self.policy.is_heartbeats_topic(name))

    def checkpoint_topics(self) -> frozenset[str]:
        """Return the topics that contain checkpoints."""
        return frozenset(name for name in self.names if self.policy.is_checkpoints_topic(name))

    def remote_topics(self, alias: str | None = None) -> frozenset[str]:
        """Return the topics mirrored from one cluster or from any. The default policy counts any name with a dot."""
        return frozenset(
            name
            for name in self.names
            if not self.policy.is_internal_topic(name)
            and (source := self.policy.topic_source(name)) is not None
            and alias in (None, source)
        )

    def upstream_clusters(self) -> frozenset[str]:
        """Return the aliases of clusters whose heartbeats arrive, directly or through other clusters."""
        return frozenset(alias for name in self.heartbeat_topics() for alias in upstream_clusters(self.policy, name))

    def replication_hops(self, alias: str) -> int | None:
        """Return the least number of flows that a cluster's heartbeats pass; ``None`` if none arrive."""
        found = (hops(self.policy, name, alias) for name in self.heartbeat_topics())
        return min((each for each in found if each is not None), default=None)


class MirrorClient:
    """Tells what was mirrored to a cluster and where groups continue there, for mirrors by MirrorMaker 2 as well.

    Its settings are those of a Kafka client, with Java's names: ``bootstrap.servers``, security, ``consumer.*``,
    ``admin.*``, and the ``replication.policy.*`` of the mirror. It creates nothing in the cluster. Each method raises
    :class:`~connect.errors.ConnectError` if the cluster does not answer within ``seconds``.

    >>> with MirrorClient({"bootstrap.servers": "broker-b:9092"}) as client:
    ...     offsets = client.translate_offsets("my-group", "A")
    """

    def __init__(self, props: Mapping[str, str], *, seconds: float = _SECONDS) -> None:
        self._policy = replication_policy(props)
        self._clients = Clients({**props, **{f"target.cluster.{key}": value for key, value in props.items()}, **_NAMES})
        self._admin = self._clients.admin(Cluster.TARGET, "admin")
        self._patience = Patience(props.get("bootstrap.servers", ""), seconds, lambda _: True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        del self._admin

    def topics(self) -> MirrorTopics:
        """Return the current topics. Use it to answer several questions with one request."""
        try:
            found = self._admin.list_topics(timeout=self._patience.seconds).topics
        except KafkaException as error:
            raise refusal(self._patience.cluster, "list its topics", error.args[0]) from error
        return MirrorTopics(self._policy, found.keys())

    def heartbeat_topics(self) -> frozenset[str]:
        """Return the topics that contain heartbeats."""
        return self.topics().heartbeat_topics()

    def checkpoint_topics(self) -> frozenset[str]:
        """Return the topics that contain checkpoints."""
        return self.topics().checkpoint_topics()

    def remote_topics(self, alias: str | None = None) -> frozenset[str]:
        """Return the topics that were mirrored, from one cluster or from any."""
        return self.topics().remote_topics(alias)

    def upstream_clusters(self) -> frozenset[str]:
        """Return the aliases of clusters whose heartbeats arrive, directly or through other clusters."""
        return self.topics().upstream_clusters()

    def replication_hops(self, alias: str) -> int | None:
        """Return the least number of flows that a cluster's heartbeats pass; ``None`` if none arrive."""
        return self.topics().replication_hops(alias)

    def translate_offsets(self, group: str, alias: str) -> dict[TopicPartition, RemoteOffset]:
        """Return where a group of the cluster ``alias`` continues here, by its last checkpoints."""
        return self.remote_consumer_offsets(re.compile(re.escape(group)), alias).get(group, {})

    def remote_consumer_offsets(
        self, groups: re.Pattern[str], alias: str
    ) -> dict[str, dict[TopicPartition, RemoteOffset]]:
        """Return the same for all groups of the cluster ``alias`` whose whole name matches."""
        found: dict[str, dict[TopicPartition, RemoteOffset]] = {}
        consumer = self._clients.consumer(Cluster.TARGET, "checkpoints-target-consumer", READING)
        reading = InternalTopics(consumer, (self._policy.checkpoints_topic(alias),), self._patience)
        try:
            for message in reading.to_end():
                try:
                    checkpoint = Checkpoint.decode(message.key(), message.value())
                except DataError as error:
                    logger.warning("Skipping record %s of %s: %s", message.offset(), message.topic(), error)
                    continue
                if groups.fullmatch(checkpoint.group):
                    partition = TopicPartition(checkpoint.topic, checkpoint.partition)
                    place = RemoteOffset(checkpoint.downstream, checkpoint.metadata)
                    found.setdefault(checkpoint.group, {})[partition] = place
        finally:
            reading.close()
        return found
