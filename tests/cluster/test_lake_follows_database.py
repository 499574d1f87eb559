"""The example ``examples/mysql-to-lake`` while everything that takes part is killed: the tables equal the database.

Rows are written, changed, moved to other keys and deleted at random, and the tables are altered. At each pause the lake
is to have what the database has. Standalone workers send some changes twice after a kill, which changes no row.
"""

from __future__ import annotations

import datetime as dt
import os
import random
import signal
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Any, Final

import duckdb
import pymysql
import pytest
import requests
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError
from pyiceberg.table import StaticTable

from equipment.brokers.proxied_broker import ProxiedBroker
from equipment.servers.killable import KillableServer, killable_server
from equipment.servers.lease import Database, new_database
from equipment.servers.products import MARIADB, MYSQL, PASSWORD, USER
from equipment.waiting import wait_until
from equipment.workers.processes import command_line, descendants
from equipment.workers.small_spark import SMALL_DELTA, SMALL_SPARK, SPARK_ENVIRON
from equipment.workers.standalone import StandaloneWorker

EXAMPLE: Final = Path(__file__).parents[2] / "examples" / "mysql-to-lake"
KILLS: Final = int(os.environ.get("SLUICE_FOLLOWING_KILLS", "5"))
"""How many kills there are: each victim once, then any."""
VICTIMS: Final = ("source", "spark", "worker", "database", "broker")
PATIENCE: Final = 300.0
KEYS: Final = 60
DURABLE: Final = ("--sync-binlog=1", "--innodb-flush-log-at-trx-commit=1", "--lower-case-table-names=0")
TABLES: Final = ("orders", "items")
CREATED: Final = (
    "id int PRIMARY KEY, n int, price decimal(6,2), name varchar(20), at datetime(3), day date, old varchar(9)"
)
ALTERATIONS: Final = (
    "MODIFY n bigint",
    "ADD note varchar(50)",
    "MODIFY price decimal(10,2)",
    "DROP COLUMN old",
    "MODIFY name text",
    "ADD ratio float, ADD more int",
    "MODIFY ratio double",
)
"""What is done to the tables, one after the other; none of it tells other rows what their new values are."""
pytestmark = [
    pytest.mark.cluster,
    pytest.mark.integration,
    pytest.mark.spark,
    pytest.mark.thorough,
    pytest.mark.timeout(1800 + 120 * KILLS),
]

Table = dict[int, dict[str, Any]]


class Writer(threading.Thread):
    """Changes rows at random until it is closed, through outages of the database."""

    def __init__(self, database: Database, chance: random.Random) -> None:
        super().__init__(name="writer")
        self._database = database
        self._chance = chance
        self._end = threading.Event()
        self.transactions = 0

    def close(self) -> None:
        """Write no more."""
        self._end.set()
        self.join()

    def run(self) -> None:
        while not self._end.wait(0.02):
            # What was committed is asked of the database in the end.
            with suppress(pymysql.MySQLError, OSError):
                self._transact()
                self.transactions += 1

    def _transact(self) -> None:
        with closing(self._database.connect()) as connection, connection.cursor() as cursor:
            cursor.execute("BEGIN")
            for _ in range(self._chance.randrange(1, 6)):
                self._change(cursor, self._chance.choice(TABLES), self._chance.randrange(KEYS))
            cursor.execute("ROLLBACK" if self._chance.random() < 0.1 else "COMMIT")

    def _change(self, cursor: Any, table: str, key: int) -> None:
        number = self._chance.randrange(1_000_000)
        match self._chance.randrange(5):
            case 0 | 1:
                values = (key, number, number % 10_000 / 100, f"n{number}", "2026-01-31 12:34:56.789", "2026-01-31")
                cursor.execute(f"REPLACE INTO {table} (id, n, price, name, at, day) VALUES %s", (values,))
            case 2:
                cursor.execute(f"UPDATE {table} SET n = %s WHERE id = %s", (number, key))
            case 3:
                cursor.execute(f"DELETE FROM {table} WHERE id = %s", (key,))
            case _:
                cursor.execute(f"UPDATE IGNORE {table} SET id = %s WHERE id = %s", (self._chance.randrange(KEYS), key))


