"""Measures how fast the connectors of Elasticsearch and OpenSearch move documents, beside the bare clients.

``python bench/search.py [DOCUMENTS] [PRODUCT ...]``: documents of six fields, as JSON on a topic, are indexed with ids
and versions; and those of an index are published, in the order of a number. The ceilings are the bulk helper of the
product's own client (``opensearch-py``, ``elasticsearch``), whose documents are in memory, with requests of as many
documents, one after the other and by five threads as the sink has under way; and a loop of ``search_after`` at a point
in time whose documents are parsed and counted. CPU seconds are those of the worker, including its start, whose cost is
that of a run with few documents.
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

import orjson
import requests
from own_broker import own_broker

from equipment.servers.search_servers import SearchServer, running_search_server
from worker.embedded.broker.server import BrokerConfig

_BATCH = 2000
_PAGE = 1000
_TOPIC = "documents"
_FEW = 100
_FEW_TOPIC = "few-documents"
_FORM = {
    "key.converter": "StringConverter",
    "value.converter": "JsonConverter",
    "value.converter.schemas.enable": "false",
}
_INDEX = {"settings": {"number_of_shards": 1, "number_of_replicas": 0, "refresh_interval": "5s"}}


def main() -> None:
    """Measure and print."""
    documents = int(sys.argv[1]) if len(sys.argv) > 1 else 50_000
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        broker = stack.enter_context(own_broker(BrokerConfig(folder=folder / "broker", port=0)))
        _fill(broker.bootstrap_servers, documents)
        for product in sys.argv[2:] or ("opensearch", "elasticsearch"):
            with running_search_server(product) as server:
                bench = Bench(folder, broker.bootstrap_servers, documents)
                _measure_sink(bench, server)
                _measure_source(bench, server)


def _measure_sink(bench: Bench, server: SearchServer) -> None:
    show_title(f"topic to {server.product}")
    sink = {
        "connector.class": "ElasticsearchSink",
        "connection.url": server.url,
        "read.timeout.ms": "60000",
        "schema.ignore": "true",
    }
    # The server compiles what is run often.
    _indexed(server, bench.records, 1)
    one = _indexed(server, bench.records, 1)
    five = _indexed(server, bench.records, 5)
    ceiling = max(one, five, key=lambda each: each.rate)
    show(one, ceiling)
    show(five, ceiling)
    start = bench.sluice(
        f"{server.product} sink, few", {**sink, "topics": _FEW_TOPIC, "index.name.template": "few"}, _FORM, _FEW
    )
    for name, props in (("5 requests under way", {}), ("upsert", {"write.method": "upsert"})):
        _make(server, "rows")
        measured = bench.sluice(
            f"{server.product} sink, {name}", {**sink, **props, "topics": _TOPIC, "index.name.template": "rows"}, _FORM
        )
        show(measured, ceiling, start)
        server.ask("POST", "/rows/_refresh")
        assert server.ask("GET", "/rows/_count")["count"] == bench.records


def _measure_source(bench: Bench, server: SearchServer) -> None:
    show_title(f"{server.product} to topic")
    server.ask("POST", "/rows/_refresh")
    server.ask("POST", "/few/_refresh")
    source = {
        "connector.class": "ElasticsearchSource",
        "connection.url": server.url,
        "cursor.field": "number",
        "cursor.delay.ms": "0",
        "batch.size": str(_PAGE),
        "topic.prefix": f"{server.product}-",
    }
    start = bench.sluice(f"{server.product} source, few", {**source, "index": "few"}, _FORM, _FEW)
    _timed("warm-up", bench.records, lambda: _searched(server))
    ceiling = _timed(f"search_after, {_PAGE} a page", bench.records, lambda: _searched(server))
    show(ceiling, ceiling)
    show(bench.sluice(f"{server.product} source", {**source, "index": "rows"}, _FORM), ceiling, start)
    schemas = {**source, "index": "rows", "value.schema": "document", "topic.prefix": f"{server.product}-schemas-"}
    show(bench.sluice(f"{server.product} source, schemas", schemas, _FORM), ceiling, start)


def _document(number: int) -> dict[str, Any]:
    return {
        "number": number,
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
            producer.produce(topic, value, str(number))
        if number % 1000 == 0:
            producer.poll(0)
    producer.flush()


def _make(server: SearchServer, index: str) -> None:
    requests.delete(f"{server.url}/{index}", timeout=60)
    server.ask("PUT", f"/{index}", _INDEX)


def _indexed(server: SearchServer, documents: int, threads: int) -> Measured:
    """Return the time that the helper of the product's client takes, the making of documents included."""
    _make(server, "ceiling")
    kind = {"_index": "ceiling", "version_type": "external"}
    actions: Iterator[dict[str, Any]] = (
        {**kind, "_id": str(number), "version": number, "_source": _document(number)} for number in range(documents)
    )
    client, helpers = _client(server)

    def run() -> int:
        done = helpers.parallel_bulk(client, actions, thread_count=threads, chunk_size=_BATCH, queue_size=threads)
        if threads == 1:
            done = helpers.streaming_bulk(client, actions, chunk_size=_BATCH)
        return sum(1 for _ in done)

    return _timed(f"{server.product}'s client: bulk helper, {threads} thread(s)", documents, run)


def _client(server: SearchServer) -> tuple[Any, Any]:
    if server.product == "opensearch":
        from opensearchpy import OpenSearch, helpers  # noqa: PLC0415 - each fits its own product alone

        return OpenSearch(server.url, timeout=60), helpers
    from elasticsearch import Elasticsearch  # noqa: PLC0415
    from elasticsearch import helpers as others  # noqa: PLC0415

    return Elasticsearch(server.url, request_timeout=60), others


def _searched(server: SearchServer) -> int:
    """Read an index page by page, as the source does, and parse the answers."""
    session, count, after = requests.Session(), 0, None
    is_opensearch = server.product == "opensearch"
    path = "/rows/_search/point_in_time" if is_opensearch else "/rows/_pit"
    point = session.post(f"{server.url}{path}?keep_alive=5m", timeout=60).json()["pit_id" if is_opensearch else "id"]
    while True:
        body = {
            "size": _PAGE,
            "sort": [{"number": "asc"}],
            "track_total_hits": False,
            "pit": {"id": point, "keep_alive": "5m"},
            **({} if after is None else {"search_after": after}),
        }
        found = orjson.loads(session.post(f"{server.url}/_search", json=body, timeout=60).content)["hits"]["hits"]
        count += len(found)
        if len(found) < _PAGE:
            return count
        after = found[-1]["sort"]


def _timed(name: str, documents: int, run: Callable[[], int]) -> Measured:
    started, cpu_started = time.perf_counter(), time.process_time()
    assert run() == documents
    return Measured(name, documents, time.perf_counter() - started, time.process_time() - cpu_started)


if __name__ == "__main__":
    main()
