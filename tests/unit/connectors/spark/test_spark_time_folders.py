"""The folders that rows get by their times."""

from __future__ import annotations

import pyarrow as pa
import pytest

from connect.kits.files.time_folders import DAY_MS, TimeFolders
from connectors.spark.decoding.placement import FOLDER_COLUMN, Extractor, Placement


def placed(values: pa.Array) -> tuple[list[str], dict[int, str]]:
    """The folders of the rows, and why others have none."""
    rows = pa.RecordBatch.from_arrays([values], ["at"])
    placement = Placement(TimeFolders("YYYY-MM-dd", DAY_MS, "UTC"), Extractor.RECORD_FIELD, ("at",))
    found = placement.place(rows, 0, None)
    return found.rows.column(FOLDER_COLUMN).to_pylist(), {place: str(error) for place, error in found.refused.items()}


@pytest.mark.parametrize(
    "values",
    [
        pa.array([86_399_999, 86_400_000], pa.int64()),
        pa.array([86_399_999.9, 86_400_000.0], pa.float64()),
        pa.array([86_399_999_999, 86_400_000_000], pa.timestamp("us", "UTC")),
        pa.array(["1970-01-01", "1970-01-02T00:30:00+00:30"]),
        pa.array([0, 1], pa.date32()),
    ],
)
def test_the_time_of_a_field_is_taken_from_any_type_that_tells_one(values: pa.Array) -> None:
    assert placed(values) == (["1970-01-01", "1970-01-02"], {})


def test_rows_without_a_time_are_refused_and_the_others_kept() -> None:
    assert placed(pa.array(["2026-03-31T24:00:00Z", "2026-03-31T24:00"])) == (["2026-04-01"] * 2, {})
    folders, refused = placed(pa.array(["1970-01-01", None, "soon", "1970-01-02"]))
    assert folders == ["1970-01-01", "1970-01-02"]
    assert refused[1] == "timestamp.field=at has no value"
    assert refused[2].startswith("timestamp.field=at tells no time: ")
    assert placed(pa.array([2**62, 0], pa.int64())) == (
        ["1970-01-01"],
        {0: f"timestamp.field=at tells no time: {2**62} ms is beyond the years 1 to 9999"},
    )


def test_records_and_the_wall_clock_tell_the_time_as_well() -> None:
    rows = pa.RecordBatch.from_arrays([pa.array([1, 2])], ["id"])
    times = TimeFolders("YYYY", DAY_MS, "UTC")
    by_record = Placement(times, Extractor.RECORD)
    assert by_record.reads_timestamps
    folders = by_record.place(rows, 0, pa.array([0, 40_000_000_000], pa.int64())).rows.column(FOLDER_COLUMN)
    assert folders.to_pylist() == ["1970", "1971"]
    by_clock = Placement(times, now=80_000_000_000)
    assert by_clock.place(rows, 0, None).rows.column(FOLDER_COLUMN).to_pylist() == ["1972", "1972"]
    assert Placement().place(rows, 7, None).rows.column(FOLDER_COLUMN).to_pylist() == ["partition=7"] * 2
