"""The options of the heartbeat connector."""

from __future__ import annotations

from connect.config import LOW, Long, Short, option
from connectors.mirror.config.flow import FlowConfig

__all__ = ["MirrorHeartbeatConfig"]


class MirrorHeartbeatConfig(FlowConfig):
    """The options of the heartbeat connector of a flow."""

    emit_heartbeats_enabled: bool = option(
        default=True,
        importance=LOW,
        doc="Whether to write heartbeats; a connector that does not has no task.",
    )
    emit_heartbeats_interval_seconds: Long = option(
        default=1,
        importance=LOW,
        doc="Seconds between two heartbeats.",
    )
    heartbeats_topic_replication_factor: Short = option(
        default=3,
        importance=LOW,
        doc="How many replicas the topic of heartbeats has when it is created.",
    )
