"""What runs on a worker, over a supervisor that does nothing by itself."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from equipment.fakes.herding import Place, WorkedInbox
from worker.herder.cluster.leadership import Leadership
from worker.herder.cluster.publishing import Publishing
from worker.herder.settings import Stores, WorkerSettings
from worker.herder.units import Units
from worker.messages.hangs import Hanging
from worker.messages.messages import Command, Fail, RunConnector, RunTask
from worker.stores.config.store import MemoryConfigStore
from worker.stores.status.store import Hang, MemoryStatusStore, State, Status
from worker.supervisor.lifecycle import Phase
from worker.supervisor.notices import Changed, Hangs
from worker.unit import Unit

TASK = Unit("c", 0)


class Processes:
    """A supervisor: what is to be started and stopped is counted, and happens when the test says."""

    def __init__(self) -> None:
        self.started: list[Unit] = []
        self.stopped: list[Unit] = []
        self.told: list[tuple[Unit, Command]] = []

    def start(self, unit: Unit, command: RunConnector | RunTask) -> None:
        self.started.append(unit)

    def stop(self, unit: Unit, within: float | None = None) -> None:
        self.stopped.append(unit)

    def command(self, unit: Unit, command: Command) -> None:
        self.told.append((unit, command))


def _nobody(*_: object) -> None:
    raise AssertionError("no task configs are published here")


class Worker:
    """The units of a worker with one task, whose process the worker turns away before it runs."""

    def __init__(self) -> None:
        self.inbox, self.store, self.processes = WorkedInbox(), MemoryConfigStore(), Processes()
        self.place = place = Place()
        self.statuses = MemoryStatusStore()
        leadership = Leadership(place, self.store, self.inbox)
        publishing = Publishing(self.store, place, leadership, self.inbox, None, _nobody, _nobody)
        place.held = frozenset({TASK})
        self.units = Units(
            WorkerSettings({}, "here:1"),
            Stores(self.store, self.statuses, None),  # type: ignore[arg-type] - no offsets are asked for here
            place,
            self.processes,  # type: ignore[arg-type]
            publishing,
            self.inbox,
            lambda _: True,
            self.reconcile,
        )
        self.store.put_connector("c", {"name": "c"}, None)
        self.store.put_task_configs("c", [{"n": "0"}])
        self.reconcile()

    @property
    def starts(self) -> int:
        return len(self.processes.started)

    def reconcile(self) -> None:
        self.units.reconcile(frozenset())

    def turn_away(self) -> None:
        self.units.turn_away(TASK)
        self.become(Phase.GONE)
        self.reconcile()

    def become(self, phase: Phase) -> None:
        self.units.heard(Changed(TASK, phase, None, "1.0"))


@pytest.fixture
def worker() -> Iterator[Worker]:
    yield Worker()


def test_what_is_turned_away_again_and_again_is_started_later_and_later(worker: Worker) -> None:
    worker.turn_away()
    assert worker.starts == 2, "the first time something has changed, so it is tried at once"
    for wait in (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0):
        worker.turn_away()
        before = worker.starts
        worker.reconcile()
        worker.inbox.work(seconds=wait * 0.9)
        worker.reconcile()
        assert worker.starts == before
        worker.inbox.work(seconds=wait * 0.2)
        assert worker.starts == before + 1


def test_what_ends_later_than_its_next_start_is_due_is_started_at_once_then(worker: Worker) -> None:
    worker.turn_away()
    worker.units.turn_away(TASK)
    worker.inbox.work(seconds=10)
    assert worker.starts == 2
    worker.become(Phase.GONE)
    worker.reconcile()
    assert worker.starts == 3


def test_another_configuration_does_not_wait(worker: Worker) -> None:
    worker.turn_away()
    worker.turn_away()
    assert worker.starts == 2
    worker.store.put_task_configs("c", [{"n": "1"}])
    worker.reconcile()
    assert worker.starts == 3


def test_what_has_run_begins_anew(worker: Worker) -> None:
    worker.turn_away()
    worker.turn_away()
    worker.inbox.work(seconds=0.5)
    assert worker.starts == 3
    worker.become(Phase.RUNNING)
    worker.turn_away()
    assert worker.starts == 4


def test_a_unit_is_told_to_fail_with_a_reason_while_it_runs(worker: Worker) -> None:
    worker.units.fail(TASK, "there is a reason")
    assert worker.processes.told == [(TASK, Fail("there is a reason"))]
    worker.units.turn_away(TASK)
    worker.units.fail(TASK, "another reason")
    assert len(worker.processes.told) == 1


@pytest.mark.parametrize(("is_leader", "left"), [(True, {"c|task-0"}), (False, {"c|task-0", "c|task-2"})])
def test_tasks_that_are_no_more_and_run_nowhere_have_no_status(worker: Worker, is_leader: bool, left: set[str]) -> None:
    """A follower forgets what it has said itself."""
    for task, worker_id in ((1, "here:1"), (2, "there:1")):
        worker.statuses.put(Unit("c", task), Status(State.UNASSIGNED, worker_id, 1))
    worker.place.is_leader = is_leader
    worker.units.tasks_changed("c")
    assert set(map(str, worker.statuses.statuses())) == left


def test_the_status_of_a_task_that_ends_here_stays_until_it_has_ended(worker: Worker) -> None:
    worker.become(Phase.RUNNING)
    worker.store.put_task_configs("c", [])
    worker.units.tasks_changed("c")
    assert TASK in worker.statuses.statuses()
    worker.reconcile()
    worker.become(Phase.GONE)
    assert TASK not in worker.statuses.statuses()


HANGING = Hanging("put", 61.0, 0.0, "bad.py:22", "Stack: ...")


def state(worker: Worker) -> tuple[State, str | None]:
    """The state of the task, and the line in which it hangs."""
    status = worker.statuses.statuses()[TASK]
    return status.state, None if status.hanging is None else status.hanging.line


def test_a_call_that_hangs_is_in_the_status_whatever_the_state_until_it_goes_on(
    worker: Worker, caplog: pytest.LogCaptureFixture
) -> None:
    worker.units.heard(Hangs(TASK, HANGING))
    assert state(worker) == (State.UNASSIGNED, "bad.py:22"), "it hangs in start"
    worker.units.heard(Hangs(TASK, None))
    worker.become(Phase.RUNNING)
    assert state(worker) == (State.RUNNING, None)
    worker.units.heard(Hangs(TASK, HANGING))
    hang = worker.statuses.statuses()[TASK].hanging
    assert hang == Hang("put", "1970-01-01T00:00:00Z", "bad.py:22", "Stack: ...")
    worker.become(Phase.PAUSED)
    assert state(worker) == (State.PAUSED, "bad.py:22")
    worker.units.heard(Hangs(TASK, None))
    assert state(worker) == (State.PAUSED, None)
    assert "put has not returned for 61 s: bad.py:22\nStack: ..." in caplog.text


def test_a_failure_is_logged_with_the_name_of_its_unit_once(worker: Worker, caplog: pytest.LogCaptureFixture) -> None:
    worker.become(Phase.RUNNING)
    worker.become(Phase.FAILED)
    (failure,) = (record for record in caplog.records if record.levelname == "ERROR")
    assert failure.getMessage().startswith("The task failed: ")
    assert failure.__dict__["context"] == str(TASK)


def test_what_has_failed_or_ended_hangs_no_more(worker: Worker) -> None:
    worker.become(Phase.RUNNING)
    worker.units.heard(Hangs(TASK, HANGING))
    worker.become(Phase.FAILED)
    assert state(worker) == (State.FAILED, None)
    worker.units.restart([TASK])
    worker.units.heard(Hangs(TASK, HANGING))
    assert state(worker) == (State.RESTARTING, None), "a process that is ending writes no status"
    worker.become(Phase.GONE)
    worker.units.heard(Hangs(TASK, HANGING))
    assert state(worker) == (State.RESTARTING, None)


def test_a_restart_by_hand_leaves_no_automatic_restart_behind(worker: Worker) -> None:
    policy = {"restart.policy": "on-failure", "restart.backoff.ms": "10000", "restart.backoff.max.ms": "10000"}
    worker.store.put_connector("c", {"name": "c", **policy, "restart.limit": "4"}, None)

    def start_and_fail() -> None:
        worker.become(Phase.GONE)
        worker.reconcile()
        worker.become(Phase.RUNNING)
        worker.become(Phase.FAILED)

    start_and_fail()
    for _ in range(3):
        worker.inbox.work(seconds=1)
        worker.units.restart([TASK])
        start_and_fail()
    restarted = []
    for second in range(200):
        stopped = len(worker.processes.stopped)
        worker.inbox.work(seconds=1)
        if len(worker.processes.stopped) > stopped:
            restarted.append(second + 1)
            start_and_fail()
    assert restarted == [10, 20, 30, 40]
    assert not worker.units.will_restart(TASK)
