"""A data platform on one machine, from a shop's database to a lake, an index, an archive and a copy: ``make story``.

Customers trade in MariaDB. Each change of a row is an event on a topic, in Avro. From there Spark keeps tables of
Iceberg, which Hive's metastore names and HDFS stores; an index of OpenSearch has the orders; S3 has every event; a
second cluster has a copy. Posts of a timeline come in over HTTP. While all that runs, a table gets a new column, and
each of the two workers and the broker are killed. In the end everything is compared with the database.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import requests
from confluent_kafka import Consumer, TopicPartition
from places import ROOT, Places, running  # its import makes the others possible
from shop import TABLES, Shop

HERE: Final = Path(__file__).resolve().parent
BUILD: Final = ROOT / "build" / "story"
SLUICE: Final = Path(sys.executable).with_name("sluice")
PATIENCE_SECONDS: Final = 240.0
POSTS: Final = 200


class Workers:
    """The two workers of the cluster, by number."""

    def __init__(self, places: Places) -> None:
        self._variables = {**os.environ, **places.variables()}
        self._processes: dict[int, subprocess.Popen[bytes]] = {}

    def url(self, number: int) -> str:
        """The address of a worker's REST API and page."""
        return f"http://127.0.0.1:{8083 + number}"

    def start(self, number: int) -> None:
        """Start a worker, which has what is its own from the environment."""
        own = {"CONNECT_LISTENERS": self.url(number)}
        command = [SLUICE, "distributed", HERE / "worker.properties", "--environment"]
        with (BUILD / f"worker-{number}.log").open("ab") as log:
            self._processes[number] = subprocess.Popen(command, env={**self._variables, **own}, stdout=log, stderr=log)
        until(f"worker {number} is ready", lambda: answers(f"{self.url(number)}/health/ready"))

    def kill(self, number: int) -> None:
        """Kill a worker at once."""
        self._processes[number].send_signal(signal.SIGKILL)
        self._processes[number].wait()

    def close(self) -> None:
        """Stop them all."""
        for process in self._processes.values():
            process.send_signal(signal.SIGTERM)
        for process in self._processes.values():
            process.wait(60)


def main() -> int:
    """Tell the story; the exit status."""
    os.chdir(ROOT)
    shutil.rmtree(BUILD, ignore_errors=True)
    BUILD.mkdir(parents=True)
    begun = time.monotonic()
    say("Starting MariaDB, two Kafka clusters, a schema registry, HDFS, Hive's metastore, S3, OpenSearch")
    with running(BUILD) as places, closing(Workers(places)) as workers:
        shop = Shop(places.database, seed=1)
        shop.open()
        for number in (0, 1):
            workers.start(number)
        say(f"The page is at {workers.url(0)}/ui")
        apply = [SLUICE, "apply", HERE / "connectors", "--url", workers.url(0)]
        say(subprocess.run(apply, check=True, capture_output=True, text=True).stdout.splitlines()[-1])
        trade(places, workers, shop)
        equal = compare(places, shop)
    say(f"{shop.transactions:,} transactions, {time.monotonic() - begun:.0f} seconds")
    return 0 if equal else 1


def trade(places: Places, workers: Workers, shop: Shop) -> None:
    """Let the shop trade while things happen."""
    time.sleep(20)
    say("The orders get a column")
    shop.add_column()
    time.sleep(10)
    for number in (0, 1):
        say(f"Worker {number} is killed")
        workers.kill(number)
        time.sleep(5)
        workers.start(number)
        time.sleep(10)
    say("Kafka is killed")
    places.kafka.kill()
    time.sleep(2)
    places.kafka.start()
    time.sleep(15)
    shop.close()
    say("The shop is closed")


