"""An emulator of Azure Blob Storage: Azurite, an npm package, in a Node process."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import requests
from azure.storage.blob import (
    AccountSasPermissions,
    BlobServiceClient,
    ResourceTypes,
    generate_account_sas,
)

from equipment.ports import own_port
from equipment.servers.node_packages import installed_package
from equipment.waiting import wait_until
from worker.embedded.ports import HOST

__all__ = ["AzureServer", "running_azurite"]

_FILES: Final = Path(__file__).with_name("azurite")
_PROGRAM: Final = "node_modules/azurite/dist/src/blob/main.js"
_ACCOUNT: Final = "devstoreaccount1"
# The well-known account of every Azurite, whose key is public.
_KEY: Final = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
_READY_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True)
class AzureServer:
    """A server on loopback, and a container in it."""

    endpoint: str
    container: str
    account: str = _ACCOUNT
    key: str = field(default=_KEY, repr=False)

    @property
    def props(self) -> Mapping[str, str]:
        """The connector keys to reach it."""
        return {"azblob.endpoint": self.endpoint, "azblob.account.key": self.key}

    @property
    def connection_string(self) -> str:
        """The connection string that Azure's portal would show."""
        return f"AccountName={self.account};AccountKey={self.key};BlobEndpoint={self.endpoint};"

    def url(self, path: str, container: str | None = None) -> str:
        """The URL of a folder, in the form of ``store.url``."""
        return f"abfs://{container or self.container}@{self.account}.dfs.core.windows.net/{path}"

    def token(self) -> str:
        """A shared access signature of the account, valid for an hour."""
        return generate_account_sas(
            self.account,
            self.key,
            ResourceTypes(container=True, object=True),
            AccountSasPermissions(read=True, write=True, delete=True, list=True, create=True),
            datetime.now(UTC) + timedelta(hours=1),
        )

    def client(self, container: str | None = None) -> Any:
        """A client for a container."""
        service = BlobServiceClient(self.endpoint, credential=self.key)
        return service.get_container_client(container or self.container)

    def make_container(self) -> str:
        """Create another container."""
        name = f"test-{uuid4().hex[:12]}"
        self.client(name).create_container()
        return name


@contextmanager
def running_azurite() -> Iterator[AzureServer]:
    """A server that keeps blobs in memory, while the ``with`` block runs. A ``ConnectError`` says why it cannot run."""
    folder, port = installed_package("azurite", _FILES), own_port()
    # The client may be newer than the server.
    options = ["--inMemoryPersistence", "--silent", "--skipApiVersionCheck", "--disableTelemetry"]
    command = ["node", _PROGRAM, *options, "--blobHost", HOST, "--blobPort", str(port)]
    endpoint = f"http://{HOST}:{port}/{_ACCOUNT}"
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log)
        try:
            wait_until("Azurite answers", lambda: _answers(process, endpoint), seconds=_READY_SECONDS)
            yield AzureServer(endpoint, AzureServer(endpoint, "").make_container())
        finally:
            process.kill()
            process.wait()


def _answers(process: subprocess.Popen[bytes], endpoint: str) -> bool:
    assert process.poll() is None
    try:
        requests.get(endpoint, timeout=5)
    except requests.ConnectionError:
        return False
    return True
