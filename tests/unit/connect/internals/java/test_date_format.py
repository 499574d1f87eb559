"""Patterns of SimpleDateFormat, written and read."""

from __future__ import annotations

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect.internals.java.calendar_fields import DAY_MS, Moment, day_number
from connect.internals.java.date_format import DateFormat

NOON = 1_700_000_000_123  # Tuesday 2023-11-14 22:13:20.123


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("yyyy-MM-dd'T'HH:mm:ss.SSSXXX", "2023-11-14T22:13:20.123Z"),
        ("yy M d", "23 11 14"),
        ("EEEE, d MMMM yyyy", "Tuesday, 14 November 2023"),
        ("EEE MMM dd", "Tue Nov 14"),
        ("hh:mm a", "10:13 PM"),
        ("K k H", "10 22 22"),
        ("DDD D u", "318 318 2"),
        ("w W F YYYY", "46 3 2 2023"),
        ("S SS SSSS", "123 123 0123"),
        ("z zzzz Z X XX", "UTC Coordinated Universal Time +0000 Z Z"),
        ("'it''s' yyyy ''", "it's 2023 '"),
        ("G", "AD"),
        ("LLL", "Nov"),
    ],
)
def test_format(pattern: str, text: str) -> None:
    assert DateFormat(pattern).format(NOON) == text


@pytest.mark.parametrize(
    ("instant", "text"),
    [(-1, "1969-12-31 AD"), (DAY_MS * -719_529, "0001-12-30 BC"), (DAY_MS * 20_370_000, "57741-05-02 AD")],
)
def test_format_of_instants_that_no_datetime_has(instant: int, text: str) -> None:
    year, month, day = text.split(" ", maxsplit=1)[0].split("-")
    moment = Moment(instant)
    assert DateFormat("yyyy-MM-dd G").format(instant).endswith(text[-2:])
    assert day_number(moment.year, moment.month, moment.day) * DAY_MS == instant // DAY_MS * DAY_MS
    assert len(year) >= 4 and len(month) == 2 and len(day) == 2


def test_the_calendar_was_julian() -> None:
    write = DateFormat("yyyy-MM-dd").format
    first_gregorian = day_number(1582, 10, 15) * DAY_MS
    assert write(first_gregorian) == "1582-10-15"
    assert write(first_gregorian - DAY_MS) == "1582-10-04"


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("yyyy-MM-dd HH:mm:ss", "2023-11-14 22:13:20", "2023-11-14T22:13:20"),
        ("yyyyMMddHHmmssSSS", "20231114221320123", "2023-11-14T22:13:20.123"),
        ("dd MMM yyyy", "14 nov 2023", "2023-11-14T00:00:00"),
        ("EEE, dd MMMM yyyy", "Tue, 14 November 2023", "2023-11-14T00:00:00"),
        ("hh:mm a", "12:05 AM", "1970-01-01T00:05:00"),
        ("hh:mm a", "12:05 PM", "1970-01-01T12:05:00"),
        ("KK:mm a", "01:05 PM", "1970-01-01T13:05:00"),
        ("kk:mm", "24:05", "1970-01-01T00:05:00"),
        ("yyyy-DDD", "2023-318", "2023-11-14T00:00:00"),
        ("YYYY-'W'ww-u", "2023-W46-2", "2023-11-14T00:00:00"),
        ("yyyy-MM W EEE", "2023-11 3 Tue", "2023-11-14T00:00:00"),
        ("yyyy-MM F EEE", "2023-11 2 Tue", "2023-11-14T00:00:00"),
        ("yyyy-MM-dd HH:mm Z", "2023-11-14 22:13 +0200", "2023-11-14T20:13:00"),
        ("yyyy-MM-dd HH:mm z", "2023-11-14 22:13 GMT-03:30", "2023-11-15T01:43:00"),
        ("yyyy-MM-dd HH:mm X", "2023-11-14 22:13 -08", "2023-11-15T06:13:00"),
        ("yyyy-MM-dd HH:mm z", "2023-07-14 22:13 PDT", "2023-07-15T05:13:00"),
        ("yyyy-MM-dd", "2024-02-30", "2024-03-01T00:00:00"),
        ("yyyy-MM-dd", "  2024-2-3 and more", "2024-02-03T00:00:00"),
    ],
)
def test_parse(pattern: str, text: str, expected: str) -> None:
    instant = dt.datetime.fromisoformat(expected).replace(tzinfo=dt.UTC)
    assert DateFormat(pattern).parse(text) == round(instant.timestamp() * 1000)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("yyyy-MM-dd", "2023/11/14"),
        ("yyyy-MM-dd", "2023-11"),
        ("yyyy-MM-dd", ""),
        ("yyyyMMdd", "20231"),
        ("dd MMM", "14 Foo"),
        ("HH:mm z", "10:00 XYZ"),
        ("HH:mm XXX", "10:00 +0200"),
        ("HH:mm Z", "10:00 +9999"),
    ],
)
def test_what_does_not_match(pattern: str, text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        DateFormat(pattern).parse(text)


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("bad-format", "Illegal pattern character 'b'"),
        ("yyyy 'open", "Unterminated quote"),
        ("XXXX", "invalid ISO 8601 format: length=4"),
    ],
)
def test_what_is_no_pattern(pattern: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        DateFormat(pattern)


def test_a_year_of_two_digits_is_at_most_eighty_years_ago() -> None:
    parse, this_year = DateFormat("yy-MM-dd").parse, dt.datetime.now(dt.UTC).year
    for years in (-79, -30, 0, 19):
        year = this_year + years
        assert parse(f"{year % 100:02}-07-01") == day_number(year, 7, 1) * DAY_MS
    assert parse("2023-07-01") == day_number(2023, 7, 1) * DAY_MS


@given(st.integers(-(10**14), 10**14))
def test_what_is_written_is_read(milliseconds: int) -> None:
    if Moment(milliseconds).year < 1:
        return
    full = DateFormat("yyyy-MM-dd'T'HH:mm:ss.SSSZ")
    assert full.parse(full.format(milliseconds)) == milliseconds


@given(st.dates(dt.date(1583, 1, 1)), st.times())
def test_dates_are_those_of_python(day: dt.date, time: dt.time) -> None:
    moment = dt.datetime.combine(day, time, dt.UTC)
    instant = (moment - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) // dt.timedelta(milliseconds=1)
    expected = f"{moment.isoformat(' ', 'seconds')[:19]} {moment:%j %u}"
    assert DateFormat("yyyy-MM-dd HH:mm:ss DDD u").format(instant) == expected


@pytest.mark.parametrize(
    ("pattern", "resolution"),
    [("yyyyMMdd", DAY_MS), ("HH", 3_600_000), ("a", 3_600_000), ("mm", 60_000), ("ss", 1000), ("S", 1)],
)
def test_resolution(pattern: str, resolution: int) -> None:
    assert DateFormat(pattern).resolution_ms == resolution
