"""A real Apache Kafka Connect worker, distributed or standalone, with its files in its own folder.

Its jars are pinned in ``java_connect.jars`` and kept beside those of the embedded broker.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import requests

from connect.internals.jvm.home import sluice_home
from connect.internals.jvm.jars import read_lock, resolve_jars
from connect.internals.jvm.java import Java, find_java
from equipment.ports import own_port
from equipment.waiting import wait_until
from worker.embedded.broker.archive import ClassArchive, class_archive, keep_archive
from worker.embedded.ports import HOST

__all__ = ["DEFAULT_JVM", "QUICK_JVM", "JavaConnect", "JavaConnectJars", "resolve_java_connect"]

QUICK_JVM: Final = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData")
"""For tests: a small heap, and no compiler that is still working when the test is over."""

DEFAULT_JVM: Final = (
    *("-Xms256M", "-Xmx2G", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20"),
    *("-XX:InitiatingHeapOccupancyPercent=35", "-XX:+ExplicitGCInvokesConcurrent", "-XX:MaxInlineLevel=15"),
    "-Djava.awt.headless=true",
)
"""The options of Kafka's own start scripts."""

_LOCK: Final = Path(__file__).with_name("java_connect.jars")
_MAIN: Final = "org.apache.kafka.connect.cli.Connect"
_PLUGIN: Final = "connect-file"
_LOGGING: Final = """\
rootLogger.level = info
rootLogger.appenderRef.console.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = [%d] %p %m (%c:%L)%n
"""


@dataclass(frozen=True, slots=True)
class JavaConnectJars:
    """The class path of the worker, and the jars of the plugin in a folder of ``plugin.path``."""

    java: Java
    class_path: tuple[Path, ...]
    plugin: tuple[Path, ...]


def resolve_java_connect() -> JavaConnectJars:
    """Java and the jars, downloaded if missing; a ``ConnectError`` says why that failed."""
    java = find_java()
    lock = read_lock(_LOCK)
    paths = dict(zip(lock, resolve_jars(lock, home=sluice_home()), strict=True))
    plugin = tuple(path for jar, path in paths.items() if jar.artifact == _PLUGIN)
    return JavaConnectJars(java, tuple(path for path in paths.values() if path not in plugin), plugin)


class JavaConnect:
    """One worker: distributed if its properties have a ``group.id``, else standalone with ``connectors``.

    It may be started again after it has ended, and then continues where it stopped, on the same address. If there is a
    folder ``classes``, the first worker that is stopped leaves an archive of its classes there, with which others start
    in half the time.
    """

    def __init__(
        self,
        folder: Path,
        jars: JavaConnectJars,
        props: Mapping[str, str],
        connectors: Sequence[Mapping[str, str]] = (),
        *,
        jvm: Sequence[str] = QUICK_JVM,
        classes: Path | None = None,
    ) -> None:
        self.folder = folder
        self.log_file = folder / "worker.log"
        self.url = f"http://{HOST}:{own_port()}/"
        self._process: subprocess.Popen[bytes] | None = None
        self._lay_out(jars)
        defaults = {
            "key.converter": "org.apache.kafka.connect.storage.StringConverter",
            "value.converter": "org.apache.kafka.connect.storage.StringConverter",
            "plugin.path": str(folder / "plugins"),
            "plugin.discovery": "service_load",
            "listeners": self.url.rstrip("/"),
            **({} if "group.id" in props else {"offset.storage.file.filename": str(folder / "offsets")}),
        }
        files = [self._write("worker.properties", defaults | dict(props))]
        files += [self._write(f"{connector['name']}.properties", connector) for connector in connectors]
        self._java = jars.java
        main = _MAIN + ("Distributed" if "group.id" in props else "Standalone")
        self._program = (*jvm, "-cp", os.pathsep.join(map(str, jars.class_path)), main)
        self._logging = f"-Dlog4j2.configurationFile={(folder / 'log4j2.properties').as_uri()}"
        self._files = tuple(map(str, files))
        self._classes = None if classes is None else classes / main
        self._archive: ClassArchive | None = None

    def start(self, *, wait: bool = True) -> JavaConnect:
        """Start the process and wait until its REST API answers, unless told not to."""
        flags: tuple[str, ...] = ()
        if self._classes is not None:
            self._archive = class_archive(self._classes, self._java, self._program)
            flags = (*self._archive.flags, "-Xlog:cds=off", "-Xlog:cds+dynamic=off")
        command = [str(self._java.executable), self._logging, *flags, *self._program, *self._files]
        with self.log_file.open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        if wait:
            wait_until("Java's worker is up", self._answers, seconds=90)
        return self

    def stop(self) -> None:
        """Stop the process with SIGTERM, as an operator would, and kill it if it does not end.

        Java's worker waits without limit for some of its own threads while it shuts down, and has been seen to wait for
        over 90 s on a busy machine.
        """
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            self.kill()
        if self._archive is not None and self._archive.partial is not None:
            keep_archive(self._archive.partial, self._archive.path)

    def kill(self) -> None:
        """Kill the process."""
        assert self._process is not None
        self._process.kill()
        self._process.wait(30)

    def close(self) -> None:
        """Stop everything that is running."""
        if self._process is not None and self._process.poll() is None:
            self.kill()

    @property
    def pid(self) -> int:
        """The worker's process."""
        assert self._process is not None
        return self._process.pid

    def ask(self, method: str, path: str, body: object = None) -> requests.Response:
        """Ask the REST API."""
        return requests.request(method, self.url + path.lstrip("/"), json=body, timeout=30)

    def create(self, name: str, props: Mapping[str, str], state: str = "RUNNING") -> None:
        """Create a connector in an initial state; retry while the cluster rebalances."""
        body = {"name": name, "config": dict(props), "initial_state": state}
        wait_until(f"{name} is created", lambda: self._succeeds("POST", "connectors", body))

    def delete(self, name: str) -> None:
        """Delete a connector; retry while the cluster rebalances."""
        wait_until(f"{name} is deleted", lambda: self._succeeds("DELETE", f"connectors/{name}"))

    def status(self, name: str) -> dict[str, Any]:
        """The status of a connector."""
        return dict(self.ask("GET", f"connectors/{name}/status").json())

    def wait_for_states(self, name: str, *states: str) -> None:
        """Wait until the connector and its tasks have these states."""

        def reached() -> bool:
            status = self.status(name)
            if "connector" not in status:
                return False
            return states == (status["connector"]["state"], *(task["state"] for task in status["tasks"]))

        wait_until(f"{name} is {states} in Java's worker", reached, seconds=60)

    def log(self) -> str:
        """Everything logged so far."""
        return self.log_file.read_text(errors="replace") if self.log_file.exists() else ""

    def _succeeds(self, method: str, path: str, body: object = None) -> bool:
        answer = self.ask(method, path, body)
        assert answer.ok or answer.status_code in {409, 500}, answer.text
        return answer.ok

    def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, f"Java's worker ended while it started:\n{self.log()[-5000:]}"
        try:
            return requests.get(self.url, timeout=5).ok
        except requests.RequestException:
            return False

    def _lay_out(self, jars: JavaConnectJars) -> None:
        plugin = self.folder / "plugins" / "plugin"
        plugin.mkdir(parents=True, exist_ok=True)
        for jar in jars.plugin:
            shutil.copy(jar, plugin)
        (self.folder / "log4j2.properties").write_text(_LOGGING)

    def _write(self, name: str, props: Mapping[str, str]) -> Path:
        file = self.folder / name
        text = "".join(f"{key}={value}\n" for key, value in props.items())
        file.write_text(text.replace("\\", "\\\\"))
        return file
