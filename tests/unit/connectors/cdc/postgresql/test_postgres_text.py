"""PostgreSQL's text forms: dates of all eras, intervals, arrays, hstore, money, and the escapes of COPY."""

from __future__ import annotations

from typing import Any

import pytest

from connectors.cdc.postgresql import text


@pytest.mark.parametrize(
    ("written", "days"),
    [(b"1970-01-01", 0), (b"2024-02-29", 19782), (b"0044-03-15 BC", -735160), (b"5874897-12-31", 2145042905)],
)
def test_dates(written: bytes, days: int) -> None:
    assert text.date_days(written) == days


@pytest.mark.parametrize(
    ("written", "micros"),
    [
        (b"1970-01-01 00:00:00", 0),
        (b"2024-01-02 03:04:05.123456", 1704164645123456),
        (b"2024-01-02 03:04:05.1", 1704164645100000),
        (b"0001-01-01 00:00:00 BC", -62167219200000000),
        (b"10000-01-01 00:00:00.5+00", 253402300800500000),
    ],
)
def test_timestamps(written: bytes, micros: int) -> None:
    assert text.timestamp_micros(written) == micros


def test_a_timestamp_of_another_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="not a timestamp in UTC"):
        text.timestamp_micros(b"10000-01-01 00:00:00+02")


@pytest.mark.parametrize(
    ("written", "utc"),
    [
        (b"12:34:56.123+02", "10:34:56.123Z"),
        (b"00:30:00+05:45", "18:45:00Z"),
        (b"23:00:00-02:00:30", "01:00:30Z"),
    ],
)
def test_times_with_a_zone(written: bytes, utc: str) -> None:
    assert text.time_zoned(written) == utc


@pytest.mark.parametrize(
    ("written", "micros", "iso"),
    [
        (b"1 year 2 mons 3 days 04:05:06.7", 37091106700000, "P1Y2M3DT4H5M6.7S"),
        (b"-1 days +02:03:00", -79020000000, "P0Y0M-1DT2H3M0S"),
        (b"-00:00:00.5", -500000, "P0Y0M0DT0H0M-0.5S"),
        (b"00:00:00", 0, "P0Y0M0DT0H0M0S"),
        (b"-1 years -2 mons", -36817200000000, "P-1Y-2M0DT0H0M0S"),
        (b"1000:00:01", 3600001000000, "P0Y0M0DT1000H0M1S"),
    ],
)
def test_intervals(written: bytes, micros: int, iso: str) -> None:
    assert text.interval_micros(written) == micros
    assert text.interval_iso(written) == iso


@pytest.mark.parametrize(
    ("written", "values"),
    [
        (b"{}", []),
        (b"{1,NULL,3}", [1, None, 3]),
    ],
)
def test_arrays_of_numbers(written: bytes, values: list[Any]) -> None:
    assert text.list_of(int)(written) == values


def test_arrays_of_texts() -> None:
    read = text.list_of(bytes.decode)

    assert read(rb'{a,"NULL","b,c","say \"x\\y\"","{}",""}') == ["a", "NULL", "b,c", 'say "x\\y"', "{}", ""]


@pytest.mark.parametrize("written", [b"{{1,2},{3,4}}", b"[2:3]={1,2}"])
def test_arrays_that_are_no_lists(written: bytes) -> None:
    with pytest.raises(ValueError, match="no place in a list"):
        text.list_of(int)(written)


def test_an_array_of_an_enum_has_no_null() -> None:
    with pytest.raises(ValueError, match="no place for null"):
        text.list_of(bytes.decode, allows_null=False)(b"{a,NULL}")


def test_hstore() -> None:
    written = rb'"a"=>"1", "b"=>NULL, "c\"d"=>"x\\y, z"'

    assert text.hstore(written) == {"a": "1", "b": None, 'c"d': "x\\y, z"}
    assert text.hstore_json(b'"a"=>"1", "b"=>NULL') == '{"a":"1","b":null}'


@pytest.mark.parametrize(("written", "units"), [(b"$1,234.56", 123456), (b"-$0.05", -5), (b"$12.34", 1234)])
def test_money(written: bytes, units: int) -> None:
    assert text.money_units(written) == units


@pytest.mark.parametrize(
    ("field", "value"),
    [(rb"\N", None), (rb"a\tb\\c\nd", b"a\tb\\c\nd"), (rb"\\N", b"\\N")],
)
def test_copied_fields(field: bytes, value: bytes | None) -> None:
    assert text.unescaped_copy(field) == value


def test_bits_have_the_least_significant_byte_first() -> None:
    assert text.bits(b"1000000001") == bytes([1, 2])
    assert text.bits(b"") == b""
