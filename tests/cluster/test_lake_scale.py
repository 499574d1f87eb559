"""The Spark sink at the size it is for: very many topics in one connector, and loads far larger than its memory."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from connectors.spark.sink.ledger.manifest import Manifest
from equipment.brokers.topics import admin_client, create_topic
from equipment.waiting import wait_until
from equipment.workers.memory import MemoryWatch, watched_memory
from equipment.workers.small_spark import COMPILING_SPARK, sink_props
from equipment.workers.standalone import StandaloneWorker
from worker.embedded.broker.server import BrokerConfig, EmbeddedBroker

TOPICS = int(os.environ.get("SLUICE_LAKE_TOPICS", "0"))
"""How many topics are loaded by one connector; each has ten partitions."""
MEGABYTES = int(os.environ.get("SLUICE_LAKE_MEGABYTES", "0"))
"""How large a load is."""
EACH = 10
RECORDS = 20
"""In each partition of each topic."""
NAME = "scale"
JAVA, PYTHON = "java", "python worker"
KINDS = {JAVA: "org.apache.spark.deploy.SparkSubmit", PYTHON: "spark.decoding.daemon"}
MIB = 1 << 20
PARAGRAPH = "".join(chr(33 + (number * 7919) % 89) for number in range(4000)).replace('"', "'").replace("\\", "/")
"""Text for values of four thousand bytes, none of which is like the one before."""

pytestmark = [pytest.mark.cluster, pytest.mark.integration, pytest.mark.spark, pytest.mark.timeout(7200)]


@pytest.fixture(scope="module")
def bootstrap(broker_jars: tuple[Path, ...], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The bootstrap servers of a broker that has memory for ten thousand partitions."""
    config = BrokerConfig(folder=tmp_path_factory.mktemp("broker"), port=0, heap="1g")
    with EmbeddedBroker(config).lease() as info:
        yield info.bootstrap_servers


@contextmanager
def running(folder: Path, bootstrap: str, props: Mapping[str, str]) -> Iterator[MemoryWatch]:
    """A worker with the one connector, until that has loaded all."""
    worker = StandaloneWorker(folder / "worker", bootstrap, connector_spark_config_override_policy="All")
    keys = {**sink_props({"store.url": str(folder / "lake")}), **COMPILING_SPARK, **props}
    worker.connector(NAME, **{"connector.class": "SparkSink", "run.until": "drained", **keys})
    worker.start()
    try:
        with watched_memory(worker.pid, KINDS) as memory:
            assert worker.wait(seconds=7000) == 0, worker.log()
            yield memory
    finally:
        worker.close()


def loads(folder: Path) -> int:
    """How many loads were committed that have files."""
    found = (folder / "lake" / "_sluice" / NAME / "manifests").glob("*.json")
    return sum(bool(Manifest.from_bytes(path.read_bytes(), path.name).moves) for path in found)


def led(admin: AdminClient) -> set[str]:
    """The topics all of whose partitions have leaders."""
    topics = admin.list_topics(timeout=60).topics
    return {
        name
        for name, topic in topics.items()
        if len(topic.partitions) == EACH and all(each.leader >= 0 for each in topic.partitions.values())
    }


def told(what: str, began: float, memory: MemoryWatch) -> None:
    """Print what it took."""
    largest = ", ".join(f"{kind} {size / 1e6:,.0f} MB" for kind, size in sorted(memory.largest.items()))
    print(f"{what}: {time.monotonic() - began:.0f} s; the largest process of each kind: {largest}")


@pytest.mark.skipif(not TOPICS, reason="make lake-scale loads a thousand topics")
def test_very_many_topics_are_one_load_of_one_session(bootstrap: str, topic: str, tmp_path: Path) -> None:
    names = [f"{topic}-{number:04}" for number in range(TOPICS)]
    admin = admin_client(bootstrap)
    for start in range(0, TOPICS, 100):
        made = admin.create_topics([NewTopic(name, EACH, 1) for name in names[start : start + 100]])
        for future in made.values():
            future.result(120)
    # Their broker makes four files for each partition, one after the other, and a producer gives up records for a topic
    # that is not there for long.
    wait_until("the topics have leaders", lambda: led(admin) >= set(names), seconds=1200)
    failed: list[object] = []
    producer = Producer({"bootstrap.servers": bootstrap, "queue.buffering.max.messages": 1_000_000})
    for name in names:
        for number in range(EACH * RECORDS):
            value = json.dumps({"id": number, "origin": name}).encode()
            producer.produce(
                name, value, partition=number % EACH, on_delivery=lambda error, _: failed.extend([error] * bool(error))
            )
        producer.poll(0)
    assert producer.flush(300) == 0
    assert failed == []
    began = time.monotonic()
    with running(tmp_path, bootstrap, {"topics.regex": f"{topic}-[0-9]+"}) as memory:
        told(f"{TOPICS} topics of {EACH} partitions", began, memory)
    assert (tmp_path / "worker" / "worker.log").read_text().count("has started (connectors.spark.session)") == 1
    assert loads(tmp_path) == 1
    tables = tmp_path / "lake" / "topics"
    for name in names:
        found = pq.read_table(tables / name, columns=["id", "origin"], partitioning=None)
        assert sorted(found["id"].to_pylist()) == list(range(EACH * RECORDS))
        assert set(found["origin"].to_pylist()) == {name}


@pytest.mark.skipif(not MEGABYTES, reason="make lake-scale makes a load of several gigabytes")
@pytest.mark.parametrize("writer", ["executors", "Java"])
def test_a_load_needs_no_more_memory_the_larger_it_is(bootstrap: str, topic: str, tmp_path: Path, writer: str) -> None:
    records = MEGABYTES * 1_000_000 // len(PARAGRAPH)
    create_topic(bootstrap, topic, partitions=2)
    producer = Producer({"bootstrap.servers": bootstrap, "compression.type": "lz4", "linger.ms": 50})
    for number in range(records):
        place = number * 31 % len(PARAGRAPH)
        text = json.dumps({"id": number, "text": f"{number}{PARAGRAPH[place:]}{PARAGRAPH[:place]}"})
        while True:
            try:
                producer.produce(topic, text.encode(), partition=number % 2)
                break
            except BufferError:
                producer.poll(0.1)
    assert producer.flush(300) == 0
    large = {"flush.size": "1000000000", "flush.bytes": str(1 << 50), "load.max.bytes": str(1 << 50)}
    # A key that says how Spark writes Parquet leaves it to Spark's Java.
    own = {"spark.sql.parquet.compression.codec": "snappy"} if writer == "Java" else {}
    began = time.monotonic()
    with running(tmp_path, bootstrap, {"topics": topic, **large, **own}) as memory:
        told(f"a load of {MEGABYTES} MB, files written by {writer}", began, memory)
    assert loads(tmp_path) == 1
    files = list((tmp_path / "lake" / "topics" / topic).rglob("*.parquet"))
    assert sum(pq.ParquetFile(path).metadata.num_rows for path in files) == records
    # Java has a heap of 512 MB, and its own code besides.
    assert memory.largest[JAVA] < 1200 * MIB
    assert memory.largest[PYTHON] < 700 * MIB
    assert memory.largest["other"] < 400 * MIB
