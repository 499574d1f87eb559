"""Whether a process is still the one that is to run its task."""

from __future__ import annotations

from concurrent.futures import Future
from multiprocessing.connection import Pipe

import pytest

from equipment.herding import WorkedInbox
from worker.herder.ownership import Ownership
from worker.runtime.control import Control, Link
from worker.runtime.ownership import confirm_ownership
from worker.runtime.tolerance import StopRequested
from worker.stores.config import MemoryConfigStore
from worker.supervisor import messages
from worker.supervisor.messages import decode, encode
from worker.supervisor.supervisor import OwnershipAsked
from worker.unit import Unit

TASK = Unit("source", 0)


class Running:
    """What runs on a worker, as far as it is asked."""

    def __init__(self) -> None:
        self.current = True
        self.stopped: list[Unit] = []

    def is_current(self, unit: Unit) -> bool:
        return self.current and unit == TASK

    def stop(self, unit: Unit) -> None:
        self.stopped.append(unit)


class UnreadableStore(MemoryConfigStore):
    """Cannot be read to its end."""

    def read_to_end(self) -> Future[None]:
        read: Future[None] = Future()
        read.set_exception(OSError("no brokers"))
        return read


def ask(store: MemoryConfigStore, units: Running) -> list[str]:
    """What a process hears that asks."""
    inbox, heard = WorkedInbox(), list[str]()
    Ownership(store, units, inbox).asked(OwnershipAsked(TASK, lambda: heard.append("confirmed")))  # type: ignore[arg-type]
    inbox.work()
    return heard + [f"stop {unit}" for unit in units.stopped]


def configured() -> MemoryConfigStore:
    store = MemoryConfigStore()
    store.put_connector("source", {"name": "source"}, None)
    store.put_task_configs("source", [{"n": "0"}])
    store.put_fenced_tasks("source", 1)
    return store


def test_the_one_that_is_to_run_is_confirmed() -> None:
    assert ask(configured(), Running()) == ["confirmed"]


def test_one_whose_task_runs_elsewhere_or_was_configured_anew_is_stopped() -> None:
    units = Running()
    units.current = False
    assert ask(configured(), units) == ["stop source|task-0"]


def test_one_that_was_fenced_before_it_could_ask_is_stopped() -> None:
    store = configured()
    store.put_task_configs("source", [{"n": "0"}])
    assert ask(store, Running()) == ["stop source|task-0"]


def test_what_is_not_known_is_not_confirmed() -> None:
    store = UnreadableStore()
    assert ask(store, Running()) == ["stop source|task-0"]


@pytest.mark.parametrize("confirms", [True, False])
def test_a_process_waits_until_it_is_confirmed_or_stopped(confirms: bool) -> None:
    ours, theirs = Pipe()
    ours.send_bytes(encode(messages.Resume()))
    link = Link(theirs, on_orphaned=lambda: None)
    link.open()
    ours.send_bytes(encode(messages.OwnershipConfirmed(0) if confirms else messages.Stop()))
    if confirms:
        confirm_ownership(Control(link))
    else:
        with pytest.raises(StopRequested):
            confirm_ownership(Control(link))
    assert decode(ours.recv_bytes()) == messages.ConfirmOwnership(0)
    ours.close()
