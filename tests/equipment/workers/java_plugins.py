"""Java plugins for tests: Kafka's own file connectors, and one that is compiled in the test with ``javac``."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import tarfile
import zipfile
from pathlib import Path
from typing import Final

import pytest

from connect.errors import ConnectError
from connect.internals.jvm.home import sluice_home
from connect.internals.jvm.jars import read_lock, resolve_jars
from equipment.waiting import wait_until
from equipment.workers.java_connect import resolve_java_connect
from equipment.workers.processes import command_line, descendants
from equipment.workers.standalone import StandaloneWorker

__all__ = ["compiled_plugin", "downloaded_plugin", "file_plugin", "jvm_of", "jvms", "kill_jvm", "listens"]

_SOURCES: Final = Path(__file__).parents[1] / "java_plugin" / "acme"
_SERVICES: Final = {
    "org.apache.kafka.connect.source.SourceConnector": "acme.CountingSource",
    "org.apache.kafka.connect.sink.SinkConnector": "acme.CollectingSink",
    "org.apache.kafka.connect.transforms.Transformation": "acme.Shout",
    "org.apache.kafka.connect.storage.Converter": "acme.AngleConverter",
}
_TALLY: Final = (
    'package acme;\n\n/** What two plugins have by this name differs. */\npublic class Tally {{\n    {} = "{}";\n}}\n'
)
_CONSTANT: Final = "public static final String NAME"
_VERSION: Final = "7.1"
_GATEWAY: Final = "py4j.GatewayServer"
_LISTENING: Final = "0A"
"""The state of a socket in Linux's table of them."""


def file_plugin(plugin_path: Path) -> Path:
    """Put Kafka's file connectors into a folder of ``plugin_path``, and return that path."""
    folder = plugin_path / "file"
    folder.mkdir(parents=True)
    for jar in resolve_java_connect().plugin:
        shutil.copy(jar, folder)
    return plugin_path


def downloaded_plugin(plugin_path: Path, name: str) -> Path:
    """Put what ``NAME.jars`` here lists, jars and archives of them, into a folder of ``plugin_path``; return that path.

    Where it cannot be had the test is skipped.
    """
    folder = plugin_path / name
    folder.mkdir(parents=True)
    try:
        files = resolve_jars(read_lock(Path(__file__).with_name(f"{name}.jars")), home=sluice_home())
    except ConnectError as error:
        pytest.skip(f"no {name} here: {error}")
    for file in files:
        if file.suffix == ".jar":
            shutil.copy(file, folder)
        else:
            with tarfile.open(file) as archive:
                archive.extractall(folder, filter="data")
    return plugin_path


def compiled_plugin(
    plugin_path: Path, work: Path, *, tally: str = "tally", package: str = "acme", version: str = _VERSION
) -> Path:
    """Compile the plugin in ``equipment/java_plugin`` into a folder of ``plugin_path``, and return that path.

    ``tally`` is what its class ``Tally`` says, which other plugins may have, too; ``package`` takes the place of
    ``acme`` in the names of all classes but that one. ``version`` is that of the jar, with which those of its classes
    begin.
    """
    if (javac := shutil.which("javac")) is None:
        pytest.skip("There is no javac: apt-get install openjdk-17-jdk-headless")
    sources = work / f"sources-{package}-{version}"
    shutil.copytree(_SOURCES, sources / package)
    for file in (sources / package).iterdir():
        text = file.read_text().replace("package acme;", f"package {package};").replace(f'"{_VERSION}', f'"{version}')
        file.write_text(text.replace("import java.util.Map;", "import java.util.Map;\nimport acme.Tally;", 1))
    (sources / "acme").mkdir(exist_ok=True)
    (sources / "acme" / "Tally.java").write_text(_TALLY.format(_CONSTANT, tally))
    classes = work / f"classes-{package}-{version}"
    class_path = os.pathsep.join(map(str, resolve_java_connect().class_path))
    files = map(str, sorted(sources.rglob("*.java")))
    subprocess.run([javac, "--release", "17", "-nowarn", "-cp", class_path, "-d", str(classes), *files], check=True)
    folder = plugin_path / f"{package}-{version}"
    folder.mkdir(parents=True)
    with zipfile.ZipFile(folder / f"{package}-{version}.jar", "w") as archive:
        for file in sorted(classes.rglob("*.class")):
            archive.write(file, file.relative_to(classes))
        for service, name in _SERVICES.items():
            archive.writestr(f"META-INF/services/{service}", name.replace("acme.", f"{package}.", 1))
    return plugin_path


def jvms(pid: int) -> list[int]:
    """The JVMs for Java plugins below a process."""
    return [below for below in descendants(pid) if _GATEWAY in command_line(below)]


def jvm_of(worker: StandaloneWorker, connector: str, task: int = 0) -> int | None:
    """The JVM that runs a task, if that is there now."""
    runs = re.findall(rf"process (\d+) runs {re.escape(connector)}\|task-{task} ", worker.log())
    return next(iter(jvms(int(runs[-1]))), None) if runs else None


def kill_jvm(worker: StandaloneWorker, connector: str) -> int:
    """Kill the JVM of a connector's task, once it is there, and return its process id."""
    pid = wait_until("the task has a JVM", lambda: jvm_of(worker, connector), seconds=120)
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    return pid


def listens(pid: int) -> bool:
    """Whether a process can be called over the network."""
    sockets = [line.split() for line in Path("/proc/net/tcp6").read_text().splitlines()[1:]]
    sockets += [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    listening = {f"socket:[{fields[9]}]" for fields in sockets if fields[3] == _LISTENING}
    try:
        return any(str(each.readlink()) in listening for each in Path(f"/proc/{pid}/fd").iterdir())
    except FileNotFoundError:
        return False
