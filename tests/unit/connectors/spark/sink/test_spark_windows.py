"""When windows by the time of events are complete, and what is kept of those that are not."""

from __future__ import annotations

import json
import random

import pytest

from connect.config import ConfigValue
from connectors.spark.sink.config import SparkSinkConfig
from connectors.spark.sink.sql.windows import Heard, OpenWindows, WindowPolicy

NOW = 10_000_000
POLICY = WindowPolicy("at", 1000, 100, "emit", 60_000)
QUERY = {"store.url": "/lake", "sql": "SELECT * FROM records"}
REST = {"table.format": "iceberg", "iceberg.catalog.type": "rest", "iceberg.catalog.uri": "http://rest:8181"}
LATE = {"sql.window.ms": "1000", "sql.window.time": "at", "sql.window.late": "dead-letter"}


def cut_of(*latest: int | None, policy: WindowPolicy = POLICY, before: OpenWindows | None = None) -> int | None:
    return (before or OpenWindows()).after(policy, dict(enumerate(latest)), NOW).cut


def test_a_window_is_complete_when_every_partition_is_past_its_end_and_the_delay() -> None:
    assert cut_of(5099) == 4000
    assert cut_of(5100) == 5000
    assert cut_of(9000, 5100) == 5000
    assert cut_of(9000, None) == 8000, "a partition that has never had a time is not waited for"
    assert cut_of(None) is None
    assert cut_of() is None
    assert cut_of(-950) == -2000, "times before 1970 have windows too"


def test_the_end_of_complete_windows_never_goes_back() -> None:
    before = OpenWindows(8000, {0: Heard(8500, NOW), 1: Heard(8600, NOW)})
    assert cut_of(100, 200, before=before) == 8000
    assert cut_of(100, 9900, before=before) == 8000, "the newest time of a partition does not go back either"
    assert cut_of(9100, before=before) == 8000, "the other partition is waited for"
    assert cut_of(9100, 9100, before=before) == 9000


def test_an_idle_partition_is_waited_for_a_while() -> None:
    before = OpenWindows(None, {1: Heard(1500, NOW - POLICY.idle)})
    assert cut_of(9100, before=before) == 1000
    before = OpenWindows(None, {1: Heard(1500, NOW - POLICY.idle - 1)})
    assert cut_of(9100, before=before) == 9000


def test_a_time_that_is_yet_to_come_counts_as_now() -> None:
    after = OpenWindows().after(POLICY, {0: NOW * 50}, NOW)
    assert (after.cut, after.partitions) == (NOW - 1000, {0: Heard(NOW, NOW)})


def test_no_record_within_the_delay_is_late() -> None:
    dice = random.Random(4)
    for _ in range(200):
        windows, clocks = OpenWindows().after(POLICY, {0: 0, 1: 0, 2: 0}, NOW), [0, 0, 0]
        for _ in range(20):
            latest: dict[int, int | None] = {}
            for partition in range(3):
                times = []
                for _ in range(dice.randrange(4)):
                    clocks[partition] += dice.randrange(800)
                    times.append(clocks[partition] - dice.randrange(POLICY.delay + 1))
                assert windows.cut is not None
                assert all(time >= windows.cut for time in times)
                if times:
                    latest[partition] = max(times)
            windows = windows.after(POLICY, latest, NOW)


def test_a_manifest_has_them() -> None:
    windows = OpenWindows(8000, {0: Heard(8500, NOW), 12: Heard(-1, NOW)}, ("a/b", "a/c"))
    assert OpenWindows.from_json(json.loads(json.dumps(windows.to_json()))) == windows
    assert OpenWindows.from_json(OpenWindows().to_json()) == OpenWindows()


@pytest.mark.parametrize(
    ("given", "key", "text"),
    [
        ({"sql.window.ms": "1000"}, "sql.window.time", "Name the column"),
        ({"sql.window.time": "at"}, "sql.window.time", "There are no windows"),
        ({"sql.window.ms": "1000", "sql.window.time": "at", "sql": None}, "sql.window.ms", "set sql"),
        ({"sql.window.ms": "1000", "sql.window.time": "at", "store.url": None, **REST}, "store.url", "windows hold"),
        ({**LATE, "errors.tolerance": "all"}, "sql.window.late", "errors.deadletterqueue.topic.name"),
        ({**LATE, "errors.deadletterqueue.topic.name": "bad"}, "sql.window.late", "errors.tolerance=all"),
        ({"sql.window.ms": "10", "sql.window.time": "at"}, "sql.window.ms", "at least 1000"),
        ({"sql.window.late": "keep"}, "sql.window.late", "keep"),
    ],
)
def test_what_is_wrong_with_the_keys_is_said(given: dict[str, str | None], key: str, text: str) -> None:
    pytest.importorskip("pyspark")
    values: tuple[ConfigValue, ...] = SparkSinkConfig.validate(
        {name: value for name, value in {**QUERY, **given}.items() if value is not None}
    )
    errors = next(value.errors for value in values if value.name == key)
    assert any(text in error for error in errors), errors


@pytest.mark.parametrize("place", [{"table.format": "delta"}, {"table.format": "iceberg"}, {"store.url": "s3://b/c"}])
def test_tables_of_any_format_in_any_store_may_have_windows(place: dict[str, str]) -> None:
    pytest.importorskip("pyspark")
    values = SparkSinkConfig.validate({**QUERY, "sql.window.ms": "1000", "sql.window.time": "at", **place})
    assert not [value.errors for value in values if value.name.startswith("sql.") and value.errors]


def test_the_policy_of_a_configuration() -> None:
    pytest.importorskip("pyspark")
    config = SparkSinkConfig.parse({**QUERY, "sql.window.ms": "3600000", "sql.window.time": "event.at"})
    assert config.windows == WindowPolicy("event.at", 3_600_000, 60_000, "emit", 600_000)
    assert SparkSinkConfig.parse(QUERY).windows is None
