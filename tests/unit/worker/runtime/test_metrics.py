"""What a task reports, and how what it reports says when the next report is due."""

from __future__ import annotations

from connect.chain.tolerance import ErrorCounts
from worker.metrics.histograms import POLL
from worker.runtime.metrics import TaskMetrics
from worker.runtime.reports import ReportPace
from worker.supervisor.messages.messages import Metrics


class Reporting:
    """A task whose clock goes on to the next report with each report."""

    def __init__(self) -> None:
        self.now = 0.0
        self.told: list[Metrics] = []
        self.metrics = TaskMetrics(self.told.append, ErrorCounts(), pace=ReportPace(lambda: self.now, 0.0))

    def report(self) -> float:
        """Report; the seconds until the next report."""
        before = self.now
        self.metrics.report()
        self.now = self.metrics.next_report
        return self.now - before


def test_a_task_reports_less_and_less_often_until_something_is_counted_or_measured() -> None:
    task = Reporting()
    assert [task.report() for _ in range(4)] == [2.5, 7.5, 10.0, 20.0]
    task.metrics.gauge("sink-record-lag", 7.0)
    assert task.report() < 5.0
    assert task.told[-1].values["sink-record-lag"] == 7.0
    task.report()
    task.metrics.count("sink-record-read-total", 100)
    assert task.report() == 1.0


def test_rates_and_means_that_pass_away_make_no_task_report_more_often() -> None:
    task = Reporting()
    task.metrics.count("sink-record-read-total", 5)
    task.metrics.timings.took(POLL, 0.1)
    assert [task.report() for _ in range(4)] == [2.5, 7.5, 10.0, 20.0]
    assert task.told[0].values["sink-record-read-rate"] > 0.0
