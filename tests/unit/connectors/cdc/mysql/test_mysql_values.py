"""Values of MySQL: packed numbers, JSON documents, types, and the texts of a snapshot."""

from __future__ import annotations

import json
import struct
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect.errors import ConnectError
from connect.kits.cdc.numbers import BinaryHandlingMode, DecimalHandlingMode
from connect.kits.cdc.tables import Column
from connect.kits.cdc.temporal import TimePrecisionMode
from connectors.cdc.mysql.binlog import numbers
from connectors.cdc.mysql.binlog.charsets import text_decoder
from connectors.cdc.mysql.binlog.json_binary import apply_changes, double_text, json_text
from connectors.cdc.mysql.column_types import ColumnType, declared_type
from connectors.cdc.mysql.dialect import MySqlDialect, UnsignedBigintMode
from connectors.cdc.mysql.texts import default_value, reader


def packed_decimal(number: int, precision: int, scale: int) -> bytes:
    """Write a decimal as the log has it: a number of so many digits, of which ``scale`` are after the point."""
    digits = f"{abs(number):0{precision}d}"
    whole, fraction = digits[: precision - scale], digits[precision - scale :]
    head = len(whole) % 9
    parts = ([whole[:head]] if head else []) + [whole[at : at + 9] for at in range(head, len(whole), 9)]
    parts += [fraction[at : at + 9] for at in range(0, len(fraction), 9)]
    sizes = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)
    raw = bytearray(b"".join(int(part).to_bytes(sizes[len(part)], "big") for part in parts))
    if number < 0:
        raw = bytearray(byte ^ 0xFF for byte in raw)
    raw[0] ^= 0x80
    return bytes(raw)


@given(st.integers(1, 30), st.integers(0, 30), st.data())
def test_decimals_keep_all_their_digits(whole: int, scale: int, data: st.DataObject) -> None:
    number = data.draw(st.integers(-(10 ** (whole + scale)) + 1, 10 ** (whole + scale) - 1))
    value = Decimal(f"{number}e-{scale}")
    raw = packed_decimal(number, whole + scale, scale)

    read = numbers.decimal_reader(whole + scale, scale)(raw)

    assert len(raw) == numbers.decimal_size(whole + scale, scale)
    assert read == value
    assert read.as_tuple().exponent == -scale


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (1.0, "1.0"),
        (2.5, "2.5"),
        (1e15, "1e15"),
        (123456789012345.0, "123456789012345.0"),
        (1e-15, "0.000000000000001"),
        (1e-16, "1e-16"),
        (1.5e300, "1.5e300"),
        (5e-324, "5e-324"),
        (-123.456, "-123.456"),
    ],
)
def test_doubles_are_written_as_mysql_writes_them(value: float, text: str) -> None:
    assert double_text(value) == text


def document(kind: int, body: bytes) -> bytes:
    return bytes([kind]) + body


def test_documents_are_written_as_mysql_writes_them() -> None:
    small_array = struct.pack("<HH", 2, 10) + bytes([5]) + struct.pack("<h", -7) + bytes([4, 0, 0])
    text = b'quoted " \\ \x01'

    assert json_text(document(2, small_array)) == "[-7, null]"
    assert json_text(document(12, bytes([len(text)]) + text)) == '"quoted \\" \\\\ \\u0001"'
    assert json_text(b"") == "null"


@pytest.mark.parametrize(
    "raw",
    [
        document(0, b""),
        document(0, struct.pack("<HH", 1, 4)),
        document(2, struct.pack("<HH", 1, 7) + bytes([2]) + struct.pack("<H", 0)),
        document(2, struct.pack("<HH", 9, 60_000)),
        document(12, bytes([200]) + b"short"),
        document(12, b"\xff\xff\xff\xff\xff\xff"),
        document(99, b"x"),
        document(12, b"\x02\xff\xfe"),
    ],
)
def test_a_damaged_document_is_an_error(raw: bytes) -> None:
    with pytest.raises(ConnectError, match="JSON document"):
        json_text(raw)


def change(operation: int, path: str, value: bytes = b"") -> bytes:
    packed = bytes([operation, len(path)]) + path.encode()
    return packed + (bytes([len(value)]) + value if operation != 2 else b"")


def string(text: str) -> bytes:
    return document(12, bytes([len(text)]) + text.encode())


def test_changes_of_parts_are_applied_in_order() -> None:
    before = '{"a": [1, 2.50], "b": {"c d": "x"}}'

    after = apply_changes(
        before,
        change(0, "$.a[1]", string("new"))
        + change(1, "$.a[0]", string("first"))
        + change(2, '$.b."c d"')
        + change(1, "$.b.e", string("y")),
    )

    assert after == '{"a": ["first", 1, "new"], "b": {"e": "y"}}'


