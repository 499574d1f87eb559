"""``sluice migrate`` takes connectors of a running Java cluster over, with their offsets, and gives them back."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

import pytest
from click.testing import CliRunner, Result

from equipment.brokers.topics import create_topic, read_topic
from equipment.waiting import wait_until
from equipment.workers.distributed import DistributedWorker
from equipment.workers.java_connect import JavaConnect
from equipment.workers.java_plugins import compiled_plugin
from worker.cli.main import main

pytestmark = [pytest.mark.cluster, pytest.mark.integration, pytest.mark.thorough, pytest.mark.timeout(900)]

SOURCE = "org.apache.kafka.connect.file.FileStreamSourceConnector"
SINK = "org.apache.kafka.connect.file.FileStreamSinkConnector"
SLUICE = str(Path(sys.executable).with_name("sluice"))
STRINGS = "org.apache.kafka.connect.storage.StringConverter"


def cluster_props(topic: str) -> dict[str, str]:
    """The properties of a Java cluster with topics of its own."""
    return {
        "group.id": f"{topic}-java",
        **{f"{kind}.storage.topic": f"{topic}-java-{kind}" for kind in ("config", "offset", "status")},
        **{f"{kind}.storage.replication.factor": "1" for kind in ("config", "offset", "status")},
        "offset.flush.interval.ms": "500",
    }


def migrated(java: JavaConnect, ours: DistributedWorker, *arguments: str) -> Result:
    """The result of ``sluice migrate`` between the two."""
    return CliRunner().invoke(main, ["migrate", "--from", java.url, "--url", ours.url(), *arguments])


@contextmanager
def growing(file: Path) -> Iterator[list[str]]:
    """Append line after line to a file, without a rest; the lines so far."""
    lines: list[str] = []
    over = Event()

    def grow() -> None:
        with file.open("a", buffering=1) as stream:
            while not over.wait(0.01):
                line = f"line {len(lines)}"
                stream.write(f"{line}\n")
                lines.append(line)

    thread = Thread(target=grow)
    thread.start()
    try:
        yield lines
    finally:
        over.set()
        thread.join()


def values(bootstrap: str, topic: str) -> list[str]:
    """The values of a topic, in order."""
    return [message.value().decode() for message in read_topic(bootstrap, topic)]


def test_a_source_and_a_sink_go_over_and_come_back_without_a_line_lost_or_twice(
    java_connect: Callable[..., JavaConnect], bootstrap: str, tmp_path: Path, topic: str
) -> None:
    create_topic(bootstrap, topic)
    given, out = tmp_path / "in.txt", tmp_path / "out.txt"
    given.touch()
    java = java_connect(cluster_props(topic)).start()
    converters = {"key.converter": STRINGS, "value.converter": STRINGS}
    source = {"connector.class": SOURCE, "file": str(given), "topic": topic, **converters}
    source_name, sink_name = f"{topic}-source", f"{topic}-sink"
    java.create(source_name, source)
    java.create(sink_name, {"connector.class": SINK, "file": str(out), "topics": topic})
    java.create(
        f"{topic}-beat",
        {
            "connector.class": "org.apache.kafka.connect.mirror.MirrorHeartbeatConnector",
            "source.cluster.alias": "a",
            "target.cluster.alias": "b",
            "source.cluster.bootstrap.servers": bootstrap,
            "target.cluster.bootstrap.servers": bootstrap,
        },
        "STOPPED",
    )
    lines: list[str] = []

    def append_and_wait(count: int = 50) -> None:
        more = [f"line {number}" for number in range(len(lines), len(lines) + count)]
        with given.open("a") as stream:
            stream.writelines(f"{line}\n" for line in more)
        lines.extend(more)
        wait_until("all lines are out", lambda: out.read_text().splitlines()[-1:] == lines[-1:], seconds=120)

    wait_until("the sink has begun", out.exists, seconds=120)
    append_and_wait()
    ours = DistributedWorker(tmp_path / "ours", bootstrap, group=f"{topic}-ours").start()

    def migrate(*arguments: str) -> Result:
        return migrated(java, ours, *arguments)

    try:
        seen = {item["name"]: item for item in json.loads(migrate("-o", "json").stdout)}
        assert (seen[source_name]["verdict"], seen[source_name]["becomes"]) == (
            "ready",
            "connectors.file.FileStreamSourceConnector",
        )
        assert "--default key.converter=CLASS" in seen[sink_name]["reasons"][0]
        strings = ("--default", f"key.converter={STRINGS}", "--default", f"value.converter={STRINGS}")
        done = migrate(source_name, sink_name, *strings, "--apply", "--yes")
        assert done.exit_code == 0, done.output
        assert f"{source_name} is in this cluster; in the Java cluster it is stopped." in done.output
        assert java.status(source_name)["connector"]["state"] == "STOPPED"
        append_and_wait()
        assert json.loads(migrate(source_name, *strings, "-o", "json").stdout)[0]["verdict"] == "here"
        done = migrate(source_name, sink_name, "--back", "--yes")
        assert done.exit_code == 0, done.output
        assert ours.status(source_name)["connector"]["state"] == "STOPPED"
        append_and_wait()
        # Killed while a connector runs nowhere: the next run says how it goes on, and nothing is lost or doubled.
        command = [SLUICE, "migrate", "--from", java.url, "--url", ours.url(), source_name, "--apply", "--yes"]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_until(
            "it is stopped in Java", lambda: java.status(source_name)["connector"]["state"] == "STOPPED", seconds=120
        )
        process.kill()
        process.wait()
        assert ours.status(source_name)["connector"]["state"] == "STOPPED"
        done = migrate(source_name, "--apply", "--yes")
        assert f"sluice connectors resume {source_name}" in done.output
        resumed = CliRunner().invoke(main, ["connectors", "resume", source_name, "--url", ours.url()])
        assert resumed.exit_code == 0, resumed.output
        append_and_wait()
        assert out.read_text().splitlines() == lines
        assert values(bootstrap, topic) == lines
    finally:
        ours.close()


def test_a_cluster_under_load_goes_over_and_back_with_its_java_plugins(
    java_connect: Callable[..., JavaConnect], bootstrap: str, tmp_path: Path, topic: str
) -> None:
    counted = f"{topic}-counted"
    for name in (topic, counted):
        create_topic(bootstrap, name)
    given, out = tmp_path / "in.txt", tmp_path / "out.txt"
    given.touch()
    java = java_connect(cluster_props(topic))
    compiled_plugin(java.folder / "plugins", tmp_path / "there")
    compiled_plugin(java.folder / "plugins", tmp_path / "there", package="other")
    plugins = compiled_plugin(tmp_path / "plugins", tmp_path / "here")
    java.start()
    strings = {"key.converter": STRINGS, "value.converter": STRINGS}
    counting = {"count": "1000000", "pause.ms": "20", "topic": counted, "part": "0", "secret": "x", **strings}
    source, sink, plugin, missing = (f"{topic}-{name}" for name in ("source", "sink", "plugin", "missing"))
    java.create(source, {"connector.class": SOURCE, "file": str(given), "topic": topic, **strings})
    java.create(sink, {"connector.class": SINK, "file": str(out), "topics": topic, **strings})
    java.create(plugin, {"connector.class": "acme.CountingSource", **counting})
    java.create(missing, {"connector.class": "other.CountingSource", **counting, "topic": topic}, "STOPPED")
    ours = DistributedWorker(
        tmp_path / "ours", bootstrap, group=f"{topic}-ours", plugin_path=str(plugins), offset_flush_interval_ms="500"
    ).start()

    def wait_for_more(lines: list[str]) -> None:
        until, numbers = len(lines) + 100, len(values(bootstrap, counted)) + 100
        wait_until("more lines are out", lambda: out.exists() and out.read_text().count("\n") >= until, seconds=120)
        wait_until("it counts on", lambda: len(values(bootstrap, counted)) >= numbers, seconds=120)

    moved = (plugin, sink, source)
    try:
        with growing(given) as lines:
            wait_for_more(lines)
            seen = migrated(java, ours, "--apply", "--yes")
            assert seen.exit_code == 1, seen.output
            assert "other.CountingSource: nothing stands for it here" in seen.output
            assert [line for line in seen.output.splitlines() if "it is stopped" in line] == [
                f"{name} is in this cluster; in the Java cluster it is stopped." for name in moved
            ]
            wait_for_more(lines)
            seen = migrated(java, ours, "--back", "--yes")
            assert (seen.exit_code, seen.output.splitlines()) == (
                0,
                [f"{name} is in the Java cluster; in this cluster it is stopped." for name in moved],
            )
            wait_for_more(lines)
        wait_until("all lines are out", lambda: out.read_text().splitlines()[-1:] == lines[-1:], seconds=120)
        assert out.read_text().splitlines() == lines
        assert values(bootstrap, topic) == lines
        found = values(bootstrap, counted)
        assert found == [f"tally-{number}" for number in range(len(found))]
        assert java.status(missing)["connector"]["state"] == "STOPPED"
    finally:
        ours.close()
