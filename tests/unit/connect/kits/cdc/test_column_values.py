"""Names of topics and schemas, and values of dates, times, decimals and bytes in every mode."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest

from connect.errors import DataError
from connect.kits.cdc.numbers import (
    BinaryHandlingMode,
    DecimalHandlingMode,
    binary_conversion,
    decimal_conversion,
    variable_scale_conversion,
)
from connect.kits.cdc.tables import TableId
from connect.kits.cdc.temporal import (
    TimePrecisionMode,
    civil_from_days,
    date_conversion,
    days_from_civil,
    time_conversion,
    timestamp_conversion,
    zoned_timestamp,
)
from connect.kits.cdc.topics import NameAdjustmentMode, TopicNaming, TopicRouting

AT_US = 1_704_164_645_123_456


@pytest.mark.parametrize(
    ("mode", "precision", "name", "value"),
    [
        ("adaptive", 6, "io.debezium.time.MicroTimestamp", AT_US),
        ("adaptive", 3, "io.debezium.time.Timestamp", AT_US // 1000),
        ("adaptive_time_microseconds", 3, "io.debezium.time.Timestamp", AT_US // 1000),
        ("microseconds", 0, "io.debezium.time.MicroTimestamp", AT_US),
        ("nanoseconds", 0, "io.debezium.time.NanoTimestamp", AT_US * 1000),
        ("isostring", 6, "io.debezium.time.IsoTimestamp", "2024-01-02T03:04:05.123456Z"),
        (
            "connect",
            6,
            "org.apache.kafka.connect.data.Timestamp",
            dt.datetime(2024, 1, 2, 3, 4, 5, 123000, tzinfo=dt.UTC),
        ),
    ],
)
def test_timestamps(mode: str, precision: int, name: str, value: Any) -> None:
    conversion = timestamp_conversion(TimePrecisionMode(mode), precision)

    assert (conversion.schema.name, conversion.convert(AT_US)) == (name, value)


def test_what_a_mode_cannot_hold_is_an_error() -> None:
    with pytest.raises(DataError, match="nanoseconds"):
        timestamp_conversion(TimePrecisionMode.NANOSECONDS, 6).convert(2**62)
    with pytest.raises(DataError, match="outside the years"):
        date_conversion(TimePrecisionMode.CONNECT).convert(-1_000_000)
    with pytest.raises(DataError, match="not within a day"):
        time_conversion(TimePrecisionMode.CONNECT, 6).convert(86_400_000_000)


@pytest.mark.parametrize("days", [-735160, -719529, -719528, -1, 0, 19782, 2145042905, -2_000_000_000])
def test_days_are_dates_of_any_era(days: int) -> None:
    assert days_from_civil(*civil_from_days(days)) == days


def test_zoned_timestamps_have_fixed_digits() -> None:
    assert zoned_timestamp(6)(1_000_000) == "1970-01-01T00:00:01.000000Z"
    assert zoned_timestamp(0)(AT_US) == "2024-01-02T03:04:05Z"
    assert zoned_timestamp(3)(AT_US) == "2024-01-02T03:04:05.123Z"


@pytest.mark.parametrize(
    ("mode", "precision", "scale", "text", "value"),
    [
        ("precise", 10, 2, "123.4", Decimal("123.40")),
        ("precise", 3, -2, "12300", Decimal("123E+2")),
        ("string", 10, 2, "123.4", "123.40"),
        ("string", 3, -2, "12300", "12300"),
        ("string", 10, 2, "NaN", "NaN"),
        ("double", 10, 2, "123.4", 123.4),
    ],
)
def test_decimals(mode: str, precision: int, scale: int, text: str, value: Any) -> None:
    made = decimal_conversion(DecimalHandlingMode(mode), precision, scale).convert(text)

    assert (str(made), type(made)) == (str(value), type(value))


@pytest.mark.parametrize(("text", "reason"), [("NaN", "no place in a Decimal"), ("1.234", "more than 2 digits")])
def test_decimals_that_do_not_fit(text: str, reason: str) -> None:
    with pytest.raises(DataError, match=reason):
        decimal_conversion(DecimalHandlingMode.PRECISE, 10, 2).convert(text)


@pytest.mark.parametrize(
    ("text", "scale", "value"), [("123.4500", 2, b"09"), ("12300", 0, b"0\x0c"), ("0.00", 0, b"\0"), ("-1", 0, b"\xff")]
)
def test_decimals_of_any_scale(text: str, scale: int, value: bytes) -> None:
    made = variable_scale_conversion(DecimalHandlingMode.PRECISE).convert(text)

    assert made == {"scale": scale, "value": value}


@pytest.mark.parametrize(
    ("mode", "value"), [("bytes", b"\xfb\xff"), ("base64", "+/8="), ("base64-url-safe", "-_8="), ("hex", "fbff")]
)
def test_bytes(mode: str, value: Any) -> None:
    assert binary_conversion(BinaryHandlingMode(mode)).convert(b"\xfb\xff") == value


@pytest.mark.parametrize(
    ("naming", "topic"),
    [
        (TopicNaming("srv"), "srv.public.my_table"),
        (TopicNaming("srv", "-"), "srv-public-my_table"),
        (TopicNaming("srv", names_catalog=True), "srv.shop.public.my_table"),
    ],
)
def test_topics(naming: TopicNaming, topic: str) -> None:
    assert naming.topic(TableId("shop", "public", "my table")) == topic


def test_topics_by_expression_tell_their_tables_in_the_key() -> None:
    routing = TopicRouting.of(r"(.*)shard_\d+\.(.*)", "$1all.$2", "table", r"(.*)\.(shard_\d+)\.(.*)", "$2")
    naming = TopicNaming("srv", routing=routing)

    assert naming.topic(TableId("shop", "shard_1", "t")) == "srv.all.t"
    assert naming.key_field(TableId("shop", "shard_1", "t")) == {"table": "shard_1"}
    assert naming.key_field(TableId("shop", "public", "t")) == {}


@pytest.mark.parametrize(
    ("mode", "field", "name"),
    [
        ("none", "a-1", "my-srv.public.t"),
        ("avro", "a_1", "my_srv.public.t"),
        ("avro_unicode", "a_u002d1", "my_u002dsrv.public.t"),
    ],
)
def test_adjusted_names(mode: str, field: str, name: str) -> None:
    adjustment = NameAdjustmentMode(mode)
    naming = TopicNaming("my-srv", schema_names=adjustment, field_names=adjustment)

    assert naming.field_name("a-1") == field
    assert naming.schema_name(TableId("shop", "public", "t")) == name
