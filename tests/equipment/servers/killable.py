"""A database server of one test's own, which may be killed with all its processes, and started again."""

from __future__ import annotations

import os
import pwd
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from connect.errors import ConnectError
from equipment.ports import own_port
from equipment.servers.keeper import identity
from equipment.servers.lease import Server
from equipment.servers.products import Product
from equipment.waiting import wait_until

__all__ = ["KillableServer", "killable_server"]

_READY_SECONDS = 60.0


class KillableServer:
    """A server. It is durable against kills of its processes: what it has committed is in the system's cache."""

    def __init__(self, product: Product, data: Path, options: Sequence[str]) -> None:
        account = pwd.getpwnam(product.user())
        os.chown(data, account.pw_uid, account.pw_gid)
        product.initialise(data)
        self._product = product
        self._data = data
        self._port = own_port()
        self._options = options
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def server(self) -> Server:
        """How to connect to it."""
        return Server(self._product.name, self._product.scheme, self._port, 0, str(self._data))

    def start(self) -> None:
        """Start the server, and wait until it takes connections."""
        with (self._data / "server.log").open("ab") as log:
            self._process = subprocess.Popen(
                [*self._product.command(self._data, self._port), *self._options],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self._data,
                start_new_session=True,
                **identity(self._product.user()),
            )
        wait_until("the database takes connections", self._answers, _READY_SECONDS)

    def kill(self) -> None:
        """Kill all its processes."""
        assert self._process is not None
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def _answers(self) -> bool:
        try:
            self.server.connect().close()
        except Exception:
            return False
        return True


@contextmanager
def killable_server(product: Product, *options: str) -> Iterator[KillableServer]:
    """Start a server that is killed at the end; ``options`` are added to its command."""
    try:
        product.binary()
    except ConnectError as error:
        pytest.skip(f"no {product.name} here: {error}")
    with TemporaryDirectory(prefix=f"sluice-{product.name}-", dir="/tmp") as folder:
        Path(folder).chmod(0o755)
        server = KillableServer(product, Path(folder), options)
        server.start()
        try:
            yield server
        finally:
            server.kill()
