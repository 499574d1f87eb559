"""The sink connectors for objects and files, one for each kind of store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Generic

from connect.data import TopicPartition
from connect.kits.objects.sftp import SftpFiles
from connect.sink import SinkConnector
from connectors.objects.sftp_config import SftpSinkConfig
from connectors.objects.sink import C, ObjectSinkTask, set_positions
from connectors.objects.sink_config import (
    AzureBlobSinkConfig,
    FolderSinkConfig,
    GcsSinkConfig,
    S3SinkConfig,
)

__all__ = ["AzureBlobSinkConnector", "FolderSinkConnector", "GcsSinkConnector", "S3SinkConnector", "SftpSinkConnector"]


class S3SinkTask(ObjectSinkTask[S3SinkConfig]):
    """Writes to a bucket of S3, or of a service that speaks its protocol."""


class GcsSinkTask(ObjectSinkTask[GcsSinkConfig]):
    """Writes to a bucket of Google Cloud Storage."""


class AzureBlobSinkTask(ObjectSinkTask[AzureBlobSinkConfig]):
    """Writes to a container of Azure Blob Storage."""


class FolderSinkTask(ObjectSinkTask[FolderSinkConfig]):
    """Writes to a local or mounted folder."""


class SftpSinkTask(ObjectSinkTask[SftpSinkConfig]):
    """Writes to a folder of an SFTP server."""

    def stop(self) -> None:
        super().stop()
        if isinstance(store := getattr(self, "_store", None), SftpFiles):
            store.close()


class ObjectSinkConnector(SinkConnector[C], Generic[C]):
    """Writes topics to files in a store, exactly once."""

    watches = False

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str | None]]:
        """Partitions that share files have one task."""
        return super().task_configs(1 if self.config.combine_partitions else max_tasks)

    @classmethod
    def alter_offsets(cls, config: C, offsets: Mapping[TopicPartition, int | None]) -> bool:
        """Accept any offsets: records from there on are written again."""
        if config.combine_partitions:
            set_positions(config, offsets)
        return True


class S3SinkConnector(ObjectSinkConnector[S3SinkConfig]):
    """Writes topics to objects of S3, exactly once."""

    task_class = S3SinkTask


class GcsSinkConnector(ObjectSinkConnector[GcsSinkConfig]):
    """Writes topics to objects of Google Cloud Storage, exactly once."""

    task_class = GcsSinkTask


class AzureBlobSinkConnector(ObjectSinkConnector[AzureBlobSinkConfig]):
    """Writes topics to blobs of Azure Blob Storage, exactly once."""

    task_class = AzureBlobSinkTask


class FolderSinkConnector(ObjectSinkConnector[FolderSinkConfig]):
    """Writes topics to files in a local or mounted folder, exactly once."""

    task_class = FolderSinkTask


class SftpSinkConnector(ObjectSinkConnector[SftpSinkConfig]):
    """Writes topics to files on an SFTP server, exactly once."""

    task_class = SftpSinkTask
