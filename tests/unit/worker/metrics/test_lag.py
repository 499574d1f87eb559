"""Lag, what remains and rates, as they are shown."""

from __future__ import annotations

from typing import Any

import pytest

from connect.config import Config
from connect.internals.chain.tolerance import ErrorCounts
from connect.source import SourceTask
from worker.herder.offsets.lag import lag_document, source_lag_document
from worker.messages import messages
from worker.runtime.metrics import AMOUNTS, Rates, TaskMetrics, amount_gauges


def test_a_sink_shows_partitions_and_tasks() -> None:
    metrics = {1: {"sink-record-lag": 3.0, "sink-record-send-rate": 1.5}, 0: {}}
    shown = lag_document("s", [("t", 0, 7, 10, 3), ("t", 1, None, 4, 4)], metrics)
    assert shown["lag"] == 7
    assert shown["partitions"][1] == {"topic": "t", "partition": 1, "offset": None, "end_offset": 4, "lag": 4}
    assert shown["tasks"] == [
        {"id": 0, "lag": None, "records_per_second": None},
        {"id": 1, "lag": 3, "records_per_second": 1.5},
    ]


def test_the_lag_in_topics_that_are_not_there_yet_is_unknown() -> None:
    assert lag_document("s", [], {})["lag"] is None


def test_a_gauge_that_is_not_known_any_more_is_gone() -> None:
    metrics = TaskMetrics(lambda _: None, ErrorCounts())
    metrics.gauge("sink-record-lag", 0)
    assert metrics.values() == {"sink-record-lag": 0}
    metrics.gauge("sink-record-lag", None)
    metrics.gauge("sink-record-lag", None)
    assert metrics.values() == {}


def test_a_source_shows_what_remains_by_unit() -> None:
    metrics = {
        0: {"source-remaining-bytes": 10.0, "source-record-write-rate": 2.0},
        1: {"source-remaining-bytes": 5.0, "source-remaining-rows": 1.0},
        2: {"source-record-write-rate": 0.0},
    }
    shown = source_lag_document("s", metrics)
    assert shown["remaining"] == {"bytes": 15, "rows": 1}
    assert shown["tasks"][0] == {"id": 0, "remaining": {"bytes": 10}, "records_per_second": 2.0}
    assert shown["tasks"][2]["remaining"] is None
    assert source_lag_document("s", {})["remaining"] is None


def test_a_rate_is_that_of_the_last_seconds() -> None:
    rates = Rates(0.0)
    assert rates.look(2.0, {"a-total": 10}) == {"a-rate": 5.0}
    for second in range(3, 12):
        rates.look(float(second), {"a-total": 10})
    assert rates.look(13.0, {"a-total": 10, "b-total": 5}) == {"a-rate": 0.0, "b-rate": 0.5}


def test_rates_go_with_the_counters_to_the_worker() -> None:
    sent: list[messages.Metrics] = []
    metrics = TaskMetrics(sent.append, ErrorCounts())
    metrics.count("sink-record-send-total", 3)
    metrics.report()
    assert sent[0].values["sink-record-send-total"] == 3.0
    assert sent[0].values["sink-record-send-rate"] == 3.0, "the first second counts as a whole one"


class Telling(SourceTask[Config]):
    """Tells what it is made with."""

    def __init__(self, left: Any) -> None:
        self.left = left

    def poll(self) -> None:
        return None

    def remaining(self) -> dict[str, int]:
        return dict(self.left)


def test_what_is_told_no_longer_is_known_no_longer() -> None:
    sent: list[messages.Metrics] = []
    metrics = TaskMetrics(sent.append, ErrorCounts())
    metrics.gauge("sink-record-lag", 1)
    metrics.replace(AMOUNTS, {"source-remaining-rows": 5.0, "source-total-rows": 9.0})
    metrics.report()
    metrics.replace(AMOUNTS, {"source-remaining-bytes": 3.0})
    metrics.report()
    assert {name for name in sent[0].values if name.startswith("source-")} == {
        "source-remaining-rows",
        "source-total-rows",
    }
    assert {name for name in sent[1].values if name.startswith("source-")} == {"source-remaining-bytes"}
    assert sent[1].values["sink-record-lag"] == 1


def test_a_task_that_cannot_tell_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    assert amount_gauges(Telling({"bytes": 7})) == {"source-remaining-bytes": 7.0}
    assert amount_gauges(Telling(5)) == {}
    assert "failed to report what remains" in caplog.text
