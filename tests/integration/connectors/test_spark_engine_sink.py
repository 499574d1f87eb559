"""Sink connectors that are run by Spark: from a topic on the broker to the target, by way of executors."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from connect.bulk import OffsetRange
from connect.data import TopicPartition
from connectors.spark.engine.config import SparkSinkEngineConfig
from connectors.spark.engine.sink import SparkSinkEngine
from equipment.brokers.topics import create_topic
from equipment.workers.bulk_context import BulkContext

SparkSession = pytest.importorskip("pyspark.sql").SparkSession

pytestmark = [
    pytest.mark.integration,
    pytest.mark.spark,
    # PySpark leaves the socket by which it brings rows to the driver to the garbage collector.
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

FIELDS = [{"field": "id", "type": "int64"}, {"field": "name", "type": "string", "optional": True}]
SCHEMA = {"type": "struct", "fields": FIELDS}


@pytest.fixture(scope="module", autouse=True)
def session() -> Iterator[None]:
    """Spark, started by the first task and kept for all tests of this file."""
    yield
    active = SparkSession.getActiveSession()
    if active is not None:
        active.stop()


def row(number: int, name: str | None = "x") -> bytes:
    return json.dumps({"schema": SCHEMA, "payload": {"id": number, "name": name}}).encode()


class Topic:
    """A topic of three partitions, and the database that a sink writes its records to."""

    def __init__(self, bootstrap: str, name: str, folder: Path) -> None:
        create_topic(bootstrap, name, partitions=3)
        self.bootstrap, self.name, self.file = bootstrap, name, folder / "rows.db"
        self.ends: Counter[TopicPartition] = Counter()
        self.contexts: list[BulkContext] = []

    def fill(self, values: Sequence[bytes], partition: int | None = None) -> None:
        """Produce values, to the partitions in turn unless one is given."""
        producer = Producer({"bootstrap.servers": self.bootstrap})
        for place, value in enumerate(values):
            number = place % 3 if partition is None else partition
            producer.produce(self.name, value, b"key", partition=number, headers={"place": str(place).encode()})
            self.ends[TopicPartition(self.name, number)] += 1
        assert producer.flush(30) == 0

    def engine(self, **props: str) -> SparkSinkEngine:
        """The task of a JDBC sink in Spark, which has started."""
        given = {
            "name": "rows",
            "connector.class": "JdbcSink",
            "engine": "spark",
            "connection.url": f"jdbc:sqlite:{self.file}",
            "table.name.format": "rows",
            "auto.create": "true",
            "value.converter": "JsonConverter",
            "key.converter": "StringConverter",
            "header.converter": "SimpleHeaderConverter",
            "spark.master": "local[2]",
            "spark.driver.memory": "512m",
            "tasks.max": "2",
            **{key.replace("_", "."): value for key, value in props.items()},
        }
        self.contexts.append(BulkContext("rows", self.bootstrap, given))
        task = SparkSinkEngine(SparkSinkEngineConfig.parse(given), self.contexts[-1])
        task.start()
        return task

    def ranges(self, engine: SparkSinkEngine) -> list[OffsetRange]:
        """All that the driver does not know to be done."""
        done = engine.committed()
        return [OffsetRange(*tp, done.get(tp, 0), end) for tp, end in self.ends.items() if end > done.get(tp, 0)]

    def rows(self, columns: str = "id") -> list[tuple[Any, ...]]:
        with sqlite3.connect(self.file) as connection:
            return connection.execute(f"SELECT {columns} FROM rows ORDER BY id").fetchall()

    def order(self) -> Mapping[int, list[int]]:
        """The ids in the order in which they were written."""
        with sqlite3.connect(self.file) as connection:
            found = connection.execute("SELECT id FROM rows ORDER BY rowid").fetchall()
        return {part: [number for (number,) in found if number % 3 == part] for part in range(3)}


@pytest.fixture
def source(bootstrap: str, topic: str, tmp_path: Path) -> Topic:
    return Topic(bootstrap, topic, tmp_path)


def test_records_reach_the_target_once_and_in_the_order_of_their_partitions(source: Topic) -> None:
    source.fill([row(number) for number in range(900)])
    engine = source.engine(batch_size="50")
    engine.load(source.ranges(engine))
    assert source.rows() == [(number,) for number in range(900)]
    assert source.order() == {part: list(range(part, 900, 3)) for part in range(3)}
    assert engine.committed() == dict(source.ends)
    told = source.contexts[-1].told
    assert (told.rows, told.stage.startswith("2 tasks have put records")) == (900, True)
    source.fill([row(number) for number in range(900, 910)])
    engine.load(source.ranges(engine))
    assert source.rows() == [(number,) for number in range(910)]
