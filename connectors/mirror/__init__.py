"""Topics, groups and settings of one Kafka cluster kept in another, with the keys, names and bytes of MirrorMaker 2."""

from connectors.mirror.config.source import MirrorSourceConfig, MirrorSourceTaskConfig
from connectors.mirror.source.source import MirrorSourceConnector, MirrorSourceTask

__all__ = ["MirrorSourceConfig", "MirrorSourceConnector", "MirrorSourceTask", "MirrorSourceTaskConfig"]
