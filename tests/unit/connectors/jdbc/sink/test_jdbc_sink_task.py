"""The task of the JDBC sink: what it holds, when it writes, and what becomes of it when that fails."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from connect.data import Schema, SinkBatch, SinkRecord, TopicPartition
from connect.errors import ConnectError, RetriableError
from connect.testing.contexts import ErrantRecords, SinkTaskTestContext
from connectors.jdbc import JdbcSinkConfig, JdbcSinkConnector, JdbcSinkTask
from equipment.growth import assert_grows_evenly

ZERO, ONE = TopicPartition("words", 0), TopicPartition("words", 1)
WORD = Schema.struct({"word": Schema.string(optional=True)})
LONGER = Schema.struct({"word": Schema.string(optional=True), "size": Schema.int32(optional=True)})
Make = Callable[..., JdbcSinkTask]


def batch(*words: Any, first: int = 0, partition: int = 0, schema: Schema = WORD) -> SinkBatch:
    records = [
        SinkRecord("words", {"word": word, "size": 1} if schema is LONGER else {"word": word}, schema, offset=offset,
                   partition=partition, original_topic="words", original_partition=partition, original_offset=offset)
        for offset, word in enumerate(words, first)
    ]  # fmt: skip
    return SinkBatch.from_records(records)[0]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "words.db"


@pytest.fixture
def rows(file: Path) -> Callable[[str], list[tuple[Any, ...]]]:
    def read(query: str = "SELECT word FROM words") -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(file)) as connection:
            return connection.execute(query).fetchall() if file.stat().st_size else []

    return read


@pytest.fixture
def make(file: Path) -> Iterator[Make]:
    tasks: list[JdbcSinkTask] = []

    def task(errant: ErrantRecords[SinkRecord] | None = None, **props: str) -> JdbcSinkTask:
        given = {
            "name": "sink",
            "connection.url": f"jdbc:sqlite:{file}?busy_timeout=0",
            "auto.create": "true",
            "retry.backoff.ms": "70",
            **{key.replace("_", "."): value for key, value in props.items()},
        }
        made = JdbcSinkTask(JdbcSinkConfig.parse(given), SinkTaskTestContext(errant_record_reporter=errant))
        made.start()
        tasks.append(made)
        return made

    yield task
    for each in tasks:
        each.stop()


def started(task: JdbcSinkTask, *partitions: TopicPartition) -> JdbcSinkTask:
    task.context.assignment |= set(partitions)
    task.open(partitions)
    return task


def test_records_are_held_until_there_are_enough(make: Make, rows: Any) -> None:
    task = make(batch_size="4")
    task.put(batch("a", "b"))
    assert task.context.retry_after == 0.1, "it asks to be called again soon"
    task.put(batch("c", first=2))
    assert "words" not in str(rows("SELECT name FROM sqlite_master"))
    task.put(batch("d", "e", first=3))
    assert rows() == [("a",), ("b",), ("c",), ("d",), ("e",)]


def test_records_that_are_held_are_written_when_time_has_passed_and_by_a_flush(make: Make, rows: Any) -> None:
    task = make()
    task.put(batch("a"))
    task.put(batch("a").slice(0, 0))
    assert rows() == [("a",)]
    task.put(batch("b", first=1))
    task.flush({})
    assert rows() == [("a",), ("b",)]


def test_a_steady_stream_is_written_a_tenth_of_a_second_after_its_first_record(make: Make, rows: Any) -> None:
    task = make(batch_size="100000000")
    begun = time.monotonic()
    asked: list[float] = []
    for offset in count():
        task.context.retry_after = None
        task.put(batch("a", first=offset))
        if task.context.retry_after is None:
            break
        asked.append(task.context.retry_after)
        assert time.monotonic() < begun + 30
    took = time.monotonic() - begun
    assert len(rows()) == offset + 1
    assert took >= 0.1
    assert asked[0] == 0.1
    assert asked == sorted(asked, reverse=True), "each put leaves less of the tenth of a second"
    task.put(batch("b", first=offset + 1))
    assert task.context.retry_after == 0.1, "it starts anew with the next record"


def test_a_batch_size_of_zero_writes_at_once(make: Make, rows: Any) -> None:
    make(batch_size="0").put(batch("a"))
    assert rows() == [("a",)]


def test_partitions_that_are_lost_are_not_written(make: Make, rows: Any) -> None:
    task = started(make(), ZERO, ONE)
    task.put(batch("a", partition=0))
    task.put(batch("b", partition=1))
    task.close([ZERO])
    task.flush({})
    assert rows() == [("b",)]


def test_another_schema_is_another_layout_in_the_same_transaction(make: Make, rows: Any) -> None:
    task = make(auto_evolve="true")
    task.put(batch("a"))
    task.put(batch("b", first=1, schema=LONGER))
    task.put(batch("c", first=2))
    task.flush({})
    assert rows("SELECT word, size FROM words") == [("a", None), ("b", 1), ("c", None)]


def test_a_locked_database_is_tried_again_so_many_times(make: Make, rows: Any, file: Path) -> None:
    task = make(batch_size="2", max_retries="2")
    task.put(batch("a"))
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        for _ in range(2):
            with pytest.raises(RetriableError, match="locked") as told:
                task.put(batch("b", first=1))
            assert told.value.retry_after == 0.07
        with pytest.raises(ConnectError, match=r"tried 3 times, as max\.retries=2 allows"):
            task.put(batch("b", first=1))
        other.execute("ROLLBACK")
        task.put(batch("b", first=1))
    assert rows() == [("a",), ("b",)]


def test_a_flush_that_fails_holds_nothing(make: Make, rows: Any, file: Path) -> None:
    task = make()
    task.put(batch("a"))
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(RetriableError):
            task.flush({})
        other.execute("ROLLBACK")
    task.put(batch("a", "b"))
    task.flush({})
    assert rows() == [("a",), ("b",)], "the runtime has given the first one again"


def test_an_error_hides_the_values_of_other_rows_and_tells_the_record(make: Make, file: Path) -> None:
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("CREATE TABLE words (word TEXT NOT NULL)")
    task = make()
    task.put(batch("a", None))
    with pytest.raises(ConnectError, match=r"write the record to table words .*NOT NULL.*\(record words:0:1\)"):
        task.flush({})


def test_records_without_a_value_are_reported(make: Make, rows: Any) -> None:
    errant = ErrantRecords[SinkRecord](tolerate=True)
    task = make(errant)
    records = [*batch("a"), SinkRecord("words", None, None, offset=1, original_topic="words", original_offset=1)]
    for each in SinkBatch.from_records(records):
        task.put(each)
    task.flush({})
    assert rows() == [("a",)]
    ((record, error),) = errant.reported
    assert (record.original_offset, "delete.enabled=true" in str(error)) == (1, True)


def test_records_of_an_optional_schema_may_have_no_value(make: Make, rows: Any) -> None:
    schema = Schema.struct({"word": Schema.string()}, optional=True)
    task = make(insert_mode="upsert", pk_mode="record_key", delete_enabled="true")
    key = Schema.struct({"id": Schema.int32()})
    values = [(1, "a"), (2, "b"), (1, None), (3, "c"), (2, None), (2, "d")]
    records = [
        SinkRecord("words", None if word is None else {"word": word}, schema, {"id": number}, key, offset=offset)
        for offset, (number, word) in enumerate(values)
    ]
    task.put(SinkBatch.from_records(records)[0])
    task.flush({})
    assert sorted(rows("SELECT id, word FROM words")) == [(2, "d"), (3, "c")]


# -- exactly once ------------------------------------------------------------------------------------------------


def test_a_task_continues_from_the_offsets_in_the_database(make: Make, rows: Any) -> None:
    task = started(make(delivery="exactly-once"), ZERO, ONE)
    task.put(batch("a", "b", first=5))
    task.flush({})
    successor = started(make(delivery="exactly-once"), ZERO, ONE)
    assert successor.context.rewinds == {ZERO: 7}
    successor.put(batch("b", "c", first=6))
    successor.flush({})
    assert rows() == [("a",), ("b",), ("c",)]


def test_a_task_that_was_overtaken_undoes_its_rows_and_continues_after_the_other(make: Make, rows: Any) -> None:
    zombie = started(make(delivery="exactly-once"), ZERO, ONE)
    zombie.put(batch("a", partition=0))
    zombie.flush({})
    heir = started(make(delivery="exactly-once"), ZERO)
    heir.put(batch("b", first=1, partition=0))
    heir.flush({})
    zombie.put(batch("x", partition=1))
    zombie.put(batch("b", "c", first=1, partition=0))
    zombie.flush({})
    assert rows() == [("a",), ("b",)]
    assert zombie.context.rewinds == {ZERO: 2, ONE: 0}
    zombie.put(batch("x", partition=1))
    zombie.put(batch("c", first=2, partition=0))
    zombie.flush({})
    assert rows() == [("a",), ("b",), ("x",), ("c",)]


def test_two_tasks_that_begin_a_partition_write_it_once(make: Make, rows: Any) -> None:
    first, second = (started(make(delivery="exactly-once"), ZERO) for _ in range(2))
    for task in (first, second):
        task.put(batch("a"))
        task.flush({})
    assert rows() == [("a",)]
    assert second.context.rewinds == {ZERO: 1}


def test_offsets_of_a_former_topic_are_not_those_of_the_topic_that_has_its_name_now(make: Make, rows: Any) -> None:
    for topic_id, words in (("A", "abc"), ("A", "abcd"), ("B", "efghi"), ("B", "efghij")):
        task = make(delivery="exactly-once")
        task.context.ids = {"words": topic_id}
        started(task, ZERO)
        task.put(batch(*words))
        task.flush({})
    assert [word for (word,) in rows()] == list("abcdefghij")
    assert rows("SELECT next_offset, topic_id FROM sluice_offsets") == [(6, "B")]


def test_offsets_without_the_id_of_their_topic_are_taken_as_they_are(make: Make, file: Path, rows: Any) -> None:
    for ids, words in (({}, "abc"), ({"words": "A"}, "abcd"), ({}, "abcde")):
        task = make(delivery="exactly-once")
        task.context.ids = ids
        started(task, ZERO)
        task.put(batch(*words))
        task.flush({})
    assert [word for (word,) in rows()] == list("abcde")
    assert rows("SELECT next_offset, topic_id FROM sluice_offsets") == [(5, "A")]


def test_a_table_of_offsets_that_was_made_without_ids_goes_on(make: Make, file: Path, rows: Any) -> None:
    with closing(sqlite3.connect(file)) as connection:
        connection.execute(
            "CREATE TABLE sluice_offsets (connector VARCHAR(255) NOT NULL, topic VARCHAR(255) NOT NULL, "
            "kafka_partition INTEGER NOT NULL, next_offset BIGINT NOT NULL, "
            "PRIMARY KEY (connector, topic, kafka_partition))"
        )
        connection.execute("INSERT INTO sluice_offsets VALUES ('sink', 'words', 0, 2)")
        connection.commit()
    task = make(delivery="exactly-once")
    task.context.ids = {"words": "A"}
    started(task, ZERO)
    task.put(batch("a", "b", "c"))
    task.flush({})
    assert rows() == [("c",)]
    assert rows("SELECT connector, topic, kafka_partition, next_offset FROM sluice_offsets") == [
        ("sink", "words", 0, 3)
    ]


def test_offsets_that_a_user_sets_are_set_in_the_database(make: Make, file: Path, rows: Any) -> None:
    task = started(make(delivery="exactly-once"), ZERO, ONE)
    task.put(batch("a", partition=0))
    task.put(batch("b", partition=1))
    task.flush({})
    assert JdbcSinkConnector.alter_offsets(task.config, {ZERO: 9, ONE: None, TopicPartition("words", 2): 4})
    query = "SELECT connector, topic, kafka_partition, next_offset FROM sluice_offsets ORDER BY 3"
    assert rows(query) == [("sink", "words", 0, 9), ("sink", "words", 2, 4)]
    assert started(make(delivery="exactly-once"), ZERO, ONE).context.rewinds == {ZERO: 9}


def test_connectors_with_long_names_keep_offsets_of_their_own(make: Make, rows: Any) -> None:
    for ending in ("a", "b"):
        task = started(make(delivery="exactly-once", name="n" * 300 + ending), ZERO)
        task.put(batch(ending))
        task.flush({})
    assert rows() == [("a",), ("b",)]


@pytest.mark.growth
def test_bad_rows_cost_in_proportion(make: Make, file: Path) -> None:
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("CREATE TABLE words (word TEXT NOT NULL)")
    errant = ErrantRecords[SinkRecord](tolerate=True)
    task = make(errant, batch_size="0")
    assert_grows_evenly(task.put, lambda size: batch(*[None] * size), 200)
    assert len(errant.reported) % 200 == 0
