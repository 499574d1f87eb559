"""Connectors of Elasticsearch whose worker, task and server are killed.

Of a sink, while keys change and are deleted: at the end each document is what the last record of its key says,
whichever way documents are written. Of a source, while documents are added: at the end each is on the topic.
"""

from __future__ import annotations

import json
import os
import random
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest
import requests
from confluent_kafka import Consumer, Producer, TopicPartition

from connect.errors import ConnectError
from equipment.brokers.topics import create_topic, ordered_producer
from equipment.servers.search_servers import SearchServer, running_search_server
from equipment.waiting import wait_until
from equipment.workers.cluster import Cluster

pytestmark = [pytest.mark.cluster, pytest.mark.integration, pytest.mark.thorough, pytest.mark.timeout(5400)]

KILLS: Final = int(os.environ.get("SLUICE_SEARCH_KILLS", "0")) or 3
VICTIMS: Final = ("worker", "server", "task")
PATIENCE: Final = 300.0
_KEYS: Final = 200
_MOST_AHEAD: Final = 3000
"""How many changes are written while others are awaited: a busy machine would never catch up with more."""
_WAYS: Final = {
    "insert": {"write.method": "insert"},
    "upsert": {"write.method": "upsert"},
}


@pytest.fixture
def server() -> Iterator[SearchServer]:
    """A server of this test alone, which is killed."""
    try:
        with running_search_server("opensearch") as server:
            yield server
    except ConnectError as error:
        pytest.skip(f"no opensearch here: {error}")


class Writer:
    """Produces changes of keys, and knows what the last of each says."""

    def __init__(self, bootstrap: str, topic: str, seed: int) -> None:
        self._producer: Producer = ordered_producer(bootstrap)
        self._topic = topic
        self._random = random.Random(seed)
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._write, daemon=True)
        self.last: dict[str, dict[str, Any]] = {}
        self.changes = 0
        self.most = _MOST_AHEAD

    def start(self) -> None:
        self._thread.start()

    def end(self) -> None:
        self._end.set()
        self._thread.join(PATIENCE)
        self._producer.flush(PATIENCE)

    def _write(self) -> None:
        while not self._end.wait(0.01):
            if self.changes >= self.most:
                continue
            key = f"key {self._random.randrange(_KEYS)}"
            value = None if self._random.random() < 0.2 else {"n": self.changes, "key": key}
            self._producer.produce(self._topic, None if value is None else json.dumps(value), key)
            self._producer.poll(0)
            self.changes += 1
            if value is None:
                self.last.pop(key, None)
            else:
                self.last[key] = value


@pytest.fixture
def sinks(cluster: Callable[..., Cluster], server: SearchServer, bootstrap: str, topic: str) -> Cluster:
    """A sink for each way to write, to an index of its own."""
    create_topic(bootstrap, topic, 3)
    made = cluster(1).start()
    for way, props in _WAYS.items():
        made.create(
            f"{way}-{topic}",
            "io.confluent.connect.elasticsearch.ElasticsearchSinkConnector",
            **{
                "topics": topic,
                "connection.url": server.url,
                "index.name.template": way,
                "key.converter": "org.apache.kafka.connect.storage.StringConverter",
                "value.converter": "org.apache.kafka.connect.json.JsonConverter",
                "value.converter.schemas.enable": "false",
                "schema.ignore": "true",
                "behavior.on.null.values": "delete",
                "read.timeout.ms": "10000",
                "flush.timeout.ms": "3600000",
                "max.retries": "100",
                "retry.backoff.ms": "100",
                "batch.size": "20",
                "max.buffered.records": "1000",
                **props,
            },
        )
    return made


def test_documents_are_what_the_last_records_say(
    sinks: Cluster, server: SearchServer, bootstrap: str, topic: str
) -> None:
    seed = int(os.environ.get("SLUICE_SEARCH_SEED", "0")) or random.SystemRandom().randrange(1, 1 << 32)
    print(f"SLUICE_SEARCH_SEED={seed}")
    chosen = random.Random(seed)
    writer = Writer(bootstrap, topic, seed)
    writer.start()
    wait_for_more(server, writer)
    victims = [*VICTIMS, *(chosen.choice(VICTIMS) for _ in range(KILLS))][:KILLS]
    for number, victim in enumerate(victims, 1):
        threading.Event().wait(chosen.random())
        kill(sinks, server, victim, f"{chosen.choice(list(_WAYS))}-{topic}")
        wait_for_more(server, writer)
        print(f"kill {number}: {victim}, {writer.changes} changes")
    writer.end()
    for way in _WAYS:
        wait_until(
            f"{way}: the documents are those of the last records", lambda way=way: found(server, way) == writer.last
        )


