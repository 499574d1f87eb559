"""Compares the cost of running a connector in Spark with that of a worker's task, in one run.

``python bench/engine.py [RECORDS] [file] [postgresql] [source]``: JSON with schemas from a topic of four partitions to
a file and into PostgreSQL, and JSON from the files of a folder to a topic; all three, or those that are named. Each is
run by one task of a worker, then by Spark with ``local[1]`` and ``local[2]``, and on a standalone cluster of two
workers with one core each. All records exist before the connector starts. CPU seconds are those of the worker, or of
Spark's driver and cluster, with all their descendants. The start is shown separately: for a task it is the time of a
run with few records, for Spark the time until it runs and has made two loads of a twentieth of the records, which warm
up the JVM. Two loads of a fifth are measured, because they take longer than the whole run of the task. The last figure
is the cost of a load that moves almost nothing, and for a source the cost of one that finds nothing; a sink is given no
such load.
"""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from process_tree import ProcessTree
from standalone import Bench, Measured

_ROOT = Path(__file__).parent.parent
# The benchmark modules have the names of packages, and would be found first.
sys.path[:0] = [str(_ROOT), str(_ROOT / "tests")]

from own_broker import own_broker

from connect.bulk import OffsetRange
from connectors.spark.engine.config import SparkSinkEngineConfig, SparkSourceEngineConfig
from connectors.spark.engine.sink import SparkSinkEngine
from connectors.spark.engine.source import SparkSourceEngine
from equipment.servers.lease import leased_server, new_database
from equipment.servers.products import POSTGRESQL
from equipment.servers.spark_cluster import running_spark_cluster
from equipment.workers.bulk_context import BulkContext
from equipment.workers.bulk_source_context import BulkSourceContext
from worker.embedded.broker.server import BrokerConfig

_PARTITIONS = 4
_FEW = 40
_LOADS = 5
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
# The loads of a connector as shares of the records: those that warm up Spark, and those that are measured.
_WARM = (0.05, 0.05)
_MEASURED = (0.2, 0.2)
_WORKER = {"value.converter": "JsonConverter"}
_COMMON = {
    "name": "bench",
    "key.converter": "StringConverter",
    "value.converter": "JsonConverter",
    "header.converter": "SimpleHeaderConverter",
}


def main() -> None:
    """Measure and print."""
    numbers = [int(argument) for argument in sys.argv[1:] if argument.isdecimal()]
    parts = [argument for argument in sys.argv[1:] if not argument.isdecimal()] or list(_PARTS)
    records = numbers[0] if numbers else 1_000_000
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        broker = stack.enter_context(own_broker(BrokerConfig(folder=folder / "broker", port=0)))
        cluster = stack.enter_context(running_spark_cluster())
        bench = Bench(folder, broker.bootstrap_servers, 0)
        sparks = [Spark(f"local[{cores}]", cores, {"spark.master": f"local[{cores}]"}) for cores in _CORES]
        on_cluster = {key: value for key, value in cluster.props.items() if key != "spark.executor.extraJavaOptions"}
        measuring = Measuring(bench, records, [*sparks, Spark("a cluster of 2", 2, on_cluster)])
        if {"file", "postgresql"} & set(parts):
            _fill(broker.bootstrap_servers, records)
        for part in parts:
            _PARTS[part](measuring, stack)


@dataclass(frozen=True)
class Spark:
    """A Spark that runs a connector: its name, how many tasks it can run at once, and the connector's config keys."""

    name: str
    cores: int
    props: Mapping[str, str]


@dataclass(frozen=True)
class Measuring:
    """The state shared by all measurements."""

    bench: Bench
    records: int
    sparks: Sequence[Spark]


class Loads(Protocol):
    """A connector run by Spark, and the loads it is given."""

    def start(self) -> None:
        """Start the connector."""

    def load(self, place: int) -> int:
        """Make a load, given its position among all loads. Returns how many records it has moved."""

    def load_few(self, place: int) -> None:
        """Move almost nothing."""

    def stop(self) -> None:
        """Stop the connector."""


