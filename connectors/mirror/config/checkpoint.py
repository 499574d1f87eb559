"""The options of the checkpoint connector."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from connect.config import HIGH, LOW, ConfigRuleError, Long, PluginName, Short, option, unique_list
from connect.errors import ConfigError
from connectors.mirror.config.flow import EMIT_OFFSET_SYNCS, TopicsConfig, extension
from connectors.mirror.filters import GROUP_FILTERS, GroupFilter

__all__ = ["MirrorCheckpointConfig", "MirrorCheckpointTaskConfig"]

_EMIT_CHECKPOINTS: Final = "emit.checkpoints.enabled"


class MirrorCheckpointConfig(TopicsConfig):
    """The options of the checkpoint connector of a flow."""

    groups: tuple[str, ...] = option(
        default=(".*",),
        importance=HIGH,
        validator=unique_list,
        doc="Names of consumer groups whose offsets to translate, or regular expressions of Java that match whole "
        "names. An empty list is none.",
    )
    groups_exclude: tuple[str, ...] = option(
        default=("console-consumer-.*", "connect-.*", "__.*"),
        importance=HIGH,
        validator=unique_list,
        doc="Names or regular expressions of groups that are left out though groups has them.",
    )
    group_filter_class: PluginName = option(
        default="org.apache.kafka.connect.mirror.DefaultGroupFilter",
        importance=LOW,
        validator=extension(GroupFilter, GROUP_FILTERS),
        doc="What chooses groups: DefaultGroupFilter by groups and groups.exclude.",
    )
    refresh_groups_enabled: bool = option(
        default=True,
        importance=LOW,
        doc="Whether to look for groups that are new or gone.",
    )
    refresh_groups_interval_seconds: Long = option(
        default=600,
        importance=LOW,
        doc="Seconds between two such looks.",
    )
    emit_checkpoints_enabled: bool = option(
        default=True,
        importance=LOW,
        doc="Whether to write checkpoints. A connector that is enabled has to.",
    )
    emit_checkpoints_interval_seconds: Long = option(
        default=60,
        importance=LOW,
        doc="Seconds until the offsets of groups are translated again.",
    )
    sync_group_offsets_enabled: bool = option(
        default=False,
        importance=LOW,
        doc="Whether to commit translated offsets at the target, for groups that nobody uses there.",
    )
    sync_group_offsets_interval_seconds: Long = option(
        default=60,
        importance=LOW,
        doc="Seconds until offsets are committed at the target again.",
    )
    checkpoints_topic_replication_factor: Short = option(
        default=3,
        importance=LOW,
        doc="How many replicas the topic of checkpoints has when it is created.",
    )

    def check(self) -> Iterable[ConfigError]:
        """Refuse to be switched on without what the connector is there for, as MirrorMaker does."""
        yield from super().check()
        if not self.enabled:
            return
        if self._is_switched_off(_EMIT_CHECKPOINTS):
            yield ConfigRuleError(
                f"{_EMIT_CHECKPOINTS}=false leaves the connector nothing to do: remove it, or set enabled=false",
                _EMIT_CHECKPOINTS,
            )
        if self._is_switched_off(EMIT_OFFSET_SYNCS):
            yield ConfigRuleError(
                f"{EMIT_OFFSET_SYNCS}=false leaves nothing to translate offsets with: remove it, or set enabled=false",
                EMIT_OFFSET_SYNCS,
            )


class MirrorCheckpointTaskConfig(MirrorCheckpointConfig):
    """The options of the connector, and the share of one task."""

    task_assigned_groups: tuple[str, ...] = option(
        default=(),
        importance=LOW,
        internal=True,
        doc="The groups whose offsets the task translates.",
    )
    task_index: int = option(
        default=0,
        importance=LOW,
        internal=True,
        doc="The number of the task.",
    )
