"""The JDBC sink on real databases."""

from __future__ import annotations

import datetime as dt
import json
from contextlib import closing
from decimal import Decimal
from typing import Any

import pytest

from connect.data import (
    Column,
    Schema,
    SinkBatch,
    SinkRecord,
    date_schema,
    decimal_schema,
    time_schema,
    timestamp_schema,
)
from connect.errors import ConnectError, RetriableError
from connect.testing.contexts import ErrantRecords, SinkTaskTestContext
from connectors.jdbc import JdbcSinkConfig, JdbcSinkTask
from converters.avro import AvroConverter
from equipment.fakes.schema_registry import MemoryRegistry, serving
from equipment.servers.lease import Database
from equipment.stores.jdbc_target import UPSERT, Target, gone, order, records, running, write

HOSTILE = [
    *("it's", 'quo"te', "back\\slash", "tab\there", "line\nbreak", "cr\rlf\r\n", "%s %d %%", "\\N", "", "NULL", "`;--"),
    *("\\.", "ünï \N{SNOWMAN} \N{PILE OF POO}", "\x1a", "nul\0", "{a,b}", "${topic}"),
]


def batch_of(values: Column, first: int) -> SinkBatch:
    """The values of a topic from an offset on, without keys."""
    count = len(values)
    (part,) = SinkBatch.from_records(records(*[(None, None)] * count))
    offsets = range(first, first + count)
    return part.replace(value=values, offsets=offsets, original_offsets=offsets)


def test_an_insert_creates_the_table_and_adds_rows(target: Target) -> None:
    write(target, records(*(order(n, f"order {n}") for n in range(10))), auto_create="true")
    assert sorted(target.rows("SELECT name, amount FROM orders")) == sorted((f"order {n}", 1) for n in range(10))


def test_texts_arrive_as_they_are(target: Target) -> None:
    texts = [text for text in HOSTILE if not (target.product == "postgresql" and "\0" in text)]
    write(target, records(*(order(n, text) for n, text in enumerate(texts))), **UPSERT)
    assert dict(target.rows("SELECT id, name FROM orders")) == dict(enumerate(texts))


def test_an_upsert_replaces_the_row_of_its_key(target: Target) -> None:
    first = [order(n, "old") for n in range(5)]
    write(target, records(*first, order(3, "new"), order(4, "newer"), order(4, "newest", None)), **UPSERT)
    write(target, records(order(0, "again")), **UPSERT)
    expected = [(0, "again", 1), (1, "old", 1), (2, "old", 1), (3, "new", 1), (4, "newest", None)]
    assert sorted(target.rows("SELECT id, name, amount FROM orders")) == expected


def test_a_tombstone_deletes_the_row_of_its_key(target: Target) -> None:
    first = [order(n, "old") for n in range(6)]
    later = [gone(1), gone(2), order(2, "back"), order(9, "short"), gone(9), gone(77), order(3, "new")]
    write(target, records(*first), **UPSERT)
    write(target, records(*later), delete_enabled="true", **UPSERT)
    expected = [(0, "old"), (2, "back"), (3, "new"), (4, "old"), (5, "old")]
    assert sorted(target.rows("SELECT id, name FROM orders")) == expected


def test_an_upsert_after_a_delete_does_not_find_the_old_row(target: Target) -> None:
    target.execute("CREATE TABLE orders (id BIGINT PRIMARY KEY, name VARCHAR(20), amount INT, note VARCHAR(20))")
    target.execute("INSERT INTO orders VALUES (1, 'a', 1, 'kept'), (2, 'b', 1, 'lost')")
    write(target, records(order(1, "x"), gone(2), order(2, "y")), delete_enabled="true", **UPSERT)
    assert sorted(target.rows("SELECT id, name, note FROM orders")) == [(1, "x", "kept"), (2, "y", None)]


def test_inserts_and_deletes_keep_their_order(target: Target) -> None:
    props = {**UPSERT, "insert_mode": "insert", "delete_enabled": "true"}
    turns = [item for n in range(20) for item in (order(1, f"turn {n}"), gone(1))]
    write(target, records(order(0, "first"), *turns, order(1, "last"), order(2, "other"), gone(0)), **props)
    assert sorted(target.rows("SELECT id, name FROM orders")) == [(1, "last"), (2, "other")]


