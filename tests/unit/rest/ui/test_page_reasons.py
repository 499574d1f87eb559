"""Why a connector is not well: what is worst first, and told once for all tasks that it has befallen."""

from __future__ import annotations

from typing import Any

from rest.ui.reasons import Reason, reasons_of
from rest.ui.summaries import Trouble

TRACE = "Traceback (most recent call last):\n  File x\nconnect.errors.ConnectError: no.\nDo this.\n"


def part(state: str = "RUNNING", **more: Any) -> dict[str, Any]:
    return {"state": state, "worker_id": "w:8083", **more}


def status(*tasks: dict[str, Any], own: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    return {"connector": own or part(), "tasks": [{"id": number, **task} for number, task in enumerate(tasks)], **more}


def test_what_is_well_has_no_reason() -> None:
    assert reasons_of(None) == []
    assert reasons_of(status(part(), part("PAUSED"))) == []


def test_tasks_that_failed_alike_share_a_reason_since_the_first() -> None:
    failed = [part("FAILED", trace=TRACE, changed_at=f"2026-01-0{day}T00:00:00Z") for day in (2, 1)]
    assert reasons_of(status(failed[0], part(), failed[1])) == [
        Reason(Trouble.FAILED, "Why tasks 0 and 2 failed", ("no.\nDo this.",), "2026-01-01T00:00:00Z", TRACE)
    ]


def test_the_worst_is_told_first() -> None:
    hang = {"method": "put", "since": "2026-01-01T00:00:00Z", "line": "x.py:3", "trace": "t"}
    found = reasons_of(
        status(
            part(waiting={"reason": "Topic a does not exist.", "since": "2026-01-03T00:00:00Z"}),
            part(hanging=hang),
            part("RESTARTING", trace=TRACE),
            own=part("FAILED"),
            skipped={"reason": "no JSON", "since": "2026-01-02T00:00:00Z"},
        )
    )
    assert [(reason.title, reason.messages[0]) for reason in found] == [
        ("Why the connector failed", "unknown; see the worker's log"),
        ("Why task 2 was restarted", "no.\nDo this."),
        ("Where task 1 hangs", "The plugin's call of put has not returned. It is at x.py:3."),
        ("Why the last record was skipped", "no JSON"),
        ("What task 0 waits for", "Topic a does not exist."),
    ]


def test_many_tasks_are_counted() -> None:
    failed = part("FAILED", trace="no")
    titles = [reason.title for reason in reasons_of(status(*[failed] * 6, own=failed))]
    assert titles == ["Why the connector and 6 tasks failed"]
