"""The heartbeat connector of a flow, which shows that the flow is alive and how long records take."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from typing import Final

from connect.config import LOW, Long, Short, option
from connect.data import Offset, Schema, SourceRecord
from connect.source import SourceConnector, SourceTask
from connectors.mirror.clients import Clients, Cluster
from connectors.mirror.config.flow import FlowConfig
from connectors.mirror.internal_topics import create_compacted
from connectors.mirror.patience import Patience, StoppedError
from connectors.mirror.policies import replication_policy
from connectors.mirror.records import Heartbeat
from connectors.mirror.source_offsets import HEARTBEAT_MEMBERS, NO_OFFSET, check_own_offset, heartbeat_partition

__all__ = ["MirrorHeartbeatConfig", "MirrorHeartbeatConnector", "MirrorHeartbeatTask"]


class MirrorHeartbeatConfig(FlowConfig):
    """The options of the heartbeat connector of a flow."""

    emit_heartbeats_enabled: bool = option(
        default=True,
        importance=LOW,
        doc="Whether to write heartbeats. If false, the connector has no task.",
    )
    emit_heartbeats_interval_seconds: Long = option(
        default=1,
        importance=LOW,
        doc="Seconds between two heartbeats.",
    )
    heartbeats_topic_replication_factor: Short = option(
        default=3,
        importance=LOW,
        doc="Number of replicas with which the heartbeats topic is created.",
    )


_BYTES: Final = Schema.bytes()
_MS: Final = 1000
_REPLICAS: Final = "heartbeats.topic.replication.factor"


class MirrorHeartbeatTask(SourceTask[MirrorHeartbeatConfig]):
    """Writes a heartbeat at each interval.

    Crash points: none matters. A lost heartbeat is followed by the next one.
    """

    def start(self) -> None:
        self._topic = replication_policy(self.config.originals).heartbeats_topic()
        self._has_topic = False
        self._due = 0.0

    def poll(self) -> list[SourceRecord] | None:
        try:
            self._create_topic()
        except StoppedError:
            return None
        now = time.monotonic()
        if now < self._due:
            self.context.wait(self._due - now)
            return None
        self._due = now + self.config.emit_heartbeats_interval_seconds
        return [self._record(round(time.time() * _MS))]

    def _create_topic(self) -> None:
        if self._has_topic:
            return
        config = self.config
        admin = Clients(config.originals).admin(Cluster.TARGET, "heartbeats-target-admin")
        patience = Patience(config.target_cluster_alias, config.admin_timeout_ms / _MS, self.context.wait)
        create_compacted(admin, patience, self._topic, _REPLICAS, config.heartbeats_topic_replication_factor)
        self._has_topic = True

    def _record(self, timestamp: int) -> SourceRecord:
        heartbeat = Heartbeat(self.config.source_cluster_alias, self.config.target_cluster_alias, timestamp)
        return SourceRecord(
            topic=self._topic,
            partition=0,
            key_schema=_BYTES,
            key=heartbeat.key(),
            value_schema=_BYTES,
            value=heartbeat.value(),
            timestamp=timestamp,
            source_partition=heartbeat_partition(heartbeat),
            source_offset=dict(NO_OFFSET),
        )


class MirrorHeartbeatConnector(SourceConnector[MirrorHeartbeatConfig]):
    """Writes the time to the heartbeats topic at the target, again and again.

    A flow that mirrors from there carries the heartbeats on, which shows that it is alive and how long records take.
    The connector has one task, or none with ``emit.heartbeats.enabled=false``.
    """

    task_class = MirrorHeartbeatTask
    watches = False
    default_converter = "org.apache.kafka.connect.converters.ByteArrayConverter"

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str | None]]:  # noqa: ARG002
        return [self.config.originals] if self.config.emit_heartbeats_enabled else []

    @classmethod
    def alter_offsets(cls, config: MirrorHeartbeatConfig, offsets: Mapping[str, Offset | None]) -> bool:  # noqa: ARG003
        for partition, offset in offsets.items():
            check_own_offset(json.loads(partition), offset, HEARTBEAT_MEMBERS)
        return True
