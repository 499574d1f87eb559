"""Measures how fast the MongoDB connectors move documents, compared with the bare driver on the same server.

``python bench/mongodb.py [DOCUMENTS]``: documents of six fields, as JSON text on a topic, are inserted, replaced by
their ids, and inserted exactly once; and the copy and the change stream of a collection are published as JSON text and
as BSON. The ceilings are pymongo's: bulks of as many operations of documents that are in memory, and a cursor or a
change stream whose documents are decoded and counted. CPU seconds are those of the worker, including its start, whose
cost is that of a run with few documents.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from confluent_kafka import Producer
from standalone import Bench, Measured, show, show_title

_ROOT = Path(__file__).parent.parent
# The benchmark modules have the names of packages, and would be found first.
sys.path[:0] = [str(_ROOT), str(_ROOT / "tests")]

from own_broker import own_broker
from pymongo import InsertOne, MongoClient, ReplaceOne

from equipment.servers.mongodb import MongoServer, mongodb_server
from worker.embedded.broker.server import BrokerConfig

_BATCH = 500
_TOPIC = "documents"
_FEW = 100
_FEW_TOPIC = "few-documents"
_STRINGS = {"key.converter": "StringConverter", "value.converter": "StringConverter"}
_IDS = "com.mongodb.kafka.connect.sink.processor.id.strategy"
_Documents = list[dict[str, Any]]


def main() -> None:
    """Measure and print."""
    documents = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        broker = stack.enter_context(own_broker(BrokerConfig(folder=folder / "broker", port=0)))
        server = stack.enter_context(mongodb_server())
        client = stack.enter_context(server.client())
        _fill(broker.bootstrap_servers, documents)
        bench = Bench(folder, broker.bootstrap_servers, documents)
        _measure_sink(bench, server, client)
        _measure_source(bench, server, client)


def _measure_sink(bench: Bench, server: MongoServer, client: MongoClient[dict[str, Any]]) -> None:
    show_title("topic to MongoDB")
    sink = {"connector.class": "MongoSink", "topics": _TOPIC, "connection.uri": server.uri, "database": "bench"}
    models = {"writemodel.strategy": "InsertOneDefaultStrategy"}
    replaces = {"document.id.strategy": f"{_IDS}.ProvidedInValueStrategy"}
    inserted = _written(bench.records, client, "pymongo: bulks of inserts", InsertOne)
    replaced = _written(
        bench.records,
        client,
        "pymongo: bulks of replacements",
        lambda each: ReplaceOne({"_id": each["_id"]}, each, True),
    )
    show(inserted, inserted)
    show(replaced, replaced)
    start = bench.sluice("MongoSink, few", {**sink, "topics": _FEW_TOPIC, "collection": "few"}, _STRINGS, _FEW)
    show(start, inserted)
    for name, props, ceiling in (
        ("insert", models, inserted),
        ("insert, exactly once", {**models, "delivery": "exactly-once"}, inserted),
        ("replace", replaces, replaced),
    ):
        client["bench"].drop_collection("rows")
        target = {**sink, **props, "collection": "rows"}
        show(bench.sluice(f"MongoSink, {name}", target, _STRINGS), ceiling, start)
        assert client["bench"]["rows"].count_documents({}) == bench.records


def _measure_source(bench: Bench, server: MongoServer, client: MongoClient[dict[str, Any]]) -> None:
    show_title("MongoDB to topic")
    begin = client.admin.command("hello")["operationTime"]
    collection = client["source"]["rows"]
    for documents in _batches(bench.records):
        collection.insert_many(documents)
    client["few"]["rows"].insert_many(next(_batches(_FEW)))
    source = {"connector.class": "MongoSource", "connection.uri": server.uri, "database": "source"}
    copy = {"startup.mode": "copy_existing"}
    time_key = "startup.mode.timestamp.start.at.operation.time"
    seconds = json.dumps({"$timestamp": {"t": begin.time, "i": begin.inc}})
    stream = {"startup.mode": "timestamp", time_key: seconds}
    bson = {"output.format.value": "bson", "output.format.key": "bson"}
    raw = {"key.converter": "ByteArrayConverter", "value.converter": "ByteArrayConverter"}
    start = bench.sluice("MongoSource, few", {**source, **copy, "database": "few"}, _STRINGS, _FEW)
    cursor = _timed("pymongo: cursor", bench.records, lambda: sum(1 for _ in collection.find()))
    events = _timed("pymongo: change stream", bench.records, lambda: _followed(client, begin, bench.records))
    for ceiling, mode in ((cursor, copy), (events, stream)):
        show(ceiling, ceiling)
        named = "copy" if mode is copy else "stream"
        show(bench.sluice(f"MongoSource, {named}, JSON", {**source, **mode}, _STRINGS), ceiling, start)
        show(bench.sluice(f"MongoSource, {named}, BSON", {**source, **mode, **bson}, raw), ceiling, start)


def _document(number: int) -> dict[str, Any]:
    return {
        "_id": number,
        "customer": f"customer {number % 1000}",
        "note": f"the note of order {number} is some fifty characters long",
        "amount": number / 7,
        "paid": number % 2 == 0,
        "items": [{"id": number % 10, "count": 2}, {"id": number % 7, "count": 1}],
    }


def _fill(bootstrap: str, documents: int) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 50, "queue.buffering.max.messages": 1_000_000})
    for number in range(documents):
        value = json.dumps(_document(number)).encode()
        for topic in (_TOPIC, _FEW_TOPIC) if number < _FEW else (_TOPIC,):
            producer.produce(topic, value)
        if number % 1000 == 0:
            producer.poll(0)
    producer.flush()


def _batches(documents: int) -> Iterator[_Documents]:
    for first in range(0, documents, _BATCH):
        yield [_document(number) for number in range(first, min(first + _BATCH, documents))]


def _written(
    documents: int, client: MongoClient[dict[str, Any]], name: str, operation: Callable[[dict[str, Any]], Any]
) -> Measured:
    """Return the time that bulks take, without the time for making the documents."""
    seconds = cpu = 0.0
    client["bench"].drop_collection("ceiling")
    for batch in _batches(documents):
        started, cpu_started = time.perf_counter(), time.process_time()
        client["bench"]["ceiling"].bulk_write([operation(each) for each in batch])
        seconds += time.perf_counter() - started
        cpu += time.process_time() - cpu_started
    return Measured(name, documents, seconds, cpu)


def _timed(name: str, documents: int, run: Callable[[], int]) -> Measured:
    started, cpu_started = time.perf_counter(), time.process_time()
    assert run() == documents
    return Measured(name, documents, time.perf_counter() - started, time.process_time() - cpu_started)


def _followed(client: MongoClient[dict[str, Any]], begin: Any, documents: int) -> int:
    with client["source"].watch(start_at_operation_time=begin) as stream:
        for count, _ in enumerate(stream, 1):
            if count == documents:
                return count
    return 0


if __name__ == "__main__":
    main()
