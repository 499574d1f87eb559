"""What captures measure of themselves, under Debezium's names."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

import pytest

from connect.kits.cdc.measurements import CaptureLabels, SnapshotNumbers, StreamNumbers
from connect.measurement import Measurement
from worker.metrics.debezium import debezium_name

LABELS = CaptureLabels("postgres", "shop")
OF_ALL = {
    "Connected",
    "MilliSecondsBehindSource",
    "MilliSecondsSinceLastEvent",
    "TotalNumberOfEventsSeen",
    "TotalNumberOfCreateEventsSeen",
    "TotalNumberOfUpdateEventsSeen",
    "TotalNumberOfDeleteEventsSeen",
    "NumberOfCommittedTransactions",
}


def served(measurements: Iterable[Measurement]) -> dict[str, float]:
    """Return the attributes of Debezium, with their values."""
    found = {}
    for each in measurements:
        named = debezium_name((each.name, tuple(chain.from_iterable(each.labels))))
        if named is not None:
            found[named[0].name.removeprefix("debezium_metrics_")] = named[0].value(each.value)
    return found


@pytest.mark.parametrize(
    ("numbers", "more"),
    [
        (StreamNumbers(is_connected=True), {}),
        (
            StreamNumbers(is_connected=True, lag_bytes=7, captured_tables=0),
            {"BytesBehindSource": 7, "CapturedTables": 0},
        ),
        (StreamNumbers(is_connected=True, log_position=4), {"BinlogPosition": 4}),
    ],
    ids=["mongodb", "postgresql", "mysql"],
)
def test_of_a_stream_only_what_is_measured_is_served(numbers: StreamNumbers, more: dict[str, float]) -> None:
    found = served(numbers.measurements(LABELS))
    assert found.keys() == OF_ALL | more.keys()
    assert {name: found[name] for name in more} == more


def test_snapshots_are_served_by_table() -> None:
    numbers = SnapshotNumbers(is_running=True, tables=2, remaining_tables=1, seconds=1.5, rows={"public.t": 3})
    assert served(numbers.measurements(LABELS)) == {
        "TotalTableCount": 2,
        "RemainingTableCount": 1,
        "SnapshotRunning": 1,
        "SnapshotPaused": 0,
        "SnapshotCompleted": 0,
        "SnapshotDurationInSeconds": 1.5,
        "RowsScanned": 3,
    }