def test_an_update_changes_rows_and_adds_none(target: Target) -> None:
    write(target, records(order(1, "old"), order(2, "old")), **UPSERT)
    write(target, records(order(2, "new"), order(3, "new"), order(2, "newest")), **{**UPSERT, "insert_mode": "update"})
    assert sorted(target.rows("SELECT id, name FROM orders")) == [(1, "old"), (2, "newest")]


def test_a_key_that_came_by_column_is_that_which_came_by_row(target: Target) -> None:
    price = Schema.struct({"at": timestamp_schema(), "price": decimal_schema(2), "ratio": Schema.float64()})
    day = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    values = [{"at": day + dt.timedelta(minutes=n), "price": Decimal(n).scaleb(-2), "ratio": n / 2} for n in range(100)]
    with (
        serving(MemoryRegistry()) as registry,
        closing(AvroConverter.configured({"schema.registry.url": registry.url})) as avro,
    ):
        messages = [avro.from_connect("orders", price, value) for value in values]
        props = {**UPSERT, "pk_mode": "record_value", "pk_fields": "at,price", "batch_size": "1000"}
        with running(target, **props) as task:
            for first in (0, 100, 200):
                # What reads the first batch by field has the others decoded by column.
                (column,) = avro.to_connect_column("orders", messages)
                task.put(batch_of(column, first))
            task.flush({})
    assert sorted(target.rows("SELECT ratio FROM orders")) == [(n / 2,) for n in range(100)]


def test_rows_of_the_key_alone(target: Target) -> None:
    schema = Schema.struct({"id": Schema.int64()})
    items = records(*(({"id": n % 3}, {"id": n % 3}) for n in range(7)), schema=schema)
    write(target, items, **{**UPSERT, "pk_mode": "record_value", "pk_fields": "id"})
    assert sorted(target.rows("SELECT id FROM orders")) == [(0,), (1,), (2,)]


def test_kafka_coordinates_as_the_key(target: Target) -> None:
    items = records(*(order(n, f"order {n}") for n in range(4)))
    for _ in range(2):
        write(target, items, insert_mode="upsert", pk_mode="kafka", pk_fields="t,p,o", auto_create="true")
    assert sorted(target.rows("SELECT t, p, o, name FROM orders")) == [("orders", 0, n, f"order {n}") for n in range(4)]


def test_a_key_that_is_a_single_value(target: Target) -> None:
    codes = {"a": "x", "A": "y", "a ": "z"}
    items = records(*((code, {"name": name, "amount": 1}) for code, name in codes.items()), key=Schema.string())
    write(target, items, **UPSERT, pk_fields="code")
    assert sorted(target.rows("SELECT code, name FROM orders")) == sorted(codes.items())


def test_columns_are_added(target: Target) -> None:
    wider = Schema.struct(
        {
            "name": Schema.string(optional=True),
            "amount": Schema.int32(optional=True),
            "paid": Schema.boolean(optional=True),
            "rank": Schema.int16(default=7),
            "note": Schema.string(default="it's \\ new"),
        }
    )
    write(target, records(order(1, "a")), **UPSERT)
    later = records(({"id": 2}, {"name": "b", "amount": 2, "paid": True, "rank": 1, "note": "n"}), schema=wider)
    with pytest.raises(ConnectError, match=r"missing the columns paid, rank, note .*auto.evolve=true"):
        write(target, later, **UPSERT)
    write(target, later, auto_evolve="true", **UPSERT)
    rows = sorted(target.rows("SELECT id, name, paid, rank, note FROM orders".replace("rank", target.quote("rank"))))
    assert rows == [(1, "a", None, 7, "it's \\ new"), (2, "b", True, 1, "n")]


def test_a_missing_table_is_told(target: Target) -> None:
    with pytest.raises(ConnectError, match=r"Table orders is missing .*auto.create=true"):
        write(target, records(order(1, "a")))


def test_hostile_names_are_names(target: Target) -> None:
    names = ['a"b', "a`b", "a'b", "a;DROP TABLE orders--", "a%sb", "a%(x)s", "a)b", "select", "a b", "?", ":x", "a\\b"]
    schema = Schema.struct({"id": Schema.int64(), **{name: Schema.string(optional=True) for name in names}})
    row = {"id": 1, **{name: name for name in names}}
    props = {**UPSERT, "pk_mode": "record_value", "pk_fields": "id", "auto_evolve": "true"}
    table = target.quote("t%s;--")
    mapping = {"topics_to_tables_mapping": f"orders:{table}"}
    write(
        target,
        records(
            (None, {"id": 1, "select": "x"}), schema=Schema.struct({"id": Schema.int64(), "select": Schema.string()})
        ),
        **props,
        **mapping,
    )
    for mode in ("upsert", "update", "upsert"):
        write(target, records((None, row), (None, row), schema=schema), **{**props, "insert_mode": mode}, **mapping)
    columns = ", ".join(map(target.quote, names))
    assert target.rows(f"SELECT {columns} FROM {table}") == [tuple(names)]


