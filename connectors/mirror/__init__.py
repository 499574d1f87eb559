"""Mirrors topics and groups of one Kafka cluster to another, with the keys, names and bytes of MirrorMaker 2."""

from connectors.mirror.checkpoint.connector import MirrorCheckpointConnector
from connectors.mirror.checkpoint.task import MirrorCheckpointTask
from connectors.mirror.client import MirrorClient, RemoteOffset
from connectors.mirror.config.source import MirrorSourceConfig, MirrorSourceTaskConfig
from connectors.mirror.heartbeat import MirrorHeartbeatConnector, MirrorHeartbeatTask
from connectors.mirror.source.source import MirrorSourceConnector, MirrorSourceTask

__all__ = [
    "MirrorCheckpointConnector",
    "MirrorCheckpointTask",
    "MirrorClient",
    "MirrorHeartbeatConnector",
    "MirrorHeartbeatTask",
    "MirrorSourceConfig",
    "MirrorSourceConnector",
    "MirrorSourceTask",
    "MirrorSourceTaskConfig",
    "RemoteOffset",
]