class SinkLoads:
    """A sink that loads ranges of topics."""

    def __init__(self, measuring: Measuring, sink: Mapping[str, str], spark: Spark) -> None:
        props = {**_COMMON, **sink, **spark.props, "tasks.max": str(spark.cores)}
        context = BulkContext("bench", measuring.bench.bootstrap, props)
        self._engine = SparkSinkEngine(SparkSinkEngineConfig.parse(props), context)
        self._shares = _shares(measuring.records)

    def start(self) -> None:
        """Start the engine."""
        self._engine.start()

    def load(self, place: int) -> int:
        """Load the next records of the large topic."""
        first = sum(self._shares[:place])
        self._load(_TOPICS[0], first, first + self._shares[place])
        return self._shares[place] * _PARTITIONS

    def load_few(self, place: int) -> None:
        """Load a record of each partition of the small topic."""
        self._load(_TOPICS[1], place, place + 1)

    def stop(self) -> None:
        """Stop the engine."""
        self._engine.stop()

    def _load(self, topic: str, first: int, end: int) -> None:
        self._engine.load([OffsetRange(topic, partition, first, end) for partition in range(_PARTITIONS)])


class SourceLoads:
    """A source that reads files as they appear."""

    def __init__(self, measuring: Measuring, spark: Spark) -> None:
        name = re.sub(r"\W+", "-", spark.name)
        self._folder = measuring.bench.folder / f"in-{name}"
        self._parts = measuring.bench.folder / f"parts-{name}"
        self._folder.mkdir()
        self._shares = _shares(measuring.records)
        for place, share in enumerate(self._shares):
            _write_files(self._parts / str(place), share)
        props = {**_COMMON, **_source(self._folder, name), **spark.props, "tasks.max": str(spark.cores)}
        context = BulkSourceContext("bench", measuring.bench.bootstrap, props)
        self._engine = SparkSourceEngine(SparkSourceEngineConfig.parse(props), context)

    def start(self) -> None:
        """Start the engine."""
        self._engine.start()

    def load(self, place: int) -> int:
        """Make four files appear, and load them."""
        for file in (self._parts / str(place)).iterdir():
            file.rename(self._folder / f"{place}-{file.name}")
        self._engine.load()
        return self._shares[place] * _PARTITIONS

    def load_few(self, place: int) -> None:
        """Make a file of one record appear, and load it."""
        (self._folder / f"few-{place}.jsonl").write_text(f"{json.dumps(_event(place))}\n")
        self._engine.load()

    def look(self) -> None:
        """Look for files and find none."""
        self._engine.load()

    def stop(self) -> None:
        """Stop the engine."""
        self._engine.stop()


def _to_file(measuring: Measuring, _: ExitStack) -> None:
    sink = {"connector.class": "FileStreamSink", "file": str(measuring.bench.folder / "events.txt")}
    _measure_sink("topic to a file", measuring, sink)


def _to_postgresql(measuring: Measuring, stack: ExitStack) -> None:
    server = stack.enter_context(leased_server(POSTGRESQL, measuring.bench.folder))
    database = stack.enter_context(new_database(server))
    database.execute(f"CREATE TABLE rows {_TABLE}")
    sink = {"connector.class": "JdbcSink", "table.name.format": "rows", **database.props}
    _measure_sink("topic to PostgreSQL, inserts", measuring, sink)


def _measure_sink(title: str, measuring: Measuring, sink: Mapping[str, str]) -> None:
    bench, name = measuring.bench, f"{sink['connector.class']}, a task of a worker"
    few = bench.sluice(f"{name}, few", {**sink, "topics": _TOPICS[1]}, _WORKER, _FEW)
    every = bench.sluice(name, {**sink, "topics": _TOPICS[0]}, _WORKER, measuring.records)
    loads = [(spark, SinkLoads(measuring, sink, spark)) for spark in measuring.sparks]
    _compare(title, sink["connector.class"], (few, every), loads)