def test_all_types_are_exact(target: Target) -> None:
    decimal = Decimal("-12345678901234567890.1234567890")
    schema = Schema.struct(
        {
            "i8": Schema.int8(), "i16": Schema.int16(), "i32": Schema.int32(), "i64": Schema.int64(),
            "f32": Schema.float32(), "f64": Schema.float64(), "b": Schema.boolean(), "s": Schema.string(),
            "raw": Schema.bytes(), "d": decimal_schema(10), "day": date_schema(), "t": time_schema(),
            "ts": timestamp_schema(), "none": Schema.string(optional=True),
        }
    )  # fmt: skip
    moment = dt.datetime(2024, 2, 29, 23, 59, 58, 123000, tzinfo=dt.UTC)
    value = {
        "i8": -128, "i16": 32767, "i32": -(2**31), "i64": 2**63 - 1, "f32": 1.5, "f64": 0.1 + 0.2, "b": True, "s": "é",
        "raw": b"\x00\\x\xff'\n", "d": decimal, "day": dt.date(1066, 10, 14), "t": dt.time(1, 2, 3, 4000), "ts": moment,
        "none": None,
    }  # fmt: skip
    write(target, records((None, value), schema=schema), auto_create="true")
    (row,) = target.rows(f"SELECT {', '.join(schema.field_names)} FROM orders")
    expected = dict(value)
    expected["ts"] = moment.replace(tzinfo=None)
    if target.product == "sqlite":
        expected |= {"d": str(decimal), "day": "1066-10-14", "t": "01:02:03.004000", "ts": "2024-02-29 23:59:58.123000"}
    elif target.product != "postgresql":
        expected["t"] = dt.timedelta(hours=1, minutes=2, seconds=3, milliseconds=4)
    assert dict(zip(schema.field_names, row, strict=True)) == expected


def test_the_time_zone_of_the_database(target: Target) -> None:
    schema = Schema.struct({"ts": timestamp_schema()})
    moment = dt.datetime(2024, 7, 1, 12, 0, tzinfo=dt.UTC)
    write(target, records((None, {"ts": moment}), schema=schema), auto_create="true", db_timezone="Europe/Berlin")
    (row,) = target.rows("SELECT ts FROM orders")
    assert str(row[0])[:19] == "2024-07-01 14:00:00"


NESTED = Schema.struct(
    {
        "id": Schema.int64(),
        "who": Schema.struct({"name": Schema.string(), "at": Schema.struct({"city": Schema.string()})}, optional=True),
        "tags": Schema.map(Schema.string(), Schema.int32()),
    }
)
PEOPLE = [
    {"id": 1, "who": {"name": "Ada", "at": {"city": "Paris\n\"'"}}, "tags": {"a": 1}},
    {"id": 2, "who": None, "tags": {}},
]


def test_nested_values_flattened(target: Target) -> None:
    write(target, records(*((None, v) for v in PEOPLE), schema=NESTED), auto_create="true", nested_values="flatten")
    rows = target.rows("SELECT id, who_name, who_at_city, tags FROM orders")
    assert [(*row[:3], _json(row[3])) for row in sorted(rows)] == [
        (1, "Ada", "Paris\n\"'", {"a": 1}),
        (2, None, None, {}),
    ]


def test_nested_values_as_json(target: Target) -> None:
    write(target, records(*((None, v) for v in PEOPLE), schema=NESTED), auto_create="true", nested_values="json")
    rows = target.rows("SELECT id, who, tags FROM orders")
    assert [(row[0], _json(row[1]), _json(row[2])) for row in sorted(rows, key=lambda row: row[0])] == [
        (1, PEOPLE[0]["who"], {"a": 1}),
        (2, None, {}),
    ]


