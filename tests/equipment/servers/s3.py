"""S3 servers: moto, which is always available, and versitygw, which stores objects as files."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import boto3
import requests

from equipment.ports import own_port
from equipment.waiting import wait_until
from worker.embedded.ports import HOST

__all__ = ["S3Server", "running_moto", "running_versitygw", "versitygw"]

_KEY: Final = "test-key"
_SECRET: Final = "test/secret+of+s3"
_REGION: Final = "eu-central-1"
_READY_SECONDS: Final = 60.0
_PROGRAMS: Final = Path.home() / ".local/share/sluice/bin"
_MOTO: Final = Path(__file__).parents[1] / "scripts/moto_server.py"


@dataclass(frozen=True, slots=True)
class S3Server:
    """A server on loopback, and a bucket in it."""

    endpoint: str
    bucket: str
    product: str = "moto"

    @property
    def props(self) -> dict[str, str]:
        """The connector keys to reach it."""
        return {
            "s3.endpoint": self.endpoint,
            "s3.region": _REGION,
            "aws.access.key.id": _KEY,
            "aws.secret.access.key": _SECRET,
        }

    def client(self, service: str = "s3") -> Any:
        """A client of the server; moto has other services, too."""
        return boto3.client(
            service,
            endpoint_url=self.endpoint,
            region_name=_REGION,
            aws_access_key_id=_KEY,
            aws_secret_access_key=_SECRET,
        )

    def make_bucket(self) -> str:
        """Create another bucket."""
        name = f"test-{uuid4().hex[:12]}"
        self.client().create_bucket(Bucket=name, CreateBucketConfiguration={"LocationConstraint": _REGION})
        return name


@contextmanager
def running_moto() -> Iterator[S3Server]:
    """A server that keeps objects in memory, while the ``with`` block runs."""
    port = own_port()
    with _running([sys.executable, str(_MOTO), HOST, str(port)], {"MOTO_PORT": str(port)}, port) as server:
        yield server


def versitygw() -> str | None:
    """The program, if ``make versitygw`` has built it, or it is on the ``PATH`` or at the path in
    ``SLUICE_TEST_VERSITYGW``.
    """
    places = f"{os.environ.get('PATH', '')}{os.pathsep}{_PROGRAMS}"
    return os.environ.get("SLUICE_TEST_VERSITYGW") or shutil.which("versitygw", path=places)


@contextmanager
def running_versitygw(program: str) -> Iterator[S3Server]:
    """A server that keeps objects as files, while the ``with`` block runs."""
    port = own_port()
    environ = {"ROOT_ACCESS_KEY": _KEY, "ROOT_SECRET_KEY": _SECRET}
    with tempfile.TemporaryDirectory(prefix="sluice-versitygw-") as folder:
        command = [program, "--region", _REGION, "-p", f"{HOST}:{port}", "posix", folder]
        with _running(command, environ, port) as server:
            yield server


@contextmanager
def _running(command: list[str], environ: dict[str, str], port: int) -> Iterator[S3Server]:
    endpoint = f"http://{HOST}:{port}"
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, **environ})
        product = "versitygw" if "posix" in command else "moto"
        try:
            wait_until(f"{command[0]} answers", lambda: _answers(process, endpoint), seconds=_READY_SECONDS)
            yield S3Server(endpoint, S3Server(endpoint, "").make_bucket(), product)
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
