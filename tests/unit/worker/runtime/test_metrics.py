"""How often a task reports its numbers."""

from __future__ import annotations

import time

from connect.chain.tolerance import ErrorCounts
from worker.metrics.buckets import POLL
from worker.runtime.metrics import TaskMetrics
from worker.supervisor.messages.messages import Metrics


def pauses_for(metrics: TaskMetrics, seconds: float) -> bool:
    before = time.monotonic()
    metrics.report()
    return before + seconds <= metrics.next_report <= time.monotonic() + seconds


def test_a_task_that_rests_reports_less_and_less_often_until_something_moves() -> None:
    told: list[Metrics] = []
    metrics = TaskMetrics(told.append, ErrorCounts())
    assert [pauses_for(metrics, seconds) for seconds in (1.0, 5.0, 10.0, 20.0, 20.0)] == [True] * 5
    assert len(told) == 5
    metrics.count("sink-record-read-total", 1)
    assert metrics.next_report <= time.monotonic() + 1.0
    assert pauses_for(metrics, 1.0)


def test_rates_and_means_that_pass_away_make_no_task_report_more_often() -> None:
    told: list[Metrics] = []
    metrics = TaskMetrics(told.append, ErrorCounts())
    metrics.count("sink-record-read-total", 5)
    metrics.timings.took(POLL, 0.1)
    assert [pauses_for(metrics, seconds) for seconds in (1.0, 5.0, 10.0, 20.0)] == [True] * 4
    assert told[0].values["sink-record-read-rate"] > 0.0
    metrics.gauge("sink-record-lag", 7.0)
    assert pauses_for(metrics, 1.0)
    assert told[-1].values["sink-record-lag"] == 7.0