def test_bad_rows_are_reported_one_by_one(target: Target) -> None:
    target.execute(
        "CREATE TABLE orders (id BIGINT PRIMARY KEY, name VARCHAR(20) NOT NULL, amount INT CHECK (amount < 100))"
    )
    bad = {3: ("x", 100), 50: (None, 1), 51: (None, 2), 199: ("y", 101)}
    items = records(*(order(n, *bad.get(n, ("good", 1))) for n in range(200)), order(7, "twice"))
    errant = ErrantRecords[SinkRecord](tolerate=True)
    write(target, items, errant, pk_mode="record_key")
    assert sorted(record.original_offset for record, _ in errant.reported) == [3, 50, 51, 199, 200]
    assert target.rows("SELECT count(*), min(name) FROM orders") == [(196, "good")]


def test_a_bad_row_fails_the_task_that_has_no_reporter(target: Target) -> None:
    target.execute("CREATE TABLE orders (id BIGINT PRIMARY KEY, name VARCHAR(20) NOT NULL, amount INT)")
    with pytest.raises(ConnectError, match=r"(?s)Cannot write the record to table orders .*record orders:0:1"):
        write(target, records(order(1, "a"), order(2, None), order(3, "c")), pk_mode="record_key")
    assert target.rows("SELECT * FROM orders") == []


def test_values_that_cannot_be_written_are_reported(target: Target) -> None:
    errant = ErrantRecords[SinkRecord](tolerate=True)
    items = records(order(1, "a"), order(2, "lone \ud800"), ({"id": 3}, {"name": 5, "amount": 1}),
                    ({"id": 4}, {"name": "x", "amount": "1\t2"}), order(5, "e"))  # fmt: skip
    write(target, items, errant, **UPSERT)
    assert [record.original_offset for record, _ in errant.reported] == [1, 2, 3]
    assert sorted(target.rows("SELECT id, name FROM orders")) == [(1, "a"), (5, "e")]


def test_tables_by_a_field(target: Target) -> None:
    schema = Schema.struct({"kind": Schema.string(optional=True), "n": Schema.int32()})
    kinds = ["a", "b", "a", "x.y", None, 'q"`; --']
    errant = ErrantRecords[SinkRecord](tolerate=True)
    items = records(*((None, {"kind": kind, "n": n}) for n, kind in enumerate(kinds)), schema=schema)
    write(target, items, errant, table_name_field="kind", table_name_format="t_${field}", auto_create="true")
    assert target.rows("SELECT n FROM t_a ORDER BY n") == [(0,), (2,)]
    assert target.rows("SELECT n FROM t_b") == [(1,)]
    assert target.rows(f"SELECT n FROM {target.quote('t_x.y')}") == [(3,)]
    assert target.rows(f"SELECT n FROM {target.quote('t_' + kinds[5])}") == [(5,)]
    assert [record.original_offset for record, _ in errant.reported] == [4]


def test_exactly_once_skips_what_the_table_has(target: Target) -> None:
    items = records(*(order(n, f"order {n}") for n in range(10)))
    for count in (4, 10, 10):
        write(target, items[:count], auto_create="true", delivery="exactly-once")
    assert sorted(target.rows("SELECT name FROM orders")) == sorted((f"order {n}",) for n in range(10))
    assert target.rows("SELECT connector, topic, kafka_partition, next_offset FROM sluice_offsets") == [
        ("sink", "orders", 0, 10)
    ]


def test_a_lost_connection_is_made_anew(database: Database) -> None:
    props = {**database.props, "name": "sink", "auto.create": "true", "batch.size": "0", "insert.mode": "upsert",
             "pk.mode": "record_key", "retry.backoff.ms": "10"}  # fmt: skip
    task = JdbcSinkTask(JdbcSinkConfig.parse(props), SinkTaskTestContext())
    task.start()
    first, second = (SinkBatch.from_records(records(order(n, "a")))[0] for n in (1, 2))
    task.put(first)
    if database.product == "postgresql":
        others = "pid <> pg_backend_pid() AND datname = current_database()"
        database.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {others}")
    else:
        query = f"SELECT id FROM information_schema.processlist WHERE db = '{database.name}' AND id <> connection_id()"
        database.execute(*(f"KILL {number}" for (number,) in database.rows(query)))
    with pytest.raises(RetriableError, match="write records"):
        task.put(second)
    task.put(second)
    task.stop()
    assert sorted(database.rows("SELECT id FROM orders")) == [(1,), (2,)]


def _json(value: Any) -> Any:
    return json.loads(value) if isinstance(value, str) else value
