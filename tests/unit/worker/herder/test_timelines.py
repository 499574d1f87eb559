"""What the statuses of a connector, one following the other, say has happened to it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from connect.errors import NotFoundError
from connect.internals.plugins import PluginRegistry
from equipment.fakes.herding import Place, WorkedInbox
from worker.herder.connectors.connectors import Connectors, TopicTracking
from worker.herder.requests import Requests
from worker.herder.timelines import MOST_EVENTS, Happening, Timelines, happened
from worker.metrics.measurements import Measurements
from worker.stores.config.store import MemoryConfigStore
from worker.stores.status.store import Hang, MemoryStatusStore, Skips, State, Status, Wait
from worker.unit import Unit

TASK, OTHER, CONNECTOR = Unit("c", 0), Unit("c", 1), Unit("c")
RUNNING = Status(State.RUNNING, "a:1", 1, changed=5_000)
FAILED = Status(State.FAILED, "a:1", 1, trace="no space\n\nTraceback", changed=6_000)
HANG, WAIT = Hang("put", "2026-11-29T10:00:00Z", "p.py:3", ""), Wait("Topic t does not exist", "2026-11-29T10:00:00Z")
AGAIN = "1 restart since it last ran for long"
SKIPS = Skips(3, 2, "2026-11-29T10:00:00Z", "2026-11-29T10:00:05Z", "no JSON")


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        (None, RUNNING, [(5.0, "started", "")]),
        (RUNNING, FAILED, [(6.0, "failed", "no space")]),
        (
            FAILED,
            replace(RUNNING, restarts=1),
            [(5.0, "restarted by restart.policy", AGAIN)],
        ),
        (RUNNING, replace(RUNNING, worker_id="b:1"), [(9.0, "moved", "from a:1")]),
        (Status(State.UNASSIGNED, "a:1", 1), replace(RUNNING, worker_id="b:1"), [(5.0, "started", "moved from a:1")]),
        (RUNNING, replace(RUNNING, hanging=HANG), [(9.0, "hangs", "put has not returned, at p.py:3")]),
        (replace(RUNNING, hanging=HANG), RUNNING, [(9.0, "no longer hangs", "")]),
        (RUNNING, replace(RUNNING, waiting=WAIT), [(9.0, "waits", "Topic t does not exist")]),
        (replace(RUNNING, waiting=WAIT), RUNNING, [(9.0, "no longer waits", "")]),
        (RUNNING, replace(RUNNING, generation=2), []),
        (None, Status(State.UNASSIGNED, "a:1", 1), []),
        (RUNNING, Status(State.UNASSIGNED, "a:1", 1), [(9.0, "without a worker", "")]),
    ],
)
def test_a_status_that_follows_another_tells(
    before: Status | None, after: Status, found: list[tuple[float, str, str]]
) -> None:
    assert [(event.at, event.what.value, event.text) for event in happened(TASK, before, after, 9.0)] == found


def test_lost_records_are_told_with_the_reason_of_the_last() -> None:
    (event,) = happened(TASK, RUNNING, replace(RUNNING, skipped=SKIPS), 9.0)
    assert (event.what, event.text) == (Happening.LOST, "3 records since the start (2 dead letters), the last: no JSON")


class Worker:
    """A worker's timelines, told of statuses by its store."""

    def __init__(self) -> None:
        self.inbox, self.statuses = WorkedInbox(), MemoryStatusStore()
        configs = MemoryConfigStore()
        configs.put_connector("c", {"name": "c"}, None)
        measurements = Measurements("a:1", self.statuses, Place(), self.inbox, None, self.inbox.time)
        connectors = Connectors(configs, self.statuses, PluginRegistry([]), TopicTracking(), measurements)
        self.timelines = Timelines(Requests(self.inbox), connectors, lambda: 9.0)
        self.statuses.heard = self.timelines.heard

    def told(self) -> list[tuple[str, tuple[int, ...], int]]:
        request = self.timelines.of("c")
        self.inbox.work()
        return [(event.what.value, event.tasks, event.count) for event in request.result(0)]


def test_what_happens_to_several_tasks_at_once_is_one_event() -> None:
    worker = Worker()
    for unit in (CONNECTOR, TASK, OTHER):
        worker.statuses.put(unit, RUNNING)
    worker.statuses.put(TASK, FAILED)
    assert worker.told() == [("failed", (0,), 1), ("started", (0, 1), 2), ("started", (), 1)]


def test_the_newest_events_are_kept_until_the_connector_is_deleted() -> None:
    worker = Worker()
    for number in range(MOST_EVENTS):
        worker.statuses.put(TASK, replace(RUNNING, changed=1000 * number))
        worker.statuses.put(TASK, replace(FAILED, trace=f"error {number}", changed=1000 * number))
    assert len(worker.told()) == MOST_EVENTS
    assert worker.told()[0] == ("failed", (0,), 1)
    worker.statuses.remove(TASK)
    worker.statuses.remove(CONNECTOR)
    assert worker.told() == []


def test_losses_of_a_task_are_one_event_that_grows() -> None:
    worker = Worker()
    worker.statuses.put(TASK, RUNNING)
    for records in range(1, 5):
        worker.statuses.put(TASK, replace(RUNNING, skipped=replace(SKIPS, records=records)))
    assert sorted(worker.told()) == [("lost records", (0,), 1), ("started", (0,), 1)]


def test_another_connector_is_not_found() -> None:
    worker = Worker()
    request = worker.timelines.of("other")
    worker.inbox.work()
    with pytest.raises(NotFoundError):
        request.result(0)
