"""Dates in text by Java's patterns."""

from __future__ import annotations

import datetime as dt

import pytest

from connect.errors import DataError
from connectors.mongodb.sink.config import MongoSinkConfig
from connectors.mongodb.sink.date_pattern import DatePattern

DEFAULT = MongoSinkConfig(database="d").timeseries_timefield_auto_convert_date_format


def milliseconds(text: str) -> int:
    return int(dt.datetime.fromisoformat(text).timestamp() * 1000)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2024-01-02", "2024-01-02T00:00:00Z"),
        ("2024-01-02T03:04:05", "2024-01-02T03:04:05Z"),
        ("2024-01-02 03:04:05.123", "2024-01-02T03:04:05.123Z"),
        ("2024-01-02T03:04:05.123456", "2024-01-02T03:04:05.123Z"),
        ("2024-01-02T03:04:05Z", "2024-01-02T03:04:05Z"),
        ("2024-01-02T03:04:05.123+02", "2024-01-02T01:04:05.123Z"),
        ("2024-07-02T03:04:05 Europe/Zurich", "2024-07-02T01:04:05Z"),
        ("2024-07-02T03:04:05+02:00[Europe/Zurich]", "2024-07-02T01:04:05Z"),
    ],
)
def test_the_default_pattern(text: str, expected: str) -> None:
    assert DatePattern(DEFAULT).milliseconds(text) == milliseconds(expected)


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("d MMM uuuu, h:mm a", "2 Jan 2024, 3:04 pm", "2024-01-02T15:04:00Z"),
        ("yyyyMMddHHmmssSSS", "20240102030405678", "2024-01-02T03:04:05.678Z"),
        ("EEEE, d MMMM yy 'at' HH''mm XXX", "Tuesday, 2 January 24 at 03'04 -01:30", "2024-01-02T04:34:00Z"),
    ],
)
def test_other_patterns(pattern: str, text: str, expected: str) -> None:
    assert DatePattern(pattern).milliseconds(text) == milliseconds(expected)


@pytest.mark.parametrize("text", ["", "soon", "2024-13-02", "2024-01-02T03:04:05 Nowhere/Else", "2024-01-02 x"])
def test_what_is_no_date(text: str) -> None:
    with pytest.raises(DataError, match="is not a date"):
        DatePattern(DEFAULT).milliseconds(text)


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("yyyy[", "is not closed"),
        ("yyyy]", "ends no section"),
        ("'yyyy", "quote at position 1"),
        ("yyyy-QQ", "letter Q is not supported"),
    ],
)
def test_malformed_patterns(pattern: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        DatePattern(pattern)
