"""Looks at a topic from outside: its partitions, its settings and the rights there, and sets its cleanup policy."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Final

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AclOperation,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
)

from connect.errors import ConnectError
from connect.internals.kafka.auth.rights import WORKER, Right, explained, on_topic
from connect.internals.kafka.clients import librdkafka
from connect.internals.kafka.settings.client import ClientProperties
from worker.kafka.topics.admin import describe_settings

__all__ = ["ClusterSeen", "Inspector", "PartitionSeen", "TopicSeen"]

_SECONDS: Final = 10.0
_POLICY: Final = "cleanup.policy"
_MIN_IN_SYNC: Final = "min.insync.replicas"
_OPERATIONS: Final = {
    "Read": AclOperation.READ,
    "Write": AclOperation.WRITE,
    "Describe": AclOperation.DESCRIBE,
    "DescribeConfigs": AclOperation.DESCRIBE_CONFIGS,
}


@dataclass(frozen=True, slots=True)
class ClusterSeen:
    """A Kafka cluster that answers. ``may_create`` says whether topics may be created, as far as the brokers tell."""

    id: str
    brokers: int
    may_create: bool


@dataclass(frozen=True, slots=True)
class PartitionSeen:
    """A partition, with the numbers of its replicas and of those that have caught up."""

    number: int
    has_leader: bool
    replicas: int
    in_sync: int


@dataclass(frozen=True, slots=True)
class TopicSeen:
    """A topic. ``lacking`` are rights that the user lacks; ``policy`` is empty if it may not be read."""

    name: str
    partitions: Collection[PartitionSeen]
    lacking: Collection[Right] = ()
    policy: frozenset[str] = field(default_factory=frozenset)
    min_in_sync: int = 1

    @property
    def replicas(self) -> int:
        """The least number of replicas of a partition."""
        return min((partition.replicas for partition in self.partitions), default=0)


class Inspector:
    """Asks the brokers. Each method raises :class:`~connect.errors.ConnectError` if they refuse or do not answer."""

    def __init__(self, properties: ClientProperties) -> None:
        self._admin: AdminClient = librdkafka.admin(properties)

    def cluster(self) -> ClusterSeen:
        """Return what the cluster says of itself."""
        try:
            described = self._admin.describe_cluster(include_authorized_operations=True).result(_SECONDS)
        except (KafkaException, TimeoutError) as error:
            raise _refused("describe the cluster", error) from error
        allowed = described.authorized_operations
        may_create = not allowed or AclOperation.CREATE in allowed
        return ClusterSeen(str(described.cluster_id), len(described.nodes), may_create)

    def topic(self, name: str) -> TopicSeen | None:
        """Return a topic; ``None`` if it does not exist."""
        try:
            asked = self._admin.describe_topics(TopicCollection([name]), include_authorized_operations=True)
            described = asked[name].result(_SECONDS)
        except (KafkaException, TimeoutError) as error:
            if _code(error) == KafkaError.UNKNOWN_TOPIC_OR_PART:
                return None
            raise _refused(f"describe topic {name}", error, on_topic(name, "Describe")) from error
        allowed = described.authorized_operations
        lacking = [on_topic(name, right) for right, needed in _OPERATIONS.items() if allowed and needed not in allowed]
        settings = describe_settings(self._admin, name) or {}
        partitions = [
            PartitionSeen(each.id, each.leader is not None and each.leader.id >= 0, len(each.replicas), len(each.isr))
            for each in described.partitions
        ]
        policy = frozenset(part.strip().lower() for part in settings.get(_POLICY, "").split(",") if part.strip())
        return TopicSeen(name, partitions, lacking, policy, int(settings.get(_MIN_IN_SYNC, "1")))

    def set_policy(self, topic: str, policy: str) -> None:
        """Set the cleanup policy of a topic."""
        entry = ConfigEntry(_POLICY, policy, incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=[entry])
        try:
            self._admin.incremental_alter_configs([resource])[resource].result(_SECONDS)
        except (KafkaException, TimeoutError) as error:
            right = on_topic(topic, "AlterConfigs")
            raise _refused(f"set {_POLICY} of topic {topic}", error, right) from error


def _code(error: BaseException) -> int | None:
    cause = error.args[0] if error.args else None
    return cause.code() if isinstance(cause, KafkaError) else None


def _refused(what: str, error: BaseException, *rights: Right) -> ConnectError:
    cause = error.args[0] if error.args else None
    reason = explained(cause, WORKER, *rights) if isinstance(cause, KafkaError) else "they do not answer in time"
    return ConnectError(f"The brokers were asked to {what}: {reason}")
