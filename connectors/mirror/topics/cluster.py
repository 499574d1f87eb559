"""Reads and changes the topics of one cluster for a mirror: partitions, settings, ACLs and ids."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from itertools import islice
from typing import Any, Final, TypeVar
from uuid import UUID

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka import TopicPartition as Place
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AclBinding as KafkaAcl,
)
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourcePatternType,
    ResourceType,
)

from connect.data import TopicPartition
from connect.errors import ConnectError, RetriableError
from connectors.mirror.patience import may_pass
from connectors.mirror.topics.attributes import AclBinding, Setting

__all__ = ["ClusterTopics"]

logger = logging.getLogger(__name__)
T = TypeVar("T")

_TOPIC: Final = ConfigResource.Type.TOPIC
_OffsetSpec: Any = OffsetSpec
# Its stubs have no types.
_EARLIEST: Final[Any] = _OffsetSpec.earliest()
_LATEST: Final[Any] = _OffsetSpec.latest()
_NOT_THERE: Final = frozenset(
    {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION}
)
_THERE_ALREADY: Final = frozenset({KafkaError.TOPIC_ALREADY_EXISTS})
_GROWN_ALREADY: Final = frozenset({KafkaError.INVALID_PARTITIONS})
"""Also the answer to a request for as many partitions as the topic has: metadata may lag behind."""
_AT_ONCE: Final = 100
"""Topics created by one request: brokers limit the number of partitions per request."""
_COMPACTED: Final[Mapping[str, str]] = {"cleanup.policy": "compact"}


class ClusterTopics:
    """Sends requests to one cluster, named ``alias`` in messages, each for at most ``seconds``. For one thread.

    A request without an answer raises :class:`~connect.errors.RetriableError`. A topic that the cluster refuses to
    create or alter is logged, and the others are still handled.
    """

    def __init__(self, admin: AdminClient, alias: str, seconds: float) -> None:
        self._admin = admin
        self._alias = alias
        self._seconds = seconds

    def partitions(self) -> dict[str, int]:
        """Return all topics, with the number of their partitions."""
        metadata = self._asked("list its topics", lambda: self._admin.list_topics(timeout=self._seconds))
        return {name: len(topic.partitions) for name, topic in metadata.topics.items() if topic.error is None}

    def cluster_id(self) -> str | None:
        """Return the id of the cluster; ``None`` if it does not tell."""
        try:
            described = self._admin.describe_cluster(request_timeout=self._seconds).result()
        except KafkaException as error:
            if may_pass(error.args[0]):
                raise self._failed("describe itself", error) from error
            return None
        return described.cluster_id or None

    def create(self, topics: Iterable[NewTopic]) -> list[str]:
        """Create topics; return the names of those that exist then."""
        there: list[str] = []
        left = iter(topics)
        while some := list(islice(left, _AT_ONCE)):
            futures = self._admin.create_topics(some, request_timeout=self._seconds)
            there += [
                topic
                for topic, future in futures.items()
                if self._done(f"Topic {topic} cannot be created", future, _THERE_ALREADY)
            ]
        return there

    def create_compacted(self, topic: str, replication: int) -> bool:
        """Create a compacted topic of one partition; return whether it exists."""
        return bool(self.create([NewTopic(topic, 1, replication, config=dict(_COMPACTED))]))

    def grow(self, topic: str, partitions: int) -> bool:
        """Give a topic more partitions; return whether it has them."""
        futures = self._admin.create_partitions([NewPartitions(topic, partitions)], request_timeout=self._seconds)
        return self._done(f"Topic {topic} cannot be given {partitions} partitions", futures[topic], _GROWN_ALREADY)

    def delete(self, topic: str) -> bool:
        """Delete a topic; return whether it is gone."""
        futures = self._admin.delete_topics([topic], request_timeout=self._seconds)
        return self._done(f"Topic {topic} cannot be deleted", futures[topic], _NOT_THERE)

    def settings(self, topics: Collection[str]) -> dict[str, list[Setting]]:
        """Return the settings of some topics, without those that cannot be read."""
        resources = [ConfigResource(_TOPIC, topic) for topic in topics]
        if not resources:
            return {}
        futures = self._admin.describe_configs(resources, request_timeout=self._seconds)
        found: dict[str, list[Setting]] = {}
        for resource, future in futures.items():
            entries = self._result(f"The settings of topic {resource.name} cannot be read", future)
            if entries is not None:
                found[resource.name] = [_setting(entry) for entry in entries.values()]
        return found

    def alter(self, changes: Mapping[str, Mapping[str, str | None]]) -> None:
        """Set settings of topics; ``None`` resets a setting to its default.

        Raises :class:`~connect.errors.ConnectError` if the cluster is too old for that.
        """
        resources = [
            ConfigResource(
                ConfigResource.Type.TOPIC, topic, incremental_configs=[_change(*item) for item in of.items()]
            )
            for topic, of in changes.items()
            if of
        ]
        if not resources:
            return
        for resource, future in self._admin.incremental_alter_configs(resources, request_timeout=self._seconds).items():
            try:
                future.result()
            except KafkaException as error:
                if error.args[0].code() == KafkaError.UNSUPPORTED_VERSION:
                    raise ConnectError(
                        f"The brokers of {self._alias} are older than Kafka 2.3 and cannot set single settings. Set "
                        "sync.topic.configs.enabled=false."
                    ) from error
                logger.warning("The settings of topic %s of %s cannot be set: %s", resource.name, self._alias, error)

    def acls(self) -> list[AclBinding] | None:
        """Return the ACLs of literally named topics; ``None`` if the cluster has no authorizer."""
        every = AclBindingFilter(
            ResourceType.TOPIC,
            None,  # type: ignore[arg-type] # the stubs do not allow None here, nor for the next two
            ResourcePatternType.LITERAL,
            None,  # type: ignore[arg-type]
            None,  # type: ignore[arg-type]
            AclOperation.ANY,
            AclPermissionType.ANY,
        )
        try:
            found = self._admin.describe_acls(every, request_timeout=self._seconds).result()
        except KafkaException as error:
            if error.args[0].code() == KafkaError.SECURITY_DISABLED:
                return None
            raise self._failed("list its ACLs", error) from error
        return [
            AclBinding(acl.name, acl.principal, acl.host, acl.operation.name, acl.permission_type.name) for acl in found
        ]

    def allow(self, acls: Iterable[AclBinding]) -> None:
        """Add ACLs; existing ones stay."""
        bindings = [_kafka_acl(KafkaAcl, acl) for acl in acls]
        if not bindings:
            return
        for binding, future in self._admin.create_acls(bindings, request_timeout=self._seconds).items():
            self._done(f"The ACL of {binding.principal} for topic {binding.name} cannot be added", future)

    def disallow(self, acls: Iterable[AclBinding]) -> None:
        """Remove ACLs."""
        filters = [_kafka_acl(AclBindingFilter, acl) for acl in acls]
        if not filters:
            return
        for binding, future in self._admin.delete_acls(filters, request_timeout=self._seconds).items():
            self._done(f"The ACL of {binding.principal} for topic {binding.name} cannot be removed", future)

    def ids(self, topics: Collection[str]) -> dict[str, UUID]:
        """Return the ids of existing topics, if the brokers assign any."""
        if not topics:
            return {}
        futures = self._admin.describe_topics(TopicCollection(sorted(topics)), request_timeout=self._seconds)
        found: dict[str, UUID] = {}
        for topic, future in futures.items():
            try:
                described = future.result()
            except KafkaException as error:
                if error.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                    logger.warning("The id of topic %s of %s cannot be read: %s", topic, self._alias, error)
                continue
            if (number := _number(described.topic_id)) != 0:
                found[topic] = UUID(int=number)
        return found

    def begins(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the offset of the first record of each existing partition."""
        return self._offsets(partitions, "beginning", _EARLIEST)

    def ends(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the end offset of each existing partition, open transactions included."""
        return self._offsets(partitions, "end", _LATEST)

    def _offsets(self, partitions: Collection[TopicPartition], what: str, at: Any) -> dict[TopicPartition, int]:
        if not partitions:
            return {}
        asked = {Place(*partition): at for partition in partitions}
        found: dict[TopicPartition, int] = {}
        for place, future in self._admin.list_offsets(asked, request_timeout=self._seconds).items():
            try:
                found[TopicPartition(place.topic, place.partition)] = future.result().offset
            except KafkaException as error:
                if error.args[0].code() not in _NOT_THERE:
                    raise self._failed(f"report the {what} of {place.topic}-{place.partition}", error) from error
        return found

    def _asked(self, what: str, ask: Callable[[], T]) -> T:
        try:
            return ask()
        except KafkaException as error:
            raise self._failed(what, error) from error

    def _failed(self, what: str, error: KafkaException) -> RetriableError:
        return RetriableError(f"The cluster {self._alias} did not {what}: {error.args[0].str()}")

    def _done(self, failure: str, future: Any, passes: Collection[int] = ()) -> bool:
        try:
            future.result()
        except KafkaException as error:
            if error.args[0].code() in passes:
                return True
            if may_pass(error.args[0]):
                raise RetriableError(f"{failure} at {self._alias}: {error.args[0].str()}") from error
            logger.warning("%s at %s: %s", failure, self._alias, error.args[0].str())
            return False
        return True

    def _result(self, failure: str, future: Any) -> Any:
        try:
            return future.result()
        except KafkaException as error:
            logger.warning("%s at %s: %s", failure, self._alias, error.args[0].str())
            return None


def _kafka_acl(kind: Any, acl: AclBinding) -> Any:
    return kind(
        ResourceType.TOPIC,
        acl.topic,
        ResourcePatternType.LITERAL,
        acl.principal,
        acl.host,
        AclOperation[acl.operation],
        AclPermissionType[acl.permission],
    )


def _setting(entry: Any) -> Setting:
    return Setting(entry.name, entry.value, ConfigSource(entry.source).name, entry.is_read_only, entry.is_sensitive)


def _change(name: str, value: str | None) -> Any:
    operation = AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET
    return ConfigEntry(name, value, incremental_operation=operation)


def _number(topic_id: Any) -> int:
    # The stubs of Uuid lack its methods.
    halves = topic_id.get_most_significant_bits(), topic_id.get_least_significant_bits()
    return int(halves[0] % 2**64 << 64 | halves[1] % 2**64)
