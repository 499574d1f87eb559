"""Measures change data capture: the snapshot, one large transaction, many small ones, and the latency.

``DATABASE=mysql python bench/cdc.py [ROWS [debezium]]``: rows of ten columns of PostgreSQL (the default), MySQL,
MariaDB or MongoDB, as JSON without schemas. With ``debezium`` the same
configuration runs afterwards on Apache Kafka Connect, by Debezium's connector, in the same way. Rates are those from
the first record on the topic to the last, so that no start counts; CPU is that of the worker and all its processes
meanwhile. Transactions are written while the connector is paused.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

import requests
from confluent_kafka import Consumer, KafkaException, TopicPartition

sys.path.append(str(Path(__file__).parents[1] / "tests"))

from cdc_databases import DATABASES, Source, server_of
from distributed_worker import DistributedWorker
from process_tree import ProcessTree

from equipment.brokers.topics import create_topic
from equipment.waiting import wait_until
from equipment.workers.debezium import resolve_debezium
from equipment.workers.java_connect import DEFAULT_JVM, JavaConnect
from worker.embedded.broker.server import BrokerConfig, EmbeddedBroker

_PATIENCE: Final = 900.0
_SMALL_SHARE: Final = 5
_LATENCY_TRANSACTIONS: Final = 2000
_PER_SECOND: Final = 100


class Worker(Protocol):
    """A worker of either runtime."""

    name: str
    pid: int

    def put(self, path: str, body: object = None) -> None:
        """Send a request to the REST API."""


@dataclass
class _Runtime:
    name: str
    pid: int
    url: str

    def put(self, path: str, body: object = None) -> None:
        requests.put(self.url + path, json=body, timeout=120).raise_for_status()


@contextmanager
def sluice(folder: Path, bootstrap: str) -> Iterator[Worker]:
    """Run a worker of Sluice."""
    worker = DistributedWorker(folder / "sluice", bootstrap, "sluice").start()
    try:
        wait_until("Sluice is up", lambda: worker.answers("/connectors"))
        yield _Runtime("Sluice", worker.pid, f"http://{worker.address}/")
    finally:
        worker.stop()


@contextmanager
def debezium(folder: Path, bootstrap: str, product: str) -> Iterator[Worker]:
    """Run a worker of Apache Kafka Connect with Debezium's plugin."""
    jars = resolve_debezium(product)
    props = {
        "bootstrap.servers": bootstrap,
        "group.id": "java",
        **{f"{kind}.storage.topic": f"java-{kind}" for kind in ("config", "offset", "status")},
        **{f"{kind}.storage.replication.factor": "1" for kind in ("config", "offset", "status")},
    }
    (folder / "java").mkdir()
    worker = JavaConnect(folder / "java", jars, props, jvm=DEFAULT_JVM)
    worker.start()
    try:
        yield _Runtime("Debezium", worker.pid, worker.url)
    finally:
        worker.close()


