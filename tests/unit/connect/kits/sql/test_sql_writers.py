"""What is sent to each database: statements and values."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pymysql.converters import escape_string

from connect.data import ArrowColumn, Schema, ValueColumn, decimal_schema, time_schema, timestamp_schema
from connect.errors import DataError
from connect.kits.sql.column import Column, NativeType, TableId
from connect.kits.sql.databases.mysql.writer import MysqlWriter
from connect.kits.sql.databases.postgresql.writer import PostgresqlWriter
from connect.kits.sql.databases.sqlite.writer import SqliteWriter
from connect.kits.sql.registry import dialect_class, writer_of
from connect.kits.sql.values import TypeOptions, parse_zone
from connect.kits.sql.writer import Action, Step, Target, Writer
from equipment.examples import examples

TEXT = Column("c", NativeType("text"))
MOMENT = dt.datetime(2024, 7, 1, 12, 0, 0, 250000, tzinfo=dt.UTC)


def writer(backend: str, zone: str = "UTC") -> Any:
    return writer_of(dialect_class(backend)(TypeOptions(zone=parse_zone(zone))))


def target(*names: str, key_size: int = 1) -> Target:
    return Target(TableId('t`"', schema=""), tuple(Column(name, NativeType("int")) for name in names), key_size)


def cells(writer: Writer, schema: Schema, values: Sequence[Any], column: Column = TEXT) -> list[Any]:
    return list(writer.encoder(schema, column)(values))


# -- PostgreSQL --------------------------------------------------------------------------------------------------


def unescaped(cell: str) -> str | None:
    """A cell of COPY as the server reads it."""
    if cell == "\\N":
        return None
    named = {"t": "\t", "n": "\n", "r": "\r", "\\": "\\"}
    text, rest = "", iter(cell)
    for char in rest:
        text += named[next(rest)] if char == "\\" else char
    return text


@settings(max_examples=examples(100))
@given(st.lists(st.one_of(st.none(), st.text(st.sampled_from("\\\t\n\rN.ab{}\"'%é")))))
def test_copy_reads_every_text_as_it_was(texts: list[str | None]) -> None:
    found = cells(writer("postgresql"), Schema.string(optional=True), texts)
    assert list(map(unescaped, found)) == texts
    assert not any("\t" in cell or "\n" in cell or "\r" in cell for cell in found)


@given(st.lists(st.datetimes(), max_size=3), st.booleans())
def test_instants_are_written_as_they_are_in_utc(moments: list[dt.datetime], elsewhere: bool) -> None:
    values = [moment.replace(tzinfo=dt.UTC) for moment in moments]
    if elsewhere:
        values = [MOMENT.astimezone(dt.timezone(dt.timedelta(hours=2))), *values]
    naive = [value.astimezone(dt.UTC).replace(tzinfo=None) for value in values]
    for backend in ("postgresql", "sqlite"):
        found = cells(writer(backend), timestamp_schema(), values)
        assert [text[:26] for text in found] == [moment.isoformat(" ") for moment in naive]


@pytest.mark.parametrize(
    ("schema", "values", "expected"),
    [
        (Schema.int64(), [1, -(2**63)], ["1", "-9223372036854775808"]),
        (Schema.float64(), [0.1, float("inf"), 3], ["0.1", "inf", "3.0"]),
        (Schema.boolean(optional=True), [True, False, None], ["1", "0", "\\N"]),
        (Schema.bytes(), [b"\x00\\", b""], ["\\\\x005c", "\\\\x"]),
        (decimal_schema(2), [Decimal("1.20"), Decimal("1E+3")], ["1.20", "1E+3"]),
        (timestamp_schema(), [MOMENT], ["2024-07-01 12:00:00.250000"]),
        (
            Schema.array(Schema.string(optional=True)),
            [["a", None, 'q"\\', ""], []],
            ['{"a",NULL,"q\\\\"\\\\\\\\",""}', "{}"],
        ),
        (Schema.array(Schema.array(Schema.int32())), [[[1], [2]]], ['{{"1"},{"2"}}']),
    ],
)
def test_values_for_copy(schema: Schema, values: list[Any], expected: list[str]) -> None:
    assert cells(writer("postgresql"), schema, values) == expected


def test_instants_for_columns_with_and_without_a_zone() -> None:
    berlin = writer("postgresql", "Europe/Berlin")
    with_zone = Column("c", NativeType("timestamp with time zone"))
    assert cells(berlin, timestamp_schema(), [MOMENT]) == ["2024-07-01 14:00:00.250000"]
    assert cells(berlin, timestamp_schema(), [MOMENT], with_zone) == ["2024-07-01 12:00:00.250000+00:00"]


OPTIONAL_TIMES = timestamp_schema(optional=True)
MOMENTS = [MOMENT, None, dt.datetime(1, 1, 1, tzinfo=dt.UTC), dt.datetime(9999, 12, 31, 23, 59, 59, 999000, dt.UTC)]


@pytest.mark.parametrize(
    ("schema", "kind", "values", "expected"),
    [
        (
            *(OPTIONAL_TIMES, "timestamp", MOMENTS),
            ["2024-07-01 12:00:00.250", "\\N", "0001-01-01 00:00:00.000", "9999-12-31 23:59:59.999"],
        ),
        (
            decimal_schema(2),
            "numeric",
            [Decimal("-0.05"), Decimal("12345678901234567.80")],
            ["-0.05", "12345678901234567.80"],
        ),
        (
            Schema.float64(optional=True),
            "float8",
            [1.0, None, -0.0, 1e300, math.inf],
            ["1", "\\N", "-0", "1e+300", "inf"],
        ),
    ],
)
def test_columns_in_arrow_are_written_by_arrow(
    schema: Schema, kind: str, values: list[Any], expected: list[str]
) -> None:
    column = ArrowColumn.of(ValueColumn(values, schema))
    assert cells(writer("postgresql"), schema, column, Column("c", NativeType(kind))) == expected
    # A column of texts keeps what it is given, which is Python's text.
    if kind != "numeric":
        assert cells(writer("postgresql"), schema, column) == cells(writer("postgresql"), schema, values)


def test_statements_of_postgresql() -> None:
    it: PostgresqlWriter = writer("postgresql")
    table, stage = '"t`"""', "pg_temp.s"
    assert it.statement(target('i"d', "a"), stage, Action.UPSERT) == (
        f'INSERT INTO {table} ("i""d", "a") SELECT "i""d", "a" FROM {stage} '
        'ON CONFLICT ("i""d") DO UPDATE SET "a" = EXCLUDED."a"'
    )
    assert it.statement(target("id"), stage, Action.UPSERT).endswith('ON CONFLICT ("id") DO NOTHING')
    assert it.statement(target("a", "b", "c", key_size=2), stage, Action.UPDATE) == (
        f'UPDATE {table} AS t SET "c" = s."c" FROM {stage} AS s WHERE t."a" = s."a" AND t."b" = s."b"'
    )
    assert it.statement(target("id"), stage, Action.DELETE) == (
        f'DELETE FROM {table} AS t USING {stage} AS s WHERE t."id" = s."id"'
    )


