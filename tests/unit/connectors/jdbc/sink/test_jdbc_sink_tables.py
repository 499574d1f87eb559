"""Tables: their names, the columns of records, and DDL."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import pytest

from connect.data import (
    Constant,
    Schema,
    SinkBatch,
    SinkRecord,
    StructColumn,
    date_schema,
    decimal_schema,
    time_schema,
    timestamp_schema,
)
from connect.errors import ConnectError, DataError
from connect.kits.sql.column import Column, NativeType, TableId
from connect.kits.sql.registry import dialect_class, writer_class, writer_of
from connect.kits.sql.writer import Writer
from connectors.jdbc import JdbcSinkConfig
from connectors.jdbc.sink.layout import Layout, key_layout, row_layout
from connectors.jdbc.sink.routing import Routing
from connectors.jdbc.sink.tables import add_columns_statements, check_plain, create_statement, match_columns

URL = {"connection.url": "jdbc:postgresql://127.0.0.1/db"}
VALUE = Schema.struct({"id": Schema.int64(), "name": Schema.string(optional=True), "rank": Schema.int32(default=3)})
KEY = Schema.struct({"id": Schema.int64(), "part": Schema.string()})


def config(**props: str) -> JdbcSinkConfig:
    return JdbcSinkConfig.parse({**URL, **{key.replace("_", "."): value for key, value in props.items()}})


def batch(*values: Any, schema: Schema | None = VALUE, key: Any = None, key_schema: Schema | None = None) -> SinkBatch:
    records = [
        SinkRecord("orders", value, schema, key, key_schema, 0, offset=place, original_topic="orders",
                   original_partition=0, original_offset=place)
        for place, value in enumerate(values)
    ]  # fmt: skip
    return SinkBatch.from_records(records)[0]


def writer(backend: str, *, quote: bool = True) -> Writer:
    return writer_of(dialect_class(backend)(quote=quote))


def columns(layout: Layout) -> list[tuple[str, Any]]:
    return [(column.name, column.schema) for column in layout.columns]


# -- names of tables ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("topic", "props", "expected"),
    [
        ("orders", {}, TableId("orders")),
        ("shop.orders", {}, TableId("orders", schema="shop")),
        ("orders", {"table_name_format": "kafka_${topic}"}, TableId("kafka_orders")),
        ("orders", {"table_name_format": "shop.${topic}"}, TableId("orders", schema="shop")),
        ("shop.new-orders", {"table_name_normalize": "true"}, TableId("shop_new_orders")),
        ("a.b", {"topics_to_tables_mapping": "c:d,a.b:x.y", "table_name_format": "z"}, TableId("y", schema="x")),
        ("c", {"topics_to_tables_mapping": "a:b", "table_name_format": "z"}, TableId("z")),
    ],
)
def test_a_topic_names_a_table(topic: str, props: Mapping[str, str], expected: TableId) -> None:
    routing = Routing(config(**props), dialect_class("postgresql")())
    assert list(routing.tables(batch({"id": 1}).replace(topic=topic))) == [(expected, None)]


def test_a_schema_is_a_catalog_of_mysql() -> None:
    routing = Routing(config(), dialect_class("mysql")())
    assert list(routing.tables(batch({"id": 1}).replace(topic="shop.orders"))) == [
        (TableId("orders", catalog="shop"), None)
    ]


def test_the_text_of_a_field_is_one_name() -> None:
    routing = Routing(config(table_name_field="name", table_name_format="s.t_${field}"), dialect_class("postgresql")())
    names = ["a", 'pg_catalog.x"; DROP', "a", "${topic}"]
    found = list(routing.tables(batch(*({"id": 1, "name": name} for name in names))))
    assert found == [
        (TableId("t_a", schema="s"), [0, 2]),
        (TableId('t_pg_catalog.x"; DROP', schema="s"), [1]),
        (TableId("t_${topic}", schema="s"), [3]),
    ]


def test_a_field_alone_names_the_table() -> None:
    routing = Routing(config(table_name_field="name"), dialect_class("postgresql")())
    assert list(routing.tables(batch({"name": "shop.orders"}))) == [(TableId("shop.orders"), [0])]


def test_a_tombstone_goes_by_its_key() -> None:
    routing = Routing(config(table_name_field="part"), dialect_class("postgresql")())
    tombstone = batch(None, schema=None, key={"id": 1, "part": "x"}, key_schema=KEY)
    assert list(routing.tables(tombstone)) == [(TableId("x"), [0])]


@pytest.mark.parametrize("value", [{"id": 1}, {"name": None}, {"name": 5}, {"name": ""}, "text"])
def test_a_record_that_names_no_table(value: Any) -> None:
    routing = Routing(config(table_name_field="name"), dialect_class("postgresql")())
    with pytest.raises(DataError, match=r"name.* \(table\.name\.field\)"):
        list(routing.tables(batch(value)))


# -- columns -----------------------------------------------------------------------------------------------------


def test_the_columns_of_a_value() -> None:
    assert columns(row_layout(config(), None, VALUE, arrays=False)) == [
        ("id", Schema.int64()), ("name", Schema.string(optional=True)), ("rank", Schema.int32(default=3)),
    ]  # fmt: skip


def test_the_key_comes_first_and_once() -> None:
    layout = row_layout(config(pk_mode="record_key", fields_whitelist="name,id"), KEY, VALUE, arrays=False)
    assert (layout.names, layout.key_names) == (("id", "part", "name"), ("id", "part"))
    layout = row_layout(config(pk_mode="record_value", pk_fields="name"), None, VALUE, arrays=False)
    assert (layout.names, layout.key_names) == (("name", "id", "rank"), ("name",))
    assert key_layout(config(pk_mode="record_key", pk_fields="part"), KEY).names == ("part",)
    layout = row_layout(config(pk_mode="kafka", fields_whitelist="id"), None, VALUE, arrays=False)
    assert layout.names == ("__connect_topic", "__connect_partition", "__connect_offset", "id")


TWICE = Schema.struct({"a_b": Schema.int32(), "a": Schema.struct({"b": Schema.int32()})})


@pytest.mark.parametrize(
    ("props", "key", "value", "told"),
    [
        ({"pk_mode": "record_key"}, None, VALUE, "the key of the record has none"),
        ({"pk_mode": "record_key"}, Schema.int32(), VALUE, "Set pk.fields to the name of its column"),
        ({"pk_mode": "record_key"}, Schema.array(Schema.int32()), VALUE, "cannot be a primary key"),
        ({"pk_mode": "record_key", "pk_fields": "x"}, KEY, VALUE, "pk.fields has x"),
        ({"pk_mode": "record_value", "pk_fields": "x"}, None, VALUE, "pk.fields has x"),
        ({"pk_mode": "record_value"}, None, Schema.string(), "structs with a schema"),
        ({}, None, None, "has no schema"),
        ({}, None, Schema.int32(), "is of type int32"),
        ({"fields_whitelist": "x"}, None, VALUE, "fields.whitelist has x"),
        ({}, None, Schema.struct({"a": Schema.struct({"b": Schema.int32()})}), "nested.values=json"),
        ({}, None, Schema.struct({"a": Schema.array(Schema.int32())}), "nested.values=json"),
        ({"nested_values": "flatten"}, None, TWICE, "Two fields"),
        ({"timestamp_fields_list": "a"}, None, Schema.struct({"a": Schema.int32()}), "int64 or string"),
    ],
)  # fmt: skip
def test_records_without_columns(props: Mapping[str, str], key: Any, value: Any, told: str) -> None:
    with pytest.raises(DataError, match=told):
        row_layout(config(**props), key, value, arrays=False)


def test_values_are_read_by_column() -> None:
    layout = row_layout(config(pk_mode="kafka", fields_whitelist="name,rank"), None, VALUE, arrays=False)
    rows = batch({"id": 1, "name": "a", "rank": None}, {"id": 2, "name": None, "rank": 5}, {"id": 3})
    assert [list(column.read(rows)) for column in layout.columns] == [
        ["orders"] * 3, [0, 0, 0], [0, 1, 2], ["a", None, None], [3, 5, 3],
    ]  # fmt: skip
    held = rows.replace(value=StructColumn({"id": [1, 2, 3], "name": ["a", "b", "c"], "rank": Constant(1, 3)}, VALUE))
    assert list(layout.columns[3].read(held)) == ["a", "b", "c"]


def test_nulls_stay_if_they_are_to() -> None:
    layout = row_layout(config(replace_null_with_default="false"), None, VALUE, arrays=False)
    assert list(layout.columns[2].read(batch({"id": 1, "rank": None}))) == [None]


def test_texts_have_one_column() -> None:
    layout = row_layout(config(string_output_value_column_name="line"), None, Schema.string(), arrays=False)
    assert columns(layout) == [("line", Schema.string())]
    assert list(layout.columns[0].read(batch("a", "b", schema=Schema.string()))) == ["a", "b"]


def test_nested_values_become_columns_or_json() -> None:
    schema = Schema.struct(
        {
            "a": Schema.struct({"b": Schema.int32(), "c": Schema.struct({"d": Schema.string()})}, optional=True),
            "m": Schema.map(Schema.int32(), decimal_schema(1)),
            "l": Schema.array(timestamp_schema(optional=True)),
        }
    )
    moment = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
    rows = batch(
        {"a": {"b": 1, "c": {"d": "x"}}, "m": {1: Decimal("0.5")}, "l": [moment, None]},
        {"a": None, "m": {}, "l": []},
        schema=schema,
    )
    flat = row_layout(config(nested_values="flatten", nested_delimiter="."), None, schema, arrays=False)
    assert [(column.name, list(column.read(rows))) for column in flat.columns] == [
        ("a.b", [1, None]),
        ("a.c.d", ["x", None]),
        ("m", ['{"1":"0.5"}', "{}"]),
        ("l", ['["2024-01-01T00:00:00+00:00",null]', "[]"]),
    ]
    assert all(column.schema.optional for column in flat.columns[:2])
    whole = row_layout(config(nested_values="json"), None, schema, arrays=False)
    assert list(whole.columns[0].read(rows)) == ['{"b":1,"c":{"d":"x"}}', None]


def test_timestamps_finer_than_a_millisecond() -> None:
    schema = Schema.struct({"at": Schema.int64(optional=True)})
    rows = batch({"at": 1_700_000_000_123_456}, {"at": None}, schema=schema)
    layout = row_layout(config(timestamp_fields_list="at"), None, schema, arrays=False)
    moment = dt.datetime(2023, 11, 14, 22, 13, 20, 123456, tzinfo=dt.UTC)
    assert list(layout.columns[0].read(rows)) == [moment, None]
    nanos = row_layout(
        config(timestamp_fields_list="at", timestamp_precision_mode="nanoseconds"), None, schema, arrays=False
    )
    with pytest.raises(DataError, match="more precise than a microsecond"):
        nanos.columns[0].read(rows)


# -- DDL ---------------------------------------------------------------------------------------------------------


ALL = Schema.struct(
    {
        "id": Schema.string(), "i8": Schema.int8(), "i64": Schema.int64(optional=True), "f": Schema.float32(),
        "b": Schema.boolean(default=True), "raw": Schema.bytes(optional=True), "d": decimal_schema(2, optional=True),
        "day": date_schema(default=dt.date(2024, 1, 2)), "t": time_schema(optional=True),
        "ts": timestamp_schema(optional=True), "note": Schema.string(default="it's \\ \"x\""),
    }
)  # fmt: skip


@pytest.mark.parametrize(
    ("backend", "expected"),
    [
        (
            "postgresql",
            '"id" TEXT NOT NULL, "i8" SMALLINT NOT NULL, "i64" BIGINT, "f" REAL NOT NULL, '
            '"b" BOOLEAN NOT NULL DEFAULT \'1\', "raw" BYTEA, "d" DECIMAL, "day" DATE NOT NULL DEFAULT \'2024-01-02\', '
            '"t" TIME, "ts" TIMESTAMP, '
            '"note" TEXT NOT NULL DEFAULT E\'it\\\'s \\\\ "x"\', PRIMARY KEY ("id"))',
        ),
        (
            "mysql",
            "`id` VARCHAR(255) NOT NULL, `i8` TINYINT NOT NULL, `i64` BIGINT, `f` FLOAT NOT NULL, "
            "`b` TINYINT NOT NULL DEFAULT 1, `raw` LONGBLOB, `d` DECIMAL(65,2), "
            "`day` DATE NOT NULL DEFAULT '2024-01-02', `t` TIME(3), `ts` DATETIME(3), "
            "`note` LONGTEXT NOT NULL DEFAULT ('it\\'s \\\\ \\\"x\\\"'), PRIMARY KEY (`id`)) "
            "DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_bin",
        ),
        (
            "sqlite",
            '"id" TEXT NOT NULL, "i8" INTEGER NOT NULL, "i64" INTEGER, "f" REAL NOT NULL, '
            '"b" BOOLEAN NOT NULL DEFAULT 1, "raw" BLOB, "d" TEXT, "day" DATE NOT NULL DEFAULT \'2024-01-02\', '
            '"t" TIME, "ts" TIMESTAMP, '
            '"note" TEXT NOT NULL DEFAULT \'it\'\'s \\ "x"\', PRIMARY KEY ("id"))',
        ),
    ],
)  # fmt: skip
def test_a_table_is_created(backend: str, expected: str) -> None:
    layout = row_layout(config(pk_mode="record_value", pk_fields="id"), None, ALL, arrays=False)
    dialect = writer(backend).dialect
    table = TableId('a"b`c')
    assert create_statement(writer(backend), table, layout) == f"CREATE TABLE {dialect.quoted(table)} ({expected}"


def test_columns_are_added() -> None:
    layout = row_layout(config(), None, VALUE, arrays=False)
    assert add_columns_statements(writer("postgresql"), TableId("t", schema="s"), layout.columns[1:]) == [
        'ALTER TABLE "s"."t" ADD "name" TEXT',
        'ALTER TABLE "s"."t" ADD "rank" INT NOT NULL DEFAULT \'3\'',
    ]


def test_precise_types() -> None:
    schema = Schema.struct(
        {
            "d": decimal_schema(2, parameters={"connect.decimal.precision": "10"}),
            "l": Schema.array(Schema.array(Schema.string())),
            "at": Schema.int64(),
        }
    )
    layout = row_layout(config(timestamp_fields_list="at"), None, schema, arrays=True)
    types = [writer("postgresql").column_type(column.schema, in_key=False) for column in layout.columns]
    assert types == ["DECIMAL", "TEXT[][]", "TIMESTAMP"]
    assert writer("mysql").column_type(layout.columns[0].schema, in_key=False) == "DECIMAL(10,2)"
    assert writer("mysql").column_type(layout.columns[2].schema, in_key=False) == "DATETIME(6)"
    assert writer("sqlite").column_type(layout.columns[0].schema, in_key=False) == "DECIMAL(10,2)"
    with pytest.raises(DataError, match="at most 65 digits"):
        writer("mysql").column_type(decimal_schema(31), in_key=False)


@pytest.mark.parametrize(("backend", "longest"), [("postgresql", 63), ("mysql", 64)])
def test_names_that_would_be_cut_are_refused(backend: str, longest: int) -> None:
    layout = row_layout(config(), None, VALUE, arrays=False)
    create_statement(writer(backend), TableId("t" * longest), layout)
    with pytest.raises(DataError, match="so the database would cut it"):
        create_statement(writer(backend), TableId("t" * (longest + 1)), layout)


def test_columns_are_matched_by_name() -> None:
    table = [Column(name, NativeType("integer")) for name in ("ID", "name", "NAME", "Rank", "RANK")]
    found, missing = match_columns(row_layout(config(), None, VALUE, arrays=False), table)
    assert [column.name for column in found] == ["ID", "name"]
    assert [column.name for column in missing] == ["rank"]


@pytest.mark.parametrize("name", ["a b", "a;", "a.b", '"a"', "a`", "1a", "a--", "é"])
def test_names_without_quotes_are_plain(name: str) -> None:
    check_plain(["orders", "Order_2$", ""])
    with pytest.raises(DataError, match=r"quote.sql.identifiers=always"):
        check_plain([name])


def test_databases_without_a_writer() -> None:
    with pytest.raises(LookupError, match="cannot write to oracle"):
        writer_class("oracle")


# -- rules over several keys ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("props", "told"),
    [
        ({"delete_enabled": "true"}, "Primary key mode must be 'record_key' when delete support is enabled"),
        ({"insert_mode": "upsert"}, "insert.mode=upsert needs a primary key"),
        ({"insert_mode": "update"}, "insert.mode=update needs a primary key"),
        ({"pk_mode": "kafka", "pk_fields": "a,b"}, "names three columns"),
        ({"pk_mode": "record_value", "pk_fields": "a,a"}, "a more than once"),
        ({"table_name_format": "${tpoic}"}, r"\${tpoic}"),
        ({"table_name_format": "x_${field}"}, "table.name.field"),
        ({"topics_to_tables_mapping": "a:b,a:c"}, "the topic a more than once"),
        ({"topics_to_tables_mapping": "a"}, "topic:table"),
        ({"db_timezone": "Mars"}, "Mars"),
        ({"insert_mode": "merge"}, "merge"),
        ({"batch_size": "-1"}, "at least 0"),
        ({"connection_url": "jdbc:oracle:thin:@h"}, "oracle"),
        ({"dialect_name": "nosuch"}, "Unknown dialect nosuch"),
        ({"offsets_table": "a.b.c.d"}, "offsets.table"),
    ],
)
def test_what_a_configuration_must_not_say(props: Mapping[str, str], told: str) -> None:
    with pytest.raises(ConnectError, match=told):
        config(**props)
