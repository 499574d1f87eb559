"""``sluice migrate`` takes connectors of a running Java cluster over, with their offsets, and gives them back."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from equipment.brokers.topics import create_topic, read_topic
from equipment.waiting import wait_until
from equipment.workers.distributed import DistributedWorker
from equipment.workers.java_connect import JavaConnect
from worker.cli.main import main

pytestmark = [pytest.mark.cluster, pytest.mark.integration, pytest.mark.thorough, pytest.mark.timeout(400)]

SOURCE = "org.apache.kafka.connect.file.FileStreamSourceConnector"
SINK = "org.apache.kafka.connect.file.FileStreamSinkConnector"
SLUICE = str(Path(sys.executable).with_name("sluice"))
STRINGS = "org.apache.kafka.connect.storage.StringConverter"


def test_a_source_and_a_sink_go_over_and_come_back_without_a_line_lost_or_twice(
    java_connect: Callable[..., JavaConnect], bootstrap: str, tmp_path: Path, topic: str
) -> None:
    create_topic(bootstrap, topic)
    given, out = tmp_path / "in.txt", tmp_path / "out.txt"
    given.touch()
    props = {
        "group.id": f"{topic}-java",
        **{f"{kind}.storage.topic": f"{topic}-java-{kind}" for kind in ("config", "offset", "status")},
        **{f"{kind}.storage.replication.factor": "1" for kind in ("config", "offset", "status")},
        "offset.flush.interval.ms": "500",
    }
    java = java_connect(props).start()
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
        return CliRunner().invoke(main, ["migrate", "--from", java.url, "--url", ours.url(), *arguments])

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
        assert [message.value().decode() for message in read_topic(bootstrap, topic)] == lines
    finally:
        ours.close()