# -- MySQL -------------------------------------------------------------------------------------------------------


@settings(max_examples=examples(100))
@given(st.text(st.sampled_from("\\'\"\0\n\r\x1aab%é`")))
def test_texts_of_mysql_are_escaped_as_its_driver_does(text: str) -> None:
    assert cells(writer("mysql"), Schema.string(), [text, "plain"])[0] == f"'{escape_string(text)}'"


@pytest.mark.parametrize(
    ("schema", "values", "expected"),
    [
        (Schema.int8(optional=True), [None, -1], ["NULL", "-1"]),
        (Schema.float64(), [0.1, 1e300, 2], ["0.1e0", "1e+300", "2.0e0"]),
        (Schema.bytes(), [b"\x00'", b""], ["x'0027'", "x''"]),
        (decimal_schema(2), [Decimal("1E+3")], ["1000"]),
        (timestamp_schema(), [MOMENT], ["'2024-07-01 14:00:00.250000'"]),
        (time_schema(), [dt.time(1, 2)], ["'01:02:00'"]),
    ],
)
def test_values_for_mysql(schema: Schema, values: list[Any], expected: list[str]) -> None:
    assert cells(writer("mysql", "Europe/Berlin"), schema, values) == expected


def test_statements_of_mysql() -> None:
    it: MysqlWriter = writer("mysql")
    rows = [("1", "'a'"), ("2", "NULL")]
    step = Step(Action.UPSERT, rows, range(2))
    head = "INSERT INTO `t``\"` (`id`, `%s`) VALUES (1,'a'),(2,NULL)"
    assert list(it.statements(target("id", "%s"), step)) == [f"{head} ON DUPLICATE KEY UPDATE `%s` = VALUES(`%s`)"]
    step = Step(Action.UPSERT, [("1",)], range(1))
    assert next(iter(it.statements(target("id"), step))).endswith("ON DUPLICATE KEY UPDATE `id` = `id`")
    step = Step(Action.DELETE, rows, range(2))
    assert list(it.statements(target("a", "b", key_size=2), step)) == [
        "DELETE FROM `t``\"` WHERE (`a`, `b`) IN ((1,'a'),(2,NULL))"
    ]
    step = Step(Action.UPDATE, rows, range(2))
    assert list(it.statements(target("a", "b"), step)) == [
        "UPDATE `t``\"` SET `b` = 'a' WHERE `a` = 1",
        'UPDATE `t``"` SET `b` = NULL WHERE `a` = 2',
    ]


