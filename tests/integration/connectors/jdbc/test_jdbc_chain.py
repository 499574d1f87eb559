"""A table of PostgreSQL by a topic in Avro into a table of SQLite, and of PostgreSQL again: every value arrives exact.

``SLUICE_CHAIN_ROWS`` says how many rows; ``make chain`` sends 1,000,000.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import sqlite3
import struct
from collections.abc import Callable, Iterator
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from equipment.brokers.topics import create_topic
from equipment.servers.lease import Database
from equipment.waiting import wait_until
from equipment.workers.standalone import StandaloneWorker
from worker.embedded.registry.server import RegistryInfo

ROWS = int(os.environ.get("SLUICE_CHAIN_ROWS", "3000"))

pytestmark = pytest.mark.timeout(300 + ROWS // 1000)

TABLE = """
CREATE TYPE mood AS ENUM ('sad', 'it''s "ok"', 'happy');
CREATE TABLE everything (
    id bigint PRIMARY KEY, small smallint NOT NULL, whole integer, single real, precise double precision,
    price numeric(12, 2), huge numeric(40, 12), free numeric, yes boolean, words text, short varchar(40),
    key uuid, doc json, tree jsonb, raw bytea, day date, clock time(3), at timestamp, instant timestamptz NOT NULL,
    feeling mood, span interval, numbers integer[], texts text[]
)
"""
FILL = """
INSERT INTO everything SELECT
    n, n % 32768, CASE WHEN n % 7 = 0 THEN NULL ELSE n - 2147483648 END, n / 3.0::real, n / 7.0::double precision,
    (n % 1000000) / 100.0,
    CASE WHEN n % 5 = 0 THEN NULL ELSE 1234567890123456789012345678.000000000001 * (1 - n % 3) END,
    ('1' || repeat('0', n::int % 20) || '.' || repeat('9', n::int % 15) || '1')::numeric, n % 2 = 0,
    CASE n % 4 WHEN 0 THEN NULL WHEN 1 THEN 'tab' || chr(9) || 'nl' || chr(10) || chr(92) || 'N ''"é' WHEN 2 THEN ''
        ELSE 'row ' || n END,
    'v' || n, md5(n::text)::uuid, json_build_object('n', n, 's', '\\"x'), jsonb_build_object('n', n),
    decode(md5(n::text), 'hex'), DATE '1900-01-01' + n::int % 50000, TIME '00:00:00' + (n % 86400000) * INTERVAL '1 ms',
    TIMESTAMP '1969-12-31 23:59:59.999999' + n * INTERVAL '1.000001 s',
    TIMESTAMPTZ '2024-03-31 00:59:59.5+00' + n * INTERVAL '17 us',
    (ARRAY['sad', 'it''s "ok"', 'happy'])[1 + n % 3]::mood, n * INTERVAL '1 minute', ARRAY[n::int, NULL, -1],
    ARRAY['a,b', 'q"\\{}', NULL, '']
