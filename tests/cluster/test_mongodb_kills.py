"""From MongoDB by a topic to MongoDB, exactly once: workers, tasks, server and broker are killed while data changes."""

from __future__ import annotations

import base64
import json
import os
import random
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import bson
import pytest
from bson import json_util
from pymongo import MongoClient
from pymongo.errors import PyMongoError

from equipment.brokers.proxied_broker import ProxiedBroker
from equipment.brokers.topics import create_topic, read_topic
from equipment.servers.mongodb import MongoServer
from equipment.waiting import wait_until
from equipment.workers.cluster import Cluster

pytestmark = [pytest.mark.cluster, pytest.mark.integration, pytest.mark.timeout(1800)]

KILLS: Final = int(os.environ.get("SLUICE_MONGODB_KILLS", "0"))
"""How many kills there are: each victim once, then any. Without the variable, only the first three, and the broker is
the run's."""
FEW: Final = 3
VICTIMS: Final = ("worker", "server", "source", "sink", "broker")
PATIENCE: Final = 120.0
_SINK: Final = "com.mongodb.kafka.connect.sink"
_SHOP: Final = "shop"
_JSON: Final = {
    "key.converter": "org.apache.kafka.connect.json.JsonConverter",
    "key.converter.schemas.enable": "false",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter.schemas.enable": "false",
}
_STRINGS: Final = {
    "key.converter": "org.apache.kafka.connect.storage.StringConverter",
    "value.converter": "org.apache.kafka.connect.storage.StringConverter",
}


class Writer:
    """Changes documents at random, through outages of the server."""

    def __init__(self, server: MongoServer, seed: int) -> None:
        self._server = server
        self._random = random.Random(seed)
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._write, daemon=True)
        self.changes = 0

    def start(self) -> None:
        self._thread.start()

    def end(self) -> None:
        self._end.set()
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()

    def _write(self) -> None:
        with self._server.client(serverSelectionTimeoutMS=500) as client:
            while not self._end.wait(0.01):
                try:
                    self._change(client)
                    self.changes += 1
                except PyMongoError:
                    # Whether it happened is seen in the oplog, which is what counts in the end.
                    continue

    def _change(self, client: MongoClient[Any]) -> None:
        orders = client[_SHOP]["orders"]
        identity = self._random.randrange(200)
        match self._random.randrange(6):
            case 0 | 1:
                orders.replace_one({"_id": identity}, {"n": self.changes, "text": "x" * 50}, upsert=True)
            case 2:
                orders.update_one({"_id": identity}, {"$set": {"m": self.changes}, "$unset": {"text": ""}})
            case 3:
                orders.delete_one({"_id": identity})
            case 4:
                orders.insert_many([{"n": self.changes} for _ in range(5)])
            case _:
                with client.start_session() as session, session.start_transaction():
                    orders.replace_one({"_id": identity}, {"n": self.changes}, upsert=True, session=session)
                    orders.insert_one({"n": self.changes}, session=session)
                    if self._random.random() < 0.3:
                        session.abort_transaction()


