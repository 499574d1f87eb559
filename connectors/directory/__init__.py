"""Folders of CSV, TSV, JSON lines, text, Avro, Parquet and ORC files: each row becomes a record."""

from connectors.directory.config import DirectorySourceConfig, DirectoryTaskConfig
from connectors.directory.source import DirectorySourceConnector, DirectorySourceTask

__all__ = [
    "DirectorySourceConfig",
    "DirectorySourceConnector",
    "DirectorySourceTask",
    "DirectoryTaskConfig",
]
