"""Mosquitto on loopback, an MQTT server of Debian."""

from __future__ import annotations

import os
import queue
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from paho.mqtt import client as mqtt
from paho.mqtt.enums import CallbackAPIVersion

from connect.errors import ConnectError
from equipment.ports import own_port
from equipment.servers.packages import unpacked
from equipment.servers.server_process import die_with_parent
from equipment.waiting import wait_until
from worker.embedded.ports import is_free

__all__ = ["MosquittoServer", "Subscriber", "mosquitto_programs", "mosquitto_server", "topic_name"]

_SYSTEM: Final = Path("/")
_SERVER: Final = "usr/sbin/mosquitto"
_PASSWORDS: Final = "usr/bin/mosquitto_passwd"
_NEWER: Final = "trixie"
USER, SECRET = "device", "geheim"


@dataclass(frozen=True, slots=True)
class _Programs:
    """The server's programs below a folder, and what comes before them in their commands."""

    root: Path
    loader: Sequence[str]
    environ: Mapping[str, str]

    def command(self, program: str, *options: str | Path) -> Sequence[str | Path]:
        return (*self.loader, self.root / program, *options)


def mosquitto_programs(*, is_newer: bool = False) -> _Programs:
    """Debian 12's mosquitto 2.0.11, or Debian 13's with the C library that came with it.

    A ``ConnectError`` says why it cannot be had.
    """
    if not is_newer and (_SYSTEM / _SERVER).exists():
        return _Programs(_SYSTEM, (), os.environ)
    root = unpacked("mosquitto", suite=_NEWER if is_newer else None)
    libraries = ":".join(map(str, root.glob("usr/lib/*-linux-gnu")))
    if is_newer:
        loader = next(root.glob("usr/lib*/ld-linux-*.so.*"))
        return _Programs(root, (str(loader), "--library-path", libraries), os.environ)
    path = f"{libraries}:{os.environ.get('LD_LIBRARY_PATH', '')}".rstrip(":")
    return _Programs(root, (), {**os.environ, "LD_LIBRARY_PATH": path})