class Pipeline:
    """A source of the shop's changes, a sink that repeats them, and one that adds each of them to a log."""

    def __init__(
        self,
        cluster: Cluster,
        server: MongoServer,
        topic: str,
        bootstrap: str,
        kind: str,
        broker: ProxiedBroker | None,
    ) -> None:
        self.cluster, self.server, self.bootstrap, self.broker = cluster, server, bootstrap, broker
        self._is_debezium = kind == "debezium"
        # Debezium's events are on a topic of each collection: the one that counts is written last.
        self.topic = f"{topic}.{_SHOP}.orders" if self._is_debezium else topic
        self._prefix = topic
        self.names = {kind: f"{kind}-{uuid4().hex[:8]}" for kind in ("source", "sink", "log")}
        # So that there is a position from which the whole truth can be read.
        with server.client() as client:
            client[_SHOP]["orders"].insert_one({"_id": "first"})
            self._beginning = client.admin.command("hello")["operationTime"]
        self._after: dict[str, Any] = {"start_at_operation_time": self._beginning}

    def start(self) -> None:
        common = {"connection.uri": f"{self.server.uri}&serverSelectionTimeoutMS=1000"}
        if self._is_debezium:
            self._capture()
        else:
            self._watch(common)
        sink = {**common, **(_JSON if self._is_debezium else _STRINGS)}
        sink |= {"topics": self.topic, "delivery": "exactly-once"}
        name = "debezium.mongodb" if self._is_debezium else "mongodb"
        handler = f"{_SINK}.cdc.{name}.ChangeStreamHandler"
        self._create(
            "sink", {**sink, "database": "copy", "collection": "orders", "change.data.capture.handler": handler}
        )
        models = {"writemodel.strategy": "InsertOneDefaultStrategy", "document.id.strategy.overwrite.existing": "true"}
        # Tombstones are nothing to insert.
        tolerant = {"errors.tolerance": "all"} if self._is_debezium else {}
        self._create("log", {**sink, "database": "log", "collection": "orders", **models, **tolerant})

    def _capture(self) -> None:
        self.cluster.create(
            self.names["source"],
            "io.debezium.connector.mongodb.MongoDbConnector",
            **{
                "mongodb.connection.string": self.server.uri,
                "mongodb.server.selection.timeout.ms": "1000",
                "topic.prefix": self._prefix,
                "database.include.list": _SHOP,
                "snapshot.mode": "no_data",
                "capture.mode": "change_streams",
                "cursor.max.await.time.ms": "100",
                **_JSON,
            },
        )

        def position() -> Any:
            return self.cluster.ask("GET", f"connectors/{self.names['source']}/offsets")["offsets"]

        (offset,) = wait_until("the position is stored", position, PATIENCE)
        self._after = {"start_after": bson.decode(base64.b64decode(offset["offset"]["resume_token"]))}

    def _watch(self, common: dict[str, str]) -> None:
        seconds = {"t": self._beginning.time, "i": self._beginning.inc}
        self.cluster.create(
            self.names["source"],
            "com.mongodb.kafka.connect.MongoSourceConnector",
            **common,
            **_STRINGS,
            **{
                "database": _SHOP,
                "topic.namespace.map": json.dumps({"*": self.topic}),
                "startup.mode": "timestamp",
                "startup.mode.timestamp.start.at.operation.time": json.dumps({"$timestamp": seconds}),
                "output.json.formatter": "ExtendedJson",
                "poll.await.time.ms": "100",
            },
        )

    def _create(self, kind: str, props: dict[str, str]) -> None:
        reads = {"consumer.override.isolation.level": "read_committed", "consumer.override.max.poll.records": "50"}
        self.cluster.create(self.names[kind], "com.mongodb.kafka.connect.MongoSinkConnector", **props, **reads)

    def kill(self, victim: str) -> None:
        (worker,) = self.cluster.workers
        match victim:
            case "worker":
                worker.kill()
                self.cluster.start()
            case "server":
                with self.server.down():
                    pass
            case "broker":
                assert self.broker is not None
                self.broker.kill()
                self.broker.start()
            case _:
                name = self.names[victim]
                os.kill(worker.task_pid(name), signal.SIGKILL)
                wait_until(f"the task of {name} has failed", lambda: self._state(name) == "FAILED", PATIENCE)
                self.cluster.ask("POST", f"connectors/{name}/tasks/0/restart")

    def _state(self, name: str) -> str:
        tasks = self.cluster.ask("GET", f"connectors/{name}/status")["tasks"]
        return str(tasks[0]["state"]) if tasks else "NONE"

    def logged(self) -> int:
        with self.server.client() as client:
            return client["log"]["orders"].count_documents({})

    def wait_for_more(self) -> None:
        """Wait until something arrives at the end."""
        before = self.logged()
        wait_until("changes arrive", lambda: self.logged() > before, PATIENCE)

    def check(self) -> None:
        """See that each change was published once, in order, and written once, and that both databases are equal."""
        truth = self._truth()
        wait_until(f"all {len(truth)} changes are there", lambda: self.logged() >= len(truth), PATIENCE)
        messages = [message.value() for message in read_topic(self.bootstrap, self.topic)]
        published = [json_util.loads(value) for value in messages if value is not None]
        mark, truths = (
            (_captured_mark, [*map(_truth_mark, truth)]) if self._is_debezium else (_mark, [*map(_mark, truth)])
        )
        assert [*map(mark, published)] == truths
        if self._is_debezium:
            assert messages.count(None) == sum(event["operationType"] == "delete" for event in truth)
        with self.server.client() as client:
            assert sorted(map(mark, client["log"]["orders"].find())) == sorted(truths)

            def is_equal() -> bool:
                return documents("copy", "orders") == documents(_SHOP, "orders", *others)

            def documents(database: str, *collections: str) -> list[str]:
                # The first was there before there was a connector.
                wanted = {"_id": {"$ne": "first"}}
                return sorted(
                    json_util.dumps(each) for name in collections for each in client[database][name].find(wanted)
                )

            # The last change is one of a collection of its own, and is copied into the same as all others, unless each
            # collection has a topic.
            others = () if self._is_debezium else ("end",)
            wait_until("the copy equals the shop", is_equal, PATIENCE)

    def _truth(self) -> list[dict[str, Any]]:
        """Return the changes as the oplog has them."""
        found = []
        with self.server.client() as client:
            client[_SHOP]["end"].insert_one({})
            with client[_SHOP].watch(**self._after) as stream:
                for event in stream:
                    is_end = event["ns"]["coll"] == "end"
                    if not (is_end and self._is_debezium):
                        found.append(event)
                    if is_end:
                        return found
        raise AssertionError


