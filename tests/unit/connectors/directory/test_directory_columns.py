"""The column path gives what the row path gives, which is the specification."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connect.errors import SchemaError
from connect.kits.files.readers.column_type import column_type, inferred_type
from connect.kits.files.readers.columns import ColumnReader
from connect.kits.files.readers.delimited import Delimited, Dialect
from connect.kits.files.readers.layout import parse_rows
from connect.kits.files.readers.options import FileFormat
from connect.kits.files.readers.records import Records
from connectors.directory import DirectorySourceConfig
from equipment.examples import examples

UTC = dt.UTC
GOOD: list[tuple[str, str, Any]] = [
    ("int8", "-128", -128),
    ("int64", "-9223372036854775808", -(2**63)),
    ("int64", " 007 ", 7),
    ("int32", "-0", 0),
    ("float64", "1e5", 100000.0),
    ("float64", ".5", 0.5),
    ("float64", "-inf", -math.inf),
    ("float32", "0.1", 0.10000000149011612),
    ("boolean", "TRUE", True),
    ("boolean", "0", False),
    ("date", " 2013-02-28", dt.date(2013, 2, 28)),
    ("time", "23:59", dt.time(23, 59)),
    ("time", "23:59:59.1230", dt.time(23, 59, 59, 123000)),
    ("timestamp", "2013-01-01T10:00:00Z", dt.datetime(2013, 1, 1, 10, tzinfo=UTC)),
    ("timestamp", "2013-01-01 10:00", dt.datetime(2013, 1, 1, 10, tzinfo=UTC)),
    ("timestamp", "2013-01-01", dt.datetime(2013, 1, 1, tzinfo=UTC)),
    ("timestamp", "2013-01-01 10:00:00.125000+02:30", dt.datetime(2013, 1, 1, 7, 30, 0, 125000, UTC)),
    ("decimal(2)", "1e3", Decimal("1000.00")),
    ("decimal(2)", "-1.5", Decimal("-1.50")),
    ("decimal(0)", "-0.0", Decimal(0)),
    ("string", " x ", " x "),
]
BAD: list[tuple[str, str]] = [
    ("int8", "128"),
    ("int64", "9223372036854775808"),
    ("int64", "1" * 5000),
    ("int64", "0x10"),
    ("int64", "1.0"),
    ("int64", "+1"),
    ("int64", "1_0"),
    ("int64", "٣"),
    ("float64", "1e400"),
    ("float64", "1_0"),
    ("float32", "1e39"),
    ("boolean", "yes"),
    ("date", "2013-02-30"),
    ("date", "0000-01-01"),
    ("date", "20130101"),
    ("time", "24:00"),
    ("time", "12:00:00.1234"),
    ("timestamp", "2013-01-01 10:00:00.1234"),
    ("timestamp", "0001-01-01 00:00:00+01:00"),
    ("timestamp", "2013-01-01 10:00+24:00"),
    ("timestamp", "yesterday"),
    ("decimal(2)", "1.256"),
    ("decimal(2)", "1e400"),
    ("decimal(2)", "9" * 40),
    ("decimal(2)", "nan"),
]


@pytest.mark.parametrize(("name", "text", "value"), GOOD)
def test_texts_are_read(name: str, text: str, value: object) -> None:
    read = column_type(name).parse(text)
    assert (read, type(read)) == (value, type(value))
    assert str(read) == str(value)


@pytest.mark.parametrize(("name", "text"), BAD)
def test_texts_are_refused(name: str, text: str) -> None:
    with pytest.raises(ValueError):
        column_type(name).parse(text)


@pytest.mark.parametrize("name", ["int128", "decimal", "decimal(39)", ""])
def test_there_are_no_other_types(name: str) -> None:
    with pytest.raises(SchemaError, match="Unknown type"):
        column_type(name)


@pytest.mark.parametrize(
    ("texts", "name"),
    [
        (["1", "-20", "0"], "int64"),
        (["1", "2.5", "1e3"], "float64"),
        (["01", "2"], "string"),
        (["9223372036854775808"], "float64"),
        (["true", "False"], "boolean"),
        (["1", "0"], "int64"),
        (["2013-01-01"], "date"),
        (["2013-02-30"], "string"),
        (["2013-01-01T10:00:00Z", "2013-01-01 10:00"], "timestamp"),
        (["2013-01-01T10:00:00.123456Z"], "string"),
        (["12:30"], "string"),
        ([], "string"),
        (["1", "x"], "string"),
    ],
)
def test_types_are_inferred_where_nothing_is_lost(texts: list[str], name: str) -> None:
    assert inferred_type(texts).name == name


def same(left: object, right: object) -> bool:
    """Equal, of one type, and NaN is NaN."""
    if isinstance(left, float) and isinstance(right, float):
        return repr(left) == repr(right)
    return type(left) is type(right) and left == right


def layout(types: list[str], **props: str) -> tuple[Delimited, Dialect]:
    config = DirectorySourceConfig.parse({"path": "/", "topic": "t", "null.tokens": "NA", **props})
    dialect = Dialect(config, FileFormat.CSV)
    names = [f"c{index}" for index in range(len(types))]
    return Delimited(config, dialect, names, [column_type(name) for name in types]), dialect


def compare(delimited: Delimited, records: Records) -> bool:
    """Whether there was a column to compare with the rows."""
    assert isinstance(delimited._columns, ColumnReader)
    column = delimited._columns.read(records)
    by_row = parse_rows(records, delimited.schema, lambda index: delimited._row(records, index))
    if column is None:
        return False
    assert not by_row.bad
    assert column.schema is by_row.column.schema is delimited.schema
    for left, right in zip(column.values(), by_row.column.values(), strict=True):
        assert left.keys() == right.keys()
        assert all(same(left[name], right[name]) for name in right), (left, right)
    return True


ALL = sorted({name for name, _, _ in GOOD})
TEXTS = st.one_of(
    st.sampled_from([text for _, text, _ in GOOD] + [text for _, text in BAD] + ["", "NA", "nan", "é", "a\tb"]),
    st.text('0123456789.-+eE:TZ "x\n\r,', max_size=12),
    st.integers().map(str),
    st.floats().map(repr),
    st.decimals(places=2, allow_nan=False).map(str),
    st.dates().map(str),
    st.times().map(str),
    st.datetimes().map(str),
    st.datetimes(timezones=st.just(UTC)).map(str),
)


@settings(deadline=None, max_examples=examples(150))
@given(st.lists(st.tuples(st.sampled_from(ALL), st.lists(TEXTS, min_size=3, max_size=3)), min_size=1, max_size=4))
def test_the_column_path_equals_the_row_path(columns: list[tuple[str, list[str]]]) -> None:
    delimited, dialect = layout([name for name, _ in columns])
    rows = zip(*(texts for _, texts in columns), strict=True)
    quoted = (
        '"' + text.replace('"', '""') + '"' if set(text) & set('",\r\n') else text for row in rows for text in row
    )
    lines = [",".join(row) for row in zip(*[iter(quoted)] * len(columns), strict=True)]
    records = dialect.cut("".join(f"{line}\n" for line in lines).encode(), True)
    if len(records):
        compare(delimited, records)


@settings(deadline=None, max_examples=examples(150))
@given(st.sampled_from(ALL), st.lists(st.text('01-x",\r\n0x ', max_size=6), min_size=1, max_size=4))
def test_the_column_path_equals_the_row_path_on_any_bytes(name: str, lines: list[str]) -> None:
    delimited, dialect = layout([name, "string"])
    records = dialect.cut("".join(f"{line}\n" for line in lines).encode(), True)
    if len(records):
        compare(delimited, records)


@pytest.mark.parametrize(("name", "text"), [(name, text) for name, text, _ in GOOD if text != " 007 "])
def test_good_values_take_the_column_path(name: str, text: str) -> None:
    delimited, dialect = layout([name])
    records = dialect.cut(f"{text}\n{text}\n\nNA\n".encode(), True)
    slow = text in ("-inf", "23:59:59.1230", "1e5", "2013-01-01 10:00:00.125000+02:30")
    assert compare(delimited, records) or slow


def test_another_encoding_takes_the_column_path() -> None:
    delimited, dialect = layout(["string", "int8"], encoding="cp1252")
    records = dialect.cut("zwölf,12\n".encode("cp1252"), True)
    assert compare(delimited, records)
    assert delimited.parse(records).column.values() == [{"c0": "zwölf", "c1": 12}]


def test_zones_may_change_from_block_to_block() -> None:
    delimited, dialect = layout(["timestamp"])
    for text in ("2013-01-01 10:00", "2013-01-01 10:00Z", "2013-01-01 10:00"):
        assert compare(delimited, dialect.cut(f"{text}\n".encode(), True))
