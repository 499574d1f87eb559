"""What tasks note for scrapes."""

from __future__ import annotations

from worker.metrics.snapshot import BOUNDS, COMMIT, LATENCY, PUT
from worker.runtime.metrics import Timings, Window


def test_a_window_forgets_after_thirty_seconds() -> None:
    window = Window()
    assert window.look(0.0) is None
    for value in (1.0, 5.0):
        window.add(value)
    assert window.look(1.0) == (3.0, 5.0)
    window.add(0.0)
    assert window.look(20.0) == (2.0, 5.0)
    assert window.look(31.0) == (0.0, 0.0)
    assert window.look(50.0) is None


def test_times_are_told_in_milliseconds_and_sizes_as_they_are() -> None:
    timings = Timings(0.0)
    timings.took(PUT, 0.25)
    timings.took(PUT, 0.75)
    timings.size("batch-size", 500)
    timings.gauge("sink-record-active-count", 7)
    timings.count("offset-commit-completion-total", 20)
    assert timings.values(10.0) == {
        "put-batch-avg-time-ms": 500.0,
        "put-batch-max-time-ms": 750.0,
        "batch-size-avg": 500.0,
        "batch-size-max": 500.0,
        "sink-record-active-count": 7,
        "offset-commit-completion-total": 20.0,
        "offset-commit-completion-rate": 2.0,
    }


def test_commits_succeed_and_fail_in_shares() -> None:
    timings = Timings(0.0)
    for _ in range(3):
        timings.committed(0.5)
    timings.not_committed()
    values = timings.values(1.0)
    assert (values["offset-commit-success-percentage"], values["offset-commit-failure-percentage"]) == (0.75, 0.25)
    assert timings.histograms()[COMMIT][0] == 1.5


def test_each_value_is_in_the_first_bucket_that_holds_it() -> None:
    timings = Timings(0.0)
    for seconds in (*BOUNDS[LATENCY], 0.0, -5.0, 1e9):
        timings.late(seconds)
    total, *counts = timings.histograms()[LATENCY]
    assert counts == [3, 1, 1, 1, 1, 1]
    assert total == sum(BOUNDS[LATENCY]) + 1e9
