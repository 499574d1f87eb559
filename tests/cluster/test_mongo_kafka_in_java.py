"""MongoDB's own connectors run in a JVM of ours: changes are copied through kills, and offsets are altered."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from bson import json_util
from bson.timestamp import Timestamp

from equipment.brokers.topics import create_topic, read_topic
from equipment.servers.mongodb import MongoServer, database_name
from equipment.waiting import wait_until
from equipment.workers.distributed import DistributedWorker
from equipment.workers.java_plugins import downloaded_plugin, kill_jvm

pytestmark = [pytest.mark.cluster, pytest.mark.integration, pytest.mark.thorough, pytest.mark.timeout(590)]

PATIENCE: Final = 200.0
COMMON: Final = {
    "engine": "java",
    "key.converter": "org.apache.kafka.connect.storage.StringConverter",
    "value.converter": "org.apache.kafka.connect.storage.StringConverter",
}
HANDLER: Final = "com.mongodb.kafka.connect.sink.cdc.mongodb.ChangeStreamHandler"


class Shop:
    """A collection that changes from now on, and its copy."""

    def __init__(self, server: MongoServer) -> None:
        self.uri = server.uri
        self.name = database_name()
        self._client = server.client()
        self._orders = self._client[self.name]["orders"]
        self._orders.insert_one({"_id": -1})
        self._beginning: Timestamp = self._client.admin.command("hello")["operationTime"]
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._change, daemon=True)
        self._thread.start()

    @property
    def begins_at(self) -> str:
        """The time of the first change, as the connector is told it."""
        return json.dumps({"$timestamp": {"t": self._beginning.time, "i": self._beginning.inc}})

    def _change(self) -> None:
        number = 0
        while not self._ended.wait(0.01):
            number += 1
            self._orders.replace_one({"_id": number % 200}, {"n": number}, upsert=True)
            self._orders.update_one({"_id": number // 2 % 200}, {"$set": {"m": number}})
            if number % 3 == 0:
                self._orders.delete_one({"_id": number % 200})

    def stop(self) -> None:
        """Change no more."""
        self._ended.set()
        self._thread.join(30)

    def close(self) -> None:
        """End all that is open."""
        self.stop()
        self._client.close()

    def tokens(self) -> list[str]:
        """The names of all changes so far, in order, as the server has them."""
        last = self._client.admin.command("hello")["operationTime"]
        self._orders.insert_one({"_id": f"end {last}"})
        found: list[str] = []
        with self._orders.watch(start_at_operation_time=self._beginning) as stream:
            for event in stream:
                found.append(event["_id"]["_data"])
                if event["documentKey"]["_id"] == f"end {last}":
                    return found
        raise AssertionError

    def documents(self, collection: str) -> list[str]:
        """The documents of the shop, or of its copy, but for the one that was there before all changes."""
        wanted = self._client[self.name][collection].find({"_id": {"$ne": -1}})
        return sorted(json_util.dumps(document) for document in wanted)


@pytest.fixture
def shop(mongodb: MongoServer) -> Iterator[Shop]:
    """A collection that changes."""
    shop = Shop(mongodb)
    yield shop
    shop.close()


@pytest.fixture
def worker(bootstrap: str, tmp_path: Path) -> Iterator[DistributedWorker]:
    """A worker with MongoDB's plugin."""
    plugins = downloaded_plugin(tmp_path / "plugins", "mongo_kafka")
    options = "-Xmx384m -XX:+UseSerialGC -XX:TieredStopAtLevel=1"
    worker = DistributedWorker(
        tmp_path / "ours",
        bootstrap,
        plugin_path=str(plugins),
        java_plugins_jvm_options=options,
        offset_flush_interval_ms="500",
    )
    yield worker.start()
    worker.close()


def stop(worker: DistributedWorker, name: str) -> None:
    """Stop a connector, so that its offsets can be changed."""
    worker.ask("PUT", f"connectors/{name}/stop")
    worker.wait_for_states(name, "STOPPED")


def test_mongodbs_connectors_copy_each_change_through_kills_and_begin_where_they_are_told(
    worker: DistributedWorker, bootstrap: str, shop: Shop, topic: str
) -> None:
    create_topic(bootstrap, topic)
    source, sink = f"{topic}-source", f"{topic}-sink"

    def published() -> list[str]:
        return [json.loads(message.value())["_id"]["_data"] for message in read_topic(bootstrap, topic)]

    def wait_for_more() -> None:
        wanted = len(set(published())) + 150
        wait_until("changes have come", lambda: len(set(published())) >= wanted, PATIENCE)

    worker.ask(
        "PUT",
        f"connectors/{source}/config",
        {
            **COMMON,
            "connector.class": "com.mongodb.kafka.connect.MongoSourceConnector",
            "connection.uri": shop.uri,
            "database": shop.name,
            "collection": "orders",
            "topic.namespace.map": json.dumps({"*": topic}),
            "startup.mode": "timestamp",
            "startup.mode.timestamp.start.at.operation.time": shop.begins_at,
            "poll.await.time.ms": "200",
        },
    )
    copied = {
        **COMMON,
        "connector.class": "com.mongodb.kafka.connect.MongoSinkConnector",
        "connection.uri": shop.uri,
        "topics": topic,
        "database": shop.name,
        "collection": "copy",
        "change.data.capture.handler": HANDLER,
        "consumer.override.auto.offset.reset": "earliest",
    }
    worker.ask("PUT", f"connectors/{sink}/config", copied)
    wait_for_more()
    kill_jvm(worker, source)
    wait_for_more()
    worker.kill()
    worker.start()
    wait_for_more()
    shop.stop()
    truth = shop.tokens()
    wait_until("all changes have come", lambda: published()[-1:] == truth[-1:], PATIENCE)
    # What was not committed when it was killed is repeated, in order, and nothing is lost.
    assert list(dict.fromkeys(published())) == truth
    wait_until("the copy equals the shop", lambda: shop.documents("copy") == shop.documents("orders"), PATIENCE)
    # The source begins again after the change that it is told.
    stop(worker, source)
    ((partition, offset),) = [each.values() for each in worker.ask("GET", f"connectors/{source}/offsets")["offsets"]]
    assert json.loads(offset["_id"]) == {"_data": truth[-1]}, "it has committed the last"
    before = published()
    moved = {"partition": partition, "offset": {**offset, "_id": json.dumps({"_data": truth[-50]})}}
    worker.ask("PATCH", f"connectors/{source}/offsets", {"offsets": [moved]})
    assert worker.ask("GET", f"connectors/{source}/offsets") == {"offsets": [moved]}
    worker.ask("PUT", f"connectors/{source}/resume")
    wait_until("the last have come again", lambda: len(published()) >= len(before) + 49, PATIENCE)
    assert published() == before + truth[-49:]
    # The sink reads its topic from the beginning again.
    stop(worker, sink)
    worker.ask("DELETE", f"connectors/{sink}/offsets")
    worker.ask("PUT", f"connectors/{sink}/resume")
    where = {"kafka_topic": topic, "kafka_partition": 0}
    ends = {"offsets": [{"partition": where, "offset": {"kafka_offset": len(before) + 49}}]}
    wait_until("it has read all again", lambda: worker.ask("GET", f"connectors/{sink}/offsets") == ends, PATIENCE)
    assert shop.documents("copy") == shop.documents("orders")
