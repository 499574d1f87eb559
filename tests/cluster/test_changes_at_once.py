"""Connectors whose configuration or number of tasks changes while they run, also several times at once."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from equipment.brokers.topics import create_topic, read_topic
from equipment.proofs import thorough
from equipment.waiting import wait_until
from equipment.workers.cluster import LONG_SESSIONS, Cluster

pytestmark = [pytest.mark.cluster, pytest.mark.integration, pytest.mark.timeout(240)]

_PATCHES = 10
_UNTYPED = "untyped.UntypedConnector"
_NUMBERS = (2, 1, 2, 0, 1, 2, 1, 0, 2, 1)


@pytest.fixture(scope="module")
def pair(clusters: Callable[..., Cluster]) -> Cluster:
    """A cluster of two workers whose sources are exactly-once."""
    made = clusters(2, exactly_once_source_support="enabled", plugin_import_allowlist=_UNTYPED, **LONG_SESSIONS)
    return made.start({"PYTHONPATH": str(Path(__file__).parent / "plugins")})


def write(file: Path, number: int) -> None:
    """Change the number of tasks at once."""
    partial = file.with_suffix(".partial")
    partial.write_text(str(number))
    partial.replace(file)


def test_every_patch_that_is_answered_is_kept(pair: Cluster, bootstrap: str, topic: str, tmp_path: Path) -> None:
    create_topic(bootstrap, topic)
    file = tmp_path / "in.txt"
    file.touch()
    pair.create("patched", "Lines", topic=topic, file=str(file))
    with ThreadPoolExecutor(_PATCHES) as users:
        answers = list(
            users.map(
                lambda number: pair.request("PATCH", "connectors/patched/config", {f"user{number}": "was here"}),
                range(_PATCHES),
            )
        )
    assert [answer.status_code for answer in answers] == [200] * _PATCHES
    kept = pair.ask("GET", "connectors/patched/config", worker=pair.leader())
    assert {key for key in kept if key.startswith("user")} == {f"user{number}" for number in range(_PATCHES)}
    for number, answer in enumerate(answers):
        assert answer.json()["config"][f"user{number}"] == "was here"
    pair.wait_until_all_run()
    pair.delete("patched")


def test_the_newest_of_two_reconfigurations_in_a_moment_wins(
    pair: Cluster, bootstrap: str, topic: str, tmp_path: Path
) -> None:
    create_topic(bootstrap, topic)
    # One on each worker, so that one of them has what it publishes passed on to the leader.
    files = {name: tmp_path / name for name in ("hasty", "hastier")}
    for name, file in files.items():
        write(file, 1)
        pair.create(name, "Hasty", 8, topic=topic, growing_file=str(file), exactly_once_support="requested")
        pair.expected[name] = 1
    pair.wait_until_all_run()
    ids = {pair.ask("GET", f"connectors/{name}/status")["connector"]["worker_id"] for name in files}
    assert ids == {worker.address for worker in pair.workers}
    for number in _NUMBERS:
        for name, file in files.items():
            write(file, number)
            pair.expected[name] = number
        wait_until("there are as many tasks as are wanted", lambda: counts(pair, files) == dict.fromkeys(files, number))  # noqa: B023 - it is asked within the round
    pair.wait_until_all_run()
    for name in files:
        pair.delete(name)


def counts(cluster: Cluster, names: dict[str, Path]) -> dict[str, int]:
    """How many tasks each connector has."""
    return {name: len(cluster.ask("GET", f"connectors/{name}/tasks", worker=cluster.leader())) for name in names}


def test_a_source_that_no_file_tells_of_runs_once_and_its_offsets_are_shown_by_every_worker(
    pair: Cluster, bootstrap: str, topic: str, tmp_path: Path
) -> None:
    """It has a key that sinks have, too, and is given to the worker that did not validate it as well."""
    create_topic(bootstrap, topic)
    names = ("untyped", "untyped-too")
    for name in names:
        file = tmp_path / name
        file.write_text("a\nb\n")
        pair.create(name, _UNTYPED, topic=topic, file=str(file), topics="of-no-meaning")
    pair.wait_until_all_run()
    wait_until("all lines are published", lambda: len(read_topic(bootstrap, topic)) >= 4, 60)
    assert len(pair.placed()) == 2
    assert all(len({unit for unit in units if unit.startswith("untyped")}) == 1 for units in pair.placed().values())
    for worker in pair.workers:
        for name in names:
            assert pair.ask("GET", f"connectors/{name}", worker=worker)["type"] == "source"
            wait_until(
                "the offsets are shown",
                lambda: pair.ask("GET", f"connectors/{name}/offsets", worker=worker)["offsets"],  # noqa: B023 - it is asked within the round
            )
    starts = [line for line in pair.starts() if line.startswith("untyped")]
    assert len(starts) == len(names), starts
    for name in names:
        pair.delete(name)


@pytest.mark.parametrize("rounds", [3, *thorough(30)])
def test_a_new_connector_is_known_to_every_worker_at_once(
    pair: Cluster, bootstrap: str, topic: str, tmp_path: Path, rounds: int
) -> None:
    create_topic(bootstrap, topic)
    file = tmp_path / "in.txt"
    file.touch()
    config = pair.config("Lines", topic=topic, file=str(file))
    made_by, asked = pair.workers
    for number in range(rounds):
        name = f"new{number}"
        pair.ask("PUT", f"connectors/{name}/config", config, made_by)
        for path in ("", "/config", "/offsets"):
            answer = pair.request("GET", f"connectors/{name}{path}", worker=asked)
            assert answer.status_code == 200, answer.text
        pair.ask("DELETE", f"connectors/{name}", worker=made_by)
        made_by, asked = asked, made_by


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
