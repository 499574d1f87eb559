"""Connectors whose number of tasks changes while they run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from equipment.brokers.topics import create_topic
from equipment.waiting import wait_until
from equipment.workers.cluster import Cluster

pytestmark = [pytest.mark.cluster, pytest.mark.integration]


@pytest.fixture(scope="module")
def pair(clusters: Callable[..., Cluster]) -> Cluster:
    """A cluster of two workers."""
    return clusters(2).start()


def write(file: Path, number: int) -> None:
    """Change the number of tasks at once."""
    partial = file.with_suffix(".partial")
    partial.write_text(str(number))
    partial.replace(file)


def test_connectors_have_their_tasks_computed_again(pair: Cluster, bootstrap: str, topic: str, tmp_path: Path) -> None:
    create_topic(bootstrap, topic)
    # One on each worker, so that one of them has what it publishes passed on to the leader.
    files = {name: tmp_path / name for name in ("one", "other")}
    for name, file in files.items():
        write(file, 2)
        pair.create(name, "Growing", 8, topic=topic, growing_file=str(file))
        pair.expected[name] = 2
    pair.wait_until_all_run()
    ids = {pair.ask("GET", f"connectors/{name}/status")["connector"]["worker_id"] for name in files}
    assert ids == {worker.address for worker in pair.workers}
    for number in (5, 1, 3):
        for name, file in files.items():
            write(file, number)
            pair.expected[name] = number
        pair.wait_until_all_run()
    for name in files:
        pair.delete(name)


def test_more_tasks_than_tasks_max_are_refused_unless_that_is_not_enforced(
    pair: Cluster, bootstrap: str, topic: str, tmp_path: Path
) -> None:
    create_topic(bootstrap, topic)
    write(tmp_path / "many", 3)
    config = pair.config("Growing", 2, topic=topic, growing_file=str(tmp_path / "many"))
    pair.ask("PUT", "connectors/many/config", config)

    def failed() -> str:
        response = pair.request("GET", "connectors/many/status")
        shown = response.json()["connector"] if response.ok else {}
        return str(shown["trace"]) if shown.get("state") == "FAILED" else ""

    trace = wait_until("the connector has failed", failed)
    assert "The connector many has generated 3 tasks, which is greater than 2" in trace
    pair.create("many", "Growing", 2, topic=topic, growing_file=str(tmp_path / "many"), tasks_max_enforce="false")
    pair.expected["many"] = 3
    pair.wait_until_all_run()
    pair.delete("many")
