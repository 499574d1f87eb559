"""Loads far more data than fits into memory through the Spark sink, and shows whether what it needs grows with it.

``python bench/growth.py [--gigabytes N] [--lap N] [--master M]``: records of 1,000 bytes of JSON, in 4 partitions that
are filled in turn, are produced and loaded to Parquet a lap after the other. What is loaded is deleted from the topic,
so only the table grows; the run ends early, and says so, before the disk is full. Each lap prints its rate, CPU
seconds, and the peak memory of Spark and its Python processes (proportional set size); the last lines compare the last
quarter of the laps with the second, and show what a new start of the sink costs with that table. In the end the table
must hold each record once: its rows and the sum of its ids are counted.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

# When this file runs as a script, bench/converters.py would hide the package of the same name.
_HERE = Path(__file__).resolve().parent
sys.path[:] = [path for path in sys.path if Path(path or ".").resolve() != _HERE]
sys.path += [str(_HERE), str(_HERE.parent / "tests")]

import pyarrow.compute as pc
import pyarrow.dataset as ds
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]
from own_broker import own_broker
from process_tree import ProcessTree

from connect.bulk import OffsetRange
from connectors.spark.sink import SparkSinkTask
from connectors.spark.sink.config import SparkSinkConfig
from equipment.workers.bulk_context import BulkContext
from worker.embedded.broker.server import BrokerConfig

_TOPIC: Final = "events"
_PARTITIONS: Final = 4
_RECORD_BYTES: Final = 1000
_GIGABYTE: Final = 10**9
_MEGABYTE: Final = 10**6
_SENTENCES: Final = 500
_SCATTER: Final = 0x9E3779B97F4A7C15
"""An odd number whose multiples look like chance: what compression cannot shorten."""
_FREE_BYTES: Final = 15 * _GIGABYTE
"""What a run leaves of the disk to others."""
_QUARTERS: Final = 4
_BROKER: Final = {"log.segment.bytes": "134217728", "log.retention.check.interval.ms": "5000"}


@dataclass(frozen=True, slots=True)
class Lap:
    """What a load of one lap took."""

    seconds: float
    cpu: float
    peak: int


def main() -> None:
    """Run it and print it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gigabytes", type=int, default=100)
    parser.add_argument("--lap", type=int, default=1, help="gigabytes of a lap")
    parser.add_argument("--master", default="local[2]", help="spark.master")
    parser.add_argument("--fill", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.fill:
        bootstrap, first, end = arguments.fill
        fill(bootstrap, range(int(first), int(end)))
        return
    folder = Path(tempfile.mkdtemp(prefix="sluice-growth-"))
    try:
        run(arguments, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def run(arguments: argparse.Namespace, folder: Path) -> None:
    """Produce and load lap by lap, then look at what it all came to."""
    records = arguments.lap * _GIGABYTE // _RECORD_BYTES
    with own_broker(BrokerConfig(folder=folder / "broker", port=0, properties=_BROKER)) as broker:
        bootstrap = broker.bootstrap_servers
        admin = AdminClient({"bootstrap.servers": bootstrap})
        admin.create_topics([NewTopic(_TOPIC, _PARTITIONS, 1)])[_TOPIC].result()
        task = start(bootstrap, folder, arguments.master)
        print(f"laps of {arguments.lap} GB, {records:,} records; {os.cpu_count()} processors, {arguments.master}")
        print(f"{'lap':>5}{'GB so far':>11}{'s':>9}{'MB/s':>8}{'CPU s':>9}{'peak MB':>9}{'load':>7}", flush=True)
        laps: list[Lap] = []
        for number in range(arguments.gigabytes // arguments.lap):
            if shutil.disk_usage(folder).free < _FREE_BYTES + 2 * arguments.lap * _GIGABYTE:
                print(f"the disk has less than {_FREE_BYTES / _GIGABYTE:.0f} GB left: the run ends here")
                break
            subprocess.run(_filling(bootstrap, number * records, records), check=True)
            laps.append(load(task, number * records, records))
            _forget_records(admin, (number + 1) * records)
            _show(number, laps[-1], arguments.lap)
        compare(laps)
        task.stop()
        _start_again(bootstrap, folder, arguments.master)
    check(folder / "lake", len(laps) * records)


def start(bootstrap: str, folder: Path, master: str) -> SparkSinkTask:
    """Return a task of the sink that has opened its table."""
    props = {
        "name": "growth",
        "store.url": str(folder / "lake"),
        "key.converter": "converters.byte_array.ByteArrayConverter",
        "value.converter": "converters.json.JsonConverter",
        "value.converter.schemas.enable": "false",
        "spark.master": master,
    }
    task = SparkSinkTask(SparkSinkConfig.parse(props), BulkContext("growth", bootstrap, props))
    task.start()
    return task


def load(task: SparkSinkTask, first: int, records: int) -> Lap:
    """Load the records of a lap."""
    each = records // _PARTITIONS
    ranges = [
        OffsetRange(_TOPIC, number, first // _PARTITIONS, first // _PARTITIONS + each) for number in range(_PARTITIONS)
    ]
    tree = ProcessTree(os.getpid())
    began, cpu = time.monotonic(), tree.cpu()
    task.load(ranges)
    lap = Lap(time.monotonic() - began, tree.cpu() - cpu, tree.peak())
    tree.close()
    return lap


def fill(bootstrap: str, numbers: range) -> None:
    """Produce the records of these numbers."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 50, "compression.type": "lz4"})
    filler = _sentences()
    for number in numbers:
        trace = f"{number * _SCATTER % 2**64:016x}{number * _SCATTER**3 % 2**64:016x}"
        start = f'{{"id":{number},"host":"host-{number % 200}","ms":{number % 997},"trace":"{trace}","text":"'
        value = f'{start}{filler[number * 7 % _SENTENCES][: _RECORD_BYTES - len(start) - 2]}"}}'
        while True:
            try:
                producer.produce(_TOPIC, value, partition=number % _PARTITIONS)
                break
            except BufferError:
                producer.poll(0.1)
        if number % 1000 == 0:
            producer.poll(0)
    if producer.flush(300):
        raise SystemExit("the broker did not take all records")


def _sentences() -> Sequence[str]:
    words = json.dumps(sorted(vars(json)) + __doc__.split()).replace('"', "").replace("\\", "").split()
    return [
        " ".join(words[(number * 31 + place * 17) % len(words)] for place in range(_RECORD_BYTES // 2))
        for number in range(_SENTENCES)
    ]


def _filling(bootstrap: str, first: int, records: int) -> list[str]:
    return [sys.executable, __file__, "--fill", bootstrap, str(first), str(first + records)]


def _forget_records(admin: AdminClient, end: int) -> None:
    places = [TopicPartition(_TOPIC, number, end // _PARTITIONS) for number in range(_PARTITIONS)]
    for deleted in admin.delete_records(places).values():
        deleted.result()


def _show(number: int, lap: Lap, gigabytes: int) -> None:
    rate = gigabytes * _GIGABYTE / lap.seconds / _MEGABYTE
    figures = f"{lap.seconds:>9.1f}{rate:>8.0f}{lap.cpu:>9.1f}{lap.peak / _MEGABYTE:>9.0f}{os.getloadavg()[0]:>7.1f}"
    print(f"{number + 1:>5}{(number + 1) * gigabytes:>11}{figures}", flush=True)


def compare(laps: Sequence[Lap]) -> None:
    """Print the last quarter of the laps beside the second: the first one is cold."""
    quarter = len(laps) // _QUARTERS
    if not quarter:
        return
    early, late = laps[quarter : 2 * quarter], laps[-quarter:]
    for title, field in (("seconds", "seconds"), ("CPU seconds", "cpu"), ("peak memory", "peak")):
        before, after = (statistics.median(getattr(lap, field) for lap in some) for some in (early, late))
        print(f"{title}, last quarter of the laps / second quarter: {after / before:.2f}")


def _start_again(bootstrap: str, folder: Path, master: str) -> None:
    began = time.monotonic()
    start(bootstrap, folder, master).stop()
    print(f"a new start of the sink with this table: {time.monotonic() - began:.1f} s")


def check(lake: Path, records: int) -> None:
    """Refuse a table that does not hold each record once."""
    table = ds.dataset(lake / "topics", format="parquet", partitioning="hive")
    size = sum(file.stat().st_size for file in lake.rglob("*") if file.is_file())
    ids = sum(pc.sum(batch["id"]).as_py() or 0 for batch in table.to_batches(columns=["id"]))
    assert (table.count_rows(), ids) == (records, records * (records - 1) // 2)
    print(f"the table: {records:,} records, each once, {size / _GIGABYTE:.1f} GB in {len(table.files):,} files")


if __name__ == "__main__":
    main()
