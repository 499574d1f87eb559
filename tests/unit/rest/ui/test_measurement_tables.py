"""What plugins measure of themselves, as tables."""

from __future__ import annotations

from typing import Any

import pytest

from equipment.growth import assert_grows_evenly
from rest.ui.measurements import MeasuredRow, MeasuredTable, measured_tables


def measured(name: str, value: float | None, **labels: str) -> dict[str, Any]:
    """One number, as REST gives it."""
    return {"name": name, "labels": labels, "value": value, "help": f"What {name} is."}


def task(number: int, *measurements: dict[str, Any]) -> dict[str, Any]:
    """A task with these numbers."""
    return {"id": number, "worker_id": "here:1", "measurements": list(measurements)}


def test_labels_make_rows_and_names_make_columns_and_the_worst_is_on_top() -> None:
    found = measured_tables(
        [
            task(0, measured("lag", 3.0, topic="a", partition="0"), measured("age", 1.0, topic="a", partition="0")),
            task(1, measured("lag", 9.0, partition="1", topic="a"), measured("again", 5.0, group="g")),
        ]
    )
    assert found == [
        MeasuredTable(
            ("topic", "partition"),
            (("lag", "What lag is."), ("age", "What age is.")),
            (MeasuredRow(1, ("a", "1"), (9.0, None)), MeasuredRow(0, ("a", "0"), (3.0, 1.0))),
            2,
            2,
        ),
        MeasuredTable(("group",), (("again", "What again is."),), (MeasuredRow(1, ("g",), (5.0,)),), 1, 1),
    ]
    assert all(table.is_whole for table in found)


def test_no_numbers_are_no_tables() -> None:
    assert measured_tables([task(0)]) == []


def test_fifty_rows_are_shown_and_all_are_counted() -> None:
    lags = [measured("lag", float(lag), partition=str(lag)) for lag in range(60)]
    table = measured_tables([task(0, *lags)])[0]
    assert [row.values for row in table.rows] == [(float(lag),) for lag in range(59, 9, -1)]
    assert (table.rows_in_all, table.is_whole) == (60, False)


def test_thirty_columns_and_twenty_tables_are_shown() -> None:
    table = measured_tables([task(0, *(measured(f"n{number}", 1.0) for number in range(31)))])[0]
    assert (len(table.columns), table.columns_in_all, table.is_whole) == (30, 31, False)
    assert len(measured_tables([task(0, *(measured("n", 1.0, **{f"l{each}": ""}) for each in range(21)))])) == 20


@pytest.mark.growth
def test_names_and_labels_that_are_all_different_cost_what_they_are_many() -> None:
    def numbers(size: int) -> list[dict[str, Any]]:
        return [task(0, *(measured(f"n{each}", 1.0, label=str(each)) for each in range(size)))]

    assert_grows_evenly(measured_tables, numbers, 2_000)
