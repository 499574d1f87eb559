"""Measures how fast the JDBC source moves rows, compared with the bare driver on the same table, in one run.

``python bench/jdbc.py [ROWS]``: a PostgreSQL table (a number, two texts, an amount, a time, a boolean; some 100 bytes
per row) is copied to a topic, by its number and in bulk, as JSON without and with schemas. The first ceiling is COPY
out with its bytes merely read, the second COPY out with each line produced to a topic; COPY out with rows converted to
Python values is measured as well. CPU seconds are those of the processes that move the rows, including their start,
whose cost is that of a run with few rows.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "tests"))

from own_broker import own_broker
from raw_client import produce_all
from standalone import Bench, Measured, show, show_title

from equipment.servers.lease import Database, leased_server, new_database
from equipment.servers.products import POSTGRESQL
from worker.embedded.broker.server import BrokerConfig

_TABLE = """
CREATE TABLE sales AS SELECT n::bigint AS id, 'customer ' || n % 1000 AS customer, md5(n::text) AS note,
(n / 7.0)::numeric(12, 2) AS amount, timestamptz '2013-01-01' + n * interval '1 second' AS sold, n % 2 = 0 AS paid
FROM generate_series(1, {rows}) n
"""
_FEW = 100
_TYPES = ["int8", "text", "text", "numeric", "timestamptz", "bool"]
_SCHEMALESS = {"value.converter": "JsonConverter", "value.converter.schemas.enable": "false"}
_WITH_SCHEMAS = {"value.converter": "JsonConverter"}


def main() -> None:
    """Measure and print."""
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with (
            own_broker(BrokerConfig(folder=folder / "broker", port=0)) as broker,
            leased_server(POSTGRESQL, folder / "servers") as server,
            new_database(server) as database,
        ):
            bench = Bench(folder, broker.bootstrap_servers, rows)
            database.execute(_TABLE.format(rows=rows), "ALTER TABLE sales ADD PRIMARY KEY (id)", "VACUUM ANALYZE sales")
            database.execute(
                "CREATE TABLE few (LIKE sales INCLUDING ALL)", f"INSERT INTO few SELECT * FROM sales LIMIT {_FEW}"
            )
            measure_source(bench, database)


def measure_source(bench: Bench, database: Database) -> None:
    """Measure PostgreSQL to a topic."""
    show_title("PostgreSQL to topic")
    copy_out(bench, database, typed=False)
    ceiling, typed = copy_out(bench, database, typed=False), copy_out(bench, database, typed=True)
    produced = copy_and_produce(bench, database)
    show(ceiling, ceiling)
    show(typed, ceiling)
    show(produced, ceiling)
    few = source_props(database, "few", incrementing := {"mode": "incrementing", "incrementing.column.name": "id"})
    start = bench.sluice("JdbcSource, few rows", {**few, "table.whitelist": "few"}, _SCHEMALESS, _FEW)
    print("From here on of the second ceiling, COPY out and produce:")
    show(start, produced)
    for name, mode, converter in (
        ("JSON without schemas", incrementing, _SCHEMALESS),
        ("JSON without schemas, mode=bulk", {"mode": "bulk", "poll.interval.ms": "600000"}, _SCHEMALESS),
        ("JSON without schemas, keys", {**incrementing, "key.columns": "auto"}, _SCHEMALESS),
        ("JSON with schemas", incrementing, _WITH_SCHEMAS),
    ):
        show(bench.sluice(f"JdbcSource, {name}", source_props(database, name, mode), converter), produced, start)


def source_props(database: Database, name: str, mode: Mapping[str, str]) -> dict[str, str]:
    """Return the configuration of a source that reads the table; each source has its own topic."""
    return {
        "connector.class": "JdbcSource",
        "topic.prefix": "".join(each for each in name if each.isalpha()) + "-",
        "table.whitelist": "sales",
        "batch.max.rows": "5000",
        "key.converter": "JsonConverter",
        "key.converter.schemas.enable": "false",
        **database.props,
        **mode,
    }


def copy_out(bench: Bench, database: Database, *, typed: bool) -> Measured:
    """Measure the bare driver."""
    with closing(database.connect()) as connection, closing(connection.cursor()) as cursor:
        started, cpu = time.perf_counter(), time.process_time()
        with cursor.copy("COPY sales TO STDOUT") as copy:
            if typed:
                copy.set_types(_TYPES)
                rows = sum(1 for _ in copy.rows())
            else:
                rows = sum(bytes(block).count(b"\n") for block in copy)
        seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
    assert rows == bench.records
    return Measured(f"psycopg: COPY out{', rows as values' if typed else ''}", rows, seconds, cpu)


def copy_and_produce(bench: Bench, database: Database) -> Measured:
    """Do the minimum that any source does: pass the database's output to the client, one value per row."""
    with closing(database.connect()) as connection, closing(connection.cursor()) as cursor:
        started, cpu = time.perf_counter(), time.process_time()
        with cursor.copy("COPY sales TO STDOUT") as copy:
            rows = produce_all(
                bench.bootstrap, "copied", (line for block in copy for line in bytes(block).splitlines())
            )
        seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
    assert rows == bench.records
    return Measured("psycopg and raw client: COPY out, produce", rows, seconds, cpu)


if __name__ == "__main__":
    main()
