"""How often a task reports its numbers."""

from __future__ import annotations

import time

from connect.chain.tolerance import ErrorCounts
from worker.runtime.metrics import TaskMetrics
from worker.supervisor.messages.messages import Metrics


def test_a_task_that_rests_reports_less_and_less_often_until_something_moves() -> None:
    told: list[Metrics] = []
    metrics = TaskMetrics(told.append, ErrorCounts())

    def pauses_for(seconds: float) -> bool:
        before = time.monotonic()
        metrics.report()
        return before + seconds <= metrics.next_report <= time.monotonic() + seconds

    assert [pauses_for(seconds) for seconds in (1.0, 5.0, 10.0, 20.0, 20.0)] == [True] * 5
    assert len(told) == 5
    metrics.count("sink-record-read-total", 1)
    assert metrics.next_report <= time.monotonic() + 1.0
    assert pauses_for(1.0)
