"""What the JDBC source decides without a database: conditions, offsets, tables, types."""

from __future__ import annotations

import datetime as dt
import decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect.data import Schema, SourceBatch, decimal_schema
from connect.errors import ConnectError, DataError
from connect.kits.sql.column import Column, NativeType, TableId
from connect.kits.sql.databases.mysql.dialect import MysqlDialect
from connect.kits.sql.databases.postgresql.dialect import PostgresqlDialect
from connect.kits.sql.databases.sqlite.dialect import SqliteDialect
from connect.kits.sql.values import (
    NumericMapping,
    TimestampGranularity,
    TypeOptions,
    numeric_reading,
    parse_zone,
    timestamp_reading,
)
from connectors.jdbc.source.config import Mode
from connectors.jdbc.source.criteria import Bounds, Criteria
from connectors.jdbc.source.layout import layout_of
from connectors.jdbc.source.offsets import Position, RowOffsets, partitions_of_table, safe_times
from connectors.jdbc.source.tables import TableFilter, column_mapping, shares

ID, CHANGED, MADE = (
    Column("id", NativeType("int8"), nullable=False),
    Column('a "b', NativeType("timestamptz")),
    Column("made", NativeType("timestamp")),
)


@pytest.mark.parametrize(
    ("mode", "bounds", "sql", "parameters"),
    [
        (Mode.BULK, Bounds(), "SELECT * FROM t", []),
        (Mode.INCREMENTING, Bounds(3), 'SELECT * FROM t WHERE "id" > %s ORDER BY "id" ASC', [3]),
        (
            Mode.INCREMENTING,
            Bounds(3, last=9),
            'SELECT * FROM t WHERE "id" > %s AND "id" <= %s ORDER BY "id" ASC',
            [3, 9],
        ),
        (
            Mode.TIMESTAMP,
            Bounds(time=1, end=2),
            'SELECT * FROM t WHERE COALESCE("a ""b","made") > %s AND COALESCE("a ""b","made") < %s '
            'ORDER BY COALESCE("a ""b","made") ASC',
            [1, 2],
        ),
    ],
)
def test_the_condition_of_a_mode(mode: Mode, bounds: Bounds, sql: str, parameters: list[Any]) -> None:
    criteria = Criteria(PostgresqlDialect(), mode, "id", (CHANGED, MADE))
    assert criteria.statement("SELECT * FROM t", bounds) == (sql, parameters)


def test_the_condition_of_time_and_number() -> None:
    criteria = Criteria(MysqlDialect(quote=False), Mode.TIMESTAMP_INCREMENTING, "id", (MADE,))
    sql, parameters = criteria.statement("SELECT 5 % 3 FROM t", Bounds(3, 1, 2), "FOR 1 % 2")
    assert sql == (
        "SELECT 5 %% 3 FROM t WHERE made < %s AND ((made = %s AND id > %s) OR made > %s) "
        "ORDER BY made ASC, id ASC FOR 1 %% 2"
    )
    assert parameters == [2, 1, 3, 1]


def test_sqlite_compares_times_by_microseconds() -> None:
    dialect = SqliteDialect()
    sql, _ = Criteria(dialect, Mode.TIMESTAMP, "", (MADE,)).statement("SELECT 1", Bounds(time=0, end=1))
    assert 'WHERE sluice_micros("made") > ?' in sql
    assert dialect.timestamp_parameter((MADE,), dt.datetime(1970, 1, 1, 0, 0, 1, 2, dt.UTC)) == 1_000_002


@pytest.mark.parametrize(
    ("offset", "position"),
    [
        ({"incrementing": 5}, Position(5)),
        ({"incrementing": 5, "timestamp": 1704067200123, "timestamp_nanos": 123456000}, Position(5, 1704067200123456)),
        ({"timestamp": 1704067200123}, Position(None, 1704067200123000)),
        ({"timestamp": -1, "timestamp_nanos": 999_000_000}, Position(None, -1000)),
        ({}, Position()),
        (None, Position()),
    ],
)
def test_offsets_of_java_are_read(offset: dict[str, Any] | None, position: Position) -> None:
    assert Position.from_offset(offset) == position


@given(st.none() | st.integers(0, 2**63 - 1), st.none() | st.integers(-(10**15), 10**16))
def test_an_offset_is_read_as_it_was_written(number: int | None, micros: int | None) -> None:
    position = Position(number, micros)
    assert Position.from_offset(position.to_offset()) == position


@pytest.mark.parametrize("offset", [{"incrementing": "5"}, {"timestamp": 1.5}, {"timestamp": 1, "timestamp_nanos": -1}])
def test_offsets_that_are_none_are_refused(offset: dict[str, Any]) -> None:
    with pytest.raises(ConnectError, match="in the offset is"):
        Position.from_offset(offset)