FROM generate_series(0, LAST) AS n
"""
COLUMNS = [
    *("id", "small", "whole", "single", "precise", "price", "huge", "free", "yes", "words", "short", "key", "doc"),
    *("tree", "raw", "day", "clock", "at", "instant", "feeling", "span", "numbers", "texts"),
]


@pytest.fixture
def worker(
    standalone: Callable[..., StandaloneWorker],
    postgresql: Database,
    registry: RegistryInfo,
    bootstrap: str,
    topic: str,
) -> StandaloneWorker:
    """A worker that has the table on a topic, in Avro."""
    for statement in (*TABLE.split(";\n"), FILL.replace("LAST", str(ROWS - 1))):
        postgresql.execute(statement)
    create_topic(bootstrap, f"{topic}-everything", partitions=2)
    avro = {
        f"{part}.converter{key}": value
        for part in ("key", "value")
        for key, value in {"": "AvroConverter", ".schema.registry.url": registry.url}.items()
    }
    made: StandaloneWorker = standalone(**avro)
    made.connector(
        "chain-source",
        **{
            "connector.class": "JdbcSource",
            "mode": "incrementing",
            "incrementing.column.name": "id",
            "table.whitelist": "everything",
            "key.columns": "auto",
            "topic.prefix": f"{topic}-",
            "timestamp.granularity": "micros_long",
            "batch.max.rows": "1000" if ROWS > 10_000 else "300",
            "poll.interval.ms": "100",
            **postgresql.props,
        },
    )
    return made


def sink(worker: StandaloneWorker, name: str, topic: str, **props: str) -> None:
    worker.connector(
        name,
        **{
            "connector.class": "JdbcSink",
            "topics": f"{topic}-everything",
            "table.name.format": "copy",
            "auto.create": "true",
            "insert.mode": "upsert",
            "pk.mode": "record_key",
            "delivery": "exactly-once",
            "timestamp.fields.list": "at,instant",
            **props,
        },
    )


def test_the_chain_from_postgresql_to_sqlite(
    worker: StandaloneWorker, postgresql: Database, topic: str, tmp_path: Path
) -> None:
    file = tmp_path / "copy.db"
    url = f"jdbc:sqlite:{file}"
    sink(worker, "chain-sqlite", topic, **{"connection.url": url, "nested.values": "json"})
    worker.start()

    def arrived() -> bool:
        with closing(sqlite3.connect(file)) as copy:
            found = copy.execute("SELECT 1 FROM sqlite_master WHERE name = 'copy'").fetchone()
            return bool(found) and copy.execute("SELECT count(*) FROM copy").fetchone()[0] == ROWS

    wait_until("every row is there", arrived, 120 + ROWS / 1000)
    assert worker.terminate() == 0, worker.log()
    names = ", ".join(f'"{name}"' for name in COLUMNS)
    with closing(sqlite3.connect(file)) as copy:
        found = copy.execute(f"SELECT {names} FROM copy ORDER BY id")
        for original, arrived_row in zip(_originals(postgresql), found, strict=True):
            assert arrived_row == original


def test_the_chain_from_postgresql_to_postgresql(worker: StandaloneWorker, postgresql: Database, topic: str) -> None:
    """Into columns of the same types: texts become uuid, json, enums and intervals again."""
    postgresql.execute("CREATE TABLE copy (LIKE everything INCLUDING ALL)")
    sink(worker, "chain-postgresql", topic, **postgresql.props)
    worker.start()
    count = "SELECT count(*) FROM copy"
    wait_until("every row is there", lambda: postgresql.rows(count)[0][0] == ROWS, 120 + ROWS / 1000)
    assert worker.terminate() == 0, worker.log()
    same = "SELECT count(*) FROM everything AS a JOIN copy AS b ON a::text = b::text"
    assert postgresql.rows(same) == [(ROWS,)]


def _originals(database: Database) -> Iterator[tuple[Any, ...]]:
    """The rows as SQLite is to have them: texts of what it has no type for."""
    with closing(database.connect()) as connection:
        connection.autocommit = False
        connection.execute("SET intervalstyle = 'iso_8601'")
        texts = {"span": "span::text", "doc": "doc::text", "tree": "tree::text", "key": "key::text"}
        query = f"SELECT {', '.join(texts.get(name, name) for name in COLUMNS)} FROM everything ORDER BY id"
        with connection.cursor("originals") as cursor:
            cursor.itersize = 1000
            for row in cursor.execute(query):
                yield tuple(map(_as_in_sqlite, COLUMNS, row))


def _as_in_sqlite(name: str, value: Any) -> Any:
    match value:
        case None:
            return None
        case bool():
            return int(value)
        case float() if name == "single":
            return struct.unpack("f", struct.pack("f", value))[0]
        case Decimal() if name == "price":
            return float(value) if value % 1 else int(value)
        case Decimal():
            return format(value, "f")
        case dt.datetime():
            instant = value.astimezone(dt.UTC).replace(tzinfo=None)
            return instant.isoformat(" ")
        case dt.date() | dt.time():
            return value.isoformat()
        case list():
            return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return value
