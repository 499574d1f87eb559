"""What needs attention comes first."""

from __future__ import annotations

from typing import Any

import pytest

from rest.ui.summaries import Trouble, counted, summaries


def part(state: str, **more: Any) -> dict[str, Any]:
    return {"state": state, "worker_id": "w:8083", **more}


def view(state: str, *tasks: dict[str, Any], **more: Any) -> dict[str, Any]:
    numbered = [{"id": number, **task} for number, task in enumerate(tasks)]
    status = {"name": "c", "connector": part(state), "tasks": numbered, "type": "sink", **more}
    return {"status": status, "info": {"config": {"connector.class": "a.b.FileSink"}, "type": "sink"}}


TRACE = "Traceback (most recent call last):\n  File x\nValueError: no\n"
HANGS = {"method": "put", "since": "2026-01-01T00:00:00Z", "line": "x.py:3", "trace": "t"}


@pytest.mark.parametrize(
    ("shown", "trouble", "reason"),
    [
        (view("RUNNING", part("RUNNING")), Trouble.RUNNING, ""),
        (view("RUNNING", part("RUNNING"), part("FAILED", trace=TRACE)), Trouble.FAILED, "Task 1: ValueError: no"),
        (view("FAILED"), Trouble.FAILED, "unknown; see the worker's log"),
        (view("RUNNING", part("UNASSIGNED")), Trouble.UNASSIGNED, ""),
        (view("RUNNING", part("RESTARTING")), Trouble.RESTARTING, ""),
        (view("RUNNING", part("RUNNING", restarts=2)), Trouble.RESTARTING, "Restarted 2 times after failures"),
        (
            view("RUNNING", part("RUNNING", hanging=HANGS)),
            Trouble.HANGING,
            "Task 0: put has not returned, at x.py:3",
        ),
        (
            view("RUNNING", part("RUNNING", metrics={"sink-record-lag": 5, "sink-record-send-rate": 0})),
            Trouble.BEHIND,
            "Records are waiting, but none are delivered",
        ),
        (view("PAUSED", part("PAUSED")), Trouble.PAUSED, ""),
        (view("PAUSED", part("FAILED", trace=TRACE)), Trouble.FAILED, "Task 0: ValueError: no"),
        (view("STOPPED", next_run="2026-01-02T00:00:00Z"), Trouble.STOPPED, "Runs next at 2026-01-02T00:00:00Z"),
        ({"info": {"config": {}, "type": "source"}}, Trouble.UNASSIGNED, ""),
    ],
)
def test_a_connector_is_as_bad_as_its_worst_part(shown: dict[str, Any], trouble: Trouble, reason: str) -> None:
    (connector,) = summaries({"c": shown})
    assert (connector.trouble, connector.reason) == (trouble, reason)


def test_the_worst_come_first_and_are_counted() -> None:
    views = {"b": view("RUNNING"), "a": view("RUNNING"), "z": view("FAILED"), "s": view("STOPPED")}
    connectors = summaries(views)
    assert [connector.name for connector in connectors] == ["z", "a", "b", "s"]
    assert counted(connectors) == {Trouble.FAILED: 1, Trouble.RUNNING: 2, Trouble.STOPPED: 1}


def test_nothing_that_failed_is_a_count_of_its_own() -> None:
    assert counted([]) == {Trouble.FAILED: 0, Trouble.RUNNING: 0}


def test_the_lag_of_a_connector_is_unknown_while_that_of_a_task_is() -> None:
    known = part("RUNNING", metrics={"sink-record-lag": 5.0, "sink-record-send-rate": 2.0})
    (both,) = summaries({"c": view("RUNNING", known, known)})
    assert (both.lag, both.rate) == (10.0, 4.0)
    (one,) = summaries({"c": view("RUNNING", known, part("RUNNING"))})
    assert (one.lag, one.rate) == (None, None)


def test_what_remains_for_a_source_has_its_unit() -> None:
    (found,) = summaries({"c": view("RUNNING", part("RUNNING", metrics={"source-remaining-bytes": 7.0}))})
    assert (found.lag, found.lag_unit) == (7.0, "bytes")
