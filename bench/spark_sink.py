"""Records per second of the Spark sink, from a topic on the embedded broker to Parquet, for each kind of record.

All kinds are measured in one run over the same number of records of about 150 bytes, warm, in turns, and told as
the best of the rounds and as a share of raw bytes, the ceiling.

    python bench/spark_sink.py --records 1000000 --rounds 3
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from connect.bulk import OffsetRange
from connectors.spark.config import SparkSinkConfig
from connectors.spark.sink import SparkSinkTask
from worker.embedded.broker.server import BrokerConfig, EmbeddedBroker

PARTITIONS = 4
SCHEMA = {
    "type": "struct",
    "optional": False,
    "fields": [
        {"field": "id", "type": "int64", "optional": False},
        {"field": "carrier", "type": "string", "optional": False},
        {"field": "origin", "type": "string", "optional": False},
        {"field": "dest", "type": "string", "optional": False},
        {"field": "tail", "type": "string", "optional": True},
        {"field": "distance", "type": "int64", "optional": False},
        {"field": "delay", "type": "double", "optional": True},
        {"field": "late", "type": "boolean", "optional": False},
    ],
}
ENVELOPE = b'{"schema":' + json.dumps(SCHEMA, separators=(",", ":")).encode() + b',"payload":%b}'
BYTES = {"value.converter": "converters.byte_array.ByteArrayConverter"}
STRING = {"value.converter": "converters.string.StringConverter"}
JSON = {"value.converter": "converters.json.JsonConverter", "value.converter.schemas.enable": "false"}
JSON_SCHEMA = {"value.converter": "converters.json.JsonConverter", "value.converter.schemas.enable": "true"}
KINDS = {"raw bytes": BYTES, "string": STRING, "json": JSON, "json with schema": JSON_SCHEMA}


class Context:
    """What the worker would give the task."""

    def __init__(self, bootstrap: str, props: Mapping[str, str]) -> None:
        self.connector_name = "bench"
        self.consumer_properties = {"bootstrap.servers": bootstrap}
        self.connector_properties = props

    def wait(self, seconds: float) -> bool:
        time.sleep(seconds)
        return True

    def stopping(self) -> bool:
        return False


def record(number: int) -> bytes:
    text = '{"id":%d,"carrier":"%s","origin":"%s","dest":"SFO","tail":"N%05d","distance":%d,"delay":%.1f,"late":%s}'
    late = "true" if number % 3 else "false"
    carrier, origin = ("UA", "AA", "B6")[number % 3], ("EWR", "JFK", "LGA")[number % 3]
    return (text % (number, carrier, origin, number % 5000, number % 3000, number % 97 / 2, late)).encode()


def fill(bootstrap: str, topic: str, records: int, *, enveloped: bool) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result()
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 50, "compression.type": "lz4"})
    for number in range(records):
        value = record(number)
        while True:
            try:
                producer.produce(topic, ENVELOPE % value if enveloped else value, partition=number % PARTITIONS)
                break
            except BufferError:
                producer.poll(0.1)
        if number % 1000 == 0:
            producer.poll(0)
    producer.flush()


def ranges(topic: str, records: int) -> list[OffsetRange]:
    return [OffsetRange(topic, partition, 0, records // PARTITIONS) for partition in range(PARTITIONS)]


def cpu_seconds() -> float:
    """The CPU time of all processes below this one, which are Spark's (and the broker is not)."""
    children: dict[int, list[int]] = {}
    spent: dict[int, float] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        pid = int(stat.parent.name)
        children.setdefault(int(fields[1]), []).append(pid)
        spent[pid] = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    waiting, total = [os.getpid()], 0.0
    while waiting:
        below = children.get(waiting.pop(), [])
        total += sum(spent[pid] for pid in below)
        waiting += below
    return total


def measure(
    bootstrap: str, kinds: Mapping[str, str], records: int, rounds: int, spark: Mapping[str, str]
) -> Iterator[tuple[str, float, float]]:
    """Seconds and CPU seconds of each load; a task each, but one after the other in one process."""
    for turn in range(rounds + 1):
        for kind, topic in kinds.items():
            store = Path(tempfile.mkdtemp(prefix="sluice-bench-"))
            props = {"store.url": str(store), "parquet.codec": "zstd", **spark, **KINDS[kind]}
            props |= {"key.converter": "converters.byte_array.ByteArrayConverter"}
            task = SparkSinkTask(SparkSinkConfig.parse(props), Context(bootstrap, props))
            task.start()
            task.load([OffsetRange(topic, partition, 0, 10) for partition in range(PARTITIONS)])
            started, spent = time.perf_counter(), cpu_seconds()
            task.load(ranges(topic, records))
            seconds, spent = time.perf_counter() - started, cpu_seconds() - spent
            shutil.rmtree(store)
            if turn:  # the first round warms the JVM up
                yield kind, seconds, spent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--only", choices=list(KINDS), action="append")
    arguments = parser.parse_args()
    chosen = arguments.only or list(KINDS)
    spark = {"spark.master": arguments.master, "spark.driver.memory": "1g"}
    best: dict[str, float] = {}
    least: dict[str, float] = {}
    folder = Path(tempfile.mkdtemp(prefix="sluice-bench-broker-"))
    with EmbeddedBroker(BrokerConfig(folder=folder, port=0)).lease() as broker:
        fill(broker.bootstrap_servers, "plain", arguments.records, enveloped=False)
        fill(broker.bootstrap_servers, "enveloped", arguments.records, enveloped=True)
        topics = {kind: "enveloped" if kind == "json with schema" else "plain" for kind in chosen}
        for kind, seconds, spent in measure(
            broker.bootstrap_servers, topics, arguments.records, arguments.rounds, spark
        ):
            best[kind] = min(best.get(kind, seconds), seconds)
            least[kind] = min(least.get(kind, spent), spent)
            print(f"{kind:17} {seconds:6.2f} s {spent:6.2f} CPU s", flush=True)
    shutil.rmtree(folder, ignore_errors=True)
    ceiling = best.get("raw bytes")
    print(f"{arguments.records} records, {arguments.master}, {os.cpu_count()} cores, best of {arguments.rounds}:")
    for kind, seconds in best.items():
        share = f"{ceiling / seconds:6.2f} of raw" if ceiling else ""
        cpu = least[kind] / arguments.records * 1e6
        print(f"{kind:17} {arguments.records / seconds:10,.0f} records/s {cpu:6.2f} CPU s per million {share}")


if __name__ == "__main__":
    main()
