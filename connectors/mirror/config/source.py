"""The options of the source connector."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal

from connect.config import HIGH, LOW, MEDIUM, ConfigRuleError, Long, PluginName, Short, at_least, option, unique_list
from connect.errors import ConfigError
from connect.kafka.settings.client import ClientKind
from connectors.mirror.clients import Cluster, Role, java_settings
from connectors.mirror.config.flow import EMIT_OFFSET_SYNCS, TopicsConfig, extension
from connectors.mirror.filters import CONFIG_PROPERTY_FILTERS, ConfigPropertyFilter

__all__ = ["MirrorSourceConfig", "MirrorSourceTaskConfig"]

_CONSUMER: Final = Role(Cluster.SOURCE, ClientKind.CONSUMER, "replication-consumer")
_OF_SYNCS: Final = ("offset-syncs.topic.", "offset-syncs-")


class MirrorSourceConfig(TopicsConfig):
    """The options of the source connector of a flow."""

    topics: tuple[str, ...] = option(
        default=(".*",),
        importance=HIGH,
        validator=unique_list,
        doc="Names of topics to mirror, or regular expressions of Java that match whole names. An empty list is none.",
    )
    topics_exclude: tuple[str, ...] = option(
        default=(r"mm2.*\.internal", r".*\.replica", "__.*"),
        importance=HIGH,
        validator=unique_list,
        doc="Names or regular expressions of topics that are not mirrored though topics has them.",
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
        doc="Names or regular expressions of settings of topics that the target keeps as it has them.",
    )
    config_property_filter_class: PluginName = option(
        default="org.apache.kafka.connect.mirror.DefaultConfigPropertyFilter",
        importance=LOW,
        validator=extension(ConfigPropertyFilter, CONFIG_PROPERTY_FILTERS),
        doc="What chooses settings of topics: DefaultConfigPropertyFilter by config.properties.exclude and "
        "use.defaults.from.",
    )
    refresh_topics_enabled: bool = option(
        default=True,
        importance=LOW,
        doc="Whether to look for new topics and partitions.",
    )
    refresh_topics_interval_seconds: Long = option(
        default=600,
        importance=LOW,
        doc="Seconds between two such looks.",
    )
    sync_topic_configs_enabled: bool = option(
        default=True,
        importance=LOW,
        doc="Whether mirrored topics have the settings of their sources.",
    )
    sync_topic_configs_interval_seconds: Long = option(
        default=600,
        importance=LOW,
        doc="Seconds until the settings are compared again.",
    )
    sync_topic_acls_enabled: bool = option(
        default=True,
        importance=LOW,
        doc="Whether who may read a topic may read its mirror.",
    )
    sync_topic_acls_interval_seconds: Long = option(
        default=600,
        importance=LOW,
        doc="Seconds until the ACLs are copied again.",
    )
    replication_factor: int = option(
        default=2,
        importance=LOW,
        doc="How many replicas a mirrored topic has when it is created.",
    )
    offset_syncs_topic_replication_factor: Short = option(
        default=3,
        name="offset-syncs.topic.replication.factor",
        importance=LOW,
        doc="How many replicas the topics of offset syncs and of runs have when they are created.",
    )
    offset_lag_max: Long = option(
        default=100,
        importance=LOW,
        doc="How many records a partition may be ahead of its last offset sync before one is written at once.",
    )
    emit_offset_syncs_enabled: bool = option(
        default=True,
        name=EMIT_OFFSET_SYNCS,
        importance=LOW,
        doc="Whether to write offset syncs and runs, without which the offsets of groups cannot be translated.",
    )
    heartbeats_replication_enabled: bool = option(
        default=True,
        importance=LOW,
        doc="Whether to mirror topics of heartbeats even if topics does not have them.",
    )

    mirror_gap_policy: Literal["fail", "continue", "mark"] = option(
        default="continue",
        importance=MEDIUM,
        doc="What becomes of a partition whose next records are gone at the source, by retention or because the topic "
        "was made anew, or whose copies are gone because the topic at the target was: continue tells the lost offsets "
        "in the log and goes on with what there is, mark writes a record about them to a topic at the target as well, "
        "mm2-gaps with the alias of the source, fail fails the task before it skips any.",
    )

    mirror_bytes_per_second: Long = option(
        default=0,
        importance=LOW,
        validator=at_least(0),
        doc="How many bytes of keys, values and headers the connector reads in a second at most, in equal shares for "
        "its tasks; 0 is as many as there are.",
    )
    mirror_provenance_header: str = option(
        default="",
        importance=LOW,
        doc="The name of a header that says which clusters a record comes from: each copy has one more, with the alias "
        "of its source, and records that have been at the target are left out. Empty for none. With it topics can "
        "keep their names in flows both ways.",
    )
    mirror_topic_deletion_policy: Literal["keep", "delete"] = option(
        default="keep",
        importance=MEDIUM,
        doc="What becomes of a mirrored topic whose source is deleted: keep, or delete it as well after "
        "mirror.topic.deletion.grace.ms. Only topics that the connector has stored offsets of are deleted. With "
        "delete, ACLs that vanish at the source while the connector runs are taken back as well.",
    )
    mirror_topic_deletion_grace_ms: Long = option(
        default=3_600_000,
        importance=LOW,
        validator=at_least(0),
        doc="Milliseconds that a topic has to be missing at a source that answers, before it is deleted at the target.",
    )

    @property
    def isolation_level(self) -> str:
        """Which records of transactions are read: as a key says, by default those that are committed."""
        return java_settings(self.originals, _CONSUMER).get("isolation.level", "read_committed")

    def check(self) -> Iterable[ConfigError]:
        """Refuse options of offset syncs where none are written, as MirrorMaker does."""
        yield from super().check()
        if not self._is_switched_off(EMIT_OFFSET_SYNCS):
            return
        given = sorted(key for key in self.originals if key.startswith(_OF_SYNCS))
        if given:
            raise ConfigRuleError(
                f"{EMIT_OFFSET_SYNCS}=false leaves nothing for {', '.join(given)} to say: remove "
                f"{'it' if len(given) == 1 else 'them'}, or write offset syncs",
                EMIT_OFFSET_SYNCS,
            )

    def warnings(self) -> Iterable[str]:
        """Tell of what would leave the connector without work, or mirror records for ever."""
        if not self.originals.get("source.cluster.bootstrap.servers"):
            yield "source.cluster.bootstrap.servers is not set: without brokers of the source nothing is mirrored."
        if not self.originals.get("target.cluster.bootstrap.servers"):
            yield "target.cluster.bootstrap.servers is not set: without it no topics can be created at the target."


class MirrorSourceTaskConfig(MirrorSourceConfig):
    """The options of the connector, and the share of one task."""

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
