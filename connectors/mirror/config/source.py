"""The options of the source connector."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar, Final, Literal

from connect.config import HIGH, LOW, MEDIUM, ConfigRuleError, Long, PluginName, Short, at_least, option, unique_list
from connect.errors import ConfigError
from connect.internals.kafka.clients.librdkafka import listed_topics
from connect.internals.kafka.settings.client import ClientKind
from connectors.mirror.clients import Clients, Cluster, Role, java_settings
from connectors.mirror.config.flow import EMIT_OFFSET_SYNCS, TopicsConfig, extension
from connectors.mirror.filters import CONFIG_PROPERTY_FILTERS, ConfigPropertyFilter
from connectors.mirror.old_names import old_name_warnings
from connectors.mirror.selection import INTERNAL_TOPICS

__all__ = ["MirrorSourceConfig", "MirrorSourceTaskConfig"]

_CONSUMER: Final = Role(Cluster.SOURCE, ClientKind.CONSUMER, "replication-consumer")
_OF_SYNCS: Final = ("offset-syncs.topic.", "offset-syncs-")


_WHO: Final = "the user of the mirror at the source cluster"


class MirrorSourceConfig(TopicsConfig):
    """The options of the source connector of a flow."""

    topics: tuple[str, ...] = option(
        default=(".*",),
        importance=HIGH,
        validator=unique_list,
        doc="Topics to mirror, as names or Java regular expressions that match whole names. Empty selects none.",
    )
    topics_exclude: tuple[str, ...] = option(
        default=(r"mm2.*\.internal", r".*\.replica", "__.*"),
        importance=HIGH,
        validator=unique_list,
        doc="Topics that are not mirrored although topics matches them, as names or Java regular expressions.",
    )
    internal_topics: tuple[str, ...] = option(
        name=INTERNAL_TOPICS,
        default=(),
        importance=LOW,
        internal=True,
        doc="The topics in which the worker keeps its own state, which are never mirrored.",
    )
    config_properties_exclude: tuple[str, ...] = option(
        default=(
            "follower.replication.throttled.replicas",
            "leader.replication.throttled.replicas",
            "message.timestamp.difference.max.ms",
            "log.message.timestamp.before.max.ms",
            "log.message.timestamp.after.max.ms",
            "message.timestamp.type",
            "unclean.leader.election.enable",
            "min.insync.replicas",
        ),
        importance=HIGH,
        validator=unique_list,
        doc="Topic settings that are not copied to the target, as names or Java regular expressions.",
    )
    config_property_filter_class: PluginName = option(
        default="org.apache.kafka.connect.mirror.DefaultConfigPropertyFilter",
        importance=LOW,
        validator=extension(ConfigPropertyFilter, CONFIG_PROPERTY_FILTERS),
        doc="The class that selects topic settings. DefaultConfigPropertyFilter uses config.properties.exclude and "
        "use.defaults.from.",
    )
    refresh_topics_enabled: bool = option(
        default=True,
        importance=LOW,
        doc="Whether to look for new topics and partitions periodically.",
    )
    refresh_topics_interval_seconds: Long = option(
        default=600,
        importance=LOW,
        doc="Seconds between two looks for new topics and partitions.",
    )
    sync_topic_configs_enabled: bool = option(
        default=True,
        importance=LOW,
        doc="Whether to copy the settings of topics.",
    )
    sync_topic_configs_interval_seconds: Long = option(
        default=600,
        importance=LOW,
        doc="Seconds between two copies of the settings.",
    )
    sync_topic_acls_enabled: bool = option(
        default=True,
        importance=LOW,
        doc="Whether to copy the ACLs of topics, so that readers of a topic may read its mirror.",
    )
    sync_topic_acls_interval_seconds: Long = option(
        default=600,
        importance=LOW,
        doc="Seconds between two copies of the ACLs.",
    )
    replication_factor: int = option(
        default=2,
        importance=LOW,
        doc="Number of replicas with which mirrored topics are created.",
    )
    offset_syncs_topic_replication_factor: Short = option(
        default=3,
        name="offset-syncs.topic.replication.factor",
        importance=LOW,
        doc="Number of replicas with which the topics of offset syncs and runs are created.",
    )
    offset_lag_max: Long = option(
        default=100,
        importance=LOW,
        doc="Records that a partition may be ahead of its last offset sync before the next is written at once.",
    )
    emit_offset_syncs_enabled: bool = option(
        default=True,
        name=EMIT_OFFSET_SYNCS,
        importance=LOW,
        doc="Whether to write offset syncs and runs. Without them the offsets of groups cannot be translated.",
    )
    heartbeats_replication_enabled: bool = option(
        default=True,
        importance=LOW,
        doc="Whether to mirror heartbeats topics even if topics does not match them.",
    )

    mirror_gap_policy: Literal["fail", "continue", "mark"] = option(
        default="continue",
        importance=MEDIUM,
        doc="What to do when the next records of a partition are gone at the source, because of retention or a "
        "recreated topic, or when its copies are gone because the target topic was recreated. continue logs the "
        "missing offsets and continues with the oldest record. mark also writes a record about the gap to the topic "
        "mm2-gaps.ALIAS.internal at the target. fail fails the task before it skips a record.",
    )

    mirror_bytes_per_second: Long = option(
        default=0,
        importance=LOW,
        validator=at_least(0),
        doc="Most bytes of keys, values and headers that the connector reads per second, divided equally among its "
        "tasks. 0 means no limit.",
    )
    mirror_provenance_header: str = option(
        default="",
        importance=LOW,
        doc="Name of a header that lists the clusters a record comes from. Each copy gets one more, with the alias of "
        "its source, and records that have been at the target are left out. Flows in both directions can then keep "
        "topic names. Empty means no header.",
    )
    mirror_topic_deletion_policy: Literal["keep", "delete"] = option(
        default="keep",
        importance=MEDIUM,
        doc="What to do with a mirrored topic whose source topic is deleted: keep it, or delete it after "
        "mirror.topic.deletion.grace.ms. Only topics for which the connector has stored offsets are deleted. With "
        "delete, ACLs that are removed at the source while the connector runs are removed as well.",
    )
    mirror_topic_deletion_grace_ms: Long = option(
        default=3_600_000,
        importance=LOW,
        validator=at_least(0),
        doc="Milliseconds that a topic must be missing at a source that answers before it is deleted at the target.",
    )

    @property
    def isolation_level(self) -> str:
        """The isolation level of the consumer, by default read_committed."""
        return java_settings(self.originals, _CONSUMER).get("isolation.level", "read_committed")

    choices: ClassVar[Mapping[str, str]] = {"topics": "topics", "topics.exclude": "topics"}

    def choices_of(self, key: str) -> Iterable[str]:  # noqa: ARG002 - of both
        """Return the topics of the source cluster, without internal ones."""
        properties = Clients(self.originals).properties(Role(Cluster.SOURCE, ClientKind.ADMIN, "check"))
        own = set(self.internal_topics)
        return [topic for topic in listed_topics(properties, _WHO) if topic not in own and not topic.startswith("__")]

    def check(self) -> Iterable[ConfigError]:
        """Refuse options of offset syncs if none are written, as MirrorMaker does."""
        yield from super().check()
        if not self._is_switched_off(EMIT_OFFSET_SYNCS):
            return
        given = sorted(key for key in self.originals if key.startswith(_OF_SYNCS))
        if given:
            raise ConfigRuleError(
                f"{EMIT_OFFSET_SYNCS}=false leaves {', '.join(given)} without effect. Remove "
                f"{'it' if len(given) == 1 else 'them'}, or write offset syncs",
                EMIT_OFFSET_SYNCS,
            )

    def warnings(self) -> Iterable[str]:
        """Warn about missing brokers, without which nothing can be mirrored, and about old names of options."""
        yield from old_name_warnings(self.originals, ("topics.exclude", "config.properties.exclude"))
        if not self.originals.get("source.cluster.bootstrap.servers"):
            yield "source.cluster.bootstrap.servers is not set. Nothing can be mirrored without brokers of the source."
        if not self.originals.get("target.cluster.bootstrap.servers"):
            yield "target.cluster.bootstrap.servers is not set. No topics can be created without brokers of the target."


class MirrorSourceTaskConfig(MirrorSourceConfig):
    """The options of the connector, with the share of one task."""

    task_assigned_partitions: tuple[str, ...] = option(
        default=(),
        importance=LOW,
        internal=True,
        doc="The partitions of the source that the task mirrors, as TOPIC-PARTITION.",
    )
    task_topic_ids: str = option(
        default="",
        importance=LOW,
        internal=True,
        doc="An item for each topic of the task, which stands for its ids at both ends.",
    )
    task_bytes_per_second: Long = option(
        default=0,
        importance=LOW,
        internal=True,
        doc="The task's share of mirror.bytes.per.second.",
    )
    task_index: int = option(
        default=0,
        importance=LOW,
        internal=True,
        doc="The number of the task.",
    )
