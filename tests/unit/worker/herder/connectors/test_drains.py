"""Connectors that come to their end in a cluster, as its leader sees them."""

from __future__ import annotations

from equipment.fakes.herding import Place, WorkedInbox
from worker.herder.cluster.leadership import Leadership
from worker.herder.connectors.change_queue import ChangeQueue
from worker.herder.connectors.drains import Drains
from worker.stores.config.store import MemoryConfigStore, TargetState
from worker.stores.status.store import MemoryStatusStore, State, Status
from worker.unit import Unit

CONFIG = {"name": "c", "connector.class": "C", "run.until": "drained"}
DRAINED = Status(State.RUNNING, "there:1", 1, drained=True)
TASK = Unit("c", 0)


class Leader:
    """A leader whose connector runs elsewhere."""

    def __init__(self) -> None:
        self.inbox, self.configs, self.statuses = WorkedInbox(), MemoryConfigStore(), MemoryStatusStore()
        leadership = Leadership(Place(), self.configs, self.inbox)
        turns = ChangeQueue(leadership, self.inbox.post)
        self.drains = Drains(
            self.configs, self.statuses, leadership, turns, self.inbox, lambda _: True, lambda _: False, together=False
        )
        leadership.changed()
        self.inbox.work()
        self.configs.put_connector("c", CONFIG, None)

    def look(self) -> None:
        self.drains.stop_drained()
        self.inbox.work()

    def target(self) -> TargetState:
        return self.configs.connectors()["c"].target


def test_what_another_worker_says_is_noticed_without_anything_else_that_happens() -> None:
    leader = Leader()
    leader.configs.put_task_configs("c", [{"n": "0"}])
    leader.statuses.put(TASK, Status(State.RUNNING, "there:1", 1))
    leader.look()
    leader.statuses.put(TASK, DRAINED)
    leader.inbox.work(seconds=1)
    assert leader.target() is TargetState.STOPPED
    assert leader.configs.connectors()["c"].task_configs == ()


def test_a_new_run_is_not_taken_for_the_one_before() -> None:
    leader = Leader()
    leader.statuses.put(TASK, DRAINED)  # by a worker that was killed before it could remove it
    leader.look()
    leader.configs.put_task_configs("c", [{"n": "0"}])
    leader.inbox.work(seconds=1)
    assert leader.target() is TargetState.STARTED
    assert TASK not in leader.statuses.statuses()
    leader.statuses.put(TASK, DRAINED)
    leader.inbox.work(seconds=1)
    assert leader.target() is TargetState.STOPPED


def test_the_tasks_of_a_stopped_connector_are_their_owners_to_remove() -> None:
    leader = Leader()
    leader.configs.put_target_state("c", TargetState.STOPPED)
    leader.statuses.put(TASK, DRAINED)
    leader.look()
    assert TASK in leader.statuses.statuses()
