"""Tables that others change, and columns that the database computes, while the JDBC sink writes to them."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pytest

from connect.data import Schema, SinkBatch, SinkRecord, decimal_schema, timestamp_schema
from connect.errors import ConnectError, RetriableError
from connect.testing.contexts import ErrantRecords
from equipment.servers.lease import Database
from equipment.stores.jdbc_target import MODES, Target, order, put, records, running, write


@MODES
def test_each_of_several_tables_is_compared_with_what_it_was(target: Target, mode: str) -> None:
    schema = Schema.struct({"t": Schema.string(), "share": decimal_schema(3)})
    key = Schema.struct({"t": Schema.string(), "id": Schema.int64()})
    tables = [f"part{n}" for n in range(10)]
    altered = [] if target.product == "sqlite" else [tables[3], tables[7]]
    exact = "TEXT" if target.product == "sqlite" else "DECIMAL(9,3)"

    def rows(number: int, share: str) -> list[SinkRecord]:
        return records(
            *(({"t": each, "id": number}, {"t": each, "share": Decimal(share)}) for each in tables),
            schema=schema, key=key,
        )  # fmt: skip

    for each in tables:
        of = "DECIMAL(9,1)" if each in altered else exact
        target.execute(f"CREATE TABLE {each} (id BIGINT PRIMARY KEY, share {of})")
    props = {"table_name_field": "t", "fields_whitelist": "share", "pk_mode": "record_key", "pk_fields": "id"}
    with running(target, insert_mode=mode, **props) as task:
        put(task, rows(1, "1.500"))
        for each in altered:
            change = "ALTER share TYPE" if target.product == "postgresql" else "MODIFY share"
            target.execute(f"ALTER TABLE {each} {change} {exact}")
        put(task, rows(2, "1.125"))
    for each in tables:
        found = [(number, Decimal(share)) for number, share in target.rows(f"SELECT id, share FROM {each} ORDER BY id")]
        assert found == [(1, Decimal("1.500")), (2, Decimal("1.125"))]


@MODES
@pytest.mark.parametrize("tolerant", [True, False])
def test_a_column_that_was_widened_takes_what_fits_now(target: Target, mode: str, tolerant: bool) -> None:
    target.execute("CREATE TABLE orders (id INT PRIMARY KEY, name VARCHAR(5), amount SMALLINT)")
    errant = ErrantRecords[SinkRecord](tolerate=True) if tolerant else None
    with running(target, errant, insert_mode=mode, pk_mode="record_key") as task:
        put(task, records(order(1, "ann", 1)))
        if target.product == "postgresql":
            target.execute(
                "ALTER TABLE orders ALTER id TYPE BIGINT, ALTER name TYPE VARCHAR(100), ALTER amount TYPE INT"
            )
        elif target.product != "sqlite":
            target.execute("ALTER TABLE orders MODIFY id BIGINT, MODIFY name VARCHAR(100), MODIFY amount INT")
        put(task, records(order(2, "Bartholomew", 70_000), order(1 << 40, "eve", 2)))
    assert errant is None or errant.reported == []
    expected = [(1, "ann", 1), (2, "Bartholomew", 70_000), (1 << 40, "eve", 2)]
    assert sorted(target.rows("SELECT id, name, amount FROM orders")) == expected


def test_a_column_that_became_more_precise_takes_every_digit(target: Target) -> None:
    schema = Schema.struct({"at": timestamp_schema(), "share": decimal_schema(3), "size": Schema.float64()})
    moment = dt.datetime(2024, 1, 2, 3, 4, 5, 678_000, tzinfo=dt.UTC)
    exact = target.product != "sqlite"
    types = ("TIMESTAMP(0) NULL", "DECIMAL(9,1)", "REAL") if exact else ("TIMESTAMP", "TEXT", "REAL")
    target.execute(f"CREATE TABLE orders (id BIGINT PRIMARY KEY, at {types[0]}, share {types[1]}, size {types[2]})")
    with running(target, insert_mode="upsert", pk_mode="record_key") as task:
        whole = {"at": moment.replace(microsecond=0), "share": Decimal("1.500"), "size": 0.5}
        put(task, records(({"id": 1}, whole), schema=schema))
        if target.product == "postgresql":
            target.execute("ALTER TABLE orders ALTER at TYPE TIMESTAMP(3), ALTER share TYPE DECIMAL(9,3), "
                           "ALTER size TYPE DOUBLE PRECISION")  # fmt: skip
        elif exact:
            target.execute("ALTER TABLE orders MODIFY at TIMESTAMP(3) NULL, MODIFY share DECIMAL(9,3), "
                           "MODIFY size DOUBLE")  # fmt: skip
        put(task, records(({"id": 2}, {"at": moment, "share": Decimal("1.125"), "size": 0.1}), schema=schema))
    ((at, share, size),) = target.rows("SELECT at, share, size FROM orders WHERE id = 2")
    assert (str(at), Decimal(share), size) == ("2024-01-02 03:04:05.678000", Decimal("1.125"), 0.1)


@MODES
def test_a_column_that_is_no_longer_required_takes_null(target: Target, mode: str) -> None:
    if target.product == "sqlite":
        pytest.skip("SQLite cannot change a column")
    target.execute("CREATE TABLE orders (id BIGINT PRIMARY KEY, name VARCHAR(5) NOT NULL, amount INT)")
    with running(target, insert_mode=mode, pk_mode="record_key") as task:
        put(task, records(order(1, "ann")))
        what = "ALTER name DROP NOT NULL" if target.product == "postgresql" else "MODIFY name VARCHAR(5) NULL"
        target.execute(f"ALTER TABLE orders {what}")
        put(task, records(order(2, None)))
    assert sorted(target.rows("SELECT id, name FROM orders")) == [(1, "ann"), (2, None)]


@MODES
def test_columns_that_were_added_or_dropped_are_seen(target: Target, mode: str) -> None:
    with running(target, auto_create="true", auto_evolve="true", insert_mode=mode, pk_mode="record_key") as task:
        put(task, records(order(1, "ann")))
        target.execute("ALTER TABLE orders ADD note VARCHAR(9)")
        put(task, records(order(2, "bob")))
        target.execute("ALTER TABLE orders DROP COLUMN amount")
        put(task, records(order(3, "eve", 7)))
    assert sorted(target.rows("SELECT id, name, note, amount FROM orders")) == [
        (1, "ann", None, None), (2, "bob", None, None), (3, "eve", None, 7),
    ]  # fmt: skip


@pytest.mark.parametrize("mode", ["insert", "upsert", "update"])
def test_a_table_that_was_dropped_is_created_again_if_that_is_allowed(target: Target, mode: str) -> None:
    with running(target, auto_create="true", insert_mode=mode, pk_mode="record_key") as task:
        put(task, records(order(1, "ann")))
        target.execute("DROP TABLE orders")
        put(task, records(order(2, "bob")))
    assert target.rows("SELECT id, name FROM orders") == ([] if mode == "update" else [(2, "bob")])


@pytest.mark.parametrize("mode", ["insert", "upsert", "update"])
def test_a_table_that_was_dropped_fails_the_task_with_the_remedy(target: Target, mode: str) -> None:
    target.execute("CREATE TABLE orders (id BIGINT PRIMARY KEY, name VARCHAR(20), amount INT)")
    with running(target, insert_mode=mode, pk_mode="record_key") as task:
        put(task, records(order(1, "ann")))
        target.execute("DROP TABLE orders")
        with pytest.raises(ConnectError, match=r"Table \S*orders is missing .* set auto.create=true") as caught:
            put(task, records(order(2, "bob")))
        assert not isinstance(caught.value, RetriableError)
        target.execute("CREATE TABLE orders (id BIGINT PRIMARY KEY, name VARCHAR(90), amount INT)")
        put(task, records(order(3, "a name of more than twenty letters")))


@MODES
def test_columns_that_the_database_computes_are_left_out(
    target: Target, mode: str, caplog: pytest.LogCaptureFixture
) -> None:
    double = "INT GENERATED ALWAYS AS (id * 2) STORED"
    target.execute(f"CREATE TABLE orders (id INT PRIMARY KEY, name VARCHAR(9), amount {double})")
    with running(target, insert_mode=mode, pk_mode="record_key") as task:
        put(task, records(order(1, "ann", 99)))
        put(task, records(order(2, "bob", 99)))
    assert sorted(target.rows("SELECT id, name, amount FROM orders")) == [(1, "ann", 2), (2, "bob", 4)]
    assert [each.getMessage().partition(" computes ")[2] for each in caplog.records if "computes" in each.msg] == [
        "the columns amount itself, so the values that records have for them are left out"
    ]


@MODES
def test_a_key_that_the_database_numbers_is_written_as_it_is(target: Target, mode: str) -> None:
    types = {"postgresql": "INT GENERATED ALWAYS AS IDENTITY", "sqlite": "INTEGER"}
    kind = types.get(target.product, "INT AUTO_INCREMENT")
    target.execute(f"CREATE TABLE orders (id {kind} PRIMARY KEY, name VARCHAR(9), amount INT)")
    write(target, records(order(7, "ann")), insert_mode=mode, pk_mode="record_key")
    assert target.rows("SELECT id, name FROM orders") == [(7, "ann")]


def test_boxes_are_separated_by_semicolons(postgresql: Database) -> None:
    target = Target("postgresql", postgresql.props, postgresql.rows, postgresql.execute)
    target.execute("CREATE TABLE orders (id INT PRIMARY KEY, areas BOX[])")
    schema = Schema.struct({"areas": Schema.array(Schema.string(optional=True), optional=True)})
    pairs = [({"id": 1}, {"areas": ["(3,4),(1,2)", None, "(7,8),(5,6)"]}), ({"id": 2}, {"areas": []})]
    write(target, records(*pairs, schema=schema), insert_mode="upsert", pk_mode="record_key")
    assert target.rows("SELECT id, areas::text FROM orders ORDER BY id") == [
        (1, "{(3,4),(1,2);NULL;(7,8),(5,6)}"), (2, "{}"),
    ]  # fmt: skip


@pytest.mark.parametrize("mode", ["insert", "upsert"])
def test_a_permanent_error_is_not_retriable_from_flush(target: Target, mode: str) -> None:
    check = "name VARCHAR(9) CHECK (length(name) < 4)"
    target.execute(f"CREATE TABLE orders (id INT PRIMARY KEY, {check}, amount INT)")
    with running(target, insert_mode=mode, pk_mode="record_key") as task:
        for batch in SinkBatch.from_records(records(order(1, "ann"), order(2, "too long"))):
            task.put(batch)
        with pytest.raises(ConnectError, match=r"record orders:0:1") as caught:
            task.flush({})
    assert not isinstance(caught.value, RetriableError)
    assert target.rows("SELECT * FROM orders") == []
