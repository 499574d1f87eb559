"""The Spark sink from a topic on the broker to what readers of its tables see."""

from __future__ import annotations

import json
import logging
import os
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from threading import Thread
from typing import Any, ClassVar

import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from confluent_kafka import Message, Producer
from confluent_kafka import TopicPartition as ClientPartition

from connect.bulk import OffsetRange, Progress
from connect.data import Constant, Schema, TopicPartition, ValueColumn
from connect.errors import ConnectError, DataError, RetriableError
from connect.internals.chain.frames import unframed_column
from connect.internals.jvm.class_archive import class_names
from connectors.spark.cluster.executors import own_tag
from connectors.spark.decoding.report import MARKS, ProgressMarks
from connectors.spark.java_archive import loaded_classes
from connectors.spark.jobs.progress import LoadProgress
from connectors.spark.sink import SparkSinkConnector
from connectors.spark.sink.loading.request import split_numbers
from converters.avro import AvroConverter
from equipment.brokers.dead_letters import dead_letters
from equipment.brokers.topics import admin_client
from equipment.fakes.schema_registry import MemoryRegistry, serving
from equipment.proofs import thorough_stories
from equipment.stores.targets import JSON, LoadedTable, TargetContract
from equipment.waiting import wait_until
from equipment.workers.bulk_context import BulkContext
from equipment.workers.small_spark import COMPILING_SPARK

SparkSession = pytest.importorskip("pyspark.sql").SparkSession
from_arrow_schema = pytest.importorskip("pyspark.sql.pandas.types").from_arrow_schema