def _mark(event: dict[str, Any]) -> str:
    """Return what tells a change from others, apart from its position, which is an id in the log."""
    parts = [event.get(name) for name in ("operationType", "documentKey", "clusterTime", "fullDocument")]
    return json_util.dumps(parts, json_options=json_util.CANONICAL_JSON_OPTIONS)


def _truth_mark(event: dict[str, Any]) -> str:
    """Return what tells a change from others in the events of Debezium."""
    operation = {"insert": "c", "update": "u", "replace": "u", "delete": "d"}[event["operationType"]]
    return json.dumps([operation, event["clusterTime"].inc, int(event["wallTime"].timestamp() * 1000)])


def _captured_mark(event: dict[str, Any]) -> str:
    return json.dumps([event["op"], int(event["source"]["ord"]), int(event["source"]["wallTime"])])


@pytest.fixture(params=["official", "debezium"])
def pipeline(
    own_mongodb: MongoServer, topic: str, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[Pipeline]:
    broker: ProxiedBroker | None = request.getfixturevalue("mortal") if KILLS else None
    bootstrap = request.getfixturevalue("bootstrap") if broker is None else broker.bootstrap
    workers = Cluster(tmp_path / f"cluster-{uuid4().hex[:12]}", bootstrap, 1, exactly_once_source_support="enabled")
    try:
        made = Pipeline(workers.start(), own_mongodb, topic, bootstrap, request.param, broker)
        create_topic(bootstrap, made.topic)
        made.start()
        yield made
    finally:
        workers.close()


@pytest.mark.thorough
def test_each_change_arrives_once_though_all_are_killed(pipeline: Pipeline) -> None:
    seed = int(os.environ.get("SLUICE_MONGODB_SEED", "0")) or random.SystemRandom().randrange(1, 1 << 32)
    print(f"SLUICE_MONGODB_SEED={seed}")
    chosen = random.Random(seed)
    writer = Writer(pipeline.server, seed)
    writer.start()
    pipeline.wait_for_more()
    victims = [*VICTIMS, *(chosen.choice(VICTIMS) for _ in range(KILLS))][: KILLS or FEW]
    for number, victim in enumerate(victims, 1):
        threading.Event().wait(chosen.random())
        pipeline.kill(victim)
        pipeline.wait_for_more()
        print(f"kill {number}: {victim}, {writer.changes} changes, {pipeline.logged()} logged")
    writer.end()
    pipeline.check()
