"""Connectors of a real worker that share a process, and one among them that keeps a core busy."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

import pytest
import requests

import equipment
from equipment.brokers.topics import create_topic, read_topic
from equipment.waiting import wait_until
from equipment.workers.cluster import LONG_SESSIONS
from equipment.workers.distributed import DistributedWorker
from worker.supervisor.hosts.placement import FEW

pytestmark = pytest.mark.integration

PLUGINS = Path(equipment.__file__).parent / "misbehaving_plugins"
TRAPS = Path(equipment.__file__).parent / "trapped_plugins"


@pytest.mark.thorough
def test_one_that_keeps_a_core_busy_moves_out_while_it_produces_and_each_number_is_there_once(
    bootstrap: str, topic: str, tmp_path: Path
) -> None:
    worker = DistributedWorker(
        tmp_path / f"worker-{uuid4().hex[:8]}",
        bootstrap,
        plugin_path=f"{TRAPS},{PLUGINS}",
        exactly_once_source_support="enabled",
        task_isolation="auto",
        **LONG_SESSIONS,
    ).start()
    topics = {name: f"{topic}-{name}" for name in ("busy", "calm")}
    try:
        crowd = {"connector.class": "misbehaving.MisbehavingSourceConnector", "topic": topic, "tasks": str(FEW)}
        requests.put(
            f"{worker.url()}connectors/crowd/config", json=crowd | {"tasks.max": str(FEW)}, timeout=60
        ).raise_for_status()
        worker.task_pid("crowd", FEW - 1)
        for name, to in topics.items():
            create_topic(bootstrap, to)
            config = {"connector.class": "TrappedSource", "trap.in": "poll", "topic": to}
            config["trap"] = str(tmp_path / f"trap-of-{name}")
            answer = requests.put(f"{worker.url()}connectors/{name}/config", json=config, timeout=60)
            assert answer.ok, answer.text

        def published(name: str) -> float:
            tasks = worker.status(name).get("tasks") or [{}]
            return float(tasks[0].get("metrics", {}).get("source-record-write-total", 0))

        for name in topics:
            wait_until(f"{name} counts", lambda name=name: published(name) > 0, 120)
        shared = worker.task_pid("busy")
        assert worker.task_pid("calm") == shared
        (tmp_path / "trap-of-busy").write_text("work")
        wait_until("the busy one is alone", lambda: worker.task_pid("busy") != shared, 120)
        wait_until("it counts on", lambda: published("busy") > 0, 120)
        assert worker.task_pid("calm") == shared
        for name in topics:
            requests.put(f"{worker.url()}connectors/{name}/stop", timeout=60).raise_for_status()
            wait_until(f"{name} is stopped", lambda name=name: not worker.status(name)["tasks"], 120)
        log = worker.log()
    finally:
        worker.close()

    assert [log.count(f"{name}|task-0 moves to another process") for name in topics] == [1, 0]
    assert " is killed" not in log
    for to in topics.values():
        numbers = [int(message.value()) for message in read_topic(bootstrap, to)]
        assert numbers == list(range(1, len(numbers) + 1))