class Following:
    """A database, the worker that follows it, and the lake."""

    def __init__(
        self, server: KillableServer, database: Database, broker: ProxiedBroker, folder: Path, kind: str
    ) -> None:
        self.server, self.database, self.broker = server, database, broker
        self._lake = folder / "lake"
        self._is_delta = kind == "delta"
        converters = {"key_converter": "JsonConverter", "value_converter": "JsonConverter"}
        self.worker = StandaloneWorker(
            folder / "worker",
            broker.bootstrap,
            **converters,
            consumer_metadata_max_age_ms="5000",
            connector_spark_config_override_allowlist="spark.databricks.delta.snapshotPartitions",
        )
        more = {**SMALL_SPARK, **(SMALL_DELTA if self._is_delta else {}), "restart.backoff.ms": "100"}
        more |= {"restart.backoff.max.ms": "1000", "restart.limit": "1000"}
        self.worker.connector_file("source.properties", self._text("source", {"restart.limit": "1000"}))
        self.worker.connector_file("lake.properties", self._text("lake", {**more, "table.format": kind}))

    def _text(self, name: str, more: dict[str, str]) -> str:
        """A file of the example for this database and store; later keys win."""
        text = (EXAMPLE / f"{name}.properties").read_text()
        connector = "MariaDbConnector" if self.database.product == "mariadb" else "MySqlConnector"
        here = {
            "${env:SHOP_PORT}": str(self.database.port),
            "${env:SHOP_PASSWORD}": PASSWORD,
            "database.user=shop": f"database.user={USER}",
            "MariaDbConnector\n": f"{connector}\n",
            "build/mysql-to-lake": str(self._lake),
            "database.include.list=shop": f"database.include.list={self.database.name}",
            "lake\\\\.shop": f"lake\\\\.{self.database.name}",
        }
        for said, meant in here.items():
            text = text.replace(said, meant)
        return text + "".join(f"{key}={value}\n" for key, value in more.items())

    def start(self) -> None:
        self.worker.start({**os.environ, **SPARK_ENVIRON})

    def kill(self, victim: str) -> None:
        """Kill the victim, and start again what does not by itself."""
        match victim:
            case "worker":
                self.worker.kill()
                self.start()
            case "source":
                with suppress(ProcessLookupError):
                    os.kill(self.worker.task_pid("shop"), signal.SIGKILL)
            case "spark":
                java = [pid for pid in descendants(self.worker.pid) if "SparkSubmit" in command_line(pid)]
                for pid in java:
                    os.kill(pid, signal.SIGKILL)
            case "database":
                self.server.kill()
                self.server.start()
            case _:
                self.broker.kill()
                self.broker.start()

    def signal(self, table: str) -> None:
        """Have the rows of a table read again."""
        data = {"type": "execute-snapshot", "data": {"data-collections": [f"{self.database.name}.{table}"]}}
        answer = requests.post(f"{self.worker.url()}connectors/shop/signals", json=data, timeout=60)
        assert answer.status_code == 202, answer.text

    def wait_until_equal(self) -> None:
        """Wait until the lake has the rows of the database."""
        for table in TABLES:
            expected = self._expected(table)
            try:
                wait_until(f"{table} is equal", lambda t=table, e=expected: self._found(t, e) == e, PATIENCE)  # type: ignore[misc]
            except AssertionError as error:
                found = self._found(table, expected)
                amiss = {key: (row, found.get(key)) for key, row in expected.items() if found.get(key) != row}
                more = found.keys() - expected.keys()
                raise AssertionError(f"{error}; {amiss}, {more}; {self.worker.log()[-5000:]}") from None

    def _expected(self, table: str) -> Table:
        with closing(self.database.connect()) as connection, connection.cursor(pymysql.cursors.DictCursor) as cursor:
            cursor.execute(f"SELECT * FROM {table}")
            return {row["id"]: row for row in cursor.fetchall()}

    def _found(self, table: str, expected: Table) -> Table:
        """The rows of the lake, in the columns that the database has now."""
        names = next(iter(expected.values())).keys()
        files = self._files(f"lake.{self.database.name}.{table}")
        if not files:
            return {}
        read = (
            duckdb.connect()
            .execute("SET TimeZone='UTC'")
            .execute("SELECT * FROM read_parquet(?, union_by_name=true, hive_partitioning=false)", [files])
        )
        columns = [each[0] for each in read.description]
        rows = [dict(zip(columns, row, strict=True)) for row in read.fetchall()]
        assert len({row["id"] for row in rows}) == len(rows), "a key has two rows"
        return {row["id"]: {name: _plain(row.get(name)) for name in names} for row in rows}

    def _files(self, table: str) -> list[str]:
        if self._is_delta:
            try:
                return [uri.removeprefix("file://") for uri in DeltaTable(self._lake / "topics" / table).file_uris()]
            except TableNotFoundError:
                return []
        place = self._lake / "topics" / table
        if not (place / "metadata" / "version-hint.text").exists():
            return []
        tasks = StaticTable.from_metadata(place.as_uri()).scan().plan_files()
        return [task.file.file_path.removeprefix("file:") for task in tasks]


