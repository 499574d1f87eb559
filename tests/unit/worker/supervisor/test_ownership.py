"""Whether a process is still the one that is to run its task."""

from __future__ import annotations

from concurrent.futures import Future
from multiprocessing.connection import Pipe

import pytest

from connect.internals.chain.tolerance import StopRequested
from equipment.fakes.herding import WorkedInbox
from worker.herder.cluster.ownership import Ownership
from worker.messages import messages
from worker.messages.messages import decode, encode
from worker.runtime.control import Control
from worker.runtime.link import Line, Link
from worker.runtime.source.fencing import confirm_ownership
from worker.stores.config.store import MemoryConfigStore
from worker.supervisor.notices import OwnershipAsked
from worker.unit import Unit

TASK = Unit("source", 0)


class Running:
    """What runs on a worker, as far as it is asked."""

    def __init__(self) -> None:
        self.current = True
        self.turned_away: list[Unit] = []
        self.failed: list[str] = []

    def is_current(self, unit: Unit) -> bool:
        return self.current and unit == TASK

    def turn_away(self, unit: Unit) -> None:
        self.turned_away.append(unit)

    def fail(self, unit: Unit, reason: str) -> None:
        self.failed.append(f"{unit} {reason}")


class UnreadableStore(MemoryConfigStore):
    """Cannot be read to its end."""

    def read_to_end(self) -> Future[None]:
        read: Future[None] = Future()
        read.set_exception(OSError("no brokers"))
        return read


def ask(store: MemoryConfigStore, units: Running, *, is_sink: bool = False) -> list[str]:
    """What a process hears that asks."""
    inbox, heard = WorkedInbox(), list[str]()
    ownership = Ownership(store, units, inbox, lambda _: is_sink)  # type: ignore[arg-type]
    ownership.asked(OwnershipAsked(TASK, lambda: heard.append("confirmed")))
    inbox.work()
    return heard + [f"stop {unit}" for unit in units.turned_away]


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


def test_one_that_nobody_fences_fails_and_says_why() -> None:
    store, units = configured(), Running()
    store.put_task_configs("source", [{"n": "0"}])
    assert ask(store, units, is_sink=True) == []
    assert units.failed == [
        "source|task-0 source|task-0 is the task of a source, but connector source is known as a sink, for which "
        "nobody fences former tasks. Correct the type in the plugins.toml that lists its connector.class, if one does, "
        "and PUT the connector's configuration once more, unchanged."
    ]
    units.current = False
    assert ask(store, units, is_sink=True) == ["stop source|task-0"], "it is replaced anyhow"


def test_what_is_not_known_is_not_confirmed() -> None:
    store = UnreadableStore()
    assert ask(store, Running()) == ["stop source|task-0"]


@pytest.mark.parametrize("confirms", [True, False])
def test_a_process_waits_until_it_is_confirmed_or_stopped(confirms: bool) -> None:
    ours, theirs = Pipe()
    ours.send_bytes(encode(messages.Resume()))
    link = Link(Line(theirs, on_orphaned=lambda: None))
    link.open()
    ours.send_bytes(encode(messages.OwnershipConfirmed(0) if confirms else messages.Stop()))
    if confirms:
        confirm_ownership(Control(link))
    else:
        with pytest.raises(StopRequested):
            confirm_ownership(Control(link))
    assert decode(ours.recv_bytes()) == messages.ConfirmOwnership(0)
    ours.close()