def compare(places: Places, shop: Shop) -> bool:
    """Wait until each place has what it should, and print what it has."""
    rows = {table: shop.rows(table) for table in TABLES}
    orders = {str(key): row["state"] for key, row in rows["orders"].items()}
    topics = [f"story.shop.{table}" for table in TABLES]
    kafka = places.kafka.bootstrap

    def documents() -> dict[str, str]:
        found = places.search.documents("story.shop.orders")
        return {key: document["state"] for key, document in found.items()}

    published = Counter({topic: sum(value is not None for _, _, value in messages(kafka, topic)) for topic in topics})
    copied = Counter(messages(kafka, "story.shop.orders"))
    checks: list[tuple[str, Any, Callable[[], Any]]] = [
        ("documents of the index", orders, documents),
        ("events in S3", published, lambda: archived(places)),
        ("events in the other cluster", set(copied), lambda: set(messages(places.copy, "shop.story.shop.orders"))),
        ("posts of the timeline", POSTS, lambda: len({key for _, key, _ in messages(kafka, "posts")})),
        *((f"{table} in the lake", as_text(rows[table]), lambda table=table: lake(places, table)) for table in TABLES),
    ]
    print(f"\n{'':<30}{'expected':>10}{'found':>10}")
    verdicts = [check(name, expected, found) for name, expected, found in checks]
    return all(verdicts)


def check(name: str, expected: Any, find: Callable[[], Any]) -> bool:
    """Wait until what is found is what is expected, and print how much of it there is."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    found = attempt(find)
    while found != expected and time.monotonic() < deadline:
        time.sleep(1)
        found = attempt(find)
    verdict = "equal" if found == expected else "DIFFERENT"
    print(f"{name:<30}{size(expected):>10,}{size(found):>10,}  {verdict}", flush=True)
    return found == expected


def attempt(find: Callable[[], Any]) -> Any:
    """What is found, or ``None`` while the place is not there yet."""
    try:
        return find()
    except (OSError, LookupError, ValueError, subprocess.CalledProcessError):
        return None


def size(found: Any) -> int:
    """How much there is."""
    if isinstance(found, Counter):
        return found.total()
    return found if isinstance(found, int) else len(found or ())


def messages(bootstrap: str, topic: str) -> Iterator[tuple[int, bytes | None, bytes | None]]:
    """The partition, key and value of each committed record of a topic."""
    config = {"bootstrap.servers": bootstrap, "group.id": "story-reader", "enable.auto.commit": False}
    with closing(Consumer(config | {"isolation.level": "read_committed", "enable.partition.eof": True})) as consumer:
        metadata = consumer.list_topics(topic, 30)
        open_ends = set(metadata.topics[topic].partitions)
        consumer.assign([TopicPartition(topic, partition, 0) for partition in open_ends])
        while open_ends:
            for message in consumer.consume(1000, 1.0):
                if message.error() is None:
                    yield message.partition(), message.key(), message.value()
                else:
                    open_ends.discard(message.partition())


def archived(places: Places) -> Counter[str]:
    """How many lines S3 has for each topic."""
    client = places.s3.client()
    lines: Counter[str] = Counter()
    for page in client.get_paginator("list_objects_v2").paginate(Bucket=places.s3.bucket, Prefix="topics/"):
        for item in page.get("Contents", ()):
            topic = item["Key"].split("/")[1]
            lines[topic] += client.get_object(Bucket=places.s3.bucket, Key=item["Key"])["Body"].read().count(b"\n")
    return lines


def lake(places: Places, table: str) -> dict[int, dict[str, str]]:
    """The rows of a table of the lake, as another Spark reads them."""
    command = [sys.executable, HERE / "lake.py", places.hive, table]
    environ = {**os.environ, "TZ": "UTC", "PYTHONPATH": str(ROOT)}
    told = subprocess.run(command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
    return as_text({row["id"]: row for row in json.loads(told.stdout)[table]})


def as_text(rows: dict[int, dict[str, Any]]) -> dict[int, dict[str, str]]:
    """Rows whose values can be compared wherever they were read."""
    return {key: {name: str(value) for name, value in row.items()} for key, row in rows.items()}


def answers(url: str) -> bool:
    """Whether there is a good answer."""
    try:
        return requests.get(url, timeout=10).ok
    except requests.ConnectionError:
        return False


def until(what: str, happens: Callable[[], bool]) -> None:
    """Wait for something."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not happens():
        if time.monotonic() > deadline:
            raise SystemExit(f"Waited {PATIENCE_SECONDS:.0f} s in vain until {what}; see {BUILD}")
        time.sleep(0.2)


def say(what: str) -> None:
    """Print what happens, and when."""
    print(f"[{time.strftime('%H:%M:%S')}] {what}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
