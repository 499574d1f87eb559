"""The options of the checkpoint connector."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from connect.config import HIGH, LOW, ConfigRuleError, Long, PluginName, Short, option, unique_list
from connect.errors import ConfigError
from connectors.mirror.config.flow import EMIT_OFFSET_SYNCS, TopicsConfig, extension
from connectors.mirror.filters import GROUP_FILTERS, GroupFilter
from connectors.mirror.old_names import old_name_warnings

__all__ = ["MirrorCheckpointConfig", "MirrorCheckpointTaskConfig"]

_EMIT_CHECKPOINTS: Final = "emit.checkpoints.enabled"


class MirrorCheckpointConfig(TopicsConfig):
    """The options of the checkpoint connector of a flow."""

    groups: tuple[str, ...] = option(
        default=(".*",),
        importance=HIGH,
        validator=unique_list,
        doc="Consumer groups whose offsets are translated, as names or Java regular expressions that match whole "
        "names. An empty list selects none.",
    )
    groups_exclude: tuple[str, ...] = option(
        default=("console-consumer-.*", "connect-.*", "__.*"),
        importance=HIGH,
        validator=unique_list,
        doc="Groups that are left out although groups matches them, as names or Java regular expressions.",
    )
    group_filter_class: PluginName = option(
        default="org.apache.kafka.connect.mirror.DefaultGroupFilter",
        importance=LOW,
        validator=extension(GroupFilter, GROUP_FILTERS),
        doc="The class that selects groups. DefaultGroupFilter uses groups and groups.exclude.",
    )
    refresh_groups_enabled: bool = option(
        default=True,
        importance=LOW,
        doc="Whether to look for new and deleted groups periodically.",
    )
    refresh_groups_interval_seconds: Long = option(
        default=600,
        importance=LOW,
        doc="Seconds between two looks for new and deleted groups.",
    )
    emit_checkpoints_enabled: bool = option(
        default=True,
        importance=LOW,
        doc="Whether to write checkpoints. Must be true if the connector is enabled.",
    )
    emit_checkpoints_interval_seconds: Long = option(
        default=60,
        importance=LOW,
        doc="Seconds between two translations of the offsets of groups.",
    )
    sync_group_offsets_enabled: bool = option(
        default=False,
        importance=LOW,
        doc="Whether to commit translated offsets at the target, for groups that have no members there.",
    )
    sync_group_offsets_interval_seconds: Long = option(
        default=60,
        importance=LOW,
        doc="Seconds between two commits of translated offsets at the target.",
    )
    checkpoints_topic_replication_factor: Short = option(
        default=3,
        importance=LOW,
        doc="Number of replicas with which the checkpoints topic is created.",
    )

    def check(self) -> Iterable[ConfigError]:
        """Refuse switches that leave the connector nothing to do, as MirrorMaker does."""
        yield from super().check()
        if not self.enabled:
            return
        if self._is_switched_off(_EMIT_CHECKPOINTS):
            yield ConfigRuleError(
                f"{_EMIT_CHECKPOINTS}=false leaves the connector nothing to do. Remove it, or set enabled=false",
                _EMIT_CHECKPOINTS,
            )
        if self._is_switched_off(EMIT_OFFSET_SYNCS):
            yield ConfigRuleError(
                f"{EMIT_OFFSET_SYNCS}=false leaves nothing to translate offsets with. Remove it, or set enabled=false",
                EMIT_OFFSET_SYNCS,
            )

    def warnings(self) -> Iterable[str]:
        """Warn about old names of options."""
        return old_name_warnings(self.originals, ("topics.exclude", "groups.exclude"))


class MirrorCheckpointTaskConfig(MirrorCheckpointConfig):
    """The options of the connector, with the share of one task."""

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
