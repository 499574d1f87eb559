"""What it costs to have a sink connector run by Spark, beside the worker's own tasks, in one run.

``python bench/engine.py [RECORDS]``: JSON with schemas from a topic of four partitions to files, and exactly once into
PostgreSQL; by one task and by two of the worker, then by Spark with ``local[1]`` and ``local[2]``. All records are
there before the connector starts. CPU seconds are those of the worker and all below it.
The start is what a run with few records takes: of Spark that is its Java, and one load. Last, what loads cost that
move nothing but a record, one after the other, in a Spark that runs.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from standalone import Bench, Measured, show_title

_ROOT = Path(__file__).parent.parent
# The modules of the benchmarks have the names of packages, which come first.
sys.path[:0] = [str(_ROOT), str(_ROOT / "tests")]

from connect.bulk import OffsetRange
from connectors.spark.engine.config import SparkSinkEngineConfig
from connectors.spark.engine.sink import SparkSinkEngine
from equipment.servers.lease import Database, leased_server, new_database
from equipment.servers.products import POSTGRESQL
from equipment.workers.bulk_context import BulkContext
from worker.embedded.broker.server import BrokerConfig, EmbeddedBroker

_PARTITIONS = 4
_FEW = 8
_LOADS = 20
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
_WAYS = {
    "worker, 1 task": {},
    "worker, 2 tasks": {"tasks.max": "2"},
    "Spark, local[1]": {"engine": "spark", "tasks.max": "1", "spark.master": "local[1]"},
    "Spark, local[2]": {"engine": "spark", "tasks.max": "2", "spark.master": "local[2]"},
}


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
        _measure_file(bench, records)
        _measure_database(bench, records, database)
        _measure_loads(bench)


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


def _measure_file(bench: Bench, records: int) -> None:
    show_title("topic to a file, JSON with schemas")

    def sink(name: str) -> dict[str, str]:
        return {"connector.class": "FileStreamSink", "file": str(bench.folder / f"{name}.txt")}

    _measure(bench, records, {name: sink(f"{place}") for place, name in enumerate(_WAYS)}, {})


def _measure_database(bench: Bench, records: int, database: Database) -> None:
    show_title("topic to PostgreSQL, JSON with schemas, inserts")
    tables = {name: f"rows{place}" for place, name in enumerate(_WAYS)}
    database.execute(*(f"CREATE TABLE {table} {_TABLE}" for table in tables.values()))
    sinks = {
        name: {"connector.class": "JdbcSink", "table.name.format": table, **database.props}
        for name, table in tables.items()
    }
    _measure(bench, records, sinks, {"delivery": "exactly-once"})


def _measure(bench: Bench, records: int, sinks: Mapping[str, Mapping[str, str]], more: Mapping[str, str]) -> None:
    """Each way, with few records and with all of them; the rates are those between the two."""
    worker = {"value.converter": "JsonConverter"}
    first: Measured | None = None
    for name, own in _WAYS.items():
        kind = sinks[name]["connector.class"]
        props = {**sinks[name], **own, **more, "engine.flush.size": "250000", "engine.poll.interval.ms": "50"}
        few = bench.sluice(f"{kind}, {name}, few", {**props, "topics": _TOPICS[1]}, worker, _FEW)
        all_of_them = bench.sluice(f"{kind}, {name}", {**props, "topics": _TOPICS[0]}, worker, records)
        seconds, cpu = all_of_them.seconds - few.seconds, all_of_them.cpu - few.cpu
        between = Measured(name, records - _FEW, max(seconds, 0.001), cpu)
        first = first or between
        print(
            f"{name:<44}{all_of_them.rate:>12,.0f}{all_of_them.seconds:>9.2f}{all_of_them.cpu:>8.2f}"
            f"   start {few.seconds:.1f} s, {few.cpu:.1f} s CPU; without it {between.rate:,.0f} a second "
            f"({between.rate / first.rate:.2f} of the first), {between.cpu / between.records * 1e6:.1f} us CPU each",
            flush=True,
        )


def _measure_loads(bench: Bench) -> None:
    """Loads of a record each, in one driver."""
    props = {
        "name": "bench-loads",
        "connector.class": "FileStreamSink",
        "file": str(bench.folder / "loads.txt"),
        "key.converter": "StringConverter",
        "value.converter": "JsonConverter",
        "header.converter": "SimpleHeaderConverter",
        "spark.master": "local[2]",
    }
    engine = SparkSinkEngine(SparkSinkEngineConfig.parse(props), BulkContext("loads", bench.bootstrap, props))
    engine.start()
    times: list[float] = []
    try:
        for place in range(_LOADS):
            first, begun = place // _PARTITIONS, time.perf_counter()
            engine.load([OffsetRange(_TOPICS[0], place % _PARTITIONS, first, first + 1)])
            times.append(time.perf_counter() - begun)
    finally:
        engine.stop()
    warm = sorted(times[_LOADS // 2 :])
    print(f"\nA load of one record: the first {times[0]:.2f} s, a warm one {warm[len(warm) // 2]:.2f} s (median)")


if __name__ == "__main__":
    main()
