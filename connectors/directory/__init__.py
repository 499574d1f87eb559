"""Folders of files, on this machine, on servers and in buckets: each row becomes a record, or each record a row."""

from connectors.directory.config import DirectorySourceConfig, DirectoryTaskConfig
from connectors.directory.sink import DirectorySinkConnector, DirectorySinkTask
from connectors.directory.sink_config import DirectorySinkConfig
from connectors.directory.source import DirectorySourceConnector, DirectorySourceTask

__all__ = [
    "DirectorySinkConfig",
    "DirectorySinkConnector",
    "DirectorySinkTask",
    "DirectorySourceConfig",
    "DirectorySourceConnector",
    "DirectorySourceTask",
    "DirectoryTaskConfig",
]
