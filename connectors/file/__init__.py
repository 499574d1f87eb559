"""Text files by line: each line of a file becomes a record, and each record a line of a file."""

from connectors.file.config import FileStreamSinkConfig, FileStreamSourceConfig, FileStreamTaskConfig
from connectors.file.sink import FileStreamSinkConnector, FileStreamSinkTask
from connectors.file.source import FileStreamSourceConnector, FileStreamSourceTask

__all__ = [
    "FileStreamSinkConfig",
    "FileStreamSinkConnector",
    "FileStreamSinkTask",
    "FileStreamSourceConfig",
    "FileStreamSourceConnector",
    "FileStreamSourceTask",
    "FileStreamTaskConfig",
]