def test_the_members_of_a_partition_are_in_javas_order() -> None:
    found = partitions_of_table(TableId("t", schema="s"), "d")
    assert [list(each.items()) for each in found] == [
        [("protocol", "1"), ("table", "s.t")],
        [("protocol", "1"), ("table", "d.s.t")],
        [("protocol", "1"), ("table", "t")],
        [("table", "t")],
    ]


def test_a_time_is_safe_once_a_later_one_follows() -> None:
    assert safe_times([1, 1, 2, 3, 3], 3, 0) == [0, 1, 2, 2, 2]
    assert safe_times([1, 1, 2, 3, 3], 4, 0) == [0, 1, 2, 2, 3]
    assert safe_times([5, 5], None, None) == [None, 5]


@given(st.lists(st.integers(0, 5), min_size=1).map(sorted), st.data())
def test_no_row_is_lost_wherever_reading_stops(times: list[int], data: st.DataObject) -> None:
    """Reading goes on with the rows whose time is later than the safe one: all that were not read are among them."""
    cut = data.draw(st.integers(1, len(times)))
    following = times[cut] if cut < len(times) else None
    safe = safe_times(times[:cut], following, -1)
    for index, time in enumerate(safe, start=1):
        assert all(time is not None and rest > time for rest in times[index:])


def test_offsets_of_rows_are_made_when_they_are_read() -> None:
    offsets = RowOffsets([1, 2, 3], [1000, 2000, 3001])
    expected = {"incrementing": 3, "timestamp": 3, "timestamp_nanos": 3_001_000}
    assert offsets[-1] == expected
    assert list(offsets[1:]) == [offsets[1], expected]
    assert list(offsets.take([2])) == [expected]


TABLES = [TableId("a", schema="s"), TableId("b", schema="s"), TableId("a", schema="other")]


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        (TableFilter(), TABLES),
        (TableFilter(whitelist=["a"]), [TABLES[0], TABLES[2]]),
        (TableFilter(whitelist=["s.a", '"s"."b"']), TABLES[:2]),
        (TableFilter(whitelist=["db.s.a"]), []),
        (TableFilter(blacklist=["s.a"]), TABLES[1:]),
        (TableFilter(include=[r"s\..*"]), TABLES[:2]),
        (TableFilter(include=["a"]), []),
        (TableFilter(include=[".*"], exclude=[r"other\.\p{Lower}"]), TABLES[:2]),
    ],
)
def test_tables_are_chosen(chosen: TableFilter, expected: list[TableId]) -> None:
    assert chosen.chosen(TABLES) == expected


def test_a_column_mapping_is_read() -> None:
    ((pattern, names),) = column_mapping([r"s\.a:[x|y]"])
    assert pattern.fullmatch("s.a")
    assert names == ("x", "y")
    for wrong in ("a", ":a", "a:", "a:[|b]", "(:a"):
        with pytest.raises(ValueError, match=r"write it as REGEX|is not a regular expression"):
            column_mapping([wrong])


@given(st.dictionaries(st.builds(TableId, st.text("abc", min_size=1)), st.integers(0, 1000)), st.integers(1, 6))
def test_tables_are_shared_evenly(sizes: dict[TableId, int], most: int) -> None:
    found = shares(sizes, most)
    assert sorted(table for share in found for table in share) == sorted(sizes)
    assert len(found) == min(most, len(sizes))
    loads = [sum(max(1, sizes[table]) for table in share) for share in found]
    assert not loads or max(loads) - min(loads) <= max(1, *sizes.values())


@pytest.mark.parametrize(
    ("mapping", "precision", "scale", "schema"),
    [
        ("none", 5, 0, decimal_schema(0, parameters={"connect.decimal.precision": "5"})),
        ("precision_only", 2, 0, Schema.int8()),
        ("precision_only", 4, 0, Schema.int16()),
        ("precision_only", 9, 0, Schema.int32()),
        ("precision_only", 18, 0, Schema.int64()),
        ("precision_only", 19, 0, decimal_schema(0, parameters={"connect.decimal.precision": "19"})),
        ("precision_only", 5, 2, decimal_schema(2, parameters={"connect.decimal.precision": "5"})),
        ("best_fit", 5, 2, Schema.float64()),
        ("best_fit", 3, -1, Schema.int16()),
        ("best_fit", 20, 2, decimal_schema(2, parameters={"connect.decimal.precision": "20"})),
        ("best_fit_eager_double", 20, 2, Schema.float64()),
        ("best_fit_eager_double", 20, 0, decimal_schema(0, parameters={"connect.decimal.precision": "20"})),
        ("best_fit", None, None, Schema.string()),
        ("best_fit_eager_double", None, None, Schema.float64()),
    ],
)
def test_numeric_mapping(mapping: str, precision: int | None, scale: int | None, schema: Schema) -> None:
    assert numeric_reading(precision, scale, TypeOptions(NumericMapping(mapping))).schema is schema


