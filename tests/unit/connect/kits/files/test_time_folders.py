"""The folders of time-based partitioners, as Joda-Time and the storage sinks make them."""

from __future__ import annotations

import datetime as dt
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect.internals.java.joda_format import JodaFormat
from connect.kits.files.time_folders import DAY_MS, HOUR_MS, TimeFolders

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
        # The calendar of today holds for all years, the first and the last of ISO 8601 too.
        ("Europe/Berlin", HOUR_MS, "1500-01-01T00:00:00+00:00", "year=1500/month=01/day=01/hour=01"),
        ("UTC", HOUR_MS, "0001-01-01T00:00:00+00:00", "year=0001/month=01/day=01/hour=00"),
        (NEW_YORK, HOUR_MS, "9999-12-31T23:30:00+00:00", "year=9999/month=12/day=31/hour=18"),
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
