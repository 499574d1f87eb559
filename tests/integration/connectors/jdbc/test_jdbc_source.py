"""The JDBC source on real databases."""

from __future__ import annotations

import datetime as dt
import decimal
import threading
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Any

import pytest

from connect.data import Schema, SourceRecord, date_schema, decimal_schema, time_schema, timestamp_schema
from connect.errors import ConnectError
from connect.testing import StoredOffsets, run_source, running_source
from connect.testing.contexts import ConnectorTestContext
from connect.testing.props import connector_props
from connect.testing.source_run import SourceTaskRun
from connectors.jdbc import JdbcSourceConfig, JdbcSourceConnector
from equipment.proofs import thorough
from equipment.servers.lease import Database
from equipment.waiting import wait_until

UTC = dt.UTC
PRECISION = "connect.decimal.precision"


def props_of(database: Database, **options: str) -> dict[str, str]:
    keys = {name.replace("_", "."): value for name, value in options.items()}
    return {"topic.prefix": "", "poll.interval.ms": "1", **database.props, **keys}


def read(database: Database, *, offsets: StoredOffsets | None = None, **options: str) -> list[SourceRecord]:
    return run_source(JdbcSourceConnector, props_of(database, **options), offsets=offsets, timeout=60)


def fields(schema: Schema | None) -> dict[str, Schema]:
    assert schema is not None
    return {field.name: field.schema for field in schema.fields}


@contextmanager
def polling(database: Database, **options: str) -> Iterator[SourceTaskRun]:
    with running_source(JdbcSourceConnector, props_of(database, **options), StoredOffsets()) as (task,):
        yield task


def ids(records: list[SourceRecord]) -> list[int]:
    return [record.value["id"] for record in records]


TIMES = ("2024-01-01 00:00:00.000001", "2024-01-01 00:00:00.000001", "2024-01-01 00:00:00.000002")


def fill(database: Database) -> None:
    identity = "bigserial" if database.product == "postgresql" else "bigint auto_increment"
    kind = "timestamp(6)" if database.product == "postgresql" else "datetime(6)"
    database.execute(
        f"CREATE TABLE accounts (id {identity} PRIMARY KEY, name varchar(20), changed {kind} NOT NULL)",
        *(f"INSERT INTO accounts (name, changed) VALUES ('50%', '{time}')" for time in TIMES),
    )


@pytest.mark.parametrize(
    "options",
    [
        {"mode": "incrementing"},
        {"mode": "timestamp", "timestamp_column_name": "changed"},
        {"mode": "timestamp+incrementing", "timestamp_column_name": "changed"},
        {"mode": "bulk"},
        {"mode": "timestamp+incrementing", "timestamp_column_name": "changed", "late_commits": "ignore"},
        {"mode": "incrementing", "incrementing_column_name": "id", "query": "SELECT * FROM accounts"},
        {
            "mode": "timestamp+incrementing",
            "timestamp_column_name": "changed",
            "incrementing_column_name": "id",
            "query": "SELECT * FROM (SELECT id, changed, name FROM accounts WHERE name LIKE '%\\%') AS found",
        },
        {"mode": "incrementing", "quote_sql_identifiers": "never", "table_whitelist": "accounts"},
    ],
    ids=str,
)
def test_every_mode_reads_what_is_new(database: Database, options: Mapping[str, str]) -> None:
    if "query" in options:
        options = {**options, "topic_prefix": "found"}
        if database.product != "postgresql":
            options["query"] = options["query"].replace("\\", "\\\\")
    fill(database)
    offsets = StoredOffsets()
    records = read(database, offsets=offsets, **options)
    assert ids(records) == [1, 2, 3]
    assert {record.topic for record in records} == {options.get("topic_prefix", "accounts")}
    database.execute("INSERT INTO accounts (name, changed) VALUES ('new %', '2024-01-02')")
    again = read(database, offsets=offsets, **options)
    assert ids(again) == ([1, 2, 3, 4] if options["mode"] == "bulk" else [4])


def test_offsets_are_those_of_the_java_connector(database: Database) -> None:
    fill(database)
    offsets = StoredOffsets()
    read(database, offsets=offsets, mode="timestamp+incrementing", timestamp_column_name="changed")
    name = "public.accounts" if database.product == "postgresql" else f"{database.name}.accounts"
    expected = {"incrementing": 3, "timestamp": 1704067200000, "timestamp_nanos": 2000}
    assert offsets.items() == [({"protocol": "1", "table": name}, expected)]


