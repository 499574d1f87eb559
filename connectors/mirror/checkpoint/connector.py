"""The checkpoint connector."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final

from connect.data import Offset
from connect.source import SHARE_KEYS, SourceConnector
from connectors.mirror.checkpoint.monitor import GroupMonitor
from connectors.mirror.checkpoint.task import MirrorCheckpointTask
from connectors.mirror.config.checkpoint import MirrorCheckpointConfig
from connectors.mirror.shares import ASSIGNED_GROUPS, INDEX, group_shares, written_groups
from connectors.mirror.source_offsets import CHECKPOINT_MEMBERS, check_own_offset

__all__ = ["MirrorCheckpointConnector"]

_PATIENCE_SECONDS: Final = 5.0


class MirrorCheckpointConnector(SourceConnector[MirrorCheckpointConfig]):
    """Translates the offsets of consumer groups of one cluster for another cluster that has a mirror of their topics.

    Each translation is a record in the checkpoints topic at the target. With ``sync.group.offsets.enabled`` it is also
    committed there, unless the group has members there.
    """

    task_class = MirrorCheckpointTask
    default_converter = "org.apache.kafka.connect.converters.ByteArrayConverter"

    def start(self) -> None:
        self._shares: list[tuple[str, ...]] = []
        self._monitor: GroupMonitor | None = None
        if self.config.enabled and self.config.emit_checkpoints_enabled:
            self._monitor = GroupMonitor(self.config, self.context)
            self._monitor.start()

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str | None]]:
        """Divide the known groups among tasks; there are none before the source has answered."""
        groups = self._monitor.groups(_PATIENCE_SECONDS) if self._monitor is not None else ()
        self._shares = group_shares(groups, max_tasks, self._shares)
        return [
            {
                **self.config.originals,
                ASSIGNED_GROUPS: written_groups(share),
                INDEX: str(index),
                SHARE_KEYS: ASSIGNED_GROUPS,
            }
            for index, share in enumerate(self._shares)
        ]

    def stop(self) -> None:
        monitor = getattr(self, "_monitor", None)
        if monitor is not None:
            monitor.stop()

    @classmethod
    def alter_offsets(cls, config: MirrorCheckpointConfig, offsets: Mapping[str, Offset | None]) -> bool:  # noqa: ARG003
        for partition, offset in offsets.items():
            check_own_offset(json.loads(partition), offset, CHECKPOINT_MEMBERS)
        return True