class MosquittoServer:
    """A server that can be ended and started again, and saves its sessions when it is ended in good order.

    ``window`` is how many messages it sends to a client, or takes from it, before they are acknowledged; 0 for any
    number. It ends the connection over a packet of more than ``largest_bytes``, if that is not 0. Anybody may connect;
    with ``rules`` the user ``device`` may read and write ``open/#`` alone. With rules it drops, after a restart, what
    is published for a session whose client has not come back yet.
    """

    def __init__(
        self,
        folder: Path,
        tls: Mapping[str, Path] | None = None,
        *,
        window: int = 0,
        is_newer: bool = False,
        rules: bool = True,
        largest_bytes: int = 0,
    ) -> None:
        self.port, self.tls_port = own_port(), own_port()
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self._programs = mosquitto_programs(is_newer=is_newer)
        passwords = folder / "passwords"
        passwords.touch(mode=0o600)
        hashing = self._programs.command(_PASSWORDS, "-b", passwords, USER, SECRET)
        subprocess.run(hashing, check=True, env=self._programs.environ)
        (folder / "acl").write_text(f"topic readwrite #\nuser {USER}\ntopic readwrite open/#\n")
        lines = [
            f"listener {self.port} 127.0.0.1",
            "allow_anonymous true",
            f"password_file {passwords}",
            *([f"acl_file {folder / 'acl'}"] if rules else []),
            "persistence true",
            f"persistence_location {folder}/",
            "max_queued_messages 0",
            f"max_inflight_messages {window}",
            *([f"max_packet_size {largest_bytes}"] if largest_bytes else []),
        ]
        if tls is not None:
            lines += [
                f"listener {self.tls_port} 127.0.0.1",
                f"cafile {tls['ca']}",
                f"certfile {tls['chain']}",
                f"keyfile {tls['key']}",
            ]
        if not os.geteuid():
            lines.append("user root")
        (folder / "mosquitto.conf").write_text("\n".join(lines) + "\n")

    @property
    def props(self) -> dict[str, str]:
        """The keys with which a connector connects."""
        return {"mqtt.server.uri": f"tcp://127.0.0.1:{self.port}"}

    def start(self) -> None:
        """Start the server and wait until it takes connections."""
        with (self._folder / "out").open("ab") as output:
            self._process = subprocess.Popen(
                self._programs.command(_SERVER, "-c", self._folder / "mosquitto.conf"),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=self._programs.environ,
                preexec_fn=die_with_parent,  # noqa: PLW1509 - only a call of the C library
            )
        wait_until("mosquitto listens", self._listens, 120)

    def _listens(self) -> bool:
        if self._process is not None and self._process.poll() is not None:
            raise ConnectError(f"mosquitto has ended: {(self._folder / 'out').read_text()[-1000:]}")
        return not is_free(self.port)

    def kill(self, number: int = signal.SIGKILL) -> None:
        """Kill the server, or end it with another signal."""
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait()
            self._process = None

    @contextmanager
    def down(self, number: int = signal.SIGKILL) -> Iterator[None]:
        """End the server for the time of a ``with`` block."""
        self.kill(number)
        try:
            yield
        finally:
            self.start()

    def client(self, client_id: str = "", *, is_clean: bool = True, version: Any = mqtt.MQTTv5) -> mqtt.Client:
        """A client whose thread runs."""
        options: dict[str, Any] = {"clean_session": is_clean} if version == mqtt.MQTTv311 else {}
        client = mqtt.Client(CallbackAPIVersion.VERSION2, client_id=client_id, protocol=version, **options)
        client.connect("127.0.0.1", self.port)
        client.loop_start()
        return client

    def publish(self, topic: str, payloads: Sequence[bytes], qos: int = 1, **given: Any) -> None:
        """Publish messages; returns when they are acknowledged."""
        client = self.client()
        try:
            for info in [client.publish(topic, payload, qos, **given) for payload in payloads]:
                info.wait_for_publish(60)
        finally:
            client.disconnect()
            client.loop_stop()


class Subscriber:
    """Receives messages with a session that outlives the server."""

    def __init__(self, server: MosquittoServer, topic_filter: str, qos: int = 2) -> None:
        self.messages: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._found: list[Any] = []
        self._client = server.client(f"subscriber-{uuid4().hex[:8]}", is_clean=False, version=mqtt.MQTTv311)
        self._client.reconnect_delay_set(1, 1)
        self._client.on_message = lambda _client, _data, message: self.messages.put(message)
        done: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._client.on_subscribe = lambda *_: done.put(1)
        wait_until("it is connected", self._client.is_connected, 120)
        self._client.subscribe(topic_filter, qos)
        done.get(timeout=120)

    @property
    def found(self) -> list[Any]:
        """The messages that came."""
        while not self.messages.empty():
            self._found.append(self.messages.get())
        return self._found

    @property
    def payloads(self) -> list[bytes]:
        """What the messages say."""
        return [message.payload for message in self.found]

    def close(self) -> None:
        """Disconnect."""
        self._client.disconnect()
        self._client.loop_stop()


@contextmanager
def mosquitto_server(
    tls: Mapping[str, Path] | None = None,
    *,
    window: int = 0,
    is_newer: bool = False,
    rules: bool = True,
    largest_bytes: int = 0,
) -> Iterator[MosquittoServer]:
    """Run a server of one's own, and remove its data at the end."""
    folder = Path(tempfile.mkdtemp(prefix="sluice-mosquitto-", dir="/tmp"))
    try:
        server = MosquittoServer(
            folder, tls, window=window, is_newer=is_newer, rules=rules, largest_bytes=largest_bytes
        )
        server.start()
        try:
            yield server
        finally:
            server.kill()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def topic_name() -> str:
    """Return the name of an MQTT topic for one test."""
    return f"test/{uuid4().hex[:12]}"
