"""Redis on loopback: Debian's server, which keeps every write on its disk, alone, with replicas or as a cluster."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

from redis import Redis
from redis.exceptions import RedisError

from connect.errors import ConnectError
from equipment.ports import own_port
from equipment.servers.packages import unpacked
from equipment.servers.server_process import ServerProcess, die_with_parent
from equipment.waiting import wait_until

__all__ = ["PASSWORD", "RedisServer", "redis_cluster", "redis_program", "redis_server", "sentinel", "valkey_program"]

PASSWORD: Final = "t0p/s&cret"

_VALKEY_SUITE: Final = "trixie"
_READY_SECONDS: Final = 60.0
_POLL_SECONDS: Final = 0.02


def redis_program(name: str = "redis-server") -> tuple[str, dict[str, str]]:
    """Return a program of Redis, fetched if necessary, and its environment; a ``ConnectError`` says why that failed."""
    if found := shutil.which(name):
        return found, dict(os.environ)
    root = unpacked("redis-tools", "redis-server")
    libraries = [*root.glob("usr/lib/*-linux-gnu"), *root.glob("lib/*-linux-gnu")]
    return str(root / "usr/bin" / name), {**os.environ, "LD_LIBRARY_PATH": ":".join(map(str, libraries))}


def valkey_program() -> tuple[Sequence[str], dict[str, str]]:
    """Return the command of Valkey, fetched from the Debian release that has it, and its environment.

    It runs with the C library that came with it. A ``ConnectError`` says why it cannot be had.
    """
    root = unpacked("valkey-server", "valkey-tools", suite=_VALKEY_SUITE)
    loader = next(root.glob("usr/lib*/ld-linux-*.so.*"))
    libraries = next(root.glob("usr/lib/*-linux-gnu"))
    return (str(loader), "--library-path", str(libraries), str(root / "usr/bin/valkey-server")), dict(os.environ)


class RedisServer(ServerProcess):
    """A server, of Redis or Valkey, that can be killed, frozen and started again."""

    def __init__(self, folder: Path, *options: str, password: str | None = None, is_valkey: bool = False) -> None:
        self.port = own_port()
        self.password = password
        self._is_valkey = is_valkey
        self._folder = folder
        self._options: list[str] = [*options, *(("--requirepass", password) if password else ())]
        folder.mkdir(parents=True, exist_ok=True)

    @property
    def uri(self) -> str:
        """The value of ``redis.uri`` without credentials."""
        return f"redis://127.0.0.1:{self.port}"

    def client(self, **options: Any) -> Redis:
        """Return a client whose answers are texts unless asked otherwise."""
        given = {"decode_responses": True, "password": self.password, "protocol": 2, **options}
        return Redis(host="127.0.0.1", port=self.port, **given)

    def start(self) -> None:
        """Start the server and wait until it answers."""
        if self._is_valkey:
            program, environ = valkey_program()
        else:
            found, environ = redis_program()
            program = (found,)
        command = [
            *(*program, "--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self._folder)),
            *("--daemonize", "no", "--save", "", "--logfile", str(self._folder / "log"), "--databases", "16"),
            *self._options,
        ]
        self._run(command, environ)
        self._wait_until_ready()

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + _READY_SECONDS
        with self.client(socket_timeout=5) as client:
            while not _answers(client):
                if time.monotonic() > deadline:
                    log = (self._folder / "log").read_text(encoding="utf-8", errors="replace")[-2000:]
                    raise ConnectError(f"Redis does not start. The end of its log:\n{log}")
                time.sleep(_POLL_SECONDS)


DURABLE: Final = ("--appendonly", "yes", "--appendfsync", "always")
"""The options of a server that has on its disk what it has acknowledged."""


@contextmanager
def redis_server(*options: str, password: str | None = None, is_valkey: bool = False) -> Iterator[RedisServer]:
    """Run a server of one's own, and remove its data at the end."""
    folder = Path(tempfile.mkdtemp(prefix="sluice-redis-", dir="/tmp"))
    server = RedisServer(folder, *(options or DURABLE), password=password, is_valkey=is_valkey)
    try:
        server.start()
        yield server
    finally:
        server.kill()
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def redis_cluster(nodes: int = 3) -> Iterator[Sequence[RedisServer]]:
    """Run a cluster of masters without replicas."""
    with ExitStack() as servers:
        options = ("--cluster-enabled", "yes", "--cluster-node-timeout", "2000")
        running = [
            # The bus of a node has a port of its own, by default 10,000 above.
            servers.enter_context(redis_server(*options, "--cluster-port", str(own_port())))
            for _ in range(nodes)
        ]
        program, environ = redis_program("redis-cli")
        places = [f"127.0.0.1:{server.port}" for server in running]
        subprocess.run(
            [program, "--cluster", "create", *places, "--cluster-yes"], env=environ, check=True, capture_output=True
        )
        for server in running:
            with server.client() as client:
                wait_until("the cluster is up", lambda: "cluster_state:ok" in _info(client), _READY_SECONDS)
        yield running


def _info(client: Redis) -> str:
    answer: Any = client.execute_command("CLUSTER INFO")  # type: ignore[no-untyped-call]
    return "\n".join(f"{key}:{value}" for key, value in answer.items()) if isinstance(answer, dict) else str(answer)


@contextmanager
def sentinel(master: RedisServer, name: str = "mymaster") -> Iterator[int]:
    """Run a sentinel that knows a master, and return its port."""
    folder = Path(tempfile.mkdtemp(prefix="sluice-sentinel-", dir="/tmp"))
    port = own_port()
    config = folder / "sentinel.conf"
    config.write_text(f"port {port}\nbind 127.0.0.1\nsentinel monitor {name} 127.0.0.1 {master.port} 1\n")
    program, environ = redis_program()
    process = subprocess.Popen(
        [program, str(config), "--sentinel"],
        env=environ,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        preexec_fn=die_with_parent,  # noqa: PLW1509 - only a call of the C library
    )
    try:
        with Redis(port=port, protocol=2) as client:
            wait_until("the sentinel answers", lambda: _answers(client), _READY_SECONDS)
        yield port
    finally:
        process.kill()
        process.wait()
        shutil.rmtree(folder, ignore_errors=True)


def _answers(client: Redis) -> bool:
    try:
        return bool(client.ping())
    except (RedisError, OSError):
        return False
