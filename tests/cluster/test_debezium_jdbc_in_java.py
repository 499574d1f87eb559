"""Debezium's sink for databases runs in a JVM of ours: a table of PostgreSQL equals its topic through kills."""

from __future__ import annotations

import json
import random
import threading
from pathlib import Path
from typing import Any, Final

import pytest
from confluent_kafka import Producer

from equipment.brokers.topics import create_topic
from equipment.servers.lease import Database
from equipment.waiting import wait_until
from equipment.workers.distributed import DistributedWorker
from equipment.workers.java_plugins import downloaded_plugin, kill_jvm

pytestmark = [pytest.mark.cluster, pytest.mark.integration, pytest.mark.thorough, pytest.mark.timeout(590)]

PATIENCE: Final = 200.0
ID: Final = {"type": "int32", "field": "id", "optional": False}
NOTE: Final = {"type": "string", "field": "note", "optional": True}
KEY: Final = {"type": "struct", "fields": [ID], "optional": False, "name": "orders.Key"}
VALUE: Final = {"type": "struct", "fields": [ID, NOTE], "optional": False, "name": "orders.Value"}
KEYS: Final = 400


class Orders(threading.Thread):
    """Writes, changes and deletes rows on a topic until it is told to stop."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        super().__init__(daemon=True)
        self._producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
        self._topic = topic
        self._ended = threading.Event()
        self.rows: dict[int, str] = {}
        self.written = 0

    def run(self) -> None:
        chosen = random.Random(1)
        while not self._ended.wait(0.002):
            key = chosen.randrange(KEYS)
            self.written += 1
            if chosen.random() < 0.2:
                self.rows.pop(key, None)
                self._send(key, None)
            else:
                self.rows[key] = f"note {self.written}"
                self._send(key, {"id": key, "note": self.rows[key]})

    def _send(self, key: int, row: dict[str, Any] | None) -> None:
        value = None if row is None else json.dumps({"schema": VALUE, "payload": row})
        self._producer.produce(self._topic, value, json.dumps({"schema": KEY, "payload": {"id": key}}))
        self._producer.poll(0)

    def stop(self) -> None:
        """Write no more."""
        self._ended.set()
        self.join(30)
        assert self._producer.flush(30) == 0


def test_debeziums_sink_makes_a_table_equal_its_topic_through_kills(
    bootstrap: str, postgresql: Database, tmp_path: Path, topic: str
) -> None:
    create_topic(bootstrap, topic)
    plugins = downloaded_plugin(tmp_path / "plugins", "debezium_jdbc")
    worker = DistributedWorker(
        tmp_path / "ours",
        bootstrap,
        plugin_path=str(plugins),
        java_plugins_jvm_options="-Xmx384m -XX:+UseSerialGC -XX:TieredStopAtLevel=1",
        offset_flush_interval_ms="500",
    ).start()
    orders = Orders(bootstrap, topic)
    config = {
        "connector.class": "io.debezium.connector.jdbc.JdbcSinkConnector",
        "topics": topic,
        "connection.url": postgresql.jdbc_url,
        "connection.username": postgresql.user,
        "connection.password": postgresql.password,
        "collection.name.format": "orders",
        "insert.mode": "upsert",
        "delete.enabled": "true",
        "primary.key.mode": "record_key",
        "schema.evolution": "basic",
        "key.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "consumer.override.auto.offset.reset": "earliest",
        "consumer.override.max.poll.records": "50",
    }

    def newest() -> int:
        """The number of the newest note in the table, if there is one."""
        if not postgresql.rows("SELECT 1 FROM information_schema.tables WHERE table_name = 'orders'"):
            return 0
        notes = postgresql.rows("SELECT note FROM orders")
        return max((int(note.split()[1]) for (note,) in notes), default=0)

    def wait_for_more() -> None:
        now = orders.written
        wait_until("newer rows are in the table", lambda: newest() > now, PATIENCE)

    try:
        orders.start()
        # Nothing stands for this class, so that it needs no engine.
        worker.ask("PUT", f"connectors/{topic}/config", config)
        wait_for_more()
        kill_jvm(worker, topic)
        wait_for_more()
        worker.kill()
        worker.start()
        wait_for_more()
        orders.stop()
        wanted = sorted(orders.rows.items())
        wait_until(
            "the table equals the topic", lambda: sorted(postgresql.rows("SELECT id, note FROM orders")) == wanted, 60
        )
        worker.wait_for_states(topic, "RUNNING", "RUNNING")
        assert postgresql.password not in worker.log()
    finally:
        orders.stop()
        worker.close()
