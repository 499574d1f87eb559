"""The Apache Iceberg sink for Kafka Connect runs in a JVM of ours, and writes each record once through kills."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Final

import pytest
import requests
from confluent_kafka import Producer

from connect.errors import ConnectError
from connect.internals.jvm.home import sluice_home
from connect.internals.jvm.jars import read_lock, resolve_jars
from equipment.brokers.topics import create_topic
from equipment.waiting import wait_until
from equipment.workers.distributed import DistributedWorker
from equipment.workers.java_plugins import kill_jvm

pytestmark = [pytest.mark.cluster, pytest.mark.integration, pytest.mark.thorough, pytest.mark.timeout(590)]

JARS: Final = Path(__file__).parents[2] / "bench" / "iceberg_connect.jars"
ROWS_EACH: Final = 500
PATIENCE: Final = 200.0


def rows(table: Path) -> int:
    """The rows in the newest snapshot of a table, by its own metadata."""
    versions = sorted(table.glob("metadata/v*.metadata.json"), key=lambda file: int(file.name[1:].split(".")[0]))
    if not versions:
        return 0
    try:
        metadata = json.loads(versions[-1].read_text())
    except ValueError:
        return 0
    current = metadata.get("current-snapshot-id")
    summaries = [each["summary"] for each in metadata.get("snapshots", []) if each["snapshot-id"] == current]
    return int(summaries[0].get("total-records", 0)) if summaries else 0


def test_the_iceberg_sink_writes_each_record_once_through_a_kill_of_its_jvm(
    bootstrap: str, tmp_path: Path, topic: str
) -> None:
    try:
        jars = resolve_jars(read_lock(JARS), home=sluice_home())
    except ConnectError as error:
        pytest.skip(f"no Iceberg sink here: {error}")
    plugin = tmp_path / "plugins" / "iceberg"
    plugin.mkdir(parents=True)
    for jar in jars:
        shutil.copy(jar, plugin)
    control, table = f"{topic}-control", tmp_path / "warehouse" / "lake" / "orders"
    for name in (topic, control):
        create_topic(bootstrap, name)
    producer = Producer({"bootstrap.servers": bootstrap})

    def produce(first: int) -> None:
        for number in range(first, first + ROWS_EACH):
            producer.produce(topic, json.dumps({"id": number, "note": f"row {number}"}).encode())
        producer.flush()

    produce(0)
    worker = DistributedWorker(
        tmp_path / "ours",
        bootstrap,
        plugin_path=str(plugin.parent),
        java_plugins_jvm_options="-Xmx512m -XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    ).start()
    config = {
        "connector.class": "org.apache.iceberg.connect.IcebergSinkConnector",
        "engine": "java",
        "topics": topic,
        "consumer.override.auto.offset.reset": "earliest",
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter.schemas.enable": "false",
        "iceberg.tables": "lake.orders",
        "iceberg.tables.auto-create-enabled": "true",
        "iceberg.catalog.type": "hadoop",
        "iceberg.catalog.warehouse": (tmp_path / "warehouse").as_uri(),
        "iceberg.control.topic": control,
        "iceberg.control.group-id": f"{topic}-control-group",
        "iceberg.control.commit.interval-ms": "2000",
        "iceberg.control.commit.timeout-ms": "10000",
    }
    try:
        answer = requests.put(f"{worker.url()}connectors/{topic}/config", json=config, timeout=PATIENCE)
        assert answer.status_code == 201, answer.text
        wait_until("the first rows are there", lambda: rows(table) >= ROWS_EACH, PATIENCE)
        produce(ROWS_EACH)
        kill_jvm(worker, topic)
        produce(2 * ROWS_EACH)
        wait_until("all rows are there", lambda: rows(table) >= 3 * ROWS_EACH, PATIENCE)
        assert rows(table) == 3 * ROWS_EACH
        worker.wait_for_states(topic, "RUNNING", "RUNNING")
    finally:
        worker.close()
