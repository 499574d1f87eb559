"""Measures the JDBC sink beside Debezium's on Apache Kafka Connect, both warm, in one run.

``python bench/jdbc_race.py [LAP]``: records of five fields, as JSON with schemas in a topic of four partitions that was
filled in turn, are inserted and upserted into tables of PostgreSQL, in batches of 3,000. Debezium's driver joins the
rows of a batch into one statement (``reWriteBatchedInserts``), as users who tune it have it. A sequence of the table
counts the rows. CPU is that of a worker and its processes, without the database and the broker.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import psycopg
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

_ROOT = Path(__file__).parent.parent
# The benchmark modules have the names of packages, and would be found first.
sys.path[:0] = [str(_ROOT), str(_ROOT / "tests")]

from laps import Aim, Comparison, Run, measured, records_of, show, show_load, show_rows
from own_broker import own_broker
from process_tree import ProcessTree
from race import COMMAND, write_props

from equipment.servers.lease import Database, leased_server, new_database
from equipment.servers.products import POSTGRESQL
from equipment.workers.java_connect import DEFAULT_JVM, JavaConnect, resolve_java_connect
from equipment.workers.java_plugins import downloaded_plugin
from worker.embedded.broker.server import BrokerConfig

_TOPIC: Final = "payments"
_PARTITIONS: Final = 4
_BATCH: Final = "3000"
_TAIL: Final = 20_000
_AIM: Final = Aim(cpu=2.0, memory=2.0)
_DEBEZIUM: Final = "io.debezium.connector.jdbc.JdbcSinkConnector"
_WORKER: Final = {
    "key.converter": "org.apache.kafka.connect.storage.StringConverter",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "offset.flush.interval.ms": "10000",
}
_SCHEMA: Final = {
    "type": "struct",
    "name": "bench.Payment",
    "fields": [
        {"field": "id", "type": "int64"},
        {"field": "name", "type": "string"},
        {"field": "amount", "type": "int64"},
        {"field": "at", "type": "int64", "name": "org.apache.kafka.connect.data.Timestamp", "version": 1},
        {"field": "score", "type": "double", "optional": True},
    ],
}


class Race:
    """The broker, the database and the topic that both workers get."""

    def __init__(self, folder: Path, bootstrap: str, database: Database, lap: int) -> None:
        self._folder, self._bootstrap, self._database, self._lap = folder, bootstrap, database, lap
        jars = tuple(downloaded_plugin(folder / "plugins", "debezium_jdbc").rglob("*.jar"))
        self._jars = replace(resolve_java_connect(), plugin=jars)

    def fill(self) -> None:
        """Fill the topic, each record in another partition than the one before."""
        admin = AdminClient({"bootstrap.servers": self._bootstrap})
        admin.create_topics([NewTopic(_TOPIC, _PARTITIONS, 1)])[_TOPIC].result(30)
        producer = Producer({"bootstrap.servers": self._bootstrap, "linger.ms": 20})
        for number in range(records_of(self._lap, _TAIL)):
            payload = {
                "id": number,
                "name": f"payment {number} of many",
                "amount": number % 1_000_000,
                "at": 1_704_067_200_000 + number,
                "score": number / 7,
            }
            value = json.dumps({"schema": _SCHEMA, "payload": payload}, separators=(",", ":")).encode()
            while True:
                try:
                    producer.produce(_TOPIC, value, partition=number % _PARTITIONS)
                    break
                except BufferError:
                    producer.poll(0.1)
        producer.flush()

    def run(self, mode: str) -> Comparison:
        """Measure both workers."""
        java = self._measured(f"java-{mode}", self._java, self._debezium_props(mode))
        ours = self._measured(f"sluice-{mode}", self._sluice, self._own_props(mode))
        return Comparison(f"JDBC sink, {mode}", _AIM, java, ours)

    def _measured(self, name: str, running: Any, props: Mapping[str, str]) -> Run:
        self._database.execute(
            "DROP TABLE IF EXISTS rows",
            "CREATE TABLE rows (id BIGINT PRIMARY KEY, name TEXT, amount BIGINT, at TIMESTAMP, score FLOAT8,"
            " place BIGSERIAL)",
        )
        started = time.perf_counter()
        connector = {
            "name": name,
            "topics": _TOPIC,
            "tasks.max": "1",
            "batch.size": _BATCH,
            "consumer.override.max.poll.records": _BATCH,
            **props,
        }
        with running(self._folder / name, connector) as pid, closing(self._database.connect()) as connection:
            tree = ProcessTree(pid)
            try:
                return measured(lambda: _written(connection), tree, self._lap, started)
            finally:
                tree.close()

    def _own_props(self, mode: str) -> dict[str, str]:
        key = {"pk.mode": "record_value", "pk.fields": "id"} if mode == "upsert" else {}
        return {
            "connector.class": "io.confluent.connect.jdbc.JdbcSinkConnector",
            "table.name.format": "rows",
            "insert.mode": mode,
            **key,
            **self._database.props,
        }

    def _debezium_props(self, mode: str) -> dict[str, str]:
        key = {"primary.key.mode": "record_value", "primary.key.fields": "id"} if mode == "upsert" else {}
        return {
            "connector.class": _DEBEZIUM,
            "collection.name.format": "rows",
            "insert.mode": mode,
            **key,
            "connection.url": f"{self._database.jdbc_url}?reWriteBatchedInserts=true",
            "connection.username": self._database.user,
            "connection.password": self._database.password,
        }

    @contextmanager
    def _java(self, folder: Path, connector: Mapping[str, str]) -> Iterator[int]:
        props = {"bootstrap.servers": self._bootstrap, **_WORKER}
        worker = JavaConnect(folder, self._jars, props, [connector], jvm=DEFAULT_JVM)
        try:
            yield worker.start(wait=False).pid
        finally:
            worker.stop()

    @contextmanager
    def _sluice(self, folder: Path, connector: Mapping[str, str]) -> Iterator[int]:
        folder.mkdir()
        props = {
            "bootstrap.servers": self._bootstrap,
            "listeners": "http://127.0.0.1:0",
            **_WORKER,
            "offset.storage.file.filename": str(folder / "offsets"),
        }
        files = [write_props(folder / "worker.properties", props)]
        files += [write_props(folder / "connector.properties", connector)]
        with (folder / "worker.log").open("wb") as log:
            process = subprocess.Popen([COMMAND, "standalone", *files], stdout=log, stderr=log)
        try:
            yield process.pid
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)


def _written(connection: psycopg.Connection[Any]) -> int:
    """Return how many rows were written so far, by the sequence that counts them."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM rows_place_seq")
        (count,) = cursor.fetchone() or (0,)
        return int(count)


def main() -> None:
    """Measure and print."""
    lap = int(sys.argv[1]) if len(sys.argv) > 1 else 200_000
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        broker = stack.enter_context(own_broker(BrokerConfig(folder=folder / "broker", port=0)))
        server = stack.enter_context(leased_server(POSTGRESQL, folder))
        database = stack.enter_context(new_database(server))
        show_load()
        race = Race(folder, broker.bootstrap_servers, database, lap)
        race.fill()
        cases = []
        for mode in ("insert", "upsert"):
            cases.append(race.run(mode))
            show(cases[-1])
        show_rows(cases)
        show_load()


if __name__ == "__main__":
    main()
