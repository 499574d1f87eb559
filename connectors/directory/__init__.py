"""Folders of CSV, TSV, JSON lines and text files, plain or compressed: each row becomes a record."""

from connectors.directory.config import DirectorySourceConfig, DirectoryTaskConfig
from connectors.directory.source import DirectorySourceConnector, DirectorySourceTask

__all__ = [
    "DirectorySourceConfig",
    "DirectorySourceConnector",
    "DirectorySourceTask",
    "DirectoryTaskConfig",
]
