"""What statuses come to."""

from __future__ import annotations

from worker.cli.status_summary import failures, hanging, summed


def test_the_connector_and_its_tasks_may_have_failed() -> None:
    running, failed = {"state": "RUNNING", "worker_id": "w:1"}, {"state": "FAILED", "worker_id": "w:2", "trace": "no"}
    status = {"name": "c", "connector": failed, "tasks": [{"id": 0, **running}, {"id": 1, **failed}]}
    found = [(failure.task, failure.worker_id, failure.cause) for failure in failures(status)]
    assert found == [(None, "w:2", "no"), (1, "w:2", "no")]


def test_what_hangs_is_told_with_its_line() -> None:
    hang = {"method": "put", "since": "2026-11-22T12:14:05Z", "line": "bad.py:22", "trace": "Stack"}
    running = {"state": "RUNNING", "worker_id": "w:1"}
    status = {"name": "c", "connector": running, "tasks": [{"id": 0, **running}, {"id": 1, **running, "hanging": hang}]}
    assert hanging(status) == [("task 1: put has not returned since 2026-11-22T12:14:05Z: bad.py:22", "Stack")]
    assert failures(status) == []


def test_states_are_summed_up() -> None:
    assert summed(["FAILED", "PAUSED", "PAUSED"]).replace("\x1b", "").count("2") >= 1
    assert summed([]) == "none"
