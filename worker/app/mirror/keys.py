"""The keys that stand alone in a file of flows: those of the three connectors."""

from __future__ import annotations

from connectors.mirror.config.checkpoint import MirrorCheckpointConfig
from connectors.mirror.config.heartbeat import MirrorHeartbeatConfig
from connectors.mirror.config.source import MirrorSourceConfig
from worker.config.connector import ConnectorConfig

__all__ = ["connector_keys"]


def connector_keys() -> frozenset[str]:
    """The keys of the connectors, and those that every connector has. Keys of sources alone are not among them."""
    kinds = (ConnectorConfig, MirrorSourceConfig, MirrorCheckpointConfig, MirrorHeartbeatConfig)
    return frozenset(key.name for kind in kinds for key in kind.definitions())
