"""The options that all mirror connectors share: which clusters a flow connects, and how topics are named."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from connect.config import (
    HIGH,
    LOW,
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
from connectors.mirror.config.security import SecurityConfig
from connectors.mirror.extensions import extension_class
from connectors.mirror.filters import TOPIC_FILTERS, TopicFilter
from connectors.mirror.policies import POLICIES, ReplicationPolicy

__all__ = ["EMIT_OFFSET_SYNCS", "FlowConfig", "TopicsConfig", "extension"]

EMIT_OFFSET_SYNCS: Final = "emit.offset-syncs.enabled"
_PACKAGE: Final = "org.apache.kafka.connect.mirror"

_FORWARDING_ADMIN: Final = "org.apache.kafka.clients.admin.ForwardingAdmin"


@validator(f"{_FORWARDING_ADMIN}")
def _forwarding_admin(key: str, value: str) -> None:
    if value != _FORWARDING_ADMIN:
        raise invalid_value(key, value, "A Java class cannot run here: remove the key")


def extension(base: type[Any], own: Mapping[str, type[Any]]) -> Validator:
    """Accept the names of classes that stand for ``base``: one of our ``own``, or what a package offers."""

    @validator(f"name of a {base.__name__}")
    def known(key: str, value: str) -> None:
        extension_class(key, value, base, own)

    return known


class FlowConfig(SecurityConfig):
    """The options that MirrorMaker 2 gives to each of its three connectors.

    Clients of the clusters are configured by keys that begin with ``source.cluster.``, ``target.cluster.``,
    ``source.consumer.``, ``target.producer.`` and the like; see :mod:`connectors.mirror.clients`.
    """

    enabled: bool = option(
        default=True,
        importance=LOW,
        doc="Whether the flow runs. A source or checkpoint connector that is not enabled has no tasks.",
    )
    source_cluster_alias: str = option(
        importance=HIGH,
        doc="The name of the cluster to mirror from. Topics are renamed with it, and stored offsets carry it.",
    )
    target_cluster_alias: str = option(
        default="target",
        importance=HIGH,
        doc="The name of the cluster to mirror to. Topics that came from there are not mirrored back.",
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
        doc="What names topics at the target: DefaultReplicationPolicy puts the alias of the source before the name, "
        "IdentityReplicationPolicy keeps the name.",
    )
    replication_policy_separator: str = option(
        default=".",
        importance=LOW,
        doc="What stands between the alias of a cluster and the name of a topic.",
    )
    replication_policy_internal_topic_separator_enabled: bool = option(
        default=True,
        name="replication.policy.internal.topic.separator.enabled",
        importance=LOW,
        doc="Whether names of internal topics have the separator too; if not, they keep the dot.",
    )
    forwarding_admin_class: PluginName = option(
        default=_FORWARDING_ADMIN,
        importance=LOW,
        validator=_forwarding_admin,
        doc="The Java class that creates and alters topics; only the default has a counterpart here.",
    )
    metric_reporters: tuple[str, ...] = option(
        default=("org.apache.kafka.common.metrics.JmxReporter",),
        importance=LOW,
        validator=unique_list,
        doc="Java classes that report metrics; without effect, the worker reports them.",
    )
    config_providers: tuple[str, ...] = option(
        default=(),
        importance=LOW,
        validator=unique_list,
        doc="Aliases of config providers that MirrorMaker's file declares; the worker's are used here.",
    )

    def _is_switched_off(self, key: str) -> bool:
        """Whether a switch is off as MirrorMaker reads it where it checks one: by its exact text."""
        return self.originals.get(key) == "false"


class TopicsConfig(FlowConfig):
    """The options that the source and the checkpoint connector share: of topics and where their syncs lie."""

    topic_filter_class: PluginName = option(
        default=f"{_PACKAGE}.DefaultTopicFilter",
        importance=LOW,
        validator=extension(TopicFilter, TOPIC_FILTERS),
        doc="What chooses topics: DefaultTopicFilter by topics and topics.exclude.",
    )
    consumer_poll_timeout_ms: Long = option(
        default=1000,
        importance=LOW,
        doc="Milliseconds that a source task waits for records of the source.",
    )
    offset_syncs_topic_location: str = option(
        default="source",
        name="offset-syncs.topic.location",
        importance=LOW,
        validator=one_of("source", "target"),
        doc="The cluster that keeps offset syncs and runs: source or target. Let it be the same in the source and the "
        "checkpoint connector of a flow.",
    )
    metric_names_formats: tuple[Literal["legacy", "new"], ...] = option(
        default=("legacy",),
        importance=LOW,
        validator=all_of(non_empty_list, unique_list),
        doc="The names that MirrorMaker's metrics have in Java; here they have one each.",
    )

    @property
    def alias_in_syncs(self) -> str:
        """The alias in the names of the topics of syncs and runs: of the cluster that they do not lie on."""
        return self.target_cluster_alias if self.offset_syncs_topic_location == "source" else self.source_cluster_alias