def _from_files(measuring: Measuring, _: ExitStack) -> None:
    bench, name = measuring.bench, "DirectorySource, a task of a worker"
    worker = {**_WORKER, "value.converter.schemas.enable": "false"}
    ways = []
    for label, records in (("few", _FEW), ("every", measuring.records)):
        folder = bench.folder / f"in-{label}"
        _write_files(folder, records // _PARTITIONS)
        ways.append(bench.sluice(f"{name}, {label}", _source(folder, label), worker, records))
    loads = [(spark, SourceLoads(measuring, spark)) for spark in measuring.sparks]
    _compare("files to a topic", "DirectorySource", (ways[0], ways[1]), loads)


def _source(folder: Path, name: str) -> dict[str, str]:
    props = {"connector.class": "DirectorySource", "path": str(folder), "topic": f"events-{name}", "settle.ms": "0"}
    return {
        **props,
        "scan.interval.ms": "10",
        "value.converter": "JsonConverter",
        "value.converter.schemas.enable": "false",
    }


def _shares(records: int) -> list[int]:
    """Return the number of records in each partition, or file, for each load."""
    return [int(records * share) // _PARTITIONS for share in (*_WARM, *_MEASURED)]


def _write_files(folder: Path, records: int) -> None:
    folder.mkdir(parents=True)
    for number in range(_PARTITIONS):
        with (folder / f"{number}.jsonl").open("w") as stream:
            stream.writelines(f"{json.dumps(_event(at))}\n" for at in range(records))


def _event(number: int) -> dict[str, Any]:
    return {"id": number, "name": f"event {number} of many", "score": number / 7}


def _fill(bootstrap: str, records: int) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for future in admin.create_topics([NewTopic(topic, _PARTITIONS, 1) for topic in _TOPICS]).values():
        future.result()
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 50, "queue.buffering.max.messages": 1_000_000})
    for number in range(records):
        value = json.dumps({"schema": _SCHEMA, "payload": _event(number)}).encode()
        for topic in _TOPICS if number < _FEW else _TOPICS[:1]:
            producer.produce(topic, value, partition=number % _PARTITIONS)
        if number % 1000 == 0:
            producer.poll(0)
    producer.flush()


def _compare(title: str, connector: str, runs: tuple[Measured, Measured], loads: Sequence[tuple[Spark, Loads]]) -> None:
    """Print each variant, relative to the task's rate, which is taken from a run with few records and one with all."""
    print(f"\n{title:<40}{'records/s':>12}{'us CPU each':>12}{'of the first':>14}   start", flush=True)
    few, every = runs
    task = Measured(
        f"{connector}, a task of a worker",
        every.records - few.records,
        every.seconds - few.seconds,
        every.cpu - few.cpu,
    )
    _show(task, task, f"{few.seconds:.1f} s, {few.cpu:.1f} s CPU")
    for spark, each in loads:
        way, start = _by_spark(f"{connector}, Spark, {spark.name}", each)
        _show(way, task, start)


def _show(way: Measured, first: Measured, start: str) -> None:
    cpu = way.cpu / way.records * 1e6
    print(f"{way.name:<40}{way.rate:>12,.0f}{cpu:>12.1f}{way.rate / first.rate:>14.2f}   {start}", flush=True)


def _by_spark(name: str, loads: Loads) -> tuple[Measured, str]:
    """Run loads in one driver; the first ones warm it up."""
    tree = ProcessTree(os.getpid(), memory=False)
    meter = Meter(tree)
    try:
        loads.start()
        for place in range(len(_WARM)):
            loads.load(place)
        start = "{:.1f} s, {:.1f} s CPU".format(*meter.lap())
        records = sum(loads.load(len(_WARM) + place) for place in range(len(_MEASURED)))
        seconds, cpu = meter.lap()
        for place in range(_LOADS):
            loads.load_few(place)
        few = meter.lap(_LOADS)
        start += "; a load of a few records {:.2f} s, {:.2f} s CPU".format(*few)
        if isinstance(loads, SourceLoads):
            for _ in range(_LOADS):
                loads.look()
            start += ", of none {:.3f} s, {:.3f} s CPU".format(*meter.lap(_LOADS))
    finally:
        loads.stop()
        tree.close()
    return Measured(name, records, seconds, cpu), start


class Meter:
    """Measures the seconds, and the CPU seconds of a process tree, since the last measurement."""

    def __init__(self, tree: ProcessTree) -> None:
        self._tree = tree
        self._last = time.perf_counter(), tree.cpu()

    def lap(self, times: int = 1) -> tuple[float, float]:
        """Return the seconds and CPU seconds since the last call, divided by a number of items."""
        (seconds, cpu), self._last = self._last, (time.perf_counter(), self._tree.cpu())
        return (self._last[0] - seconds) / times, (self._last[1] - cpu) / times


_PARTS = {"file": _to_file, "postgresql": _to_postgresql, "source": _from_files}


if __name__ == "__main__":
    main()
