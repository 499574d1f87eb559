"""Measures change data capture: the snapshot, one large transaction, many small ones, and the latency.

``python bench/cdc.py --rows 200000 --database mysql,mongodb --debezium``: rows of ten columns of PostgreSQL (the
default), MySQL, MariaDB or MongoDB, as JSON without schemas. With ``--debezium`` the same configuration runs afterwards
on Apache Kafka Connect, by Debezium's connector, in the same way, and the ratios are shown. Rates are those from the
first record on the topic to the last, so that no start counts; CPU is that of the worker and all its processes
meanwhile. Transactions are written while the connector is paused. ``--snapshot`` measures the snapshot alone, and shows
the memory at each tenth of it: ``python bench/cdc.py --rows 10000000 --snapshot``.
"""

from __future__ import annotations

import argparse
import json
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
from own_broker import own_broker
from process_tree import ProcessTree

from equipment.brokers.topics import create_topic
from equipment.waiting import wait_until
from equipment.workers.debezium import resolve_debezium
from equipment.workers.java_connect import DEFAULT_JVM, JavaConnect
from worker.embedded.broker.server import BrokerConfig

_PATIENCE: Final = 900.0
_SMALL_SHARE: Final = 5
_PARTS: Final = 10
"""At how many places of a snapshot its memory is shown."""
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
        wait_until("Sluice is up", lambda: worker.answers("/connectors"), _PATIENCE)
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


@dataclass(frozen=True, slots=True)
class _Figures:
    """Rows a second, and the CPU seconds of each row."""

    rate: float
    cpu: float


class Measurement:
    """Measures one worker, with a database and a topic of its own."""

    def __init__(self, worker: Worker, source: Source, bootstrap: str, rows: int) -> None:
        self._worker, self._source, self._rows = worker, source, rows
        self._tree = ProcessTree(worker.pid)
        self._topic = source.topic
        create_topic(bootstrap, self._topic)
        self._consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": self._topic, "fetch.wait.max.ms": 5})
        self._written = 0
        self.figures: dict[str, _Figures] = {}

    @property
    def peak(self) -> int:
        """The most memory that was used, in bytes."""
        return self._tree.peak()

    def run(self, *, snapshot_only: bool) -> None:
        """Measure everything, or the snapshot alone, and print it."""
        self._insert(self._rows)
        config = {
            **self._source.config,
            "tasks.max": "1",
            "poll.interval.ms": "5",
            **{f"{kind}.converter": "org.apache.kafka.connect.json.JsonConverter" for kind in ("key", "value")},
            **{f"{kind}.converter.schemas.enable": "false" for kind in ("key", "value")},
        }
        parts = _PARTS if snapshot_only else 1
        self._measure("snapshot", self._rows, lambda: self._worker.put("connectors/bench/config", config), parts)
        if not snapshot_only:
            self._caught_up("one transaction", self._rows, lambda: self._insert(self._rows))
            self._caught_up("small transactions", self._rows // _SMALL_SHARE, self._insert_one_by_one)
            self._latency()
        print(f"{self._worker.name:9} memory at most {self.peak / 1e6:,.0f} MB", flush=True)

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

    def _measure(self, what: str, rows: int, begin: Callable[[], None], parts: int = 1) -> None:
        before = self._end()
        begin()
        first = wait_until(f"{what} begins", lambda: self._end() - before, _PATIENCE)
        at, cpu = time.perf_counter(), self._tree.cpu()
        for part in range(1, parts + 1):
            wanted = before + rows * part // parts
            wait_until(f"{what} is whole", lambda end=wanted: self._end() >= end, _PATIENCE)
            if parts > 1:
                print(f"{self._worker.name:9} {part}/{parts}: memory {self._tree.memory() / 1e6:,.0f} MB", flush=True)
        seconds, used = time.perf_counter() - at, self._tree.cpu() - cpu
        moved = rows - first
        if moved <= 0:
            raise SystemExit(f"{what}: all rows came at once. Measure more of them.")
        self.figures[what] = figures = _Figures(moved / seconds, used / moved)
        print(
            f"{self._worker.name:9} {what:20} {figures.rate:>9,.0f} rows/s {figures.cpu * 1e6:>7.1f} us of CPU a row",
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
    parser = argparse.ArgumentParser(description="Measures change data capture.")
    parser.add_argument("--rows", type=int, default=200_000, help="how many rows a snapshot or a transaction has")
    parser.add_argument("--database", default="postgresql", help=f"some of {','.join(DATABASES)}, or all")
    parser.add_argument("--debezium", action="store_true", help="measure Debezium too, and show the ratios")
    parser.add_argument("--snapshot", action="store_true", help="measure the snapshot alone, with its memory")
    given = parser.parse_args()
    wanted = DATABASES if given.database == "all" else given.database.split(",")
    if unknown := set(wanted) - set(DATABASES):
        raise SystemExit(f"{', '.join(sorted(unknown))}: none of {', '.join(DATABASES)}.")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with own_broker(BrokerConfig(folder=folder / "broker", port=0)) as broker:
            for product in wanted:
                print(f"{product}:", flush=True)
                (folder / product).mkdir()
                compare(product, folder / product, broker.bootstrap_servers, given)


def compare(product: str, folder: Path, bootstrap: str, given: argparse.Namespace) -> None:
    """Measure Sluice with a database, and Debezium if that is wanted."""
    with server_of(product, folder, bootstrap) as opened:
        with sluice(folder, bootstrap) as worker, opened() as source:
            ours = measured(worker, source, bootstrap, given)
        if given.debezium:
            with debezium(folder, bootstrap, product) as worker, opened() as source:
                theirs = measured(worker, source, bootstrap, given)
            for what, figures in ours.figures.items():
                other = theirs.figures[what]
                print(
                    f"ratio     {what:20} {figures.rate / other.rate:.1f} times the rows/s, "
                    f"{other.cpu / figures.cpu:.1f} times the rows per CPU second"
                )
            print(f"ratio     memory               {ours.peak / theirs.peak:.2f} of Debezium's", flush=True)


def measured(worker: Worker, source: Source, bootstrap: str, given: argparse.Namespace) -> Measurement:
    """Measure one worker."""
    measurement = Measurement(worker, source, bootstrap, given.rows)
    try:
        measurement.run(snapshot_only=given.snapshot)
    finally:
        measurement.close()
    return measurement


if __name__ == "__main__":
    main()
