"""The SpoolDir sources, and Confluent's SFTP sources."""

from connectors.directory.spool.source import (
    SftpBinaryFileSourceConnector,
    SftpCsvSourceConnector,
    SftpJsonSourceConnector,
    SftpSchemaLessJsonSourceConnector,
    SpoolDirAvroSourceConnector,
    SpoolDirBinaryFileSourceConnector,
    SpoolDirCsvSourceConnector,
    SpoolDirJsonSourceConnector,
    SpoolDirLineDelimitedSourceConnector,
    SpoolDirSchemaLessJsonSourceConnector,
)

__all__ = [
    "SftpBinaryFileSourceConnector",
    "SftpCsvSourceConnector",
    "SftpJsonSourceConnector",
    "SftpSchemaLessJsonSourceConnector",
    "SpoolDirAvroSourceConnector",
    "SpoolDirBinaryFileSourceConnector",
    "SpoolDirCsvSourceConnector",
    "SpoolDirJsonSourceConnector",
    "SpoolDirLineDelimitedSourceConnector",
    "SpoolDirSchemaLessJsonSourceConnector",
]
