"""Measures one load of many small topics by the Spark sink: the cost of each topic in addition to its records.

``python bench/spark_topics.py [--topics N] [--partitions N] [--records N] [--loads N] [--master M]``: N topics with
some JSON records in each partition are loaded to Parquet in one load. The first load also infers the schema of each
topic; the following loads know it, as in daily operation.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

# When this file runs as a script, bench/converters.py would hide the package of the same name.
_HERE = Path(__file__).resolve().parent
sys.path[:] = [path for path in sys.path if Path(path or ".").resolve() != _HERE]
sys.path += [str(_HERE), str(_HERE.parent / "tests")]

import pyarrow.dataset as ds
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]
from own_broker import own_broker
from process_tree import ProcessTree

from connect.bulk import OffsetRange
from connectors.spark.sink import SparkSinkTask
from connectors.spark.sink.config import SparkSinkConfig
from equipment.workers.bulk_context import BulkContext
from worker.embedded.broker.server import BrokerConfig


def fill(bootstrap: str, topics: list[str], partitions: int, records: int) -> None:
    """Create the topics, and produce the records to each partition."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for future in admin.create_topics([NewTopic(topic, partitions, 1) for topic in topics]).values():
        future.result()
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 50})
    for topic in topics:
        for number in range(records * partitions):
            value = json.dumps({"id": number, "origin": "EWR", "delay": number / 2}).encode()
            producer.produce(topic, value, partition=number % partitions)
            producer.poll(0)
    if producer.flush(120):
        raise SystemExit("the broker did not take all records")


def run(arguments: argparse.Namespace, folder: Path) -> None:
    """Load the topics several times, each time the records that a producer has added meanwhile."""
    topics = [f"topic-{number:04}" for number in range(arguments.topics)]
    with own_broker(BrokerConfig(folder=folder / "broker", port=0)) as broker:
        bootstrap = broker.bootstrap_servers
        fill(bootstrap, topics, arguments.partitions, arguments.records * arguments.loads)
        props = {
            "name": "bench",
            "store.url": str(folder / "lake"),
            "key.converter": "converters.byte_array.ByteArrayConverter",
            "value.converter": "converters.json.JsonConverter",
            "value.converter.schemas.enable": "false",
            "spark.master": arguments.master,
        }
        task = SparkSinkTask(SparkSinkConfig.parse(props), BulkContext("bench", bootstrap, props))
        task.start()
        total = arguments.topics * arguments.partitions * arguments.records
        print(f"{arguments.topics} topics of {arguments.partitions} partitions, {total:,} records a load; ", end="")
        print(f"{os.cpu_count()} processors, load average {os.getloadavg()[0]:.1f}")
        print(f"{'load':>6}{'s':>10}{'s a topic':>12}{'CPU s':>10}", flush=True)
        tree = ProcessTree(os.getpid())
        for load in range(arguments.loads):
            first, end = load * arguments.records, (load + 1) * arguments.records
            ranges = [OffsetRange(t, p, first, end) for t in topics for p in range(arguments.partitions)]
            began, cpu = time.monotonic(), tree.cpu()
            task.load(ranges)
            seconds, cpu = time.monotonic() - began, tree.cpu() - cpu
            print(f"{load + 1:>6}{seconds:>10.1f}{seconds / arguments.topics:>12.2f}{cpu:>10.1f}", flush=True)
        task.stop()
        tree.close()
        found = ds.dataset(folder / "lake" / "topics", format="parquet").count_rows()
        assert found == total * arguments.loads, found


def main() -> None:
    """Run it and print it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--topics", type=int, default=200)
    parser.add_argument("--partitions", type=int, default=10)
    parser.add_argument("--records", type=int, default=100, help="in each partition, each load")
    parser.add_argument("--loads", type=int, default=2)
    parser.add_argument("--master", default="local[2]", help="spark.master")
    folder = Path(tempfile.mkdtemp(prefix="sluice-bench-"))
    try:
        run(parser.parse_args(), folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
