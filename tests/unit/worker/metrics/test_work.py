"""How much of its work a connector has done, and when that is not known."""

from __future__ import annotations

from typing import Any

import pytest

from worker.cli.status_summary import unknown_work, work_text
from worker.metrics.work import Work, last_work, work_of, work_of_loads


def amounts(left: float, total: float, unit: str = "rows") -> dict[str, float]:
    return {f"source-remaining-{unit}": left, f"source-total-{unit}": total}


@pytest.mark.parametrize(
    ("tasks", "expected"),
    [
        ([], None),
        ([{}], None),
        ([{"source-remaining-rows": 5.0}], None),
        ([{"source-total-rows": 5.0}], None),
        ([amounts(25, 100)], Work(75, 100, "rows")),
        ([amounts(0, 100)], None),
        ([amounts(25, 100), amounts(0, 100)], Work(175, 200, "rows")),
        ([amounts(25, 100), {}], None),
        ([amounts(2, 3, "tables") | amounts(25, 100)], Work(75, 100, "rows")),
        ([amounts(2, 3, "tables")], Work(1, 3, "tables")),
        ([amounts(2, 3, "tables") | {"source-remaining-rows": 7.0}], Work(1, 3, "tables")),
        ([amounts(2, 3, "files") | amounts(9, 10, "bytes")], Work(1, 10, "bytes")),
        ([amounts(120, 100)], None),
        ([{"sink-drain-left": 10.0, "sink-drain-total": 40.0}], Work(30, 40, "offsets")),
        ([{"sink-record-lag": 10.0}], None),
    ],
)
def test_the_work_is_known_only_with_its_whole(tasks: list[dict[str, float]], expected: Work | None) -> None:
    assert work_of(tasks) == expected


def test_a_share_is_never_rounded_up_to_the_whole() -> None:
    assert Work(999, 1000, "rows").percent == 99
    assert work_text(Work(999, 1000, "rows")) == "[###################.] 99 % of 1,000 rows"
    assert work_text(Work(0, 2_500_000, "bytes")) == "[....................] 0 % of 2.5 MB"


def test_what_was_last_known_has_its_time() -> None:
    tasks: list[dict[str, Any]] = [
        {"id": 0, "metrics": amounts(25, 100)},
        {"id": 1, "last_metrics": {"at": "2026-11-30T00:00:00Z", "values": amounts(50, 100)}},
    ]
    assert last_work(tasks) == [(1, Work(50, 100, "rows"), "2026-11-30T00:00:00Z")]
    assert unknown_work({"tasks": tasks}) == [
        "The progress of task 1 is unknown; it was [##########..........] 50 % of 100 rows at 2026-11-30T00:00:00Z."
    ]


def load(done: int, total: int, partitions: int = 1) -> dict[str, Any]:
    return {"current": {"records": total, "partitions": partitions, "progress": {"records": done}}}


@pytest.mark.parametrize(
    ("loads", "work"),
    [
        ([], None),
        ([{"current": None}], None),
        ([load(3, 10), load(1, 2), {"current": None}], Work(4, 12, "records")),
        ([load(10, 10)], None),
        ([load(5, 5, partitions=0)], None),
    ],
)
def test_loads_that_run_are_added_up_if_their_records_are_known_before(
    loads: list[dict[str, Any]], work: Work | None
) -> None:
    assert work_of_loads(loads) == work