@pytest.mark.parametrize("form", ["{schema}.accounts", "{database}.{schema}.accounts", "accounts"])
def test_reading_goes_on_from_offsets_of_the_java_connector(postgresql: Database, form: str) -> None:
    """Whichever parts of the name its version and its driver wrote; and under the same name."""
    fill(postgresql)
    partition = {"protocol": "1", "table": form.format(schema="public", database=postgresql.name)}
    kept = {"incrementing": 1, "timestamp": 1704067200000, "timestamp_nanos": 1000}
    offsets = StoredOffsets([(partition, kept)])
    options = {"mode": "timestamp+incrementing", "timestamp_column_name": "changed"}
    assert ids(read(postgresql, offsets=offsets, **options)) == [2, 3]
    assert [key for key, _ in offsets.items()] == [partition]


def test_postgresql_types(postgresql: Database) -> None:
    postgresql.execute(
        "CREATE TYPE mood AS ENUM ('sad', 'ok')",
        "CREATE DOMAIN price AS numeric(6, 3)",
        """CREATE TABLE kinds (id int PRIMARY KEY, small smallint NOT NULL, big bigint, r real, d double precision,
        n numeric(10, 2), whole numeric(5), any_n numeric, p price, b boolean, c char(3), v varchar(9), t text,
        bin bytea, day date, clock time(3), local timestamp, instant timestamptz, span interval, u uuid, j json,
        jb jsonb, m mood, ints int[], moods mood[], prices numeric(4, 1)[], stamps timestamptz[], bit1 bit, bits bit(5),
        address inet, money_range int4range)""",
        """INSERT INTO kinds VALUES (1, -3, 9223372036854775807, 1.5, 0.1, 12345678.90, 12345, 1.230, 1.5, true, 'a',
        'b', E'c\\u00e9', '\\x00ff', '2024-02-29', '23:59:59.999', '2024-01-01 01:02:03.456789',
        '2024-01-01 01:02:03.456789+02', '1 year 2 mons 3 days 04:05:06.7', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11',
        '{"a":  1}', '{"a":  1}', 'sad', '{1,NULL}', '{ok}', '{1.5}', '{2024-01-01 00:00:00+00}', '1', '10101', '::1',
        '[1,5)')""",
        "INSERT INTO kinds (id, small) VALUES (2, 0)",
    )
    first, second = read(postgresql, mode="incrementing", incrementing_column_name="id", db_timezone="Europe/Berlin")
    text, stamp = Schema.string(optional=True), timestamp_schema(optional=True)

    def number(precision: int, scale: int) -> Schema:
        return decimal_schema(scale, optional=True, parameters={PRECISION: str(precision)})

    expected: dict[str, tuple[Schema, Any]] = {
        "id": (Schema.int32(), 1),
        "small": (Schema.int16(), -3),
        "big": (Schema.int64(optional=True), 2**63 - 1),
        "r": (Schema.float32(optional=True), 1.5),
        "d": (Schema.float64(optional=True), 0.1),
        "n": (number(10, 2), decimal.Decimal("12345678.90")),
        "whole": (number(5, 0), decimal.Decimal(12345)),
        "any_n": (text, "1.230"),
        "p": (number(6, 3), decimal.Decimal("1.500")),
        "b": (Schema.boolean(optional=True), True),
        "c": (text, "a  "),
        "v": (text, "b"),
        "t": (text, "cé"),
        "bin": (Schema.bytes(optional=True), b"\x00\xff"),
        "day": (date_schema(optional=True), dt.date(2024, 2, 29)),
        "clock": (time_schema(optional=True), dt.time(23, 59, 59, 999_000)),
        "local": (stamp, dt.datetime(2024, 1, 1, 0, 2, 3, 456789, UTC)),
        "instant": (stamp, dt.datetime(2023, 12, 31, 23, 2, 3, 456789, UTC)),
        "span": (text, "P1Y2M3DT4H5M6.7S"),
        "u": (text, "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
        "j": (text, '{"a":  1}'),
        "jb": (text, '{"a": 1}'),
        "m": (text, "sad"),
        "ints": (Schema.array(Schema.int32(optional=True), optional=True), [1, None]),
        "moods": (Schema.array(text, optional=True), ["ok"]),
        "prices": (Schema.array(number(4, 1), optional=True), [decimal.Decimal("1.5")]),
        "stamps": (Schema.array(stamp, optional=True), [dt.datetime(2024, 1, 1, tzinfo=UTC)]),
        "bit1": (Schema.boolean(optional=True), True),
        "bits": (text, "10101"),
        "address": (text, "::1"),
        "money_range": (text, "[1,5)"),
    }
    assert fields(first.value_schema) == {name: schema for name, (schema, _) in expected.items()}
    assert first.value == {name: value for name, (_, value) in expected.items()}
    assert second.value == {**dict.fromkeys(expected), "id": 2, "small": 0}


@pytest.mark.parametrize("server", ["mariadb", *thorough("mysql")])
def test_mysql_types(request: pytest.FixtureRequest, server: str) -> None:
    database: Database = request.getfixturevalue(server)
    database.execute(
        """CREATE TABLE kinds (id int PRIMARY KEY, t1 tinyint(1), t tinyint, tu tinyint unsigned, s smallint,
        su smallint unsigned, m mediumint, i int, iu int unsigned, b bigint, bu bigint unsigned, f float, d double,
        n decimal(20, 3), bit1 bit, bits bit(10), y year, day date, clock time(3), local datetime(6),
        instant timestamp(6) NULL, c char(3), v varchar(9), tx longtext, bin varbinary(5), bl blob, e enum('a', 'b'),
        st set('x', 'y'), j json)""",
        "SET time_zone = '+00:00'",
        """INSERT INTO kinds VALUES (1, 1, -128, 255, -32768, 65535, 8388607, 2147483647, 4294967295,
        9223372036854775807, 18446744073709551615, 16777217 / 3, 0.1, -12345.678, b'1', b'1000000001', 2024,
        '2024-02-29', '23:59:59.999', '2024-01-01 01:02:03.456789', '2024-01-01 01:02:03.456789', 'a', 'b', 'cé',
        x'00ff', x'ff', 'b', 'x,y', '{"a": 1}')""",
        "INSERT INTO kinds (id) VALUES (2)",
    )
    with closing(database.connect()) as connection, closing(connection.cursor()) as cursor:
        cursor.execute("SET time_zone = '+00:00'")
        cursor.execute("UPDATE kinds SET instant = '2024-01-01 01:02:03.456789' WHERE id = 1")
    first, second = read(database, mode="incrementing", incrementing_column_name="id", db_timezone="+01:00")
    text = Schema.string(optional=True)
    expected: dict[str, tuple[Schema, Any]] = {
        "id": (Schema.int32(), 1),
        "t1": (Schema.int8(optional=True), 1),
        "t": (Schema.int8(optional=True), -128),
        "tu": (Schema.int16(optional=True), 255),
        "s": (Schema.int16(optional=True), -32768),
        "su": (Schema.int32(optional=True), 65535),
        "m": (Schema.int32(optional=True), 8388607),
        "i": (Schema.int32(optional=True), 2**31 - 1),
        "iu": (Schema.int64(optional=True), 2**32 - 1),
        "b": (Schema.int64(optional=True), 2**63 - 1),
        "bu": (decimal_schema(0, optional=True, parameters={PRECISION: "20"}), decimal.Decimal(2**64 - 1)),
        "f": (Schema.float32(optional=True), 5592405.5),
        "d": (Schema.float64(optional=True), 0.1),
        "n": (decimal_schema(3, optional=True, parameters={PRECISION: "20"}), decimal.Decimal("-12345.678")),
        "bit1": (Schema.boolean(optional=True), True),
        "bits": (Schema.bytes(optional=True), b"\x02\x01"),
        "y": (Schema.int32(optional=True), 2024),
        "day": (date_schema(optional=True), dt.date(2024, 2, 29)),
        "clock": (time_schema(optional=True), dt.time(23, 59, 59, 999_000)),
        "local": (timestamp_schema(optional=True), dt.datetime(2024, 1, 1, 0, 2, 3, 456789, UTC)),
        "instant": (timestamp_schema(optional=True), dt.datetime(2024, 1, 1, 1, 2, 3, 456789, UTC)),
        "c": (text, "a"),
        "v": (text, "b"),
        "tx": (text, "cé"),
        "bin": (Schema.bytes(optional=True), b"\x00\xff"),
        "bl": (Schema.bytes(optional=True), b"\xff"),
        "e": (text, "b"),
        "st": (text, "x,y"),
        "j": (text, '{"a": 1}'),
    }
    assert fields(first.value_schema) == {name: schema for name, (schema, _) in expected.items()}
    assert first.value == {name: value for name, (_, value) in expected.items()}
    assert second.value == {**dict.fromkeys(expected), "id": 2}


def test_a_query_has_the_types_of_its_columns(database: Database) -> None:
    fill(database)
    query = "SELECT id, name, changed, id * 2 AS twice, cast(1.5 AS decimal(5, 2)) AS price FROM accounts"
    options = {"mode": "bulk", "query": query, "topic_prefix": "found", "key_columns": "id"}
    first, *_ = read(database, **options)
    twice = fields(first.value_schema)["twice"].type
    assert twice is Schema.int64().type
    assert first.value["price"] == decimal.Decimal("1.50")
    assert first.value["changed"] == dt.datetime(2024, 1, 1, 0, 0, 0, 1, UTC)
    assert first.key == {"id": 1}


def test_a_value_that_connect_has_none_for_is_reported(postgresql: Database) -> None:
    postgresql.execute(
        "CREATE TABLE days (id serial PRIMARY KEY, seen timestamp, day date, clock timestamptz, days date[])",
        "INSERT INTO days (seen) VALUES ('2024-01-01'), ('infinity'), ('2024-01-02'), ('0044-03-15 BC')",
        "INSERT INTO days (day) VALUES ('infinity')",
        "INSERT INTO days (clock) VALUES ('-infinity')",
        "INSERT INTO days (days) VALUES ('{infinity}')",
    )
    props = props_of(postgresql, mode="incrementing")
    with running_source(JdbcSourceConnector, props, StoredOffsets(), tolerate_errors=True) as (task,):
        wait_until("all is read", lambda: (task.poll(), task.at_end)[1], 60)
    assert ids(task.records) == [1, 3]
    reported = task.context.errant_record_reporter.reported
    assert [record.source_offset for record, _ in reported] == [{"incrementing": number} for number in (2, 4, 5, 6, 7)]
    assert "Column seen of days (timestamp) has a value that does not fit: 'infinity'" in str(reported[0][1])
    with polling(postgresql, mode="incrementing") as strict:
        assert ids(strict.poll()) == [1]
        with pytest.raises(ConnectError, match="infinity"):
            strict.poll()


def poll_often(task: SourceTaskRun, times: int = 30) -> list[int]:
    return [number for _ in range(times) for number in ids(task.poll())]


@pytest.mark.parametrize("mode", ["incrementing", "timestamp", "timestamp+incrementing"])
def test_a_row_of_a_transaction_that_commits_late_is_not_missed(postgresql: Database, mode: str) -> None:
    postgresql.execute("CREATE TABLE orders (id bigserial PRIMARY KEY, at timestamptz NOT NULL DEFAULT now())")
    options = {"mode": mode, "timestamp_column_name": "at"}
    with polling(postgresql, **options) as task, closing(postgresql.connect()) as late:
        late.autocommit = False
        late.execute("INSERT INTO orders DEFAULT VALUES")
        postgresql.execute("INSERT INTO orders DEFAULT VALUES")
        # What is seen is read only once the first transaction has ended.
        assert poll_often(task) == []
        late.commit()
        wait_until("both rows are read", lambda: (task.poll(), len(task.records) >= 2)[1], 60)
        assert ids(task.records) == [1, 2]


def test_late_rows_of_a_partition_are_not_missed(postgresql: Database) -> None:
    postgresql.execute(
        "CREATE TABLE orders (id bigserial PRIMARY KEY) PARTITION BY RANGE (id)",
        "CREATE TABLE few PARTITION OF orders FOR VALUES FROM (0) TO (100)",
    )
    with polling(postgresql, mode="incrementing") as task, closing(postgresql.connect()) as late:
        late.autocommit = False
        late.execute("INSERT INTO few SELECT nextval('orders_id_seq')")
        postgresql.execute("INSERT INTO orders DEFAULT VALUES")
        assert poll_often(task) == []
        late.commit()
        wait_until("both rows are read", lambda: (task.poll(), len(task.records) >= 2)[1], 60)
    assert [(record.topic, record.value["id"]) for record in task.records] == [("orders", 1), ("orders", 2)]


def test_a_transaction_that_has_only_begun_is_waited_for_too(postgresql: Database) -> None:
    """Its rows have the time of its beginning, and until it writes it has no number of its own."""
    postgresql.execute("CREATE TABLE orders (id bigserial PRIMARY KEY, at timestamptz NOT NULL DEFAULT now())")
    with (
        polling(postgresql, mode="timestamp", timestamp_column_name="at") as task,
        closing(postgresql.connect()) as late,
    ):
        late.autocommit = False
        late.execute("SELECT 1")
        postgresql.execute("INSERT INTO orders DEFAULT VALUES")
        assert poll_often(task) == []
        late.execute("INSERT INTO orders DEFAULT VALUES")
        late.commit()
        wait_until("both rows are read", lambda: (task.poll(), len(task.records) >= 2)[1], 60)
        assert ids(task.records) == [2, 1]


def test_readers_do_not_wait_for_each_other(postgresql: Database) -> None:
    """One is in the midst of a table, in a transaction that goes on; the other reads meanwhile."""
    postgresql.execute(
        "CREATE TABLE orders (id bigserial PRIMARY KEY, at timestamptz NOT NULL DEFAULT '2024-01-01')",
        "INSERT INTO orders SELECT FROM generate_series(1, 10)",
    )
    options = {"mode": "timestamp+incrementing", "timestamp_column_name": "at", "batch_max_rows": "2"}
    with polling(postgresql, **options) as first, polling(postgresql, **options) as second:
        wait_until("the first begins", first.poll, 60)
        wait_until("the second reads all", lambda: (second.poll(), len(second.records) >= 10)[1], 60)
        assert len(first.records) == 2


def test_without_waiting_such_a_row_is_missed(postgresql: Database) -> None:
    postgresql.execute("CREATE TABLE orders (id bigserial PRIMARY KEY)")
    with polling(postgresql, mode="incrementing", late_commits="ignore") as task, closing(postgresql.connect()) as late:
        late.autocommit = False
        late.execute("INSERT INTO orders DEFAULT VALUES")
        postgresql.execute("INSERT INTO orders DEFAULT VALUES")
        wait_until("the second is read", task.poll, 60)
        late.commit()
        assert poll_often(task) == []
        assert ids(task.records) == [2]


@pytest.mark.parametrize("mode", ["incrementing", "timestamp"])
def test_concurrent_writers_lose_no_row(postgresql: Database, mode: str) -> None:
    writers, rows = 4, 60
    postgresql.execute("CREATE TABLE orders (id bigserial PRIMARY KEY, at timestamptz NOT NULL DEFAULT now())")

    def write(number: int) -> None:
        with closing(postgresql.connect()) as connection:
            connection.autocommit = False
            for count in range(rows):
                connection.execute("SELECT 1")
                connection.execute("INSERT INTO orders DEFAULT VALUES")
                connection.execute("SELECT pg_sleep(%s)", [(number * 7 + count) % 5 / 1000])
                connection.commit()

    threads = [threading.Thread(target=write, args=(number,)) for number in range(writers)]
    with polling(postgresql, mode=mode, timestamp_column_name="at", batch_max_rows="7") as task:
        for thread in threads:
            thread.start()
        wait_until("all is read", lambda: (task.poll(), len(task.records) >= writers * rows)[1], 90)
        for thread in threads:
            thread.join()
    assert sorted(ids(task.records)) == [number for (number,) in postgresql.rows("SELECT id FROM orders ORDER BY id")]


def test_reading_goes_on_after_the_connection_was_lost(postgresql: Database) -> None:
    postgresql.execute(
        "CREATE TABLE orders (id bigint PRIMARY KEY)", "INSERT INTO orders SELECT * FROM generate_series(1, 5000)"
    )
    options = {"mode": "incrementing", "incrementing_column_name": "id", "batch_max_rows": "200"}
    with polling(postgresql, **options) as task:
        wait_until("the first rows are read", task.poll, 60)
        killed = postgresql.rows(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()"
            " AND application_name = 'sluice-connect'"
        )
        assert killed
        wait_until("all is read", lambda: (task.poll(), len(task.records) >= 5000)[1], 60)
    assert ids(task.records) == list(range(1, 5001))


def test_the_monitor_sees_new_and_dropped_tables(database: Database) -> None:
    fill(database)
    props = connector_props(
        JdbcSourceConnector, props_of(database, mode="bulk", table_poll_interval_ms="20", table_include_list=".*"), 3
    )
    context = ConnectorTestContext()
    connector = JdbcSourceConnector(JdbcSourceConfig.parse(props), context)
    connector.start()
    try:
        assert [config["tables"].count("accounts") for config in connector.task_configs(3)] == [1]
        seen = context.reconfigurations
        database.execute("CREATE TABLE more (id int)", "CREATE VIEW shown AS SELECT * FROM more")
        wait_until("the new table is seen", lambda: context.reconfigurations > seen, 60)
        assert len(connector.task_configs(3)) == 2
        seen = context.reconfigurations
        database.execute("DROP VIEW shown", "DROP TABLE more")
        wait_until("the table is gone", lambda: context.reconfigurations > seen, 60)
        assert len(connector.task_configs(3)) == 1
        assert context.errors == []
    finally:
        connector.stop()


def test_a_changed_table_is_read_with_its_new_columns(database: Database) -> None:
    fill(database)
    with polling(database, mode="incrementing") as task:
        wait_until("all is read", lambda: (task.poll(), len(task.records) >= 3)[1], 60)
        database.execute("ALTER TABLE accounts ADD COLUMN extra int")
        database.execute("INSERT INTO accounts (name, changed, extra) VALUES ('x', '2024-01-02', 7)")
        wait_until("the new row is read", lambda: (task.poll(), len(task.records) >= 4)[1], 60)
    assert task.records[-1].value["extra"] == 7
    assert "extra" not in task.records[0].value


def test_a_view_is_read_if_it_is_asked_for(database: Database) -> None:
    fill(database)
    database.execute("CREATE VIEW shown AS SELECT id, name FROM accounts")
    options = {"mode": "incrementing", "incrementing_column_name": "id", "validate_non_null": "false"}
    records = read(database, table_types="VIEW", **options)
    assert [(record.topic, record.value["id"]) for record in records] == [("shown", 1), ("shown", 2), ("shown", 3)]


def test_a_wrong_password_is_told_without_it(database: Database) -> None:
    props = props_of(
        database, mode="bulk", connection_password="s3cret word", connection_attempts="1", connection_backoff_ms="0"
    )
    context = ConnectorTestContext()
    connector = JdbcSourceConnector(JdbcSourceConfig.parse(props), context)
    connector.start()
    try:
        wait_until("the connector fails", lambda: context.errors, 60)
    finally:
        connector.stop()
    error: BaseException | None = context.errors[0]
    assert "Cannot list the tables" in str(error) or "Cannot connect" in str(error)
    while error is not None:
        assert "s3cret" not in str(error)
        error = error.__cause__ or error.__context__


PER_CENT_MODES = (
    {"mode": "bulk"},
    {"mode": "incrementing", "incrementing_column_name": "id%"},
    {"mode": "timestamp", "timestamp_column_name": "at%s"},
    {"mode": "timestamp+incrementing", "timestamp_column_name": "at%s", "incrementing_column_name": "id%"},
)


@pytest.mark.parametrize("late", ["wait", "ignore"])
@pytest.mark.parametrize("options", PER_CENT_MODES, ids=lambda options: options["mode"])
def test_a_per_cent_sign_in_a_name_begins_no_parameter(database: Database, options: dict[str, str], late: str) -> None:
    mark = '"' if database.product == "postgresql" else "`"
    named = [f"{mark}{name}{mark}" for name in ("sale%s", "id%", "at%s", "%(x)s")]
    table, number, time, other = named
    database.execute(
        f"CREATE TABLE {table} ({number} int PRIMARY KEY, {time} timestamp NOT NULL, {other} int)",
        f"INSERT INTO {table} VALUES (1, '2024-01-01 00:00:00', 5)",
    )
    row = {"id%": 1, "at%s": dt.datetime(2024, 1, 1, tzinfo=UTC), "%(x)s": 5}
    found = read(database, late_commits=late, **options)
    assert [(record.topic, record.value) for record in found] == [("sale%s", row)]
    asked = {"query": f"SELECT * FROM {table}", "topic_prefix": "asked"}
    assert [record.value for record in read(database, late_commits=late, **options, **asked)] == [row]


def test_hstore_is_text(postgresql: Database) -> None:
    postgresql.execute(
        "CREATE EXTENSION IF NOT EXISTS hstore",
        "CREATE TABLE hs (id int PRIMARY KEY, attrs hstore, several hstore[])",
        "INSERT INTO hs VALUES (1, 'color=>red, size=>NULL', ARRAY['a=>1'::hstore, NULL])",
        "INSERT INTO hs VALUES (2, NULL, '{}'), (3, '', NULL)",
    )
    found = read(postgresql, mode="incrementing", incrementing_column_name="id", table_whitelist="hs")
    assert [(record.value["attrs"], record.value["several"]) for record in found] == [
        ('"size"=>NULL, "color"=>"red"', ['"a"=>"1"', None]),
        (None, []),
        ("", None),
    ]


def test_negative_scales_and_arrays_of_domains(postgresql: Database) -> None:
    postgresql.execute(
        "CREATE DOMAIN dint AS int",
        "CREATE DOMAIN inner_int AS dint",
        "CREATE DOMAIN dnum AS numeric(6, 2)",
        "CREATE DOMAIN dtext AS text",
        "CREATE TABLE kinds (id int PRIMARY KEY, n numeric(5, -2), a dint[], b inner_int[], c dnum[], d dtext[])",
        "INSERT INTO kinds VALUES (1, 1234567, '{1,NULL}', '{2}', '{1.5}', '{\"x,y\"}')",
    )
    (record,) = read(postgresql, mode="incrementing", incrementing_column_name="id", table_whitelist="kinds")
    expected = (1, decimal.Decimal(1234600), [1, None], [2], [decimal.Decimal("1.50")], ["x,y"])
    assert tuple(record.value.values()) == expected
    assert record.value["n"].as_tuple().exponent == 2


@pytest.mark.parametrize("mode", ["timestamp", "timestamp+incrementing"])
def test_a_bad_date_in_the_timestamp_column_is_reported(mariadb: Database, mode: str) -> None:
    mariadb.execute(
        "SET SESSION sql_mode = ''",
        "CREATE TABLE zd (id int PRIMARY KEY, at datetime NOT NULL)",
        "INSERT INTO zd VALUES (1, '2023-12-31 10:00:00'), (2, '2024-01-00 10:00:00'), (3, '2024-02-01 10:00:00')",
    )
    options = {"mode": mode, "timestamp_column_name": "at", "incrementing_column_name": "id"}
    props = props_of(mariadb, **options, batch_max_rows="1")
    with running_source(JdbcSourceConnector, props, StoredOffsets(), tolerate_errors=True) as (task,):
        wait_until("all is read", lambda: (task.poll(), task.at_end)[1], 60)
    assert ids(task.records) == [1, 3]
    ((record, error),) = task.context.errant_record_reporter.reported
    assert record.value == "(2, '2024-01-00 10:00:00')"
    assert "Column at of zd (datetime) has a value that does not fit: '2024-01-00 10:00:00'" in str(error)
    with polling(mariadb, **options) as strict, pytest.raises(ConnectError, match="2024-01-00"):
        wait_until("it fails", lambda: (strict.poll(), None)[1], 60)
    assert ids(strict.records) == [1]


FLOATS = (52.5200080871582, 16777216.0, 123456.7890625, None)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM fl",
        "SELECT id, `50%` FROM fl -- a comment",
        "WITH some AS (SELECT * FROM fl) SELECT * FROM some",
        "SELECT * FROM (SELECT id, `50%` FROM fl WHERE id > 0) t",
    ],
)
@pytest.mark.parametrize("mode", ["bulk", "incrementing"])
@pytest.mark.parametrize("server", ["mariadb", *thorough("mysql")])
def test_a_float_of_a_query_has_all_its_digits(
    request: pytest.FixtureRequest, server: str, mode: str, query: str
) -> None:
    if mode == "incrementing":
        query = query.partition(" --")[0]
    database: Database = request.getfixturevalue(server)
    database.execute(
        "CREATE TABLE fl (id int PRIMARY KEY, `50%` float)",
        "INSERT INTO fl VALUES (1, 52.520008), (2, 16777216), (3, 123456.789), (4, NULL)",
    )
    options = {"mode": mode, "incrementing_column_name": "id"}
    whole = read(database, **options)
    asked = read(database, query=query, topic_prefix="asked", **options)
    assert [record.value["50%"] for record in whole] == list(FLOATS)
    assert [record.value["50%"] for record in asked] == list(FLOATS)
    assert fields(asked[0].value_schema) == fields(whole[0].value_schema)