@pytest.mark.parametrize("path", ["$.none.b", "$.a[9]", "$.a.b", "$?"])
def test_changes_that_do_not_fit_are_an_error(path: str) -> None:
    with pytest.raises(ConnectError, match="partial update"):
        apply_changes('{"a": [1]}', change(2, path))
    with pytest.raises(ConnectError, match="partial update"):
        apply_changes(None, change(2, path))


@given(st.recursive(st.text() | st.integers() | st.booleans() | st.none(), st.lists, max_leaves=5))
def test_a_document_without_changes_stays_as_it_is(value: Any) -> None:
    text = json.dumps({"k": value}, ensure_ascii=False)

    assert json.loads(apply_changes(text, b"") or "") == {"k": value}


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("int(10) unsigned", ColumnType("int", 10, None, True)),
        ("decimal(10,2) unsigned zerofill", ColumnType("decimal", 10, 2, True)),
        ("enum('a','b,c','it''s')", ColumnType("enum", values=("a", "b,c", "it's"))),
        ("varchar(20)", ColumnType("varchar", 20)),
        ("double", ColumnType("double")),
        ("float(7,3)", ColumnType("float", 7, 3)),
        ("timestamp(6)", ColumnType("timestamp", 6)),
        ("varchar(500) /*M!100301 COMPRESSED*/", ColumnType("varchar", 500)),
    ],
)
def test_types_are_read_as_the_catalog_writes_them(text: str, kind: ColumnType) -> None:
    assert declared_type(text) == kind


def column(sql: str, *, optional: bool = True) -> Column:
    kind = declared_type(sql)
    return Column("c", kind.name, kind.length, kind.scale, optional, native=kind)


@pytest.mark.parametrize(
    ("sql", "text", "value"),
    [
        ("date", "2024-02-29", 19782),
        ("date", "0000-00-00", None),
        ("date", "2024-00-10", None),
        ("datetime(6)", "2024-01-02 03:04:05.123456", 1704164645123456),
        ("datetime(1)", "1969-12-31 23:59:59.9", -100_000),
        ("time(3)", "-12:34:56.789", -45296789000),
        ("time", "838:59:59", 3020399000000),
        ("decimal(10,2)", "-1.50", Decimal("-1.50")),
        ("bit(10)", b"\x02\x01", 513),
        ("float", "1.10000002384185791", 1.1),
        ("bigint unsigned", "18446744073709551615", 2**64 - 1),
    ],
)
def test_selected_texts_become_the_values_of_the_log(sql: str, text: str | bytes, value: Any) -> None:
    assert reader(column(sql))(text) == value


def test_no_date_in_a_column_without_null_is_1970() -> None:
    assert reader(column("datetime", optional=False))("0000-00-00 00:00:00") == 0


@pytest.mark.parametrize(
    ("sql", "text", "is_mariadb", "value"),
    [
        ("int", "5", False, 5),
        ("varchar(9)", "'it''s'", True, "it's"),
        ("varchar(9)", "it's", False, "it's"),
        ("int", "NULL", True, None),
        ("bit(3)", "b'101'", False, 5),
        ("timestamp", "current_timestamp()", True, None),
        ("varbinary(9)", "0x00ff", False, b"\x00\xff"),
        ("datetime", "2020-01-01 00:00:00", False, 1577836800000000),
    ],
)
def test_defaults_are_read_as_the_catalog_writes_them(sql: str, text: str, is_mariadb: bool, value: Any) -> None:
    assert default_value(text, column(sql), is_mariadb=is_mariadb) == value


def test_character_sets_are_those_of_mysql() -> None:
    assert text_decoder("latin1")(b"\xe9\x80\x81") == "é€\x81"
    assert text_decoder("utf16")("ä😀".encode("utf-16-be")) == "ä😀"
    with pytest.raises(ConnectError, match=r"swe7.*utf8mb4"):
        text_decoder("swe7")


def test_times_beyond_a_day_are_no_times_of_a_day() -> None:
    dialect = MySqlDialect(
        TimePrecisionMode.CONNECT, DecimalHandlingMode.PRECISE, BinaryHandlingMode.BYTES, UnsignedBigintMode.LONG
    )

    with pytest.raises(ConnectError, match=r"25\.00 hours"):
        dialect.conversion(column("time")).convert(25 * 3_600_000_000)