def test_long_rows_are_divided_among_statements() -> None:
    rows = [("1", f"'{'x' * 400_000}'")] * 5
    statements = list(writer("mysql").statements(target("a", "b"), Step(Action.INSERT, rows, range(5))))
    assert [statement.count("'x") for statement in statements] == [2, 2, 1]


# -- SQLite ------------------------------------------------------------------------------------------------------


def test_statements_of_sqlite() -> None:
    it: SqliteWriter = writer("sqlite")
    insert = 'INSERT INTO "t`""" ("id", "a") VALUES (?, ?)'
    assert it.statement(target("id", "a"), Action.INSERT) == insert
    assert it.statement(target("id", "a"), Action.UPSERT) == (
        f'{insert} ON CONFLICT ("id") DO UPDATE SET "a" = excluded."a"'
    )
    assert it.statement(target("id", "a"), Action.UPDATE) == 'UPDATE "t`""" SET "a" = ? WHERE "id" = ?'
    assert it.statement(target("id"), Action.DELETE) == 'DELETE FROM "t`""" WHERE "id" = ?'
    step = Step(Action.UPDATE, [(1, "a")], range(1))
    assert it.parameters(target("id", "a"), step) == [("a", 1)]


def test_times_of_the_java_connector_stay_numbers() -> None:
    numbers = Column("c", NativeType("numeric"))
    assert cells(writer("sqlite"), timestamp_schema(), [MOMENT], numbers) == [1719835200250]
    assert cells(writer("sqlite"), time_schema(), [dt.time(0, 0, 1)], numbers) == [1000]
    assert cells(writer("sqlite"), timestamp_schema(), [MOMENT], Column("c", NativeType("timestamp"))) == [
        "2024-07-01 12:00:00.250000"
    ]


# -- what would be lost --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("backend", "schema", "value", "column"),
    [
        ("postgresql", decimal_schema(3), Decimal("1.005"), NativeType("numeric", 10, 2)),
        ("mysql", decimal_schema(3), Decimal("1.005"), NativeType("decimal", 10, 2)),
        ("sqlite", decimal_schema(3), Decimal("1234567890123456.123"), NativeType("numeric")),
        ("sqlite", decimal_schema(-999_999_999), Decimal("1E+999999999"), NativeType("text")),
        ("mysql", decimal_schema(-999_999_999), Decimal("1E+999999999"), NativeType("text")),
        ("mysql", timestamp_schema(), MOMENT, NativeType("datetime")),
        ("mysql", time_schema(), dt.time(1, 2, 3, 4000), NativeType("time")),
        ("mysql", Schema.float64(), float("nan"), NativeType("double")),
        ("sqlite", Schema.float64(), float("nan"), NativeType("real")),
    ],
)
def test_values_that_would_lose_something_are_refused(
    backend: str, schema: Schema, value: Any, column: NativeType
) -> None:
    with pytest.raises(DataError):
        cells(writer(backend), schema, [value], Column("c", column))


@pytest.mark.parametrize("backend", ["postgresql", "mysql", "sqlite"])
@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (Schema.string(), "lone \ud800"),
        (Schema.string(), 5),
        (Schema.int64(), "1\t2"),
        (Schema.float64(), "1.5'"),
        (Schema.bytes(), "text"),
        (timestamp_schema(), dt.datetime(2024, 1, 1)),  # noqa: DTZ001 - that is what is wrong with it
    ],
)
def test_values_of_another_type_are_refused(backend: str, schema: Schema, value: Any) -> None:
    with pytest.raises((DataError, TypeError, ValueError)):
        cells(writer(backend), schema, [value])


def test_decimals_that_fit_are_kept() -> None:
    column = Column("c", NativeType("numeric", 10, 2))
    assert cells(writer("postgresql"), decimal_schema(3), [Decimal("1.500")], column) == ["1.500"]
    assert cells(writer("sqlite"), decimal_schema(1), [Decimal("9007199254740993.0")], column) == [9007199254740993]
