"""``sluice doctor`` and ``sluice state`` against real brokers and workers."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import requests
from click.testing import CliRunner, Result

from equipment.brokers.topics import create_topic
from equipment.ports import own_port
from equipment.waiting import wait_until
from equipment.workers.distributed import DistributedWorker
from equipment.workers.standalone import StandaloneWorker
from worker.cli.main import main

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("log_as_before")]


def sluice(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def doctor(*arguments: object) -> dict[str, list[dict[str, Any]]]:
    """The findings that are not fine, by area."""
    done = sluice("doctor", *arguments, "-o", "json")
    found = [finding for finding in json.loads(done.stdout) if finding["level"] != "fine"]
    assert done.exit_code == (3 if any(finding["level"] == "error" for finding in found) else 0)
    areas: dict[str, list[dict[str, Any]]] = {}
    for finding in found:
        areas.setdefault(finding["area"], []).append(finding)
    return areas


def worker_file(folder: Path, bootstrap: str, group: str, **props: str) -> Path:
    file = folder / "worker.properties"
    given = {
        "bootstrap.servers": bootstrap,
        "group.id": group,
        "key.converter": "StringConverter",
        "value.converter": "StringConverter",
        **{f"{kind}.storage.topic": f"{group}-{kind}" for kind in ("config", "offset", "status")},
        **{f"{kind}.storage.replication.factor": "1" for kind in ("config", "offset", "status")},
        **{key.replace("_", "."): value for key, value in props.items()},
    }
    file.write_text("".join(f"{key}={value}\n" for key, value in given.items()))
    return file


def test_damaged_topics_are_found_with_what_would_be_lost_and_the_policy_is_repaired(
    bootstrap: str, tmp_path: Path, topic: str
) -> None:
    create_topic(bootstrap, f"{topic}-config", 3, **{"cleanup.policy": "compact"})
    create_topic(bootstrap, f"{topic}-offset", **{"cleanup.policy": "delete"})
    file = worker_file(tmp_path, bootstrap, topic)
    found = {finding["told"].split()[0]: finding for finding in doctor("--worker", file)["internal topics"]}
    assert set(found) == {f"{topic}-config", f"{topic}-offset"}
    assert "has 3 partitions" in found[f"{topic}-config"]["told"]
    offsets = found[f"{topic}-offset"]
    assert "Sources would begin anew" in offsets["told"]
    assert offsets["repair"].endswith(f"--alter --topic {topic}-offset --add-config cleanup.policy=compact")
    repaired = doctor("--worker", file, "--repair")["internal topics"]
    assert [finding["told"].split()[0] for finding in repaired] == [f"{topic}-config"]
    again = doctor("--worker", file)["internal topics"]
    assert [finding["told"].split()[0] for finding in again] == [f"{topic}-config"]


def test_a_broker_that_is_away_and_a_wrong_file_are_told(tmp_path: Path) -> None:
    port = own_port()
    (finding,) = doctor("--worker", worker_file(tmp_path, f"127.0.0.1:{port}", "g"))["brokers"]
    assert finding["told"] == f"127.0.0.1:{port} refuses connections."
    assert "sluice broker start" in finding["repair"]
    (finding,) = doctor("--worker", worker_file(tmp_path, "127.0.0.1:1", "g", heartbeat_interval_ms="soon"))[
        "worker's file"
    ]
    assert "heartbeat.interval.ms" in finding["told"]


def test_a_running_cluster_is_asked_about_each_connector(
    standalone: Callable[..., StandaloneWorker], tmp_path: Path, topic: str
) -> None:
    worker = standalone().start()
    url = worker.url().rstrip("/")
    base = {"connector.class": "JdbcSource", "mode": "bulk", "topic.prefix": topic}
    config = {**base, "connection.url": f"jdbc:sqlite:{tmp_path}/none.db", "connection.attempts": "1"}
    requests.put(f"{url}/connectors/{topic}/config", json=config, timeout=90).raise_for_status()
    wait_until(
        "the connector has failed",
        lambda: worker.get(f"connectors/{topic}/status").json()["connector"]["state"] == "FAILED",
        seconds=120,
    )
    found = doctor("--url", url)[f"connector {topic}"]
    assert any(finding["told"].startswith("The connector failed: ") for finding in found)
    files = {"connector.class": "FileStreamSource", "file": str(tmp_path / "in"), "topic": topic}
    requests.put(f"{url}/connectors/{topic}/config", json=files, timeout=90).raise_for_status()
    requests.put(f"{url}/connectors/{topic}/stop", timeout=90).raise_for_status()
    wait_until(
        "the connector is stopped",
        lambda: worker.get(f"connectors/{topic}/status").json()["connector"]["state"] == "STOPPED",
        seconds=120,
    )
    assert "It is stopped, and its configuration is right" in sluice("doctor", "--url", url).stdout
    assert any(finding["told"].startswith("connection.url: ") for finding in found)


@pytest.mark.thorough
def test_the_state_of_a_cluster_goes_to_a_file_and_comes_back_under_other_names(
    bootstrap: str, tmp_path: Path, topic: str
) -> None:
    (tmp_path / "in.txt").write_text("one\ntwo\n")
    first = DistributedWorker(tmp_path / "first", bootstrap, group=topic)
    config = {"connector.class": "FileStreamSource", "file": str(tmp_path / "in.txt"), "topic": f"{topic}-lines"}
    backup = tmp_path / "state"
    try:
        first.start()
        requests.put(f"{first.url()}connectors/lines/config", json=config, timeout=90).raise_for_status()
        wait_until(
            "the offsets are stored",
            lambda: bool(first.get("connectors/lines/offsets").json()["offsets"]),
            seconds=120,
        )
        offsets = first.get("connectors/lines/offsets").json()
        refused = sluice("state", "restore", backup, "--worker", first.folder / "worker.properties", "--yes")
        assert "does not exist" in refused.output
        done = sluice("state", "backup", backup, "--worker", first.folder / "worker.properties")
        assert done.exit_code == 0, done.output
        assert backup.stat().st_mode & 0o777 == 0o600
        refused = sluice("state", "restore", backup, "--worker", first.folder / "worker.properties", "--yes")
        assert f"Workers of the group {topic} run" in refused.output
        assert first.terminate() == 0
        second = DistributedWorker(tmp_path / "second", bootstrap, group=f"{topic}-2")
        for _ in range(2):
            done = sluice("state", "restore", backup, "--worker", second.folder / "worker.properties", "--yes")
            assert done.exit_code == 0, done.output
        try:
            second.start()
            wait_until("the connector is there", lambda: second.get("connectors").json() == ["lines"], seconds=120)
            assert second.get("connectors/lines/config").json() == {"name": "lines", **config}
            assert second.get("connectors/lines/offsets").json() == offsets
            with (tmp_path / "in.txt").open("a") as lines:
                lines.write("three\n")
            wait_until(
                "it goes on where the other ended",
                lambda: second.get("connectors/lines/offsets").json() != offsets,
                seconds=120,
            )
            assert second.terminate() == 0
        finally:
            second.close()
        refused = sluice("state", "restore", backup, "--worker", second.folder / "worker.properties", "--yes")
        assert "records that are not in the file. Nothing was written." in refused.output
    finally:
        first.close()
