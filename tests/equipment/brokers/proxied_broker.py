"""A broker for one test, with a listener for each client behind a relay that can be cut."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from connect.internals.jvm.home import sluice_home
from connect.internals.jvm.java import find_java
from equipment.brokers.proxy import Proxy
from equipment.ports import own_port
from equipment.waiting import wait_until
from worker.embedded.broker.archive import class_archive
from worker.embedded.broker.folder import broker_folder, format_storage
from worker.embedded.broker.launch import is_ready
from worker.embedded.broker.settings import Ports, render_properties, server_properties
from worker.embedded.ports import HOST
from worker.embedded.process import JVM_FLAGS

__all__ = ["ProxiedBroker"]


class ProxiedBroker:
    """A broker for ``clients``: each reaches it only at its own port, which the broker also advertises to it.

    It may be killed and started again with the same data.
    """

    def __init__(self, folder: Path, jars: Sequence[Path], clients: int) -> None:
        folder.mkdir(parents=True)
        self._place = broker_folder(folder)
        self._jars = jars
        self._direct = Ports(own_port(), own_port())
        self._relayed = {own_port(): own_port() for _ in range(clients)}
        self._ports = list(self._relayed)
        self._process: subprocess.Popen[bytes] | None = None
        self.proxy = Proxy(self._relayed)

    @classmethod
    @contextmanager
    def running(cls, folder: Path, jars: Sequence[Path], clients: int) -> Iterator[ProxiedBroker]:
        """A broker that is started, and closed at the end."""
        broker = cls(folder, jars, clients)
        try:
            broker.start()
            yield broker
        finally:
            broker.close()

    @property
    def bootstrap(self) -> str:
        """The address for the test itself, which bypasses the relays."""
        return self._direct.bootstrap_servers

    def port(self, client: int) -> int:
        """The port of a client, for ``proxy``."""
        return self._ports[client]

    def bootstrap_of(self, client: int) -> str:
        """The address for a client."""
        return f"{HOST}:{self.port(client)}"

    def start(self) -> None:
        """Start it and wait until it is ready."""
        format_storage(self._place.data)
        self._place.properties.write_text(render_properties(self._properties()), encoding="ascii")
        java, class_path = find_java(), os.pathsep.join(map(str, self._jars))
        archive = class_archive(sluice_home() / "archives", java, (*JVM_FLAGS, class_path))
        # It is killed, and so leaves no archive of its own.
        flags = (*JVM_FLAGS, *archive.flags) if archive.partial is None else JVM_FLAGS
        command = [str(java.executable), "-Xmx256m", *flags, "-cp", class_path]
        command += ["kafka.Kafka", str(self._place.properties)]
        with self._place.log.open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        wait_until("the broker is ready", lambda: is_ready(self._direct.broker), seconds=90)

    def freeze(self) -> None:
        """Let it hang: it keeps its connections, and answers nothing."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let a frozen broker go on."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """Kill it at once."""
        assert self._process is not None
        self._process.send_signal(signal.SIGKILL)
        self._process.wait(30)

    def log_of(self, topic: str, partition: int = 0) -> Path:
        """The first log segment of a partition."""
        return self._place.data / f"{topic}-{partition}" / f"{0:020d}.log"

    def close(self) -> None:
        """Stop everything that is running."""
        if self._process is not None and self._process.poll() is None:
            self.kill()
        self.proxy.close()

    def _properties(self) -> dict[str, str]:
        properties = server_properties(self._direct, self._place.data, {})
        for number, (relay, port) in enumerate(self._relayed.items()):
            properties["listeners"] += f",RELAY{number}://{HOST}:{port}"
            properties["advertised.listeners"] += f",RELAY{number}://{HOST}:{relay}"
            properties["listener.security.protocol.map"] += f",RELAY{number}:PLAINTEXT"
        return properties
