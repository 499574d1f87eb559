"""The stores that object sinks write to, each with the configuration of a sink and a way to look at what is there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from connectors.objects.sftp_config import SftpSinkConfig
from connectors.objects.sink_config import (
    AzureBlobSinkConfig,
    FolderSinkConfig,
    GcsSinkConfig,
    ObjectSinkConfig,
    S3SinkConfig,
)
from equipment.servers.azurite import running_azurite
from equipment.servers.file_servers import running_asyncssh
from equipment.servers.gcs import running_gcs
from equipment.servers.s3 import running_moto, running_versitygw, versitygw

__all__ = ["STORES", "ObjectTarget", "object_target"]

STORES: Final = ("local", "s3", "gcs", "azure", "sftp")
_SFTP: Final = {"sftp.working.dir": "/upload"}
_ENOUGH: Final = {"format.class": "JsonFormat", "flush.size": "1"}


@dataclass(frozen=True)
class ObjectTarget:
    """A store: the connector for it, and the keys that reach it."""

    kind: str
    connector: str
    config_class: type[ObjectSinkConfig]
    props: Mapping[str, str]

    @property
    def store(self) -> Any:
        """The store, for readers."""
        return self.config_class.parse({**_ENOUGH, **self.props}).open_store()

    def files(self, folder: str = "topics") -> dict[str, bytes]:
        """The contents of all visible files below a folder."""
        store = self.store
        return {path: store.read(path) for path, _ in store.below(folder) if not path.startswith("_sluice")}


@contextmanager
def object_target(kind: str, folder: Path) -> Iterator[ObjectTarget]:
    """A store of a kind, empty, while the ``with`` block runs."""
    with ExitStack() as stack:
        if kind == "local":
            props = {"store.url": str(folder / "store")}
            yield ObjectTarget(kind, "FolderSinkConnector", FolderSinkConfig, props)
        elif kind in ("s3", "versitygw"):
            server = stack.enter_context(running_moto() if kind == "s3" else running_versitygw(_program()))
            props = {**server.props, "s3.bucket.name": server.make_bucket(), "s3.part.size": str(5 << 20)}
            yield ObjectTarget(kind, "S3SinkConnector", S3SinkConfig, props)
        elif kind == "gcs":
            google = stack.enter_context(running_gcs())
            props = {**google.props, "gcs.bucket.name": google.make_bucket(), "gcs.part.size": str(5 << 20)}
            yield ObjectTarget(kind, "GcsSinkConnector", GcsSinkConfig, props)
        elif kind == "sftp":
            (folder / "served").mkdir()
            ssh = stack.enter_context(running_asyncssh(folder / "served"))
            yield ObjectTarget(kind, "SftpSinkConnector", SftpSinkConfig, {**ssh.confluent_props, **_SFTP})
        else:
            azure = stack.enter_context(running_azurite())
            named = {"azblob.account.name": azure.account, "azblob.container.name": azure.make_container()}
            named["azblob.block.size"] = str(5 << 20)
            yield ObjectTarget(kind, "AzureBlobSinkConnector", AzureBlobSinkConfig, {**azure.props, **named})


def _program() -> str:
    return versitygw() or pytest.skip("versitygw is not built: make versitygw (it needs Go, and some minutes)")