pytestmark = [
    pytest.mark.integration,
    pytest.mark.spark,
    # PySpark leaves the socket by which it brings rows to the driver to the garbage collector.
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

ENVELOPED = {"value.converter": "converters.json.JsonConverter"}
STRING = {"value.converter": "converters.string.StringConverter"}
SCHEMA = json.dumps({"type": "struct", "fields": [{"field": "id", "type": "int64"}]})
BYTES = {"value.converter": "converters.byte_array.ByteArrayConverter"}


class Sink(LoadedTable):
    """A topic, and tasks that load it into a table of Parquet files, with a Spark as users have it."""

    own_props: ClassVar = COMPILING_SPARK

    @property
    def place(self) -> str:
        return str(self.path())

    def rows(self, table: str | None = None) -> list[dict[str, Any]]:
        """The rows a reader sees, files of different schemas taken together."""
        parts = [pq.ParquetFile(file).read() for file in sorted(self.path(table).rglob("*.parquet"))]
        return [row for part in parts for row in part.to_pylist()]

    def files(self) -> list[str]:
        return sorted(str(file.relative_to(self.store)) for file in self.path().rglob("*.parquet"))


@pytest.fixture(scope="module", autouse=True)
def session(shared_java: None) -> Iterator[None]:
    """Spark, started by the first task and kept for all tests of this file."""
    yield
    active = SparkSession.getActiveSession()
    if active is not None:
        active.stop()


@pytest.fixture
def sink(bootstrap: str, topic: str, tmp_path: Path) -> Sink:
    return Sink(bootstrap, topic, tmp_path)


@thorough_stories(
    "test_a_preview_shows_the_columns_that_the_table_would_get_and_fences_nobody",
    "test_a_first_load_without_one_usable_record_has_its_dead_letters",
    "test_the_files_of_loads_are_merged_and_the_offsets_stay",
)
class TestFiles(TargetContract):
    @pytest.fixture
    def target(self, sink: Sink) -> Sink:
        return sink


def by_id(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return sorted(rows, key=lambda row: row["id"])


def test_file_names_carry_topic_partition_and_offsets(sink: Sink) -> None:
    sink.records.produce([{"id": n} for n in range(10)])
    sink.records.drain(sink.task({**JSON, "parquet.codec": "zstd", "filename.offset.zero.pad.width": "4"}))
    found = sorted(path.relative_to(sink.store).as_posix() for path in sink.store.rglob("*.parquet"))
    topic = sink.topic
    assert found == [f"topics/{topic}/partition={p}/{topic}+{p}+0000+0004.zstd.parquet" for p in (0, 1)]


def test_json_with_schemas_keeps_their_types(sink: Sink) -> None:
    fields: list[dict[str, Any]] = [
        {"field": "id", "type": "int32", "optional": False},
        {
            "field": "price",
            "type": "bytes",
            "optional": True,
            "version": 1,
            "name": "org.apache.kafka.connect.data.Decimal",
            "parameters": {"scale": "2"},
        },
        {"field": "day", "type": "int32", "optional": True, "version": 1, "name": "org.apache.kafka.connect.data.Date"},
        {
            "field": "at",
            "type": "int64",
            "optional": True,
            "version": 1,
            "name": "org.apache.kafka.connect.data.Timestamp",
        },
        {
            "field": "time",
            "type": "int32",
            "optional": True,
            "version": 1,
            "name": "org.apache.kafka.connect.data.Time",
        },
        {"field": "counts", "type": "map", "optional": True, "keys": {"type": "string"}, "values": {"type": "int64"}},
        {
            "field": "list",
            "type": "array",
            "optional": True,
            "items": {
                "type": "struct",
                "fields": [
                    {"field": "x", "type": "float", "optional": True},
                    {"field": "seen", "type": "int64", "name": "org.apache.kafka.connect.data.Timestamp", "version": 1},
                ],
            },
        },
    ]
    schema = {"type": "struct", "optional": False, "name": "flight", "fields": fields}
    payload = {
        "id": 1,
        "price": "AMg=",
        "day": 1,
        "at": 1500,
        "time": 61000,
        "counts": {"a": 1},
        "list": [{"x": 0.5, "seen": 2000}],
    }
    sink.records.produce([{"schema": schema, "payload": payload}, {"schema": schema, "payload": {"id": 2}}])
    task = sink.task(ENVELOPED)
    sink.records.drain(task)
    rows = by_id(sink.rows())
    assert str(rows[0]["price"]) == "2.00"
    assert rows[0]["day"].isoformat() == "1970-01-02"
    assert rows[0]["at"].isoformat() == "1970-01-01T00:00:01.500000+00:00"
    assert rows[0]["time"] == 61000
    assert dict(rows[0]["counts"]) == {"a": 1}
    assert rows[0]["list"][0]["x"] == 0.5
    assert rows[0]["list"][0]["seen"].isoformat() == "1970-01-01T00:00:02+00:00"
    assert rows[1] == {"id": 2, **{field["field"]: None for field in fields[1:]}}

    wider = {**schema, "fields": [{**fields[0], "type": "int64"}, {"field": "new", "type": "string", "optional": True}]}
    sink.records.produce([{"schema": wider, "payload": {"id": 2**40, "new": "x"}}])
    sink.records.drain(task)
    assert by_id(sink.rows())[2]["id"] == 2**40


@pytest.mark.parametrize(
    ("converter", "values"),
    [
        (STRING, [b"one", "zwölf".encode(), b"\xff bad", b""]),
        (BYTES, [b"\x00\x01", b"", b"\xff"]),
    ],
)
def test_a_value_that_is_no_struct_is_the_column_value(
    sink: Sink, converter: Mapping[str, str], values: list[bytes]
) -> None:
    sink.records.produce(values, [b"k%d" % index for index in range(len(values))])
    sink.records.drain(sink.task({**converter, "store.kafka.keys": "true"}))
    expected: list[Any] = list(values)
    if converter is STRING:
        expected = [value.decode(errors="replace") for value in values]
    found = {row["key"]: row["value"] for row in sink.rows()}
    assert found == {b"k%d" % index: value for index, value in enumerate(expected)}


def test_field_partitioner_makes_folders_of_values(sink: Sink) -> None:
    values = [{"id": n, "origin": ("EWR", "J/K", None)[n // 2 % 3], "year": 2013 + n % 2} for n in range(60)]
    sink.records.produce(values)
    props = {
        "partitioner.class": "io.confluent.connect.storage.partitioner.FieldPartitioner",
        "partition.field.name": "origin,year",
    }
    task = sink.task({**JSON, **props})
    sink.records.drain(task)
    folders = {
        path.parent.relative_to(sink.store / "topics" / sink.topic).as_posix() for path in sink.store.rglob("*.parquet")
    }
    assert folders == {
        f"origin={origin}/year={year}"
        for origin in ("EWR", "J%2FK", "__HIVE_DEFAULT_PARTITION__")
        for year in (2013, 2014)
    }
    rows = by_id(ds.dataset(sink.store / "topics" / sink.topic, partitioning="hive").to_table().to_pylist())
    assert [(row["id"], row["origin"], row["year"]) for row in rows] == [
        (value["id"], value["origin"], value["year"]) for value in values
    ]
    with pytest.raises(DataError, match=r"partition\.field\.name=gone"):
        other = Sink(sink.bootstrap, f"{sink.topic}-2", sink.store / "other")
        other.records.produce([{"id": 1}])
        other.records.drain(other.task({**JSON, **props, "partition.field.name": "gone"}))


def test_values_that_no_folder_can_tell_are_bad_records(sink: Sink) -> None:
    values = ["x", "", None, "__HIVE_DEFAULT_PARTITION__", "y" * 300, "z"]
    sink.records.produce([{"id": number, "k": value} for number, value in enumerate(values)])
    fields = {"partitioner.class": "FieldPartitioner", "partition.field.name": "k"}
    sink.records.drain(sink.task({**JSON, **fields, "errors.tolerance": "all"}))
    assert [row["id"] for row in by_id(sink.rows())] == [0, 2, 5]


def test_a_field_named_like_a_part_of_the_folders_is_told_of_at_the_first_load(
    sink: Sink, caplog: pytest.LogCaptureFixture
) -> None:
    for count in (1, 1):
        sink.records.produce([{"id": 1, "partition": "P0"}])
        sink.records.drain(sink.task(JSON))
        assert caplog.text.count(f"Table {sink.topic} has a field partition, which is also a part") == count


def test_with_tolerance_a_bad_record_is_left_out_and_told(sink: Sink, caplog: pytest.LogCaptureFixture) -> None:
    sink.records.produce([{"id": 0}, {"id": 1}, b"{broken", {"id": "text"}, None, {"id": 5}])
    with caplog.at_level(logging.WARNING):
        sink.records.drain(sink.task({**JSON, "errors.tolerance": "all"}))
    assert [row["id"] for row in by_id(sink.rows())] == [0, 1, 5]
    assert "Left out 3 of 6 records" in caplog.text
    assert "partition 0, offset 1" in caplog.text
    assert "has no value" in caplog.text


def queue_props(sink: Sink) -> dict[str, str]:
    return {
        **JSON,
        "errors.tolerance": "all",
        "errors.deadletterqueue.topic.name": f"{sink.topic}-dlq",
        "errors.deadletterqueue.topic.replication.factor": "1",
        "errors.deadletterqueue.context.headers.enable": "true",
    }


def error_headers(message: Message) -> dict[str, str]:
    return {
        name.removeprefix("__connect.errors."): (value or b"").decode()
        for name, value in message.headers() or ()
        if name.startswith("__connect.errors.")
    }


def test_dead_letters_are_whole_and_tell_what_is_wrong_with_them(sink: Sink) -> None:
    values = [{"id": 0}, {"id": 1}, b"{broken", {"id": "text"}, None, {"id": 5}]
    sink.records.produce(values, [b"k%d" % n for n in range(6)], headers=[{"source": b"test"}] * 6)
    task = sink.task(queue_props(sink))
    sink.records.drain(task)
    assert [row["id"] for row in by_id(sink.rows())] == [0, 1, 5]
    told_and_whole = [
        (error_headers(message), message) for message in dead_letters(sink.bootstrap, f"{sink.topic}-dlq")
    ]
    found = {(int(told["partition"]), int(told["offset"])): message for told, message in told_and_whole}
    assert found.keys() == {(0, 1), (0, 2), (1, 1)}
    broken, null, text = found[0, 1], found[0, 2], found[1, 1]
    assert (broken.key(), broken.value(), null.value(), text.value()) == (b"k2", b"{broken", None, b'{"id": "text"}')
    assert ("source", b"test") in (broken.headers() or [])
    told = error_headers(broken)
    assert told["topic"] == sink.topic
    assert (told["connector.name"], told["task.id"], told["stage"]) == ("sink", "0", "VALUE_CONVERTER")
    assert told["class.name"] == "converters.json.converter.JsonConverter"
    assert told["exception.class.name"] == "connect.errors.DataError"
    assert told["exception.stacktrace"].startswith("Traceback")
    assert error_headers(text)["stage"] == "TASK_PUT"
    assert error_headers(text)["class.name"] == "connectors.spark.sink.SparkSinkTask"
    assert isinstance(task.context, BulkContext)
    assert task.context.counts.total_records_skipped == 3


STATIC = {
    "transforms": "i",
    "transforms.i.type": "org.apache.kafka.connect.transforms.InsertField$Value",
    "transforms.i.static.field": "s",
    "transforms.i.static.value": "x",
}


def test_a_load_that_transforms_nothing_usable_has_its_dead_letters(
    sink: Sink, caplog: pytest.LogCaptureFixture
) -> None:
    props = {**queue_props(sink), **STATIC}
    sink.records.produce([b"not json", None, b"not json"])
    task = sink.task(props)
    with caplog.at_level(logging.WARNING):
        sink.records.drain(task)
    assert len(dead_letters(sink.bootstrap, f"{sink.topic}-dlq")) == 3
    assert "Left out 3 of 3 records" in caplog.text
    assert task.committed() == {TopicPartition(sink.topic, 0): 2, TopicPartition(sink.topic, 1): 1}
    sink.records.produce([{"id": 1}])
    sink.records.drain(task)
    assert [row["id"] for row in sink.rows()] == [1]
    sink.records.produce([b"not json", b"not json"])
    limited = sink.task({**props, "errors.tolerance.limit": "1"})
    with pytest.raises(ConnectError, match=r"errors\.tolerance\.limit"):
        sink.records.drain(limited)


def test_one_record_that_no_table_can_hold_condemns_no_other(sink: Sink) -> None:
    props = {**queue_props(sink), "store.kafka.keys": "true", "key.converter": STRING["value.converter"]}
    sink.records.produce([{"id": 1}, {"id": 2, "key": "x"}, {"": 3}, {"id": 4}])
    sink.records.drain(sink.task(props))
    assert [row["id"] for row in by_id(sink.rows())] == [1, 4]
    sink.records.produce([{"id": 5}, {"id": 6, "key": "x"}, {"": 7}, b"not json", {"id": 9}])
    sink.records.drain(sink.task(props))
    assert [row["id"] for row in by_id(sink.rows())] == [1, 4, 5, 9]
    assert len(dead_letters(sink.bootstrap, f"{sink.topic}-dlq")) == 5


@pytest.mark.thorough
def test_a_load_that_is_made_again_writes_no_dead_letter_twice(sink: Sink, tmp_path: Path) -> None:
    sink.records.produce([b"{" if number % 3 else {"id": number} for number in range(60)])
    sink.records.drain(sink.task(queue_props(sink)))
    first = len(dead_letters(sink.bootstrap, f"{sink.topic}-dlq"))
    assert first == 40
    # A target without the load is what a driver leaves that dies before the target's commit.
    sink.store = tmp_path / "again"
    sink.records.drain(sink.task(queue_props(sink)))
    assert len(dead_letters(sink.bootstrap, f"{sink.topic}-dlq")) == first
    sink.records.produce([b"{", b"{"])
    sink.records.drain(sink.task(queue_props(sink)))
    assert len(dead_letters(sink.bootstrap, f"{sink.topic}-dlq")) == first + 2
    sink.store = tmp_path / "others"
    wide = {"type": "struct", "fields": [{"field": "id", "type": "string"}]}
    # With another configuration other records are bad: then one may be written again, but none is left out.
    sink.records.drain(sink.task({**queue_props(sink), "value.schema": json.dumps(wide)}))
    assert sink.rows() == []
    told = Counter(
        (told["partition"], told["offset"])
        for told in map(error_headers, dead_letters(sink.bootstrap, f"{sink.topic}-dlq"))
    )
    assert len(told) == 62


def test_bad_records_beyond_what_is_held_at_once_are_all_told(sink: Sink) -> None:
    sink.records.produce([b"{%d" % number for number in range(22_000)])
    sink.records.drain(sink.task({**queue_props(sink), "value.schema": SCHEMA}))
    told = [
        (int(each["partition"]), int(each["offset"]))
        for each in map(error_headers, dead_letters(sink.bootstrap, f"{sink.topic}-dlq"))
    ]
    assert sorted(told) == [(partition, offset) for partition in (0, 1) for offset in range(11_000)]


def test_without_tolerance_the_record_that_fails_the_task_is_in_the_queue_once(sink: Sink) -> None:
    sink.records.produce([{"id": 0}, {"id": 1}, b"{", b"{"])
    for _ in range(2):
        with pytest.raises(DataError, match="partition 0, offset 1"):
            sink.records.drain(sink.task({**queue_props(sink), "errors.tolerance": "none"}))
    assert [message.value() for message in dead_letters(sink.bootstrap, f"{sink.topic}-dlq")] == [b"{"]
    assert list(sink.store.rglob("*.parquet")) == []


def test_more_bad_records_than_the_limit_fail_the_load(sink: Sink) -> None:
    sink.records.produce([{"id": 0}, {"id": 1}, b"{", b"{", {"id": 4}, b"{"])
    with pytest.raises(ConnectError, match=r"errors\.tolerance\.limit=2"):
        sink.records.drain(sink.task({**JSON, "errors.tolerance": "all", "errors.tolerance.limit": "2"}))
    assert sink.rows() == []
    sink.records.drain(sink.task({**JSON, "errors.tolerance": "all", "errors.tolerance.limit": "3"}))
    assert [row["id"] for row in by_id(sink.rows())] == [0, 1, 4]


@pytest.mark.parametrize(("behavior", "expected"), [("ignore", [1, 3]), ("write", [1, 3, None])])
def test_records_without_a_value(sink: Sink, behavior: str, expected: list[Any]) -> None:
    sink.records.produce([{"id": 1}, None, {"id": 3}])
    sink.records.drain(sink.task({**JSON, "behavior.on.null.values": behavior}))
    assert sorted((row["id"] for row in sink.rows()), key=lambda each: (each is None, each)) == expected


def test_a_record_that_would_change_a_type_is_bad(sink: Sink) -> None:
    task = sink.task(JSON)
    sink.records.produce([{"id": 1, "price": 10}])
    sink.records.drain(task)
    sink.records.produce([{"id": 3, "price": 10.5}])
    with pytest.raises(DataError, match="price"):
        sink.records.drain(task)


def test_a_declared_schema_is_what_the_table_begins_with(sink: Sink) -> None:
    schema = {"type": "struct", "fields": [{"field": "id", "type": "int64"}, {"field": "price", "type": "double"}]}
    task = sink.task({**JSON, "value.schema": json.dumps(schema)})
    sink.records.produce([{"id": 1, "price": 10}, {"id": 2}, {"id": 3, "price": 10.5, "more": True}])
    sink.records.drain(task)
    assert by_id(sink.rows()) == [
        {"id": 1, "price": 10.0, "more": None},
        {"id": 2, "price": None, "more": None},
        {"id": 3, "price": 10.5, "more": True},
    ]


def test_gaps_of_transactions_and_empty_ranges_are_no_loss(sink: Sink) -> None:
    producer = Producer({"bootstrap.servers": sink.bootstrap, "transactional.id": sink.topic})
    producer.init_transactions(30)
    for attempt in range(4):
        producer.begin_transaction()
        producer.produce(sink.topic, json.dumps({"id": attempt}).encode(), partition=0)
        assert producer.flush(30) == 0
        if attempt % 2:
            producer.abort_transaction(30)
        else:
            producer.commit_transaction(30)
    task = sink.task({**JSON, "consumer.override.isolation.level": "read_committed"})
    tp = TopicPartition(sink.topic, 0)
    task.load([OffsetRange(*tp, 0, 4)])
    task.load([OffsetRange(*tp, 4, 8)])
    assert [row["id"] for row in by_id(sink.rows())] == [0, 2]
    assert task.committed() == {tp: 8}
    task.load([OffsetRange(*tp, 0, 8)])  # all of it is loaded already
    assert len(sink.rows()) == 2


def test_topics_that_share_a_table_are_loaded_at_once_and_agree_on_its_columns(sink: Sink, tmp_path: Path) -> None:
    """The first load finds the schema of each topic by itself: those of the second are added to those of the first."""
    others = [Sink(sink.bootstrap, f"{sink.topic}-{number}", tmp_path) for number in range(2)]
    sink.records.produce([{"id": 1, "a": 1}, {"id": 2}])
    others[0].records.produce([{"id": 3, "b": "x"}, b"no JSON", {"id": 5}])
    others[1].records.produce([{"id": 6, "a": 2}])
    sinks = [sink, *others]
    ranges = [item for each in sinks for item in each.records.ranges()]
    router = {"transforms": "r", "transforms.r.type": "RegexRouter", "transforms.r.regex": ".*"}
    props = {**JSON, **router, "transforms.r.replacement": "all"}
    with pytest.raises(DataError, match=f"topic {others[0].topic}, partition 1, offset 0"):
        sink.task(props).load(ranges)
    assert sink.rows("all") == []
    task = sink.task({**props, "errors.tolerance": "all"})
    task.load(ranges)
    assert task.committed() == {item.topic_partition: item.end for item in ranges}
    assert by_id(sink.rows("all")) == [
        {"id": 1, "a": 1},
        {"id": 2, "a": None},
        {"id": 3, "a": None, "b": "x"},
        {"id": 5, "a": None, "b": None},
        {"id": 6, "a": 2},
    ]
    for each in sinks:
        each.records.produce([{"id": 7, "a": 7, "b": "y"}])
    task.load([item for each in sinks for item in each.records.ranges(task.committed())])
    assert by_id(sink.rows("all"))[5:] == [{"id": 7, "a": 7, "b": "y"}] * 3


def test_offsets_that_kafka_no_longer_has_are_an_error(sink: Sink) -> None:
    sink.records.produce([{"id": n} for n in range(10)])
    tp = TopicPartition(sink.topic, 0)
    admin = admin_client(sink.bootstrap)
    for deleted in admin.delete_records([ClientPartition(*tp, 3)]).values():
        deleted.result()
    task = sink.task(JSON)
    with pytest.raises(ConnectError, match="Some of the records to load from topic"):
        task.load([OffsetRange(*tp, 0, 5)])
    assert task.committed() == {}


def test_a_topic_that_was_made_again_is_not_taken_for_the_one_that_was_loaded(sink: Sink) -> None:
    """However long it is: its first records would never be loaded (I4)."""
    sink.records.produce([{"id": n} for n in range(10)])
    tp = TopicPartition(sink.topic, 0)
    task = sink.task(JSON)
    task.load([OffsetRange(*tp, 0, 2, "first")])
    task.load([OffsetRange(*tp, 2, 3)])
    with pytest.raises(ConnectError, match=f"Topic {sink.topic} was deleted and created again"):
        task.load([OffsetRange(*tp, 3, 5, "second")])
    assert task.committed() == {tp: 3}
    SparkSinkConnector.alter_offsets(task.config, {tp: 4})
    task = sink.task(JSON)
    task.load([OffsetRange(*tp, 4, 5, "second")])
    assert task.committed() == {tp: 5}


def test_a_task_that_is_to_stop_gives_its_load_up(sink: Sink) -> None:
    sink.records.produce([{"id": n} for n in range(10)])
    task = sink.task(JSON)
    assert isinstance(task.context, BulkContext)
    task.context.stop = True
    with pytest.raises(RetriableError, match="cancelled because the task is stopping"):
        sink.records.drain(task)
    task.context.stop = False
    sink.records.drain(task)
    assert len(sink.rows()) == 10


def test_java_tells_which_classes_it_has_loaded_for_an_archive_of_them(sink: Sink) -> None:
    sink.task(STRING)
    spark = SparkSession.getActiveSession()
    assert spark is not None
    assert "org/apache/spark/SparkContext" in class_names(loaded_classes(spark.sparkContext._gateway) or "")


def test_it_is_known_how_far_a_running_job_is(sink: Sink, tmp_path: Path) -> None:
    sink.records.produce([b"x"] * 10)
    task = sink.task(STRING)
    assert isinstance(task.context, BulkContext)
    spark, go_on = SparkSession.getActiveSession(), str(tmp_path / "go-on")
    assert spark is not None
    progress = LoadProgress(spark, task.context)
    progress.wrote(rows=7)
    progress.stage("writing")

    def wait_for_file(numbers: Iterable[Any]) -> Iterator[Any]:
        for _ in numbers:
            marks = ProgressMarks()
            for records in range(0, 200_000, 9_999):
                yield from marks.up_to(records)
            while not os.path.exists(go_on):  # noqa: PTH110 - it runs in a process of Spark, without this module
                time.sleep(0.05)

    numbers: Any = split_numbers(spark, 2)
    frame = numbers.mapInArrow(wait_for_file, from_arrow_schema(MARKS))

    def write() -> None:
        # So jobs are told from those of others in the application.
        spark.sparkContext.addJobTag(own_tag())
        frame.write.format("noop").mode("overwrite").save()

    job = Thread(target=write)
    job.start()
    try:
        context = task.context

        def told() -> Progress | None:
            progress.look()
            return context.last_progress if context.last_progress.records >= 100_000 else None

        found = wait_until("Spark tells of it", told, seconds=90)
        assert found.records % 1000 == 0
        # What PySpark has not sent yet is not known.
        assert found.records <= 2 * 199_000
        assert replace(found, records=0) == Progress("writing", rows=7)
    finally:
        Path(go_on).touch()
        job.join()
    task.load(sink.records.ranges())
    assert replace(context.last_progress, bytes=0) == Progress("committing", rows=10, files=2)


@pytest.mark.thorough
def test_messages_whose_schemas_are_in_headers_are_rows(sink: Sink) -> None:
    schema = Schema.struct({"id": Schema.int64(), "name": Schema.string(optional=True)}, name="Row")
    rows: list[dict[str, Any]] = [{"id": number, "name": f"n{number}"} for number in range(500)]
    with serving(MemoryRegistry(tells_guids=True)) as memory:
        peer = AvroConverter.configured(
            {"schema.registry.url": memory.url, "value.schema.id.serializer": "HeaderSchemaIdSerializer"}
        )
        values, headers = unframed_column(
            peer, peer.from_connect_column(sink.topic, ValueColumn(rows, schema)), Constant(None, 500)
        )
        peer.close()
        named = [list(row or ()) for row in headers]
        named[7] = [("__value_schema_id", b"\x01none")]
        sink.records.produce(values, headers=named)
        props = {"value.converter": "converters.avro.AvroConverter", "value.converter.schema.registry.url": memory.url}
        sink.records.drain(
            sink.task({**sink.queue(), **props, "store.kafka.headers": "true", "store.kafka.headers.column": "h"})
        )
    assert [(row["id"], row["name"]) for row in by_id(sink.rows())] == [
        (row["id"], row["name"]) for row in rows if row["id"] != 7
    ]
    assert {header["key"] for row in sink.rows() for header in row["h"]} == {"__value_schema_id"}
    (letter,) = dead_letters(sink.bootstrap, f"{sink.topic}-dlq")
    # It is the record as it was: its value without what the header says.
    assert letter.value() == values[7]
