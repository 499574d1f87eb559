"""RabbitMQ on loopback, from Debian's packages: one node, without plugins."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import pika

from connect.errors import ConnectError
from equipment.ports import own_port
from equipment.servers.packages import unpacked
from equipment.waiting import wait_until

__all__ = ["RabbitServer", "queue_name", "rabbitmq_program", "rabbitmq_server"]

_READY_SECONDS: Final = 180.0
_SYSTEM: Final = Path("/")
_SCRIPT: Final = "usr/lib/rabbitmq/bin/rabbitmq-server"
_ERLANG: Final = "usr/lib/erlang"
_BOLTS: Final = (
    # Without the daemon epmd, and without threads that wait busily.
    *("-start_epmd", "false", "+S", "1:1", "+sbwt", "none", "+sbwtdcpu", "none", "+sbwtdio", "none"),
)


_UNTIL_THE_PARENT_ENDS: Final = '"$0" </dev/null & read -r _; kill -9 0'
"""Runs a program, and kills its process group when the other end of the standard input is closed."""


def rabbitmq_program() -> Path:
    """The folder below which RabbitMQ and Erlang are; a ``ConnectError`` says why they cannot be had."""
    if (_SYSTEM / _SCRIPT).exists() and (_SYSTEM / _ERLANG).exists():
        return _SYSTEM
    root = unpacked("rabbitmq-server")
    if not (root / _SCRIPT).exists():
        raise ConnectError("Debian's rabbitmq-server has other files than expected: install it by apt-get.")
    return root


class RabbitServer:
    """A node that can be killed and started again, and keeps what is durable.

    Its users are ``guest``, who may do everything, ``poor``, who may do nothing in the virtual host ``/``, and
    ``strict``, who may do everything in the virtual host ``shop``.
    """

    def __init__(self, folder: Path, tls: Mapping[str, Path] | None = None, settings: Sequence[str] = ()) -> None:
        self.port = own_port()
        self.tls_port = own_port()
        self._folder = folder
        self._cluster_port = own_port()
        self._process: subprocess.Popen[bytes] | None = None
        for name in ("home", "data", "log"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        (folder / "enabled_plugins").write_text("[].\n")
        (folder / "definitions.json").write_text(json.dumps(_definitions()))
        (folder / "rabbitmq.conf").write_text("\n".join([*self._settings(tls), *settings]) + "\n")

    def _settings(self, tls: Mapping[str, Path] | None) -> Iterator[str]:
        yield f"listeners.tcp.1 = 127.0.0.1:{self.port}"
        yield f"load_definitions = {self._folder / 'definitions.json'}"
        yield "loopback_users = none"
        yield "log.file = false"
        yield "log.console = true"
        yield "disk_free_limit.absolute = 10MB"
        if tls is not None:
            yield f"listeners.ssl.1 = 127.0.0.1:{self.tls_port}"
            yield f"ssl_options.cacertfile = {tls['ca']}"
            yield f"ssl_options.certfile = {tls['chain']}"
            yield f"ssl_options.keyfile = {tls['key']}"
            yield "ssl_options.verify = verify_none"

    @property
    def props(self) -> dict[str, str]:
        """The keys with which a connector connects."""
        return {"rabbitmq.host": "127.0.0.1", "rabbitmq.port": str(self.port)}

    def connect(self, user: str = "guest", vhost: str = "/") -> pika.BlockingConnection:
        """A connection."""
        credentials = pika.PlainCredentials(user, user)
        return pika.BlockingConnection(
            pika.ConnectionParameters("127.0.0.1", self.port, vhost, credentials, heartbeat=0)
        )

    def start(self) -> None:
        """Start the node and wait until it takes connections."""
        root = rabbitmq_program()
        with (self._folder / "out").open("ab") as output:
            self._process = subprocess.Popen(
                ["/bin/sh", "-c", _UNTIL_THE_PARENT_ENDS, str(root / _SCRIPT)],
                env={**os.environ, **self._environ(root)},
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        wait_until("RabbitMQ takes connections", self._answers, _READY_SECONDS)

    def _environ(self, root: Path) -> dict[str, str]:
        folder = self._folder
        erlang = [*_BOLTS, "-erl_epmd_port", str(self._cluster_port)]
        environ = {
            "HOME": str(folder / "home"),
            "RABBITMQ_NODENAME": f"test{self.port}@localhost",
            "RABBITMQ_MNESIA_BASE": str(folder / "data"),
            "RABBITMQ_LOG_BASE": str(folder / "log"),
            "RABBITMQ_CONFIG_FILE": str(folder / "rabbitmq"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "enabled_plugins"),
            "RABBITMQ_DIST_PORT": str(self._cluster_port),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": " ".join(erlang),
        }
        if root != _SYSTEM:
            environ |= _relocated(root, folder)
        return environ

    def kill(self) -> None:
        """Kill the node as ``kill -9`` does, with the programs that it has started."""
        if self._process is not None:
            os.killpg(self._process.pid, signal.SIGKILL)
            if self._process.stdin is not None:
                self._process.stdin.close()
            self._process.wait()
            self._process = None

    @contextmanager
    def down(self) -> Iterator[None]:
        """Kill the node for the time of a ``with`` block."""
        self.kill()
        try:
            yield
        finally:
            self.start()

    def declare(self, queue: str, kind: str = "classic", **arguments: Any) -> str:
        """Make a durable queue, and return its name."""
        with self.connect() as connection:
            given = {"x-queue-type": kind, **{key.replace("_", "-"): value for key, value in arguments.items()}}
            connection.channel().queue_declare(queue, durable=True, arguments=given)
        return queue

    def delete(self, queue: str) -> None:
        """Delete a queue."""
        with self.connect() as connection:
            connection.channel().queue_delete(queue)

    def publish(self, queue: str, bodies: Sequence[bytes], **properties: Any) -> None:
        """Publish persistent messages to a queue; returns when they are confirmed."""
        with self.connect() as connection:
            channel = connection.channel()
            channel.tx_select()
            given = pika.BasicProperties(**{"delivery_mode": 2, **properties})
            for body in bodies:
                channel.basic_publish("", queue, body, given)
            channel.tx_commit()

    def take(self, queue: str, most: int = 1 << 30) -> list[tuple[Any, Any, bytes]]:
        """Take messages of a queue: how each was delivered, its properties and its body."""
        found: list[tuple[Any, Any, bytes]] = []
        with self.connect() as connection:
            channel = connection.channel()
            while len(found) < most:
                method, properties, body = channel.basic_get(queue, auto_ack=True)
                if method is None or body is None:
                    break
                found.append((method, properties, body))
        return found

    def waiting(self, queue: str) -> int:
        """How many messages of a queue are ready to be delivered."""
        with self.connect() as connection:
            return int(connection.channel().queue_declare(queue, passive=True).method.message_count)

    def _answers(self) -> bool:
        if self._process is not None and self._process.poll() is not None:
            raise ConnectError(f"RabbitMQ has ended: {(self._folder / 'out').read_text(errors='replace')[-2000:]}")
        try:
            with socket.create_connection(("127.0.0.1", self.port), 1):
                pass
            self.connect().close()
        except (OSError, pika.exceptions.AMQPError):
            return False
        return True


def _relocated(root: Path, folder: Path) -> dict[str, str]:
    """Return the environment of an Erlang that is not where it was built for: a program erl that knows the place."""
    erlang = root / _ERLANG
    runtime = next(erlang.glob("erts-*/bin"))
    shim = folder / "bin" / "erl"
    shim.parent.mkdir(exist_ok=True)
    shim.write_text(
        f'#!/bin/sh\nexport ROOTDIR={erlang} BINDIR={runtime} EMU=beam PROGNAME=erl\nexec {runtime}/erlexec "$@"\n'
    )
    shim.chmod(0o755)
    libraries = ":".join(map(str, root.glob("usr/lib/*-linux-gnu")))
    return {
        "PATH": f"{shim.parent}:{os.environ.get('PATH', '')}",
        "LD_LIBRARY_PATH": f"{libraries}:{os.environ.get('LD_LIBRARY_PATH', '')}".rstrip(":"),
    }


def _definitions() -> dict[str, Any]:
    everything = {"configure": ".*", "write": ".*", "read": ".*"}
    return {
        "users": [
            {"name": name, "password_hash": _hashed(name), "tags": tags}
            for name, tags in (("guest", ["administrator"]), ("poor", []), ("strict", []))
        ],
        "vhosts": [{"name": "/"}, {"name": "shop"}],
        "permissions": [
            {"user": "guest", "vhost": "/", **everything},
            {"user": "guest", "vhost": "shop", **everything},
            {"user": "poor", "vhost": "/", "configure": "", "write": "", "read": ""},
            {"user": "strict", "vhost": "shop", **everything},
        ],
    }


def _hashed(password: str) -> str:
    salt = b"salt"
    return base64.b64encode(salt + hashlib.sha256(salt + password.encode()).digest()).decode()


@contextmanager
def rabbitmq_server(tls: Mapping[str, Path] | None = None, settings: Sequence[str] = ()) -> Iterator[RabbitServer]:
    """Run a server of one's own, with more lines of configuration, and remove its data at the end."""
    folder = Path(tempfile.mkdtemp(prefix="sluice-rabbitmq-", dir="/tmp"))
    server = RabbitServer(folder, tls, settings)
    try:
        server.start()
        yield server
    finally:
        server.kill()
        shutil.rmtree(folder, ignore_errors=True)


def queue_name() -> str:
    """Return the name of a queue for one test."""
    return f"queue-{uuid4().hex[:12]}"
