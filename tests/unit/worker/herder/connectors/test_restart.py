"""Restart plans (KIP-745)."""

from __future__ import annotations

import pytest

from worker.herder.connectors.restarts import restart_plan, restarting
from worker.stores.status.store import State, Status
from worker.unit import Unit

CONNECTOR, GOOD, BAD = Unit("c"), Unit("c", 0), Unit("c", 1)
STATUSES = {
    CONNECTOR: Status(State.RUNNING, "w", 1),
    GOOD: Status(State.RUNNING, "w", 1),
    BAD: Status(State.FAILED, "w", 1, "a trace"),
    Unit("other"): Status(State.FAILED, "w", 1),
}


@pytest.mark.parametrize(
    ("include_tasks", "only_failed", "units"),
    [
        (False, False, {CONNECTOR}),
        (True, False, {CONNECTOR, GOOD, BAD}),
        (True, True, {BAD}),
        (False, True, set()),
    ],
)
def test_a_plan_has_what_is_asked_for(include_tasks: bool, only_failed: bool, units: set[Unit]) -> None:
    assert restart_plan("c", STATUSES, include_tasks=include_tasks, only_failed=only_failed) == units


def test_what_is_restarted_is_shown_so_and_keeps_its_trace() -> None:
    shown = restarting(STATUSES, frozenset({BAD}))
    assert shown[BAD] == Status(State.RESTARTING, "w", 1, "a trace")
    assert shown[GOOD] is STATUSES[GOOD]
