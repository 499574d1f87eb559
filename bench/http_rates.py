"""Measures the request rates of the HTTP source and sink, compared with a bare ``requests.Session``.

Run it with ``python bench/http.py``. The server is a separate process that responds from memory without a framework;
the tasks run as in the runtime, without Kafka. Each figure is the best of several rounds, which alternate between the
variants.
"""

from __future__ import annotations

import json
import multiprocessing
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

import requests

from connect.data import SinkBatch, TopicPartition
from connect.testing import SinkTaskTestContext, SourceTaskTestContext, StoredOffsets
from connect.testing.samples import sink_records
from connectors.http import HttpSinkConfig, HttpSinkTask, HttpSourceConfig, HttpSourceTask

REQUESTS = 1_000
ROUNDS = 5
PAGE = 100
ITEMS = [{"id": number, "name": f"item {number}", "price": number * 1.25} for number in range(PAGE)]
VALUE = json.dumps({"id": 1, "name": "one", "price": 1.25})


def serve(ready: Any) -> None:
    """Respond to every request: to GET with a page of items, to all others with 204."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=64)
    ready.send(listener.getsockname()[1])
    page = json.dumps({"items": ITEMS, "cursor": "x"}).encode()
    found = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(page), page)
    taken = b"HTTP/1.1 204 No Content\r\n\r\n"

    def talk(connection: socket.socket) -> None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        data = b""
        while True:
            while b"\r\n\r\n" not in data:
                part = connection.recv(65536)
                if not part:
                    return
                data += part
            head, _, data = data.partition(b"\r\n\r\n")
            length = next(
                (int(line[15:]) for line in head.split(b"\r\n") if line[:15].lower() == b"content-length:"), 0
            )
            while len(data) < length:
                data += connection.recv(65536)
            data = data[length:]
            connection.sendall(found if head.startswith(b"GET") else taken)

    while True:
        connection, _ = listener.accept()
        threading.Thread(target=talk, args=(connection,), daemon=True).start()


def bare_get(url: str) -> Callable[[], None]:
    session = requests.Session()

    def run() -> None:
        for _ in range(REQUESTS):
            session.get(f"{url}/items", params={"cursor": "x"}, timeout=30).json()

    return run


def bare_post(url: str) -> Callable[[], None]:
    session = requests.Session()

    def run() -> None:
        for _ in range(REQUESTS):
            session.post(f"{url}/in", data=VALUE, timeout=30).raise_for_status()

    return run


def source(url: str) -> Callable[[], None]:
    """Return pages of 100 records, each with its offset."""
    props = {
        "kafka.topic": "t",
        "http.request.url": f"{url}/items",
        "http.request.params": "from=${page.offset}",
        "http.response.list.pointer": "/items",
        "http.response.record.key.pointer": "/id",
        "http.paging": "offset",
        "http.paging.size": str(PAGE),
    }
    task = HttpSourceTask(HttpSourceConfig.parse(props), SourceTaskTestContext(StoredOffsets()))
    task.start()

    def run() -> None:
        records = 0
        while records < REQUESTS * PAGE:
            records += len(list(task.poll()))

    return run


def sink(url: str, **props: str) -> Callable[[], None]:
    config = HttpSinkConfig.parse({"http.url": f"{url}/in"} | {k.replace("_", "."): v for k, v in props.items()})
    task = HttpSinkTask(config, SinkTaskTestContext([TopicPartition("t", 0)]))
    task.start()
    size = config.batch_size if config.is_batching else 1
    records = [record.replace(key=str(n % 64)) for n, record in enumerate(sink_records([VALUE] * 500))]
    (batch,) = SinkBatch.from_records(records)

    def run() -> None:
        for _ in range(REQUESTS * size // len(batch)):
            task.put(batch)

    return run


def main() -> None:
    """Print the requests per second, and the ratio to the bare session."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.Process(target=serve, args=(theirs,), daemon=True)
    process.start()
    url = f"http://127.0.0.1:{ours.recv()}"
    runs = {
        "requests.Session, GET and JSON": bare_get(url),
        f"source, pages of {PAGE} records": source(url),
        "requests.Session, POST": bare_post(url),
        "sink, one at a time": sink(url, http_max_in_flight="1"),
        "sink, four at a time": sink(url),
        "sink, batches of 50": sink(url, batching_enabled="true", batch_max_size="50", http_max_in_flight="1"),
    }
    best = dict.fromkeys(runs, float("inf"))
    for _ in range(ROUNDS):
        for name, run in runs.items():
            started = time.perf_counter()
            run()
            best[name] = min(best[name], time.perf_counter() - started)
    process.kill()
    bare = 0.0
    for name, seconds in best.items():
        rate = REQUESTS / seconds
        bare = rate if name.startswith("requests") else bare
        per_request = PAGE if name.startswith("source") else 50 if "batches" in name else 1
        records = f"{rate * per_request:>10,.0f} records/s" if not name.startswith("requests") else " " * 20
        print(f"{name:<34}{rate:>8,.0f} requests/s {records}   {rate / bare:>5.2f} x bare")


if __name__ == "__main__":
    main()