def _plain(value: Any) -> Any:
    return value.replace(tzinfo=None) if isinstance(value, dt.datetime) else value


@pytest.fixture
def following(request: pytest.FixtureRequest, tmp_path: Path, mortal: ProxiedBroker) -> Iterator[Following]:
    product, kind = request.param
    with ExitStack() as stack:
        server = stack.enter_context(killable_server({"mysql": MYSQL, "mariadb": MARIADB}[product], *DURABLE))
        # The database goes with its server, so it is not dropped.
        database = new_database(server.server).__enter__()
        database.execute(*(f"CREATE TABLE {table} ({CREATED})" for table in TABLES))
        made = Following(server, database, mortal, tmp_path, kind)
        made.start()
        stack.callback(made.worker.close)
        yield made


@pytest.mark.parametrize(
    "following", [("mariadb", "iceberg"), ("mysql", "delta")], indirect=True, ids=["mariadb-iceberg", "mysql-delta"]
)
def test_the_tables_equal_the_database_whatever_is_killed(following: Following) -> None:
    seed = int(os.environ.get("SLUICE_CDC_SEED", random.randrange(1 << 32)))
    print(f"SLUICE_CDC_SEED={seed}")
    chance = random.Random(seed)
    alterations = [f"ALTER TABLE {table} {change}" for change in ALTERATIONS for table in TABLES]
    written = 0
    for number in range(KILLS):
        writer = Writer(following.database, random.Random(seed + number))
        writer.start()
        try:
            threading.Event().wait(chance.random() * 3)
            victim = VICTIMS[number] if number < len(VICTIMS) else chance.choice(VICTIMS)
            print(f"{number + 1}: {victim}", flush=True)
            following.kill(victim)
            share = -(-len(alterations) // max(1, KILLS - number))
            following.database.execute(*alterations[:share])
            del alterations[:share]
            threading.Event().wait(chance.random() * 3)
        finally:
            writer.close()
            written += writer.transactions
        following.wait_until_equal()
    # A new column with a default has values of which the log does not tell: the table is read again.
    following.database.execute("ALTER TABLE orders ADD COLUMN level int NOT NULL DEFAULT 7")
    following.signal("orders")
    following.wait_until_equal()
    print(f"{written} transactions, equal after each of {KILLS} kills", flush=True)
