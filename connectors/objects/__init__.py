"""Sinks that write topics to objects of S3, Google Cloud Storage and Azure, and to files in a folder or on a server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from connectors.objects.sinks import (
        AzureBlobSinkConnector,
        FolderSinkConnector,
        GcsSinkConnector,
        S3SinkConnector,
        SftpSinkConnector,
    )

__all__ = ["AzureBlobSinkConnector", "FolderSinkConnector", "GcsSinkConnector", "S3SinkConnector", "SftpSinkConnector"]

_SINKS: Final = frozenset(__all__)


def __getattr__(name: str) -> Any:
    if name not in _SINKS:
        raise AttributeError(f"module {__name__} has no attribute {name}")
    from connectors.objects import sinks  # noqa: PLC0415 - imported when first used

    return getattr(sinks, name)
