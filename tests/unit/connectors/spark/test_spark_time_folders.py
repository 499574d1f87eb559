"""The folders of time-based partitioners, as Joda-Time and the storage sinks make them."""

from __future__ import annotations

import datetime as dt
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect.java.joda_format import JodaFormat
from connectors.spark.decoding.placement import FOLDER_COLUMN, Extractor, Placement
from connectors.spark.time_folders import DAY_MS, HOUR_MS, TimeFolders

HOURS = "'year'=YYYY/'month'=MM/'day'=dd/'hour'=HH"
NEW_YORK, SAO_PAULO, BEIRUT = "America/New_York", "America/Sao_Paulo", "Asia/Beirut"


def instant(text: str) -> int:
    return int(dt.datetime.fromisoformat(text).timestamp() * 1000)


@pytest.mark.parametrize(
    ("zone", "duration", "at", "folder"),
    [
        ("UTC", HOUR_MS, "2013-01-01T05:59:59.999+00:00", "year=2013/month=01/day=01/hour=05"),
        ("Asia/Kolkata", HOUR_MS, "2013-01-01T00:29:00+00:00", "year=2013/month=01/day=01/hour=05"),
        ("Asia/Kolkata", HOUR_MS, "2013-01-01T00:30:00+00:00", "year=2013/month=01/day=01/hour=06"),
        # The clocks go back: both hours have one folder.
        (NEW_YORK, HOUR_MS, "2013-11-03T05:30:00+00:00", "year=2013/month=11/day=03/hour=01"),
        (NEW_YORK, HOUR_MS, "2013-11-03T06:30:00+00:00", "year=2013/month=11/day=03/hour=01"),
        (NEW_YORK, HOUR_MS, "2013-11-03T07:00:00+00:00", "year=2013/month=11/day=03/hour=02"),
        # They go forward: there is no hour 2.
        (NEW_YORK, HOUR_MS, "2013-03-10T06:59:59+00:00", "year=2013/month=03/day=10/hour=01"),
        (NEW_YORK, HOUR_MS, "2013-03-10T07:00:00+00:00", "year=2013/month=03/day=10/hour=03"),
        # A day that begins at one: west and east of Greenwich.
        (SAO_PAULO, DAY_MS, "2018-11-04T12:00:00+00:00", "year=2018/month=11/day=04/hour=01"),
        (BEIRUT, DAY_MS, "2018-03-25T12:00:00+00:00", "year=2018/month=03/day=25/hour=01"),
        # Before 1970 a span is counted towards 1970.
        ("UTC", HOUR_MS, "1969-12-31T23:30:00+00:00", "year=1970/month=01/day=01/hour=00"),
    ],
)
def test_a_span_of_local_time_has_one_folder(zone: str, duration: int, at: str, folder: str) -> None:
    assert TimeFolders(HOURS, duration, zone).folder(instant(at)) == folder


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("YYYY-yyyy-yy", "2024-2024-24"),
        ("xxxx-'W'ww-e", "2025-W01-2"),
        ("C/D/d", "20/366/31"),
        ("MMM MMMM EEE EEEE a", "Dec December Tue Tuesday PM"),
        ("HH:mm:ss.SSS S SSSSS", "13:05:01.250 2 25000"),
        ("h K k", "1 1 13"),
        ("Z ZZ ZZZ", "+0100 +01:00 Europe/Berlin"),
        ("''yyyy'' 'o''clock'", "'2024' o'clock"),
    ],
)
def test_patterns_are_those_of_joda_time(pattern: str, text: str) -> None:
    zone = ZoneInfo("Europe/Berlin")
    at = instant("2024-12-31T12:05:01.25+00:00")
    assert JodaFormat(pattern, zone).format(at, at + HOUR_MS) == text


@pytest.mark.parametrize(("pattern", "reason"), [("'year", "a quote"), ("bb", "'bb'"), ("zzzz", "long name")])
def test_a_pattern_that_is_none_is_refused(pattern: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        JodaFormat(pattern, ZoneInfo("UTC"))


@given(
    st.integers(-2_000_000_000_000, 4_000_000_000_000),
    st.sampled_from(["UTC", NEW_YORK, BEIRUT, "Asia/Kathmandu", "Africa/Monrovia", "Australia/Lord_Howe"]),
    st.sampled_from([60_000, 900_000, HOUR_MS, DAY_MS]),
)
def test_instants_with_one_in_common_have_its_folder(at: int, zone: str, duration: int) -> None:
    folders = TimeFolders(HOURS, duration, zone)
    assert folders.folder(folders.common_instant(at)) == folders.folder(at)


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
    folders, refused = placed(pa.array(["1970-01-01", None, "soon", "1970-01-02"]))
    assert folders == ["1970-01-01", "1970-01-02"]
    assert refused[1] == "timestamp.field=at has no value"
    assert refused[2].startswith("timestamp.field=at tells no time: ")
    assert placed(pa.array([2**62, 0], pa.int64())) == (
        ["1970-01-01"],
        {0: f"timestamp.field=at tells no time: {2**62} ms is beyond the years 2 to 9998"},
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
