"""The proof by kills: of what a load leaves out, each record is in the dead letter queue once."""

from __future__ import annotations

import json
import signal
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pytest
import requests
from confluent_kafka.admin import NewTopic

from equipment.brokers.dead_letters import dead_letters
from equipment.brokers.topics import admin_client, ordered_producer
from equipment.proofs import EVERY_KILL
from equipment.waiting import wait_until
from equipment.workers.small_spark import sink_props
from equipment.workers.spark_drivers import load_records
from equipment.workers.standalone import StandaloneWorker

pytestmark = [pytest.mark.cluster, pytest.mark.integration, pytest.mark.spark, pytest.mark.timeout(900)]

RECORDS = 400
FLUSH = 25
POINTS = ("before-dead-letters:2", "after-dead-letters:2", "before-offset-commit", "after-staging-write")
"""`make test` leaves out the last one, after which a load is repeated as after the second."""


def is_bad(number: int) -> bool:
    return number % 5 == 0


def fill(bootstrap: str, topic: str) -> None:
    admin = admin_client(bootstrap)
    admin.create_topics([NewTopic(topic, 2, 1)])[topic].result()
    producer = ordered_producer(bootstrap)
    for number in range(RECORDS):
        value = b"{%d" % number if is_bad(number) else json.dumps({"id": number}).encode()
        producer.produce(topic, value, partition=number % 2)
    assert producer.flush(30) == 0


def numbers(bootstrap: str, queue: str) -> list[int]:
    """The numbers in the queue's records."""
    return [int((message.value() or b"")[1:]) for message in dead_letters(bootstrap, queue)]


def test_kills_around_dead_letters(bootstrap: str, topic: str, tmp_path: Path, spark_java: Mapping[str, str]) -> None:
    fill(bootstrap, topic)
    queue = f"{topic}-dlq"
    props = sink_props({"store.url": str(tmp_path)}) | {
        "errors.tolerance": "all",
        "errors.deadletterqueue.topic.name": queue,
        "errors.deadletterqueue.context.headers.enable": "true",
    }
    order: dict[str, Any] = {"name": topic, "topic": topic, "bootstrap": bootstrap, "flush": FLUSH, "props": props}
    for point in POINTS if EVERY_KILL else POINTS[:-1]:
        assert load_records(order, spark_java, point) == -signal.SIGKILL, point
        counts = Counter(numbers(bootstrap, queue))
        print(f"killed at {point:24} -> {counts.total()} dead letters")
        assert [number for number, count in counts.items() if count > 1] == []
    assert load_records(order | {"flush": RECORDS}, spark_java) == 0
    assert sorted(numbers(bootstrap, queue)) == list(filter(is_bad, range(RECORDS)))
    rows = ds.dataset(tmp_path / "topics" / topic, schema=pa.schema([("id", pa.int64())])).to_table()["id"].to_pylist()
    assert sorted(rows) == [number for number in range(RECORDS) if not is_bad(number)]


@pytest.mark.thorough
def test_the_dead_letters_of_a_worker_are_shown_and_replayed(bootstrap: str, topic: str, tmp_path: Path) -> None:
    fill(bootstrap, topic)
    queue = f"{topic}-dlq"
    worker = StandaloneWorker(tmp_path, bootstrap, connector_spark_config_override_policy="All")
    props = {
        "connector.class": "SparkSink",
        "topics": topic,
        "rotate.interval.ms": "0",
        "errors.tolerance": "all",
        "errors.log.enable": "true",
        "errors.deadletterqueue.topic.name": queue,
        "errors.deadletterqueue.topic.replication.factor": "1",
        "errors.deadletterqueue.context.headers.enable": "true",
        **sink_props({"store.url": str(tmp_path / "store")}),
    }
    worker.connector("kills", **props)
    bad = sorted(filter(is_bad, range(RECORDS)))
    try:
        worker.start()
        wait_until("dead letters", lambda: len(shown(worker)) == len(bad), seconds=300)
        first = shown(worker)[0]["error"]
        assert (first["topic"], first["stage"], first["connector"]) == (topic, "VALUE_CONVERTER", "kills")
        assert "Executing stage 'VALUE_CONVERTER' with class" in worker.log()
        order = {"to": "topic", "selection": "all"}
        answer = requests.post(f"{worker.url()}connectors/kills/dlq/replay", json=order, timeout=60)
        assert answer.ok, answer.text
        wait_until("the same again", lambda: len(numbers(bootstrap, queue)) == 2 * len(bad), seconds=300)
    finally:
        worker.close()
    assert sorted(numbers(bootstrap, queue)) == sorted(bad * 2)


def shown(worker: StandaloneWorker) -> list[dict[str, Any]]:
    """What the REST API shows of the queue; nothing while the worker or the queue is not there yet."""
    try:
        answer = requests.get(f"{worker.url()}connectors/kills/dlq?limit=1000", timeout=60)
    except (requests.ConnectionError, AssertionError):
        return []
    records: list[dict[str, Any]] = answer.json().get("records", []) if answer.ok else []
    return records