class Indexer:
    """Adds documents one after the other, to an index of two shards, until each is accepted."""

    def __init__(self, server: SearchServer, index: str) -> None:
        self._server = server
        self._path = f"/{index}/_doc"
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._write, daemon=True)
        self.added = 0
        settings = {"number_of_shards": 2, "number_of_replicas": 0, "refresh_interval": "200ms"}
        server.ask("PUT", f"/{index}", {"settings": settings})

    def start(self) -> None:
        self._thread.start()

    def end(self) -> None:
        self._end.set()
        self._thread.join(PATIENCE)

    def _write(self) -> None:
        while not self._end.wait(0.01):
            # Three have the same cursor.
            document = {"n": self.added, "at": self.added // 3}
            try:
                self._server.ask("PUT", f"{self._path}/d{self.added}", document)
            except (requests.RequestException, AssertionError):
                continue
            self.added += 1


def test_every_document_is_published(
    cluster: Callable[..., Cluster], server: SearchServer, bootstrap: str, topic: str
) -> None:
    seed = int(os.environ.get("SLUICE_SEARCH_SEED", "0")) or random.SystemRandom().randrange(1, 1 << 32)
    print(f"SLUICE_SEARCH_SEED={seed}")
    chosen = random.Random(seed)
    indexer = Indexer(server, "documents")
    create_topic(bootstrap, topic)
    made = cluster(1).start()
    made.create(
        f"documents-{topic}",
        "ElasticsearchSource",
        **{
            "connection.url": server.url,
            "index": "documents",
            "cursor.field": "at",
            "cursor.delay.ms": "2000",
            "poll.interval.ms": "100",
            "batch.size": "20",
            "topic": topic,
            "retry.backoff.ms": "100",
            "read.timeout.ms": "10000",
            "offset.flush.interval.ms": "200",
            "key.converter": "org.apache.kafka.connect.storage.StringConverter",
            "value.converter": "org.apache.kafka.connect.json.JsonConverter",
            "value.converter.schemas.enable": "false",
        },
    )
    indexer.start()
    published = Published(bootstrap, topic)
    published.wait_for(indexer)
    victims = [*VICTIMS, *(chosen.choice(VICTIMS) for _ in range(KILLS))][:KILLS]
    for number, victim in enumerate(victims, 1):
        threading.Event().wait(chosen.random())
        kill(made, server, victim, f"documents-{topic}")
        published.wait_for(indexer)
        print(f"kill {number}: {victim}, {indexer.added} documents, {published.doubled} published again")
    indexer.end()
    published.wait_for(indexer)
    assert sorted(published.seen) == list(range(indexer.added))
    assert published.headers == {"documents"}


class Published:
    """What is on the topic: documents by number, and how many came again."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": topic, "auto.offset.reset": "earliest"})
        self._consumer.assign([TopicPartition(topic, 0, 0)])
        self.seen: dict[int, int] = {}
        self.headers: set[str] = set()

    @property
    def doubled(self) -> int:
        return sum(self.seen.values()) - len(self.seen)

    def wait_for(self, indexer: Indexer) -> None:
        """Wait until every document that was added by now is there."""
        least = indexer.added
        wait_until("what was added is published", lambda: self._read(least), PATIENCE)

    def _read(self, least: int) -> bool:
        for message in self._consumer.consume(1000, 0.2):
            assert not message.error(), message.error()
            document = json.loads(message.value())
            assert message.key() == f"d{document['n']}".encode()
            self.seen[document["n"]] = self.seen.get(document["n"], 0) + 1
            self.headers |= {value.decode() for _, value in message.headers()}
        return all(number in self.seen for number in range(least))


def found(server: SearchServer, index: str) -> dict[str, Any]:
    return server.documents(index)


def wait_for_more(server: SearchServer, writer: Writer) -> None:
    """Wait until what was produced by now has arrived by each way."""
    least = writer.changes
    writer.most = least + _MOST_AHEAD
    for way in _WAYS:
        wait_until(f"{way} goes on", lambda way=way: newest(server, way) >= least, PATIENCE)


def newest(server: SearchServer, index: str) -> int:
    return max((document["n"] for document in server.documents(index).values()), default=-1)


def kill(cluster: Cluster, server: SearchServer, victim: str, name: str) -> None:
    (worker,) = cluster.workers
    match victim:
        case "worker":
            worker.kill()
            cluster.start()
        case "server":
            server.kill()
            server.start()
        case _:
            os.kill(worker.task_pid(name), signal.SIGKILL)
            wait_until("the task has failed", lambda: state(cluster, name) == "FAILED", PATIENCE)
            cluster.ask("POST", f"connectors/{name}/tasks/0/restart")


def state(cluster: Cluster, name: str) -> str:
    tasks = cluster.ask("GET", f"connectors/{name}/status")["tasks"]
    return str(tasks[0]["state"]) if tasks else "NONE"
