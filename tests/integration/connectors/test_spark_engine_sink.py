"""Sink connectors that are run by Spark: from a topic on the broker to the target, by way of executors."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from connect.bulk import OffsetRange
from connect.data import TopicPartition
from connect.errors import ConnectError, DataError, RetriableError
from connectors.spark.engine.config import SparkSinkEngineConfig
from connectors.spark.engine.sink import SparkSinkEngine
from equipment.brokers.dead_letters import dead_letters
from equipment.brokers.topics import create_topic, ordered_producer, read_topic
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
def session(shared_java: None) -> Iterator[None]:
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
        self.tries = 0

    def fill(self, values: Sequence[bytes], partition: int | None = None) -> None:
        """Produce values, to the partitions in turn unless one is given."""
        producer = ordered_producer(self.bootstrap)
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

    def drain(self, engine: SparkSinkEngine) -> None:
        """Load everything, as the worker does it: a load that can be made again is."""
        while ranges := self.ranges(engine):
            with suppress(RetriableError):
                engine.load(ranges)
            self.tries += 1
            assert self.tries < 20

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
    told = source.contexts[-1].last_progress
    assert (told.rows, told.stage.startswith("2 tasks have put records")) == (900, True)
    source.fill([row(number) for number in range(900, 910)])
    engine.load(source.ranges(engine))
    assert source.rows() == [(number,) for number in range(910)]


def test_a_topic_that_was_created_again_is_put_from_its_beginning(source: Topic) -> None:
    source.fill([row(number) for number in range(9)])
    engine = source.engine()
    engine.load(source.ranges(engine))
    assert engine.begin_anew("another")
    assert source.ranges(engine) == []
    assert engine.begin_anew(source.name)
    engine.load(source.ranges(engine))
    assert source.rows() == [(number,) for number in range(9) for _ in range(2)]


def test_bad_records_are_left_out_and_told_of_once(source: Topic) -> None:
    values = [row(number) for number in range(12)]
    values[4], values[9] = b"no json", b"none either"
    source.fill(values)
    queue = f"{source.name}-bad"
    props = {
        "insert.mode": "upsert",
        "pk.mode": "record_value",
        "pk.fields": "id",
        "errors.tolerance": "all",
        "errors.deadletterqueue.topic.name": queue,
    }
    engine = source.engine(**props)
    source.drain(engine)
    # The same load, made again by another driver.
    again = source.engine(**props)
    source.drain(again)
    told = dead_letters(source.bootstrap, queue)
    assert sorted(letter.value() or b"" for letter in told) == [b"no json", b"none either"]
    assert source.contexts[0].counts.total_records_skipped == 2
    assert source.rows() == [(number,) for number in range(12) if number not in (4, 9)]


def test_a_bad_record_fails_the_load_and_what_was_flushed_before_stays(source: Topic) -> None:
    source.fill([row(number) for number in range(3)], partition=0)
    source.fill([b"no json"], partition=1)
    engine = source.engine()
    with pytest.raises(DataError, match=r"Bad record in topic .*, partition 1, offset 0: .* errors.tolerance"):
        engine.load(source.ranges(engine))
    assert engine.committed() == {TopicPartition(source.name, 0): 3}
    assert source.rows() == [(0,), (1,), (2,)]


def test_a_task_that_fails_tells_why_with_the_trace_of_the_executor(source: Topic) -> None:
    source.fill([row(1)])
    engine = source.engine(auto_create="false")
    with pytest.raises(ConnectError, match=r"A task of the connector failed in an executor of Spark: .*rows") as told:
        engine.load(source.ranges(engine))
    assert "connectors/jdbc/sink" in str(told.value.__cause__)
    assert source.contexts[-1].counts.total_record_errors == 0


def test_with_offsets_in_the_target_each_row_is_there_once_and_refused_rows_are_told_of_before_it_goes_on(
    source: Topic,
) -> None:
    with sqlite3.connect(source.file) as connection:
        connection.execute("CREATE TABLE rows (id BIGINT, name TEXT NOT NULL)")
    # Three transactions have a row that the database refuses.
    refused = {10, 11, 55, 90}
    source.fill([row(number, None if number in refused else "x") for number in range(100)], partition=0)
    queue = f"{source.name}-bad"
    props = {
        "delivery": "exactly-once",
        "auto.create": "false",
        "batch.size": "10",
        "errors.tolerance": "all",
        "errors.deadletterqueue.topic.name": queue,
    }
    engine = source.engine(**props)
    source.drain(engine)
    # Another driver does not know it, and the database does.
    again = source.engine(**props)
    source.drain(again)
    assert source.rows() == [(number,) for number in range(100) if number not in refused]
    told = [json.loads(letter.value() or b"")["payload"]["id"] for letter in dead_letters(source.bootstrap, queue)]
    assert sorted(told) == sorted(refused)


def test_a_target_that_is_behind_the_group_has_its_records_again(source: Topic) -> None:
    props = {"delivery": "exactly-once"}
    source.fill([row(number) for number in range(30)], partition=0)
    engine = source.engine(**props)
    engine.load(source.ranges(engine))
    with sqlite3.connect(source.file) as connection:
        connection.execute("DELETE FROM rows WHERE id >= 20")
        connection.execute("UPDATE sluice_offsets SET next_offset = 20")
    source.fill([row(number) for number in range(30, 40)], partition=0)
    # Of a database that was restored: the group of the connector is past it.
    again = source.engine(**props)
    with pytest.raises(RetriableError, match=f"asks for records again: {source.name}-0 from 20"):
        again.load([OffsetRange(source.name, 0, 30, 40)])
    assert again.committed() == {TopicPartition(source.name, 0): 20}
    again.load(source.ranges(again))
    assert source.rows() == [(number,) for number in range(40)]


def test_what_tasks_publish_is_sent_by_executors_once_the_driver_has_made_its_topic(source: Topic) -> None:
    source.fill([row(number) for number in range(3600)])
    told = f"{source.name}-told"
    plugins = str(Path(__file__).with_name("spark_plugins"))
    most = {"consumer.override.max.poll.records": "500"}
    engine = source.engine(connector_class="AnsweringSink", plugin_path=plugins, answer_topic=told, **most)
    engine.load(source.ranges(engine))
    # Each of two tasks holds 1000 before it has the driver send them, and what else came in the last batch.
    ((topic, by_driver),) = Counter(source.contexts[-1].published).items()
    assert topic == told
    assert 2000 <= by_driver < 3000
    found = read_topic(source.bootstrap, told)
    assert sorted(int(message.value() or b"") for message in found) == list(range(3600))
    assert {message.key() for message in found} == {b"key"}
    assert engine.committed() == dict(source.ends)
