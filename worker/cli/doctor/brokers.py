"""The doctor's look at the brokers: whether they answer, what the worker may do there, and the internal topics."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

from connect.errors import ConnectError
from connect.internals.kafka.auth.rights import WORKER, on_group, on_topic
from connect.internals.kafka.clients.librdkafka import cluster_problem
from connect.internals.kafka.settings.client import ClientKind, ClientProperties
from worker.app.broker_watch import look_at_brokers
from worker.cli.doctor.findings import Finding, Level
from worker.config.worker import DistributedConfig, WorkerConfig
from worker.kafka.clients.roles import internal_properties
from worker.kafka.groups.coordinator_requests import has_members
from worker.kafka.topics.inspection import ClusterSeen, Inspector, TopicSeen

__all__ = ["InternalTopic", "broker_findings", "internal_topics", "missing_topic_finding", "topic_findings"]

_SECONDS: Final = 10.0
_BROKERS: Final = "brokers"
_RIGHTS: Final = "rights"
_TOPICS: Final = "internal topics"
_COMPACT: Final = "compact"
_SAFE_REPLICAS: Final = 3


@dataclass(frozen=True, slots=True)
class InternalTopic:
    """A topic in which the worker keeps state, and what goes with it. ``partitions`` is how many it must have."""

    key: str
    name: str
    holds: str
    loses: str
    partitions: int | None = None

    @property
    def place(self) -> str:
        """The topic, and the key that names it."""
        return f"{self.name} ({self.key})"


def internal_topics(config: DistributedConfig) -> list[InternalTopic]:
    """Return the topics of a cluster of workers."""
    return [
        InternalTopic(
            "config.storage.topic",
            config.config_storage_topic,
            "the connectors and their configurations",
            "All connectors would be gone.",
            1,
        ),
        InternalTopic(
            "offset.storage.topic",
            config.offset_storage_topic,
            "the offsets of sources",
            "Sources would begin anew, and publish all records again.",
        ),
        InternalTopic(
            "status.storage.topic",
            config.status_storage_topic,
            "the states of connectors and tasks",
            "States would be unknown until each connector and task is restarted; no record would be lost.",
        ),
        InternalTopic(
            "config.history.topic",
            config.history_topic,
            "former versions of configurations",
            "There would be no version to go back to; running connectors would not be affected.",
            1,
        ),
    ]


def broker_findings(props: Mapping[str, str], config: WorkerConfig) -> Iterator[Finding]:
    """Yield what is wrong with the brokers and the rights there, and, of a cluster, with its internal topics."""
    properties = internal_properties(props, ClientKind.ADMIN, "doctor")
    servers = str(properties.properties["metadata.broker.list"])
    if (absence := look_at_brokers(props)()) is not None:
        yield Finding(_BROKERS, Level.ERROR, f"{absence.fault}.", absence.remedy)
        return
    if problem := cluster_problem(properties, WORKER, _SECONDS):
        remedy = "Correct bootstrap.servers, security.protocol and the sasl. and ssl. keys in the worker's file."
        yield Finding(_BROKERS, Level.ERROR, problem, remedy)
        return
    inspector = Inspector(properties)
    try:
        cluster = inspector.cluster()
    except ConnectError as error:
        yield Finding(_BROKERS, Level.ERROR, str(error))
        return
    count = f"{cluster.brokers} {'broker is' if cluster.brokers == 1 else 'brokers are'}"
    yield Finding(_BROKERS, Level.FINE, f"{count} in the cluster {cluster.id} at {servers}.")
    if isinstance(config, DistributedConfig):
        yield _group_finding(properties, config.group_id)
        for topic in internal_topics(config):
            yield from _inspected(inspector, topic, cluster, servers)


def _group_finding(properties: ClientProperties, group: str) -> Finding:
    """Return whether the worker may use its group; only whether it may describe it can be seen from outside."""
    try:
        are_running = has_members(properties, group, _SECONDS)
    except ConnectError as error:
        return Finding(_RIGHTS, Level.ERROR, str(error), on_group(group, "Read").command)
    return Finding("group", Level.FINE, f"{'Workers' if are_running else 'No workers'} of the group {group} run.")


def _inspected(inspector: Inspector, topic: InternalTopic, cluster: ClusterSeen, servers: str) -> Iterator[Finding]:
    try:
        seen = inspector.topic(topic.name)
    except ConnectError as error:
        yield Finding(_RIGHTS, Level.ERROR, str(error), on_topic(topic.name, "Describe").command)
        return
    if seen is None:
        yield missing_topic_finding(topic, cluster)
        return
    found = list(topic_findings(topic, seen, cluster, servers, partial(inspector.set_policy, topic.name, _COMPACT)))
    yield from found
    if not found:
        partitions = f"{len(seen.partitions)} {'partition' if len(seen.partitions) == 1 else 'partitions'}"
        told = f"{topic.place} holds {topic.holds} in {partitions} with {_replicas(seen.replicas)}, and is compacted."
        yield Finding(_TOPICS, Level.FINE, f"{told} If it is lost: {topic.loses}")


def missing_topic_finding(topic: InternalTopic, cluster: ClusterSeen) -> Finding:
    """Return what it means that a topic does not exist."""
    if cluster.may_create:
        return Finding(_TOPICS, Level.FINE, f"{topic.place} does not exist; the first worker creates it.")
    told = f"{topic.place} does not exist, and the worker may create no topics, unless it has the right for this one."
    return Finding(_TOPICS, Level.WARNING, told, on_topic(topic.name, "Create").command)


def topic_findings(
    topic: InternalTopic, seen: TopicSeen, cluster: ClusterSeen, servers: str, compact: Callable[[], None]
) -> Iterator[Finding]:
    """Yield what is wrong with an internal topic, and what its loss would mean; ``compact`` sets its policy."""
    change = f"kafka-configs.sh --bootstrap-server {servers} --alter --topic {topic.name} --add-config"
    if seen.lacking:
        told = f"The worker's user lacks rights on {topic.place}: {', '.join(each.operation for each in seen.lacking)}."
        yield Finding(_RIGHTS, Level.ERROR, told, "\n".join(each.command for each in seen.lacking))
    if topic.partitions is not None and len(seen.partitions) != topic.partitions:
        yield Finding(
            _TOPICS,
            Level.ERROR,
            f"{topic.place} has {len(seen.partitions)} partitions, and only one keeps the order of {topic.holds}.",
            f"Stop the workers, then: sluice state backup FILE --worker WORKER, another name for {topic.key}, and "
            "sluice state restore FILE --worker WORKER",
        )
    if offline := [partition.number for partition in seen.partitions if not partition.has_leader]:
        told = f"{topic.place} has no leader for partition {offline[0]}, which can be neither read nor written."
        yield Finding(_TOPICS, Level.ERROR, f"{told} {topic.loses}", "Start the brokers that hold it.")
    if behind := [partition for partition in seen.partitions if partition.in_sync < partition.replicas]:
        told = f"{topic.place}: {behind[0].in_sync} of the {behind[0].replicas} replicas of partition "
        yield Finding(
            _TOPICS, Level.WARNING, f"{told}{behind[0].number} have caught up.", "Start the broker that is missing."
        )
    if seen.replicas < min(_SAFE_REPLICAS, cluster.brokers):
        told = (
            f"{topic.place} has {_replicas(seen.replicas)} and the cluster {cluster.brokers} brokers. If it is lost: "
        )
        repair = (
            "kafka-reassign-partitions.sh with three replicas; until then: sluice state backup FILE --worker WORKER"
        )
        yield Finding(_TOPICS, Level.WARNING, told + topic.loses, repair)
    if seen.policy and seen.policy != {_COMPACT}:
        policy = f"cleanup.policy={','.join(sorted(seen.policy))}"
        told = f"{topic.place} has {policy}: the brokers delete {topic.holds} when they are old. {topic.loses}"
        yield Finding(_TOPICS, Level.ERROR, told, f"{change} cleanup.policy={_COMPACT}", compact)
    if seen.min_in_sync > seen.replicas:
        told = (
            f"{topic.place} has min.insync.replicas={seen.min_in_sync} and {_replicas(seen.replicas)}: nothing can be "
        )
        repair = f"{change} min.insync.replicas={seen.replicas}"
        yield Finding(_TOPICS, Level.ERROR, f"{told}written to it.", repair)


def _replicas(count: int) -> str:
    return f"{count} {'replica' if count == 1 else 'replicas'}"
