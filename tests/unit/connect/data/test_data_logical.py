"""The numbers behind the logical types."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect.data import logical
from connect.errors import DataError
from equipment.strategies.values import DATES, TIMES, TIMESTAMPS, decimals

MOMENT = dt.datetime(2024, 7, 1, tzinfo=dt.UTC)


@pytest.mark.parametrize(
    ("text", "scale", "data"),
    [
        ("0", 0, "00"),
        ("1.27", 2, "7f"),
        ("1.28", 2, "0080"),
        ("-1.28", 2, "80"),
        ("-1.29", 2, "ff7f"),
        ("1E+3", -3, "01"),
    ],
)
def test_the_bytes_of_a_decimal_are_javas(text: str, scale: int, data: str) -> None:
    assert logical.unscaled_from_decimal(Decimal(text), scale).hex() == data
    assert str(logical.decimal_from_unscaled(bytes.fromhex(data), scale)) == text


@given(decimals(7))
def test_decimals_come_back(value: Decimal) -> None:
    again = logical.decimal_from_unscaled(logical.unscaled_from_decimal(value, 7), 7)
    assert str(again) == str(value)


def test_decimals_of_any_length() -> None:
    long = Decimal("9" * 5000)
    assert logical.decimal_from_unscaled(logical.unscaled_from_decimal(long, 0), 0) == long


@pytest.mark.parametrize(("text", "message"), [("1.5", "mismatching scale"), ("NaN", "not finite")])
def test_decimals_of_another_scale_have_no_bytes(text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        logical.unscaled_from_decimal(Decimal(text), 2)


def test_a_decimal_of_no_bytes_is_none() -> None:
    with pytest.raises(DataError, match="An empty byte string is not a Decimal"):
        logical.decimal_from_unscaled(b"", 2)


@given(DATES)
def test_dates_come_back(value: dt.date) -> None:
    assert logical.date_from_days(logical.days_from_date(value)) == value


@given(TIMES)
def test_times_come_back(value: dt.time) -> None:
    assert logical.time_from_milliseconds(logical.milliseconds_from_time(value)) == value


@given(TIMESTAMPS)
def test_timestamps_come_back(value: dt.datetime) -> None:
    assert logical.timestamp_from_milliseconds(logical.milliseconds_from_timestamp(value)) == value


@given(st.lists(decimals(2) | st.sampled_from([Decimal("9" * 300 + ".00"), Decimal("-0.00")]), max_size=4))
def test_many_decimals_have_the_bytes_of_each(values: list[Decimal]) -> None:
    assert logical.unscaled_from_decimals(values, 2) == [logical.unscaled_from_decimal(value, 2) for value in values]


@pytest.mark.parametrize("text", ["1.5", "1.500", "1E+2", "NaN", "sNaN", "Infinity"])
def test_one_of_another_scale_among_many_decimals_is_refused(text: str) -> None:
    with pytest.raises(DataError, match=r"mismatching scale|not finite"):
        logical.unscaled_from_decimals([Decimal("1.00"), Decimal(text), Decimal("2.00")], 2)


@given(st.lists(TIMESTAMPS, max_size=4), st.sampled_from([dt.UTC, dt.timezone(dt.timedelta(hours=5, minutes=30))]))
def test_many_timestamps_have_the_milliseconds_of_each(values: list[dt.datetime], zone: dt.tzinfo) -> None:
    values = [value if value.year in (1, 9999) else value.astimezone(zone) for value in values]
    assert logical.milliseconds_from_timestamps(values) == list(map(logical.milliseconds_from_timestamp, values))


def test_timestamps_are_rounded_down() -> None:
    just_before = logical.EPOCH - dt.timedelta(microseconds=1)
    assert logical.milliseconds_from_timestamp(just_before) == -1


def test_a_datetime_without_a_zone_is_no_timestamp() -> None:
    with pytest.raises(DataError, match="no time zone"):
        logical.milliseconds_from_timestamp(dt.datetime(2020, 1, 1))  # noqa: DTZ001
    with pytest.raises(DataError, match="no time zone"):
        logical.milliseconds_from_timestamps([MOMENT, dt.datetime(2020, 1, 1)])  # noqa: DTZ001


@pytest.mark.parametrize(
    "make",
    [
        lambda: logical.date_from_days(2**31 - 1),
        lambda: logical.date_from_days(-(2**31)),
        lambda: logical.time_from_milliseconds(-1),
        lambda: logical.time_from_milliseconds(86_400_000),
        lambda: logical.timestamp_from_milliseconds(2**63 - 1),
    ],
)
def test_out_of_the_calendar(make: object) -> None:
    assert callable(make)
    with pytest.raises(DataError):
        make()
