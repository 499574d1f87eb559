"""The options that all mirror connectors share: the clusters that a flow connects, and how topics are named."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal

from connect.config import (
    HIGH,
    LOW,
    ConfigRuleError,
    Long,
    PluginName,
    Validator,
    all_of,
    invalid_value,
    non_empty_list,
    one_of,
    option,
    unique_list,
    validator,
)
from connect.errors import ConfigError
from connect.internals.kafka.clients.librdkafka import cluster_problem
from connect.internals.kafka.settings.client import ClientKind
from connectors.mirror.config.security import SecurityConfig
from connectors.mirror.extensions import extension_class
from connectors.mirror.filters import TOPIC_FILTERS, TopicFilter
from connectors.mirror.policies import POLICIES, ReplicationPolicy

__all__ = ["EMIT_OFFSET_SYNCS", "FlowConfig", "TopicsConfig", "extension"]

EMIT_OFFSET_SYNCS: Final = "emit.offset-syncs.enabled"
_CHECK_SECONDS: Final = 5.0
_PACKAGE: Final = "org.apache.kafka.connect.mirror"

_FORWARDING_ADMIN: Final = "org.apache.kafka.clients.admin.ForwardingAdmin"


@validator(f"{_FORWARDING_ADMIN}")
def _forwarding_admin(key: str, value: str) -> None:
    if value != _FORWARDING_ADMIN:
        raise invalid_value(key, value, "Java classes cannot run here. Remove the key")


def extension(base: type[Any], own: Mapping[str, type[Any]]) -> Validator:
    """Accept the names of subclasses of ``base``: our ``own`` ones, and those offered by other packages."""

    @validator(f"name of a {base.__name__}")
    def known(key: str, value: str) -> None:
        extension_class(key, value, base, own)

    return known


class FlowConfig(SecurityConfig):
    """The options that MirrorMaker 2 gives to each of its three connectors.

    The clients of the clusters are configured by keys that begin with ``source.cluster.``, ``target.cluster.``,
    ``source.consumer.``, ``target.producer.`` and the like; see :mod:`connectors.mirror.clients`.
    """

    enabled: bool = option(
        default=True,
        importance=LOW,
        doc="Whether the flow runs. If false, source and checkpoint connectors have no tasks.",
    )
    source_cluster_alias: str = option(
        importance=HIGH,
        doc="Alias of the cluster to mirror from. It is part of the names of mirrored topics and of stored offsets.",
    )
    target_cluster_alias: str = option(
        default="target",
        importance=HIGH,
        doc="Alias of the cluster to mirror to. Topics that came from there are not mirrored back.",
    )
    admin_timeout_ms: Long = option(
        default=60_000,
        importance=LOW,
        doc="Milliseconds that each request for topics, settings, ACLs or groups may take.",
    )
    replication_policy_class: PluginName = option(
        default=f"{_PACKAGE}.DefaultReplicationPolicy",
        importance=LOW,
        validator=extension(ReplicationPolicy, POLICIES),
        doc="The class that names topics at the target. DefaultReplicationPolicy prefixes the alias of the source, "
        "IdentityReplicationPolicy keeps the name.",
    )
    replication_policy_separator: str = option(
        default=".",
        importance=LOW,
        doc="Separator between the alias of a cluster and the name of a topic.",
    )
    replication_policy_internal_topic_separator_enabled: bool = option(
        default=True,
        name="replication.policy.internal.topic.separator.enabled",
        importance=LOW,
        doc="Whether the names of internal topics use the separator as well. If false, they keep the dot.",
    )
    forwarding_admin_class: PluginName = option(
        default=_FORWARDING_ADMIN,
        importance=LOW,
        validator=_forwarding_admin,
        doc="Java class that creates and alters topics. Only the default is accepted.",
    )
    metric_reporters: tuple[str, ...] = option(
        default=("org.apache.kafka.common.metrics.JmxReporter",),
        importance=LOW,
        validator=unique_list,
        doc="Java classes that report metrics. Has no effect: the worker reports metrics itself.",
    )
    config_providers: tuple[str, ...] = option(
        default=(),
        importance=LOW,
        validator=unique_list,
        doc="Aliases of config providers from MirrorMaker's file. Has no effect here: the worker's providers are used.",
    )

    def check_system(self) -> Iterable[ConfigError]:
        """Ask both clusters for their topics, and yield why one does not answer."""
        from connectors.mirror.clients import Clients, Cluster, Role  # noqa: PLC0415 - it loads the Kafka client

        clients = Clients(self.originals)
        for cluster in Cluster:
            try:
                properties = clients.properties(Role(cluster, ClientKind.ADMIN, "check"))
            except ConfigError as error:
                yield error
                continue
            who = f"the user of the mirror at the {cluster} cluster"
            if problem := cluster_problem(properties, who, _CHECK_SECONDS):
                yield ConfigRuleError(problem, f"{cluster}.cluster.bootstrap.servers")

    def _is_switched_off(self, key: str) -> bool:
        """Return whether a switch is off as MirrorMaker's checks see it: by its exact text."""
        return self.originals.get(key) == "false"


class TopicsConfig(FlowConfig):
    """The options that the source and the checkpoint connector share: topics, and where their syncs lie."""

    topic_filter_class: PluginName = option(
        default=f"{_PACKAGE}.DefaultTopicFilter",
        importance=LOW,
        validator=extension(TopicFilter, TOPIC_FILTERS),
        doc="The class that selects topics. DefaultTopicFilter uses topics and topics.exclude.",
    )
    consumer_poll_timeout_ms: Long = option(
        default=1000,
        importance=LOW,
        doc="Milliseconds that a poll of a source task waits for records.",
    )
    offset_syncs_topic_location: str = option(
        default="source",
        name="offset-syncs.topic.location",
        importance=LOW,
        validator=one_of("source", "target"),
        doc="The cluster that stores offset syncs and runs: source or target. Use the same value in the source and the "
        "checkpoint connector of a flow.",
    )
    metric_names_formats: tuple[Literal["legacy", "new"], ...] = option(
        default=("legacy",),
        importance=LOW,
        validator=all_of(non_empty_list, unique_list),
        doc="Naming schemes of MirrorMaker's metrics in Java. Has no effect: here each metric has one name.",
    )

    @property
    def alias_in_syncs(self) -> str:
        """The alias in the names of the topics of syncs and runs: that of the cluster where they do not lie."""
        return self.target_cluster_alias if self.offset_syncs_topic_location == "source" else self.source_cluster_alias
