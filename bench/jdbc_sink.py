"""Measures how fast the JDBC sink writes topics to tables, compared with the bare drivers, in one run.

``python bench/jdbc_sink.py [RECORDS]``: records of five fields in Avro are written from a topic into PostgreSQL
(insert, upsert, exactly once) and into SQLite. The ceilings write the same rows from memory in transactions of the same
size: COPY by psycopg, for upserts with a staging table and INSERT ... ON CONFLICT, and ``executemany`` of Python's
SQLite driver. A sink must also consume, which the raw client does for comparison. CPU seconds are those of the worker,
including its start, whose cost is that of a run with few records.
"""

from __future__ import annotations

import datetime as dt
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from decimal import Decimal
from pathlib import Path
from typing import Any

from confluent_kafka import Producer
from standalone import Bench, Measured, show, show_title

_ROOT = Path(__file__).parent.parent
# The benchmark modules have the names of packages, and would be found first.
sys.path[:0] = [str(_ROOT), str(_ROOT / "tests")]

from own_broker import own_broker

from connect.data import Schema, decimal_schema, timestamp_schema
from converters.avro import AvroConverter
from equipment.servers.lease import Database, leased_server, new_database
from equipment.servers.products import POSTGRESQL
from worker.embedded.broker.server import BrokerConfig
from worker.embedded.registry.server import EmbeddedRegistry, RegistryServerConfig

_BATCH = 3000
_TOPIC = "payments"
_FEW = 100
_FEW_TOPIC = "few-payments"
_COLUMNS = "id, name, amount, at, score"
_TABLE = "(id BIGINT PRIMARY KEY, name TEXT, amount DECIMAL(12,2), at TIMESTAMP, score DOUBLE PRECISION)"
_SCHEMA = Schema.struct(
    {
        "id": Schema.int64(),
        "name": Schema.string(),
        "amount": decimal_schema(2, parameters={"connect.decimal.precision": "12"}),
        "at": timestamp_schema(),
        "score": Schema.float64(optional=True),
    },
    name="bench.Payment",
)
_START = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)


def main() -> None:
    """Measure and print."""
    records = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        broker = stack.enter_context(own_broker(BrokerConfig(folder=folder / "broker", port=0)))
        registry = stack.enter_context(
            EmbeddedRegistry(RegistryServerConfig(folder=folder / "registry", port=0)).lease()
        )
        server = stack.enter_context(leased_server(POSTGRESQL, folder))
        database = stack.enter_context(new_database(server))
        _fill(broker.bootstrap_servers, registry.url, records)
        measure(Bench(folder, broker.bootstrap_servers, records), registry.url, database)


def measure(bench: Bench, registry: str, database: Database) -> None:
    """Measure every path next to its ceiling."""
    worker = {"value.converter": "AvroConverter", "value.converter.schema.registry.url": registry}
    sink = {"connector.class": "JdbcSink", "topics": _TOPIC, "batch.size": str(_BATCH)}
    upsert = {"insert.mode": "upsert", "pk.mode": "record_value", "pk.fields": "id"}
    show_title("topic to PostgreSQL")
    consumed = bench.raw("consume", _TOPIC, bench.folder / "consumed")
    ceiling, new, existing = _copied(bench.records, database), *_upserted(bench.records, database)
    for each in (consumed, ceiling, new, existing):
        show(each, ceiling)
    database.execute(f"CREATE TABLE few {_TABLE}")
    few = {**sink, "topics": _FEW_TOPIC}
    start = bench.sluice("JdbcSink, few", {**few, **database.props, "table.name.format": "few"}, worker, _FEW)
    show(start, ceiling)
    target = {**sink, **database.props, "table.name.format": "rows"}
    for name, props, least, is_new in (
        ("insert", {}, ceiling, True),
        ("insert, exactly once", {"delivery": "exactly-once"}, ceiling, True),
        ("upsert of new rows", upsert, new, True),
        ("upsert of rows that are there", upsert, existing, False),
    ):
        if is_new:
            database.execute("DROP TABLE IF EXISTS rows", f"CREATE TABLE rows {_TABLE}")
        show(bench.sluice(f"JdbcSink, {name}", {**target, **props}, worker), least, start)
    show_title("topic to SQLite")
    ceiling = _executed(bench.records, bench.folder / "ceiling.db")
    show(ceiling, ceiling)
    for name, props in {"JdbcSink, insert": {}, "JdbcSink, upsert": upsert}.items():
        file = bench.folder / f"{len(props)}.db"
        with closing(sqlite3.connect(file)) as connection:
            connection.execute(f"CREATE TABLE rows {_TABLE}")
        url = {"connection.url": f"jdbc:sqlite:{file}", "table.name.format": "rows"}
        show(bench.sluice(f"{name} (SQLite)", {**sink, **url, **props}, worker), ceiling, start)


