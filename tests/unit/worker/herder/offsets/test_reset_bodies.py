"""Requests to reset offsets are read, and what is wrong with one is told with its member."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from worker.errors import BadRequestError
from worker.herder.offsets.request_bodies import Reset, iso_date_time, iso_duration, read_reset

NOW = 1_700_000_000.0


@pytest.mark.parametrize(
    ("body", "reset"),
    [
        ({"to": "earliest"}, Reset("earliest", 0, None)),
        ({"to": "latest"}, Reset("latest", 0, None)),
        ({"to": "current"}, Reset("current", 0, None)),
        ({"to_offset": 7}, Reset("offset", 7, None)),
        ({"shift_by": -3}, Reset("shift", -3, None)),
        ({"to_datetime": "1970-01-01T00:00:01.500Z"}, Reset("timestamp", 1500, None)),
        ({"to_datetime": "1970-01-01T01:00:01+01:00"}, Reset("timestamp", 1000, None)),
        ({"by_duration": "PT1H"}, Reset("timestamp", int((NOW - 3600) * 1000), None)),
        ({"to": "latest", "topics": ["a", "b"]}, Reset("latest", 0, {"a": None, "b": None})),
        ({"to": "latest", "topics": {"a": [1, 0, 1]}}, Reset("latest", 0, {"a": [0, 1]})),
    ],
)
def test_the_seven_ways(body: dict[str, Any], reset: Reset) -> None:
    assert read_reset(body, NOW) == reset


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ({}, "exactly one of to, to_offset, shift_by, to_datetime, by_duration, but this one has none"),
        ({"to": "latest", "to_offset": 1}, "this one has to, to_offset"),
        ({"to": "the moon"}, "to is 'the moon'; it must be one of earliest, latest, current"),
        ({"to_offset": -1}, "to_offset -1 is not an offset"),
        ({"to_offset": True}, "to_offset True is not an offset"),
        ({"to_offset": 2**63}, "is not an offset"),
        ({"shift_by": "5"}, "shift_by '5' is not a whole number"),
        ({"to_datetime": "yesterday"}, "to_datetime 'yesterday' is not a date and time"),
        ({"to_datetime": "2026-01-31T08:00:00"}, "has no time zone"),
        ({"to_datetime": "1969-12-31T00:00:00Z"}, "to_datetime is before 1970"),
        ({"by_duration": "P1M"}, "by_duration 'P1M' is not a duration"),
        ({"by_duration": "P100000W"}, "by_duration is before 1970"),
        ({"by_duration": 5}, "by_duration 5 is not a duration"),
        ({"to": "latest", "topics": []}, "topics must be"),
        ({"to": "latest", "topics": {"a": [-1]}}, "topics must be"),
        ({"to": "latest", "topics": {"a": []}}, "topics must be"),
        ({"to": "latest", "topics": "a"}, "topics must be"),
    ],
)
def test_a_mistake_names_the_member(body: dict[str, Any], text: str) -> None:
    with pytest.raises(BadRequestError) as refused:
        read_reset(body, NOW)
    assert text in str(refused.value)


@pytest.mark.parametrize(
    ("text", "duration"),
    [
        ("P1DT2H", timedelta(days=1, hours=2)),
        ("PT90S", timedelta(seconds=90)),
        ("PT0.5S", timedelta(seconds=0.5)),
        ("P2W", timedelta(weeks=2)),
        ("PT1H30M", timedelta(minutes=90)),
    ],
)
def test_durations(text: str, duration: timedelta) -> None:
    assert iso_duration(text) == duration


@pytest.mark.parametrize("text", ["", "P", "PT", "P1DT", "1H", "-PT1H", "PT1H30", "P1Y", "P99999999999999D"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(BadRequestError, match="by_duration"):
        iso_duration(text)


def test_a_date_time_keeps_its_zone() -> None:
    assert iso_date_time("2026-01-31T09:00:00+01:00") == datetime(2026, 1, 31, 8, tzinfo=UTC)
