"""What it costs to have a sink connector run by Spark, beside a task of the worker, in one run.

``python bench/engine.py [RECORDS]``: JSON with schemas from a topic of four partitions to a file and into PostgreSQL,
by one task of a worker, then by Spark with ``local[1]`` and ``local[2]``. All records are there before the connector
starts. CPU seconds are those of the worker, or of Spark's driver, and all below it. The start is told for itself: of a
task it is what a run with few records takes, of Spark the time until it runs and has made two loads of all the records,
by which its Java is warm; the third and fourth are measured. Last is what a load costs that moves one record.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from process_tree import ProcessTree
from standalone import Bench, Measured

_ROOT = Path(__file__).parent.parent
# The modules of the benchmarks have the names of packages, which come first.
sys.path[:0] = [str(_ROOT), str(_ROOT / "tests")]

from connect.bulk import OffsetRange
from connectors.spark.engine.config import SparkSinkEngineConfig
from connectors.spark.engine.sink import SparkSinkEngine
from equipment.servers.lease import leased_server, new_database
from equipment.servers.products import POSTGRESQL
from equipment.workers.bulk_context import BulkContext
from worker.embedded.broker.server import BrokerConfig, EmbeddedBroker

_PARTITIONS = 4
_FEW = 8
_LOADS = 10
_TOPICS = ("events", "few-events")
_TABLE = "(id BIGINT, name TEXT, score DOUBLE PRECISION)"
_SCHEMA = {
    "type": "struct",
    "fields": [
        {"field": "id", "type": "int64"},
        {"field": "name", "type": "string"},
        {"field": "score", "type": "double"},
    ],
}
_CORES = (1, 2)
_WARM, _MEASURED = 2, 2


def main() -> None:
    """Measure and print."""
    records = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        broker = stack.enter_context(EmbeddedBroker(BrokerConfig(folder=folder / "broker", port=0)).lease())
        server = stack.enter_context(leased_server(POSTGRESQL, folder))
        database = stack.enter_context(new_database(server))
        bench = Bench(folder, broker.bootstrap_servers, 0)
        _fill(broker.bootstrap_servers, records)
        file = {"connector.class": "FileStreamSink", "file": str(folder / "events.txt")}
        _measure("topic to a file", bench, records, file)
        database.execute(f"CREATE TABLE rows {_TABLE}")
        jdbc = {"connector.class": "JdbcSink", "table.name.format": "rows", **database.props}
        _measure("topic to PostgreSQL, inserts", bench, records, jdbc)


def _fill(bootstrap: str, records: int) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for future in admin.create_topics([NewTopic(topic, _PARTITIONS, 1) for topic in _TOPICS]).values():
        future.result()
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 50, "queue.buffering.max.messages": 1_000_000})
    for number in range(records):
        payload = {"id": number, "name": f"event {number} of many", "score": number / 7}
        value = json.dumps({"schema": _SCHEMA, "payload": payload}).encode()
        for topic in _TOPICS if number < _FEW else _TOPICS[:1]:
            producer.produce(topic, value, partition=number % _PARTITIONS)
        if number % 1000 == 0:
            producer.poll(0)
    producer.flush()


def _measure(title: str, bench: Bench, records: int, sink: Mapping[str, str]) -> None:
    """Move the records by each way; the share is that of the rate of the first."""
    print(f"\n{title:<34}{'records/s':>12}{'us CPU each':>12}{'of the first':>14}   start", flush=True)
    task, start = _by_worker(bench, records, sink)
    _show(task, task, start)
    for cores in _CORES:
        way, start = _by_spark(bench, records, sink, cores)
        _show(way, task, start)


def _show(way: Measured, first: Measured, start: str) -> None:
    cpu = way.cpu / way.records * 1e6
    print(f"{way.name:<34}{way.rate:>12,.0f}{cpu:>12.1f}{way.rate / first.rate:>14.2f}   {start}", flush=True)


def _by_worker(bench: Bench, records: int, sink: Mapping[str, str]) -> tuple[Measured, str]:
    """A worker's task, without what a run with few records takes."""
    worker = {"value.converter": "JsonConverter"}
    name = f"{sink['connector.class']}, a task of a worker"
    few = bench.sluice(f"{name}, few", {**sink, "topics": _TOPICS[1]}, worker, _FEW)
    every = bench.sluice(name, {**sink, "topics": _TOPICS[0]}, worker, records)
    way = Measured(name, records - _FEW, every.seconds - few.seconds, every.cpu - few.cpu)
    return way, f"{few.seconds:.1f} s, {few.cpu:.1f} s CPU"


def _by_spark(bench: Bench, records: int, sink: Mapping[str, str], cores: int) -> tuple[Measured, str]:
    """Loads of all the records, in one driver."""
    props = {
        **sink,
        "name": "bench",
        "tasks.max": str(cores),
        "key.converter": "StringConverter",
        "value.converter": "JsonConverter",
        "header.converter": "SimpleHeaderConverter",
        "spark.master": f"local[{cores}]",
    }
    ends = [(records + _PARTITIONS - 1 - partition) // _PARTITIONS for partition in range(_PARTITIONS)]
    ranges = [OffsetRange(_TOPICS[0], partition, 0, end) for partition, end in enumerate(ends)]
    tree, begun = ProcessTree(os.getpid()), time.perf_counter()
    spark: list[SparkSinkEngine] = []

    def load(count: int, wanted: list[OffsetRange]) -> tuple[float, float]:
        """What so many loads take; each by a task of its own, for one knows what it has loaded."""
        cpu, started = tree.cpu(), time.perf_counter()
        for _ in range(count):
            spark.append(SparkSinkEngine(SparkSinkEngineConfig.parse(props), BulkContext("b", bench.bootstrap, props)))
            spark[-1].start()
            spark[-1].load(wanted)
        return time.perf_counter() - started, tree.cpu() - cpu

    try:
        load(_WARM, ranges)
        start = f"{time.perf_counter() - begun:.1f} s, {tree.cpu():.1f} s CPU"
        seconds, cpu = load(_MEASURED, ranges)
        small, _ = load(_LOADS, [OffsetRange(_TOPICS[0], 0, 0, 1)])
    finally:
        tree.close()
        spark[-1].stop()
    name = f"{sink['connector.class']}, Spark, local[{cores}]"
    return Measured(name, records * _MEASURED, seconds, cpu), f"{start}; a load of one record {small / _LOADS:.2f} s"


if __name__ == "__main__":
    main()
