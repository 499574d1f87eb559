"""The sink connectors for objects and files, one for each kind of store."""

from __future__ import annotations

from collections.abc import Mapping

from connect.data import TopicPartition
from connect.kits.objects.sftp import SftpFiles
from connect.sink import SinkConnector
from connectors.objects.sftp_config import SftpSinkConfig
from connectors.objects.sink import ObjectSinkTask
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


class S3SinkConnector(SinkConnector[S3SinkConfig]):
    """Writes topics to objects of S3, exactly once."""

    task_class = S3SinkTask
    watches = False

    @classmethod
    def alter_offsets(cls, config: S3SinkConfig, offsets: Mapping[TopicPartition, int | None]) -> bool:  # noqa: ARG003
        """Accept any offsets: files from there on are written again."""
        return True


class GcsSinkConnector(SinkConnector[GcsSinkConfig]):
    """Writes topics to objects of Google Cloud Storage, exactly once."""

    task_class = GcsSinkTask
    watches = False

    @classmethod
    def alter_offsets(cls, config: GcsSinkConfig, offsets: Mapping[TopicPartition, int | None]) -> bool:  # noqa: ARG003
        """Accept any offsets: files from there on are written again."""
        return True


class AzureBlobSinkConnector(SinkConnector[AzureBlobSinkConfig]):
    """Writes topics to blobs of Azure Blob Storage, exactly once."""

    task_class = AzureBlobSinkTask
    watches = False

    @classmethod
    def alter_offsets(
        cls,
        config: AzureBlobSinkConfig,  # noqa: ARG003
        offsets: Mapping[TopicPartition, int | None],  # noqa: ARG003
    ) -> bool:
        """Accept any offsets: files from there on are written again."""
        return True


class FolderSinkConnector(SinkConnector[FolderSinkConfig]):
    """Writes topics to files in a local or mounted folder, exactly once."""

    task_class = FolderSinkTask
    watches = False

    @classmethod
    def alter_offsets(
        cls,
        config: FolderSinkConfig,  # noqa: ARG003
        offsets: Mapping[TopicPartition, int | None],  # noqa: ARG003
    ) -> bool:
        """Accept any offsets: files from there on are written again."""
        return True


class SftpSinkConnector(SinkConnector[SftpSinkConfig]):
    """Writes topics to files on an SFTP server, exactly once."""

    task_class = SftpSinkTask
    watches = False

    @classmethod
    def alter_offsets(cls, config: SftpSinkConfig, offsets: Mapping[TopicPartition, int | None]) -> bool:  # noqa: ARG003
        """Accept any offsets: files from there on are written again."""
        return True