def test_numbers_are_exact_or_refused() -> None:
    convert = numeric_reading(6, 2, TypeOptions()).convert
    assert convert is not None
    assert str(convert(decimal.Decimal("1.5"))) == "1.50"
    assert str(convert(1.25)) == "1.25"
    for wrong in (decimal.Decimal("1.005"), decimal.Decimal("NaN"), 1.005):
        with pytest.raises(DataError):
            convert(wrong)


@pytest.mark.parametrize(
    ("granularity", "expected"),
    [
        ("connect_logical", dt.datetime(2024, 7, 1, 10, 0, 0, 123456, dt.UTC)),
        ("micros_long", 1719828000123456),
        ("micros_string", "1719828000123456"),
        ("micros_iso_datetime_string", "2024-07-01T12:00:00.123456"),
        ("nanos_long", 1719828000123456000),
        ("nanos_string", "1719828000123456000"),
        ("nanos_iso_datetime_string", "2024-07-01T12:00:00.123456000"),
    ],
)
def test_timestamp_granularity(granularity: str, expected: object) -> None:
    options = TypeOptions(granularity=TimestampGranularity(granularity), zone=parse_zone("Europe/Berlin"))
    reading = timestamp_reading(options)
    assert reading.convert is not None
    assert reading.convert(dt.datetime(2024, 7, 1, 12, 0, 0, 123456)) == expected  # noqa: DTZ001 - as a driver gives it


@pytest.mark.parametrize("zone", ["UTC", "Z", "+02:00", "-5", "GMT+2", "America/New_York"])
def test_time_zones_of_java(zone: str) -> None:
    assert parse_zone(zone).utcoffset(dt.datetime.now(dt.UTC)) is not None


@pytest.mark.parametrize("zone", ["", "Mars", "+25:00", "../../etc/passwd", "/etc/passwd"])
def test_what_is_no_time_zone_is_refused(zone: str) -> None:
    with pytest.raises(ValueError, match="is not a time zone"):
        parse_zone(zone)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("t", TableId("t")),
        ("s.t", TableId("t", schema="s")),
        ('"s.x"."a""b"', TableId('a"b', schema="s.x")),
        ("c.s.t", TableId("t", schema="s", catalog="c")),
    ],
)
def test_names_of_tables_are_read(text: str, expected: TableId) -> None:
    assert PostgresqlDialect().table_id(text) == expected


@pytest.mark.parametrize("text", ["", ".", "a.", "a.b.c.d", '"a', 'a"b"'])
def test_what_is_no_name_of_a_table_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a valid table name"):
        PostgresqlDialect().table_id(text)


def test_mysql_names_are_of_databases() -> None:
    assert MysqlDialect().table_id("d.t") == TableId("t", catalog="d")
    assert MysqlDialect().quoted(TableId("a`b", catalog="d")) == "`d`.`a``b`"


def test_rows_by_column_and_row_by_row_are_the_same() -> None:
    columns = (
        Column("id", NativeType("integer"), nullable=False),
        Column("price", NativeType("decimal", 5, 2)),
        Column("on", NativeType("date")),
    )
    layout = layout_of(SqliteDialect(), "t", columns, Mode.INCREMENTING, keys=["ID"], incrementing="id")
    good = [(1, 1.5, "2024-01-01"), (2, None, None)]
    whole = layout.block(good)
    mixed = layout.block([good[0], (9, "x", None), good[1]])
    assert whole.unfit == ()
    assert whole.value.values() == mixed.value.values()
    assert whole.key is not None
    assert whole.key.values() == [{"id": 1}, {"id": 2}]
    assert mixed.good == [0, 2]
    (unfit,) = mixed.unfit
    assert unfit.index == 1
    assert str(unfit.error).startswith("Column price of t (decimal(5,2)) has a value that does not fit: ")
    empty = layout.block([(9, "x", None)])
    assert len(SourceBatch.of("t", empty.value, source_partition={}, source_offsets=[])) == 0


def test_columns_that_are_needed_must_be_there() -> None:
    columns = (ID, Column("name", NativeType("text")))
    with pytest.raises(ConnectError, match="t has no column nr; its columns are id, name"):
        layout_of(PostgresqlDialect(), "t", columns, Mode.INCREMENTING, incrementing="nr")
    with pytest.raises(ConnectError, match="Column name of t is of type text, which is not a time"):
        layout_of(PostgresqlDialect(), "t", columns, Mode.TIMESTAMP, timestamps=["name"])
    with pytest.raises(ConnectError, match="t has more than one column id"):
        layout_of(PostgresqlDialect(), "t", (ID, ID), Mode.BULK)
