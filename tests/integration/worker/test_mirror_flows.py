"""``sluice mirror`` as a process: flows that run, are killed and refused. The flow's connectors are those of files."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from equipment.waiting import wait_until
from equipment.workers.mirror_node import MirrorNode


@pytest.fixture
def props(bootstrap: str, topic: str, tmp_path: Path) -> dict[str, str]:
    """A file whose flow runs connectors that read a file of three lines, and so need no second cluster."""
    lines = tmp_path / "lines"
    lines.write_text("a\nb\nc\n")
    alias = topic.replace(".", "-")[-20:]
    text = "org.apache.kafka.connect.storage.StringConverter"
    own = {"connector.class": "FileStreamSource", "file": str(lines), "topic": topic, "value.converter": text}
    return {
        "clusters": f"{alias},B",
        f"{alias}.bootstrap.servers": bootstrap,
        "B.bootstrap.servers": bootstrap,
        "B.session.timeout.ms": "6000",
        "B.heartbeat.interval.ms": "1000",
        "B.scheduled.rebalance.max.delay.ms": "0",
        **{f"{kind}.storage.replication.factor": "1" for kind in ("config", "offset", "status")},
        "offset.storage.partitions": "1",
        "status.storage.partitions": "1",
        f"{alias}->B.enabled": "true",
        **{f"{alias}->B.{key}": value for key, value in own.items()},
        "listeners": "http://127.0.0.1:0",
    }


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[Any]:
    """Starts drivers."""
    with ExitStack() as stack:

        def start(name: str, props: dict[str, str]) -> MirrorNode:
            node = MirrorNode(tmp_path / name, props)
            stack.callback(node.close)
            return node

        yield start


def _states(node: MirrorNode, path: str) -> dict[str, list[str]]:
    found = node.get(f"{path}/connectors?expand=status") or {}
    return {
        name: [task["state"] for task in (views.get("status") or {"tasks": []})["tasks"]]
        for name, views in found.items()
    }


def test_flows_run_on_two_nodes_survive_a_kill_and_stop(nodes: Any, props: dict[str, str]) -> None:
    running = {
        name: ["RUNNING"] for name in ("MirrorCheckpointConnector", "MirrorHeartbeatConnector", "MirrorSourceConnector")
    }
    # The second node has no listeners: it is reached by the address that its worker announces.
    first = nodes("first", props)
    wait_until("the first serves", first.url, seconds=90)
    flow = wait_until("its flow is up", lambda: (first.get("/flows") or [{}])[0].get("path"), seconds=90)
    wait_until("its connectors run", lambda: _states(first, flow) == running, seconds=120)
    second = nodes("second", {key: value for key, value in props.items() if key != "listeners"})

    def owners() -> int:
        found = first.get(f"{flow}/connectors?expand=status") or {}
        tasks = [task for views in found.values() for task in (views.get("status") or {"tasks": []})["tasks"]]
        return len({task["worker_id"] for task in tasks if task["state"] == "RUNNING"}) if len(tasks) == 3 else 0

    wait_until("both nodes run tasks", lambda: owners() == 2, seconds=120)
    pid = int(re.findall(r"pid (\d+)", first.log)[-1])
    os.kill(pid, signal.SIGKILL)
    wait_until("its flow is started again", lambda: "is restarted in 1 s" in first.log, seconds=60)
    wait_until("it runs again", lambda: _states(first, flow) == running, seconds=120)
    assert [second.stop(), first.stop()] == [0, 0]


def test_a_refused_connector_ends_the_driver_and_says_why(nodes: Any, props: dict[str, str]) -> None:
    wrong = {key: value for key, value in props.items() if not key.endswith(".topic")}
    node = nodes("wrong", wrong)
    assert node.process.wait(120) == 2
    assert "of this flow was refused" in node.log
    assert "topic" in node.log
