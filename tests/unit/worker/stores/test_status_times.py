"""Since when a unit is in its state, and since when it runs."""

from __future__ import annotations

import pytest

from worker.stores.status.store import State, Status

UNASSIGNED, RUNNING, PAUSED, FAILED = State.UNASSIGNED, State.RUNNING, State.PAUSED, State.FAILED


def times(*states: tuple[State, str]) -> list[tuple[int | None, int | None]]:
    """When each of these statuses has changed, and when the unit started; they follow each other by ten."""
    before, found = None, []
    for number, (state, worker) in enumerate(states):
        before = Status(state, worker, 1).after(before, 10 * number)
        found.append((before.changed, before.started))
    return found


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        ([UNASSIGNED, RUNNING, RUNNING], [(0, None), (10, 10), (10, 10)]),
        ([UNASSIGNED, RUNNING, PAUSED, RUNNING], [(0, None), (10, 10), (20, 10), (30, 10)]),
        ([UNASSIGNED, RUNNING, FAILED, FAILED], [(0, None), (10, 10), (20, 10), (20, 10)]),
        ([RUNNING, State.RESTARTING, RUNNING], [(0, 0), (10, None), (20, 20)]),
        ([RUNNING, State.STOPPED], [(0, 0), (10, None)]),
        ([UNASSIGNED, FAILED], [(0, None), (10, None)]),
    ],
)
def test_the_times_of_a_unit(states: list[State], expected: list[tuple[int | None, int | None]]) -> None:
    assert times(*((state, "here") for state in states)) == expected


def test_another_worker_begins_anew() -> None:
    assert times((RUNNING, "here"), (RUNNING, "there")) == [(0, 0), (10, 10)]
    before = Status(RUNNING, "here", 1)
    assert before.changed is None, "a worker of Kafka Connect tells no times"
    assert Status(RUNNING, "here", 1).after(before, 7).started == 7
