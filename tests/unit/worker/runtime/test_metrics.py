"""What a task reports, and how what it reports says when the next report is due."""

from __future__ import annotations

import pytest

from connect.internals.chain.tolerance import ErrorCounts
from connect.measurement import Measurement
from worker.messages import messages
from worker.messages.messages import Metrics, Unchanged
from worker.metrics.snapshot import POLL
from worker.runtime.metrics import ActiveTopics, ReportPace, TaskMetrics


class Reporting:
    """A task whose clock goes on to the next report with each report."""

    def __init__(self) -> None:
        self.now = 0.0
        self.sent: list[Metrics | Unchanged] = []
        self.cpu = 0.0
        self.metrics = TaskMetrics(
            self.sent.append, ErrorCounts(), lambda: self.cpu, pace=ReportPace(lambda: self.now, 0.0)
        )

    @property
    def told(self) -> list[Metrics]:
        """The reports with figures."""
        return [report for report in self.sent if isinstance(report, Metrics)]

    def report(self) -> float:
        """Report; the seconds until the next report."""
        before = self.now
        self.metrics.report()
        self.now = self.metrics.next_report
        return self.now - before


def test_a_task_reports_less_and_less_often_until_something_is_counted_or_measured() -> None:
    task = Reporting()
    assert [task.report() for _ in range(4)] == [2.5, 2.5, 5.0, 10.0]
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
    assert [task.report() for _ in range(4)] == [2.5, 2.5, 5.0, 10.0]
    assert task.told[0].values["sink-record-read-rate"] > 0.0


def test_commits_of_a_task_that_moves_nothing_make_it_report_no_more_often() -> None:
    task = Reporting()
    pauses = []
    for _ in range(5):
        task.metrics.timings.committed(0.1)
        pauses.append(task.report())
    assert pauses == [2.5, 2.5, 5.0, 10.0, 20.0]
    assert task.told[-1].histograms["offset-commit"][0] == pytest.approx(0.5)
    task.now -= 10.0
    task.metrics.report_soon()
    assert task.metrics.next_report == task.now + 1.0


def test_a_task_whose_figures_are_those_of_its_last_report_says_only_that() -> None:
    task = Reporting()
    task.metrics.gauge("sink-record-lag", 7.0)
    task.metrics.own([Measurement("queue_length", 3, "Waiting.")])
    task.report()
    task.report()
    task.cpu = 0.25
    task.report()
    assert [type(report) for report in task.sent] == [Metrics, Unchanged, Unchanged]
    assert task.sent[-1] == Unchanged(0.25)
    task.metrics.own([Measurement("queue_length", 4, "Waiting.")])
    task.report()
    assert task.told[-1].own == [("queue_length", [], "Waiting.", 4.0)]
    task.metrics.gauge("sink-record-lag", 8.0)
    task.report()
    assert task.told[-1].values["sink-record-lag"] == 8.0


def test_a_topic_is_reported_on_first_use_and_again_when_it_is_used_five_seconds_later() -> None:
    now = 0.0
    sent: list[messages.ActiveTopics] = []
    active = ActiveTopics(sent.append, enabled=True, now=lambda: now)
    for now in (0.0, 2.0, 4.0, 6.0, 8.0, 11.0):
        active.see(("a", "b") if now == 4.0 else ("a",))
    assert [report.topics for report in sent] == [["a"], ["b"], ["a"], ["a"]]


def test_topics_are_not_reported_where_their_tracking_is_off() -> None:
    sent: list[messages.ActiveTopics] = []
    ActiveTopics(sent.append, enabled=False).see(("a",))
    assert sent == []