class Measurement:
    """Measures one worker, with a database and a topic of its own."""

    def __init__(self, worker: Worker, source: Source, bootstrap: str, rows: int) -> None:
        self._worker, self._source, self._rows = worker, source, rows
        self._tree = ProcessTree(worker.pid)
        self._topic = source.topic
        create_topic(bootstrap, self._topic)
        self._consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": self._topic, "fetch.wait.max.ms": 5})
        self._written = 0

    def run(self) -> None:
        """Measure everything, and print it."""
        self._insert(self._rows)
        config = {
            **self._source.config,
            "tasks.max": "1",
            "poll.interval.ms": "5",
            **{f"{kind}.converter": "org.apache.kafka.connect.json.JsonConverter" for kind in ("key", "value")},
            **{f"{kind}.converter.schemas.enable": "false" for kind in ("key", "value")},
        }
        self._measure("snapshot", self._rows, lambda: self._worker.put("connectors/bench/config", config))
        self._caught_up("one transaction", self._rows, lambda: self._insert(self._rows))
        self._caught_up("small transactions", self._rows // _SMALL_SHARE, self._insert_one_by_one)
        self._latency()
        print(f"{self._worker.name:9} memory at most {self._tree.peak() / 1e6:,.0f} MB", flush=True)

    def close(self) -> None:
        """Release what is open."""
        self._tree.close()
        self._consumer.close()
        with suppress(requests.RequestException):
            self._worker.put("connectors/bench/stop")

    def _insert(self, rows: int) -> None:
        self._source.insert(self._written + 1, self._written + rows)
        self._written += rows

    def _insert_one_by_one(self) -> None:
        rows = self._rows // _SMALL_SHARE
        self._source.insert_one_by_one(self._written + 1, self._written + rows)
        self._written += rows

    def _caught_up(self, what: str, rows: int, write: Callable[[], None]) -> None:
        """Write while the connector is paused, and measure how it catches up."""
        self._worker.put("connectors/bench/pause")
        time.sleep(2)
        write()
        self._measure(what, rows, lambda: self._worker.put("connectors/bench/resume"))

    def _measure(self, what: str, rows: int, begin: Callable[[], None]) -> None:
        before = self._end()
        begin()
        first = wait_until(f"{what} begins", lambda: self._end() - before, _PATIENCE)
        at, cpu = time.perf_counter(), self._tree.cpu()
        wait_until(f"{what} is whole", lambda: self._end() - before >= rows, _PATIENCE)
        seconds, used = time.perf_counter() - at, self._tree.cpu() - cpu
        moved = rows - first
        if moved <= 0:
            raise SystemExit(f"{what}: all rows came at once. Measure more of them.")
        print(
            f"{self._worker.name:9} {what:20} {moved / seconds:>9,.0f} rows/s {used / moved * 1e6:>7.1f} us of CPU a "
            f"row",
            flush=True,
        )

    def _latency(self) -> None:
        """Write a hundred transactions a second, and compare the time of each with that of its arrival here."""
        end = self._end()
        self._consumer.assign([TopicPartition(self._topic, 0, end)])
        delays: list[float] = []
        writer = threading.Thread(target=self._write_steadily)
        writer.start()
        while len(delays) < _LATENCY_TRANSACTIONS:
            come = self._consumer.consume(100, 0.005)
            now = time.time()
            delays += [now - self._source.sent(json.loads(message.value() or b"")["after"]) for message in come]
        writer.join()
        settled = sorted(delays[_PER_SECOND:])
        p99 = settled[len(settled) * 99 // 100]
        print(
            f"{self._worker.name:9} latency at {_PER_SECOND} tx/s   p50 {statistics.median(settled) * 1e3:,.0f} ms, "
            f"p99 {p99 * 1e3:,.0f} ms",
            flush=True,
        )

    def _write_steadily(self) -> None:
        begun = time.perf_counter()
        with self._source.inserting() as write:
            for number in range(_LATENCY_TRANSACTIONS):
                time.sleep(max(0.0, begun + number / _PER_SECOND - time.perf_counter()))
                self._written += 1
                write(self._written)

    def _end(self) -> int:
        try:
            return int(self._consumer.get_watermark_offsets(TopicPartition(self._topic, 0), timeout=30)[1])
        except KafkaException:
            return 0


def main() -> None:
    """Measure and print."""
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 200_000
    product = os.environ.get("DATABASE", "postgresql")
    if product not in DATABASES:
        raise SystemExit(f"DATABASE={product} is none of {', '.join(DATABASES)}.")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with EmbeddedBroker(BrokerConfig(folder=folder / "broker", port=0)).lease() as broker:
            bootstrap = broker.bootstrap_servers
            with server_of(product, folder, bootstrap) as opened:
                with sluice(folder, bootstrap) as worker, opened() as source:
                    measured(worker, source, bootstrap, rows)
                if sys.argv[2:] == ["debezium"]:
                    with debezium(folder, bootstrap, product) as worker, opened() as source:
                        measured(worker, source, bootstrap, rows)


def measured(worker: Worker, source: Source, bootstrap: str, rows: int) -> None:
    """Measure one worker."""
    measurement = Measurement(worker, source, bootstrap, rows)
    try:
        measurement.run()
    finally:
        measurement.close()


if __name__ == "__main__":
    main()
