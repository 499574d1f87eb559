"""The herder over children that are threads: connectors that behave as their config says."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from typing import Any

import pytest

from connect.errors import AlreadyExistsError, ConfigError, ConnectError, NotFoundError
from worker.herder.herder import Herder, InvalidConnectorError
from worker.membership.solo import SoloMembership
from worker.stores.config import MemoryConfigStore
from worker.stores.status import MemoryStatusStore
from worker.supervisor import messages
from worker.supervisor.messages import decode, encode
from worker.supervisor.process import ThreadLauncher
from worker.supervisor.supervisor import Supervisor

DEADLINE = 10.0


def child(connection: Connection) -> None:
    """Sources are named ``source...``; ``tasks`` says how many, ``fails`` which unit fails."""
    first = decode(connection.recv_bytes())
    send = lambda report: connection.send_bytes(encode(report))  # noqa: E731
    match first:
        case messages.ValidateConfig(config):
            errors = ["Missing topic"] if config.get("invalid") else []
            kind = "source" if config["name"].startswith("source") else "sink"
            if config.get("invalid") != "crash":
                send(messages.Validated({"configs": [{"value": {"errors": errors}}]}, kind))
            return
        case messages.RunConnector(_, config):
            if config.get("fails") == "connector":
                send(messages.Failed("Traceback: connector"))
                return
            send(messages.Started("2.0"))
            send(messages.TaskConfigs([{"n": str(task)} for task in range(int(config.get("tasks", "1")))]))
        case messages.RunTask(connector, _, _, config):
            if config.get("fails") == "task":
                send(messages.Failed("Traceback: task"))
                return
            send(messages.Started("2.0"))
            send(messages.Metrics({"records": 5.0}))
            if connector.startswith("source") and config.get("run.until") == "drained":
                send(messages.Drained())
    try:
        while not isinstance(command := decode(connection.recv_bytes()), messages.Stop):
            if isinstance(command, messages.Drain):
                send(messages.Drained())
    except (EOFError, OSError):
        return


def ignore_offsets(_request: object, _connector: str, _answer: Callable[[messages.Command], None]) -> None:
    raise AssertionError("these children keep no offsets")


@pytest.fixture
def herder() -> Iterator[Herder]:
    herder = Herder(
        {},
        "host:8083",
        MemoryConfigStore(),
        MemoryStatusStore(),
        SoloMembership(),
        lambda notify: Supervisor(ThreadLauncher(child), notify, ignore_offsets, 5.0),
    )
    herder.start()
    yield herder
    herder.close()


def create(herder: Herder, name: str, **config: str) -> None:
    props = {"name": name, "connector.class": "C", **{key.replace("_", "."): value for key, value in config.items()}}
    herder.create_connector(name, props).result(DEADLINE)


def wait_for_status(herder: Herder, name: str, condition: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    deadline = time.monotonic() + DEADLINE
    while time.monotonic() < deadline:
        status = herder.connector_status(name).result(DEADLINE)
        if condition(status):
            return status
    raise AssertionError(f"the status never became what was waited for: {status}")


def states(status: dict[str, Any]) -> list[str]:
    return [status["connector"]["state"], *(task["state"] for task in status["tasks"])]


def test_a_connector_runs_with_the_tasks_it_asks_for(herder: Herder) -> None:
    create(herder, "source", tasks="3")
    status = wait_for_status(herder, "source", lambda status: states(status) == ["RUNNING"] * 4)
    assert status["type"] == "source"
    assert status["connector"] == {"state": "RUNNING", "worker_id": "host:8083", "version": "2.0"}
    assert [task["id"] for task in status["tasks"]] == [0, 1, 2]
    assert herder.connector_names().result(DEADLINE) == ["source"]


def test_metrics_are_shown_and_added_up(herder: Herder) -> None:
    create(herder, "source", tasks="2")
    wait_for_status(herder, "source", lambda status: all("metrics" in task for task in status["tasks"] or [{}]))
    assert herder.totals().result(DEADLINE) == {"records": 10.0}


def test_bad_requests_are_refused_with_what_is_wrong(herder: Herder) -> None:
    create(herder, "source")
    with pytest.raises(AlreadyExistsError, match="Connector source already exists"):
        create(herder, "source")
    with pytest.raises(InvalidConnectorError, match=r"contains the following 1 error\(s\):\nMissing topic\n"):
        create(herder, "sink", invalid="yes")
    with pytest.raises(ConnectError, match="could not be checked: The validating process ended without an answer"):
        create(herder, "sink", invalid="crash")
    with pytest.raises(ConfigError, match="contains no connector type"):
        herder.create_connector("x", {"name": "x"}).result(DEADLINE)
    with pytest.raises(NotFoundError, match="No status found for connector x"):
        herder.connector_status("x").result(DEADLINE)


def test_two_requests_for_one_name_make_one_connector(herder: Herder) -> None:
    props = {"name": "source", "connector.class": "C"}
    first, second = herder.create_connector("source", props), herder.create_connector("source", props)
    first.result(DEADLINE)
    with pytest.raises(AlreadyExistsError):
        second.result(DEADLINE)


@pytest.mark.parametrize("unit", ["connector", "task"])
def test_what_fails_is_shown_with_its_trace(herder: Herder, unit: str) -> None:
    create(herder, "source", fails=unit)
    status = wait_for_status(herder, "source", lambda status: "FAILED" in states(status))
    failed = status["connector"] if unit == "connector" else status["tasks"][0]
    assert failed["state"] == "FAILED"
    assert failed["trace"] == f"Traceback: {unit}"


def test_drained_connectors_stop_sources_first_and_all_is_reported(herder: Herder) -> None:
    create(herder, "sink", run_until="drained")
    create(herder, "source", run_until="drained", tasks="2")
    outcome = herder.drained.result(DEADLINE)
    assert outcome.failed == ()
    for name in ("source", "sink"):
        wait_for_status(herder, name, lambda status: states(status) == ["STOPPED"])


def test_a_failure_is_part_of_the_outcome(herder: Herder) -> None:
    create(herder, "sink", run_until="drained")
    create(herder, "source", run_until="drained", fails="task")
    assert herder.drained.result(DEADLINE).failed == ("source",)


def test_with_a_connector_that_never_ends_nothing_is_finished(herder: Herder) -> None:
    create(herder, "source-endless")
    create(herder, "sink", run_until="drained")
    wait_for_status(herder, "sink", lambda status: status["connector"]["state"] == "STOPPED")
    assert not herder.drained.done()