def _value(number: int) -> dict[str, Any]:
    return {
        "id": number,
        "name": f"payment {number} of many",
        "amount": Decimal(number % 1_000_000).scaleb(-2),
        "at": _START + dt.timedelta(milliseconds=number),
        "score": number / 7,
    }


def _fill(bootstrap: str, registry: str, records: int) -> None:
    converter = AvroConverter.configured({"schema.registry.url": registry})
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 50, "queue.buffering.max.messages": 1_000_000})
    for number in range(records):
        value = converter.from_connect(_TOPIC, _SCHEMA, _value(number))
        for topic in (_TOPIC, _FEW_TOPIC) if number < _FEW else (_TOPIC,):
            producer.produce(topic, value)
        if number % 1000 == 0:
            producer.poll(0)
    producer.flush()
    converter.close()


def _batches(records: int) -> Iterator[list[tuple[Any, ...]]]:
    for first in range(0, records, _BATCH):
        yield [tuple(_value(number).values()) for number in range(first, min(first + _BATCH, records))]


def _measured(name: str, records: int, write: Callable[[list[tuple[Any, ...]]], None]) -> Measured:
    """Return the time that ``write`` takes, without the time for making the rows."""
    seconds = cpu = 0.0
    for rows in _batches(records):
        started, cpu_started = time.perf_counter(), time.process_time()
        write(rows)
        seconds += time.perf_counter() - started
        cpu += time.process_time() - cpu_started
    return Measured(name, records, seconds, cpu)


def _copied(records: int, database: Database) -> Measured:
    database.execute(f"CREATE TABLE ceiling {_TABLE}")
    with closing(database.connect()) as connection:
        connection.autocommit = False

        def write(rows: list[tuple[Any, ...]]) -> None:
            with connection.cursor() as cursor, cursor.copy(f"COPY ceiling ({_COLUMNS}) FROM STDIN") as copy:
                for row in rows:
                    copy.write_row(row)
            connection.commit()

        return _measured("COPY by psycopg", records, write)


def _upserted(records: int, database: Database) -> tuple[Measured, Measured]:
    """COPY into a staging table, and from there into the table: first new rows, then the same rows again."""
    database.execute(f"CREATE TABLE upserted {_TABLE}")
    columns = _COLUMNS.split(", ")
    changes = ", ".join(f"{column} = excluded.{column}" for column in columns[1:])
    with closing(database.connect()) as connection:
        connection.autocommit = False
        connection.execute("CREATE TEMPORARY TABLE staging (LIKE upserted) ON COMMIT DELETE ROWS")

        def write(rows: list[tuple[Any, ...]]) -> None:
            with connection.cursor() as cursor:
                with cursor.copy(f"COPY staging ({_COLUMNS}) FROM STDIN") as copy:
                    for row in rows:
                        copy.write_row(row)
                cursor.execute(
                    f"INSERT INTO upserted SELECT {_COLUMNS} FROM staging ON CONFLICT (id) DO UPDATE SET {changes}"
                )
            connection.commit()

        new = _measured("psycopg: COPY, ON CONFLICT, new rows", records, write)
        return new, _measured("psycopg: COPY, ON CONFLICT, rows there", records, write)


def _executed(records: int, file: Path) -> Measured:
    with closing(sqlite3.connect(file)) as connection:
        connection.execute(f"CREATE TABLE ceiling {_TABLE}")

        def write(rows: list[tuple[Any, ...]]) -> None:
            with connection:
                connection.executemany("INSERT INTO ceiling VALUES (?, ?, ?, ?, ?)", rows)

        def converted(rows: list[tuple[Any, ...]]) -> None:
            write([(number, name, str(amount), at.isoformat(" "), score) for number, name, amount, at, score in rows])

        return _measured("executemany by sqlite3", records, converted)


if __name__ == "__main__":
    main()
