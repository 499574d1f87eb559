"""The herder over children that are threads: connectors that behave as their config says."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, TypeVar

import pytest

from connect.errors import AlreadyExistsError, ConnectError, NotFoundError
from connect.internals.plugins import PluginRegistry
from equipment.waiting import wait_until
from worker.errors import BadRequestError, InvalidConnectorError
from worker.herder.herder import Herder
from worker.herder.inbox import Inbox
from worker.herder.settings import Stores, WorkerSettings
from worker.membership.membership import SoloMembership
from worker.messages import messages
from worker.messages.messages import decode, encode
from worker.stores.config.store import MemoryConfigStore, TargetState
from worker.stores.status.store import MemoryStatusStore
from worker.supervisor.process import ThreadLauncher
from worker.supervisor.supervisor import Supervisor

DEADLINE = 10.0
T = TypeVar("T")


def child(connection: Connection) -> None:
    """Sources are named ``source...``; ``tasks`` says how many, ``fails`` which unit fails."""
    first = decode(connection.recv_bytes())
    send = lambda report: connection.send_bytes(encode(report))  # noqa: E731
    match first:
        case messages.ValidateConfig(config):
            errors = ["Missing topic"] if config.get("invalid") else []
            kind = "source" if config["name"].startswith("source") else "sink"
            if config.get("hangs") == "validation":
                with contextlib.suppress(EOFError, OSError):
                    connection.recv_bytes()
                return
            if config.get("invalid") != "crash":
                warnings = ["The key topik is unknown. Did you mean topic?"] if errors else []
                send(messages.Validated({"configs": [{"value": {"errors": errors}}]}, kind, warnings))
            return
        case messages.AlterSourceOffsets(_, _, offsets):
            refused = [offset for _, offset in offsets if offset == {"bad": 1}]
            allowed = messages.SourceOffsetsAllowed(managed=True, own_topic=False, transactional=False)
            send(messages.Refused("a bad offset", invalid=True) if refused else allowed)
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
            if config.get("fails.once") and not (mark := Path(config["fails.once"])).exists():
                mark.touch()
                send(messages.Failed("Traceback: the first task"))
                return
            send(messages.Started("2.0"))
            send(messages.Metrics({"records": 5.0}))
            if connector.startswith("source") and config.get("run.until") == "drained":
                send(messages.Drained())
    try:
        while not isinstance(command := decode(connection.recv_bytes()), messages.Stop):
            if isinstance(command, messages.Drain):
                send(messages.Drained())
            elif isinstance(command, messages.Pause):
                send(messages.Paused())
            elif isinstance(command, messages.Resume):
                send(messages.Resumed())
    except (EOFError, OSError):
        return


def ignore_offsets(_request: object, _connector: str) -> Future[messages.Command]:
    raise AssertionError("these children keep no offsets")


class MemoryOffsets:
    """Keeps what is altered, in memory."""

    def __init__(self) -> None:
        self.kept: dict[str, messages.OffsetPairs] = {}

    def of_connector(self, connector: str) -> Future[messages.OffsetPairs]:
        return done(self.kept.get(connector, []))

    def alter(self, connector: str, offsets: messages.OffsetPairs) -> Future[None]:
        self.kept[connector] = [(partition, offset) for partition, offset in offsets if offset is not None]
        return done(None)


def done(result: T) -> Future[T]:
    future: Future[T] = Future()
    future.set_result(result)
    return future


@pytest.fixture
def inbox() -> Inbox:
    return Inbox()


@pytest.fixture
def configs() -> MemoryConfigStore:
    return MemoryConfigStore()


@pytest.fixture
def herder(inbox: Inbox, configs: MemoryConfigStore) -> Iterator[Herder]:
    herder = Herder(
        WorkerSettings({}, "host:8083"),
        Stores(configs, MemoryStatusStore(), MemoryOffsets()),
        inbox,
        SoloMembership(),
        lambda notify: Supervisor(ThreadLauncher(child), notify, ignore_offsets, 5.0),
        PluginRegistry([]),
    )
    herder.start()
    yield herder
    herder.close()


def create(herder: Herder, name: str, **config: str) -> None:
    props = {"name": name, "connector.class": "C", **{key.replace("_", "."): value for key, value in config.items()}}
    herder.connectors.create(name, props).result(DEADLINE)


def wait_for_status(herder: Herder, name: str, condition: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    deadline = time.monotonic() + DEADLINE
    status: dict[str, Any] = {}
    while time.monotonic() < deadline:
        # For a moment after a connector is created there is no status of it, as in Kafka Connect.
        with contextlib.suppress(NotFoundError):
            status = herder.connectors.status(name).result(DEADLINE)
            if condition(status):
                return status
    raise AssertionError(f"the status never became what was waited for: {status}")


def states(status: dict[str, Any]) -> list[str]:
    return [status["connector"]["state"], *(task["state"] for task in status["tasks"])]


def test_a_connector_runs_with_the_tasks_it_asks_for(herder: Herder) -> None:
    create(herder, "source", tasks="3")
    status = wait_for_status(herder, "source", lambda status: states(status) == ["RUNNING"] * 4)
    assert status["type"] == "source"
    times = {name: status["connector"].pop(name) for name in ("changed_at", "started_at")}
    assert status["connector"] == {"state": "RUNNING", "worker_id": "host:8083", "version": "2.0"}
    assert times["changed_at"] == times["started_at"] <= status["tasks"][0]["started_at"]
    assert [task["id"] for task in status["tasks"]] == [0, 1, 2]
    assert herder.connectors.names().result(DEADLINE) == ["source"]


def test_metrics_are_shown_and_added_up(herder: Herder) -> None:
    create(herder, "source", tasks="2")
    wait_for_status(herder, "source", lambda status: all("metrics" in task for task in status["tasks"] or [{}]))
    assert herder.progress().result(DEADLINE) == ({"records": 10.0}, {})


def test_bad_requests_are_refused_with_what_is_wrong(herder: Herder) -> None:
    create(herder, "source")
    with pytest.raises(AlreadyExistsError, match="Connector source already exists"):
        create(herder, "source")
    refused = (
        r"contains the following 1 error\(s\):\nMissing topic\n.*\nThe key topik is unknown\. Did you mean topic\?$"
    )
    with pytest.raises(InvalidConnectorError, match=refused):
        create(herder, "sink", invalid="yes")
    with pytest.raises(ConnectError, match="A plugin could not answer: The process ended without an answer"):
        create(herder, "sink", invalid="crash")
    with pytest.raises(BadRequestError, match="contains no connector type"):
        herder.connectors.create("x", {"name": "x"}).result(DEADLINE)
    with pytest.raises(NotFoundError, match="No status found for connector x"):
        herder.connectors.status("x").result(DEADLINE)


def test_two_requests_for_one_name_make_one_connector(herder: Herder) -> None:
    props = {"name": "source", "connector.class": "C"}
    first, second = herder.connectors.create("source", props), herder.connectors.create("source", props)
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
    herder.all_created()
    outcome = herder.drained.result(DEADLINE)
    assert outcome.failed == ()
    for name in ("source", "sink"):
        wait_for_status(herder, name, lambda status: states(status) == ["STOPPED"])


def test_a_sink_waits_for_sources_that_are_yet_to_be_created(herder: Herder) -> None:
    create(herder, "sink", run_until="drained")
    wait_for_status(herder, "sink", lambda status: states(status) == ["RUNNING", "RUNNING"])
    create(herder, "source", run_until="drained")
    wait_for_status(herder, "source", lambda status: states(status) == ["STOPPED"])
    assert states(herder.connectors.status("sink").result(DEADLINE)) == ["RUNNING", "RUNNING"]
    assert not herder.drained.done()
    herder.all_created()
    assert herder.drained.result(DEADLINE).failed == ()


def test_a_failure_is_part_of_the_outcome(herder: Herder) -> None:
    create(herder, "sink", run_until="drained")
    create(herder, "source", run_until="drained", fails="task")
    herder.all_created()
    assert herder.drained.result(DEADLINE).failed == ("source",)


def test_what_is_to_be_started_again_is_waited_for(herder: Herder, tmp_path: Path) -> None:
    again = {"restart_policy": "on-failure", "restart_backoff_ms": "200"}
    create(herder, "sink", run_until="drained")
    create(herder, "source", run_until="drained", fails_once=str(tmp_path / "failed"), **again)
    herder.all_created()
    assert herder.drained.result(DEADLINE).failed == ()
    assert (tmp_path / "failed").exists()


def test_what_has_failed_as_often_as_it_may_is_part_of_the_outcome(herder: Herder) -> None:
    often = {"restart_policy": "on-failure", "restart_backoff_ms": "1", "restart_limit": "2"}
    create(herder, "source", run_until="drained", fails="task", **often)
    herder.all_created()
    assert herder.drained.result(DEADLINE).failed == ("source",)
    assert states(herder.connectors.status("source").result(DEADLINE)) == ["RUNNING", "FAILED"]


def test_with_a_connector_that_never_ends_nothing_is_finished(herder: Herder) -> None:
    create(herder, "source-endless")
    create(herder, "sink", run_until="drained")
    herder.all_created()
    wait_for_status(herder, "sink", lambda status: status["connector"]["state"] == "STOPPED")
    assert not herder.drained.done()


def test_a_validation_that_hangs_delays_nobody_and_keeps_its_name(herder: Herder) -> None:
    hanging = herder.connectors.create("source-a", {"connector.class": "C", "hangs": "validation"})
    with pytest.raises(AlreadyExistsError, match="Connector source-a already exists"):
        create(herder, "source-a")
    create(herder, "source-b")
    assert not hanging.done()
    assert "validate connector source-a's configuration" in hanging.stage[0]


def test_target_states_are_reached_and_left(herder: Herder) -> None:
    create(herder, "source")
    wait_for_status(herder, "source", lambda status: states(status) == ["RUNNING", "RUNNING"])
    for target, expected in (
        (TargetState.PAUSED, ["PAUSED", "PAUSED"]),
        (TargetState.STARTED, ["RUNNING", "RUNNING"]),
        (TargetState.STOPPED, ["STOPPED"]),
    ):
        herder.connectors.set_target_state("source", target).result(DEADLINE)
        wait_for_status(herder, "source", lambda status, expected=expected: states(status) == expected)
    assert herder.connectors.task_configs("source").result(DEADLINE) == []


@pytest.mark.parametrize(("target", "state"), [(TargetState.STOPPED, "STOPPED"), (TargetState.PAUSED, "PAUSED")])
def test_a_connector_may_begin_stopped_or_paused(herder: Herder, target: TargetState, state: str) -> None:
    herder.connectors.create("source", {"connector.class": "C"}, target).result(DEADLINE)
    wait_for_status(herder, "source", lambda status: states(status) == [state])


def test_a_changed_configuration_reaches_connector_and_tasks(herder: Herder) -> None:
    create(herder, "source", tasks="1")
    wait_for_status(herder, "source", lambda status: len(states(status)) == 2)
    is_new, shown = herder.connectors.put_config("source", {"connector.class": "C", "tasks": "3"}).result(DEADLINE)
    assert (is_new, shown["config"]["tasks"]) == (False, "3")
    wait_for_status(herder, "source", lambda status: states(status) == ["RUNNING"] * 4)
    herder.connectors.patch_config("source", {"tasks": None}).result(DEADLINE)
    wait_for_status(herder, "source", lambda status: states(status) == ["RUNNING"] * 2)


def test_a_restart_shows_what_restarts_and_a_failed_task_runs_again(herder: Herder) -> None:
    create(herder, "source", fails="task")
    wait_for_status(herder, "source", lambda status: states(status) == ["RUNNING", "FAILED"])
    shown = herder.connectors.restart("source", include_tasks=True, only_failed=True).result(DEADLINE)
    assert states(shown) == ["RUNNING", "RESTARTING"]
    wait_for_status(herder, "source", lambda status: states(status) == ["RUNNING", "FAILED"])
    with pytest.raises(NotFoundError, match="Unknown task: source-1"):
        herder.connectors.restart_task("source", 1).result(DEADLINE)


def test_a_deleted_connector_is_gone_and_may_be_made_again(herder: Herder) -> None:
    create(herder, "source")
    herder.connectors.delete("source").result(DEADLINE)
    with pytest.raises(NotFoundError):
        herder.connectors.status("source").result(DEADLINE)
    create(herder, "source")
    wait_for_status(herder, "source", lambda status: states(status) == ["RUNNING", "RUNNING"])


def test_a_connector_that_is_deleted_and_made_again_in_one_glance_runs_with_its_tasks(
    herder: Herder, inbox: Inbox, configs: MemoryConfigStore
) -> None:
    create(herder, "source")
    wait_for_status(herder, "source", lambda status: states(status) == ["RUNNING", "RUNNING"])

    def both() -> None:
        config = configs.connectors()["source"].config
        configs.remove_connector("source")
        configs.put_connector("source", config, None)

    inbox.post(both)
    assert herder.connectors.task_configs("source").result(DEADLINE) == []
    wait_until(
        "it has said which tasks it wants", lambda: herder.connectors.task_configs("source").result(DEADLINE), DEADLINE
    )
    wait_for_status(herder, "source", lambda status: states(status) == ["RUNNING", "RUNNING"])


def test_a_connector_that_is_stopped_and_resumed_in_one_glance_runs_with_its_tasks(
    herder: Herder, inbox: Inbox, configs: MemoryConfigStore
) -> None:
    create(herder, "source", tasks="2")
    wait_for_status(herder, "source", lambda status: states(status) == ["RUNNING"] * 3)

    def both() -> None:
        configs.put_task_configs("source", ())
        configs.put_target_state("source", TargetState.STOPPED)
        configs.put_target_state("source", TargetState.STARTED)

    inbox.post(both)
    assert herder.connectors.task_configs("source").result(DEADLINE) == []
    wait_until(
        "it has said which tasks it wants", lambda: herder.connectors.task_configs("source").result(DEADLINE), DEADLINE
    )
    wait_for_status(herder, "source", lambda status: states(status) == ["RUNNING"] * 3)


def test_offsets_are_altered_of_stopped_connectors_whose_class_agrees(herder: Herder) -> None:
    create(herder, "source")
    item = {"partition": {"f": "a"}, "offset": {"p": 1}}
    with pytest.raises(BadRequestError, match="must be in the STOPPED state"):
        herder.offsets.alter("source", [item]).result(DEADLINE)
    herder.connectors.set_target_state("source", TargetState.STOPPED).result(DEADLINE)
    done = herder.offsets.alter("source", [item]).result(DEADLINE)
    assert done == {"message": "The offsets for this connector have been altered successfully"}
    assert herder.offsets.read("source").result(DEADLINE) == {"offsets": [item]}
    with pytest.raises(BadRequestError, match="a bad offset"):
        herder.offsets.alter("source", [item | {"offset": {"bad": 1}}]).result(DEADLINE)
    herder.offsets.alter("source", None).result(DEADLINE)
    assert herder.offsets.read("source").result(DEADLINE) == {"offsets": []}


def test_a_connector_resumed_while_its_offsets_are_altered_starts_after_that(herder: Herder) -> None:
    herder.connectors.create("source", {"connector.class": "C"}, TargetState.STOPPED).result(DEADLINE)
    altered = herder.offsets.alter("source", [{"partition": {"f": "a"}, "offset": {"p": 1}}])
    herder.connectors.set_target_state("source", TargetState.STARTED).result(DEADLINE)
    altered.result(DEADLINE)
    wait_for_status(herder, "source", lambda status: states(status) == ["RUNNING", "RUNNING"])
