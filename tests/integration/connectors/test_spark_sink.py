"""The Spark sink from a topic on the broker to what readers of its tables see."""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from confluent_kafka import Producer
from confluent_kafka import TopicPartition as ClientPartition
from confluent_kafka.admin import AdminClient, NewTopic

from connect.bulk import OffsetRange
from connect.data import TopicPartition
from connect.errors import ConnectError, DataError, RetriableError
from connectors.spark.config import SparkSinkConfig
from connectors.spark.sink import SparkSinkConnector, SparkSinkTask

SparkSession = pytest.importorskip("pyspark.sql").SparkSession

pytestmark = [pytest.mark.integration, pytest.mark.spark]

JSON = {"value.converter": "converters.json.JsonConverter", "value.converter.schemas.enable": "false"}
ENVELOPED = {"value.converter": "converters.json.JsonConverter"}
STRING = {"value.converter": "converters.string.StringConverter"}
BYTES = {"value.converter": "converters.byte_array.ByteArrayConverter"}


class Context:
    """What the worker gives a bulk sink task."""

    def __init__(self, name: str, bootstrap: str, props: Mapping[str, str]) -> None:
        self.connector_name = name
        self.consumer_properties = {"bootstrap.servers": bootstrap, "group.id": f"connect-{name}"}
        self.connector_properties = props
        self.stop = False

    def wait(self, seconds: float) -> bool:
        return True

    def stopping(self) -> bool:
        return self.stop


class Sink:
    """A topic of two partitions, a store, and a task that loads the one into the other."""

    def __init__(self, bootstrap: str, topic: str, store: Path) -> None:
        self.bootstrap = bootstrap
        self.topic = topic
        self.store = store
        self.producer = Producer({"bootstrap.servers": bootstrap})
        self.ends: Counter[TopicPartition] = Counter()
        admin = AdminClient({"bootstrap.servers": bootstrap})
        admin.create_topics([NewTopic(topic, 2, 1)])[topic].result()

    def produce(self, values: Sequence[Any], keys: Sequence[bytes | None] | None = None) -> None:
        """Produce values, dicts as JSON, to the partitions in turn."""
        for index, value in enumerate(values):
            partition = index % 2
            data = value if value is None or isinstance(value, bytes) else json.dumps(value).encode()
            key = keys[index] if keys else None
            self.producer.produce(self.topic, data, key, partition=partition, headers={"source": b"test"})
            self.ends[TopicPartition(self.topic, partition)] += 1
        assert self.producer.flush(30) == 0

    def task(self, props: Mapping[str, str]) -> SparkSinkTask:
        """A task that has started, on the session that the tests share."""
        props = {
            "store.url": str(self.store),
            "key.converter": "converters.byte_array.ByteArrayConverter",
            "header.converter": "converters.simple_header.SimpleHeaderConverter",
            "spark.master": "local[2]",
            "spark.driver.memory": "512m",
            "name": "sink",
            **props,
        }
        task = SparkSinkTask(SparkSinkConfig.parse(props), Context("sink", self.bootstrap, props))
        task.start()
        return task

    def drain(self, task: SparkSinkTask) -> None:
        """Load all that was produced and is not loaded yet."""
        committed = task.committed()
        task.load(
            [OffsetRange(*tp, committed.get(tp, 0), end) for tp, end in self.ends.items() if end > committed.get(tp, 0)]
        )
        assert task.committed() == dict(self.ends)

    def rows(self, table: str | None = None, columns: Sequence[str] | None = None) -> list[dict[str, Any]]:
        """The rows a reader sees, files of different schemas taken together."""
        folder = self.store / "topics" / (table or self.topic)
        files = sorted(folder.rglob("*.parquet"))
        parts = [pq.ParquetFile(file).read() for file in files]
        return [row for part in parts for row in part.to_pylist()]


@pytest.fixture(scope="module", autouse=True)
def session() -> Iterator[None]:
    """Spark, started by the first task and kept for all tests of this file."""
    yield
    active = SparkSession.getActiveSession()
    if active is not None:
        active.stop()


@pytest.fixture
def sink(bootstrap: str, topic: str, tmp_path: Path) -> Sink:
    return Sink(bootstrap, topic, tmp_path)


def by_id(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return sorted(rows, key=lambda row: row["id"])


def test_json_without_schemas_becomes_a_table_that_grows(sink: Sink) -> None:
    first = [{"id": n, "origin": "EWR", "delay": n / 2, "tags": ["a"], "at": "2013-01-01T05:00:00Z"} for n in range(20)]
    sink.produce(first)
    task = sink.task(JSON)
    sink.drain(task)
    assert by_id(sink.rows()) == first

    second = [
        {"id": n, "gate": {"name": "B1", "floor": 2}, "tags": [], "none": None, "empty": []} for n in range(20, 40)
    ]
    sink.produce(second)
    sink.drain(task)
    rows = by_id(sink.rows())
    assert rows[:20] == first
    assert rows[20:] == [
        {"id": n, "gate": {"name": "B1", "floor": 2}, "tags": [], "origin": None, "delay": None, "at": None}
        for n in range(20, 40)
    ]

    restarted = sink.task(JSON)
    sink.produce([{"id": 40}])
    sink.drain(restarted)
    assert by_id(sink.rows())[40] == {"id": 40, "gate": None, "tags": None, "origin": None, "delay": None, "at": None}


def test_file_names_carry_topic_partition_and_offsets(sink: Sink) -> None:
    sink.produce([{"id": n} for n in range(10)])
    sink.drain(sink.task({**JSON, "parquet.codec": "zstd", "filename.offset.zero.pad.width": "4"}))
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
    sink.produce([{"schema": schema, "payload": payload}, {"schema": schema, "payload": {"id": 2}}])
    task = sink.task(ENVELOPED)
    sink.drain(task)
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
    sink.produce([{"schema": wider, "payload": {"id": 2**40, "new": "x"}}])
    sink.drain(task)
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
    sink.produce(values, [b"k%d" % index for index in range(len(values))])
    sink.drain(sink.task({**converter, "store.kafka.keys": "true"}))
    expected: list[Any] = list(values)
    if converter is STRING:
        expected = [value.decode(errors="replace") for value in values]
    found = {row["key"]: row["value"] for row in sink.rows()}
    assert found == {b"k%d" % index: value for index, value in enumerate(expected)}


def test_field_partitioner_makes_folders_of_values(sink: Sink) -> None:
    values = [{"id": n, "origin": ("EWR", "J/K", None)[n // 2 % 3], "year": 2013 + n % 2} for n in range(60)]
    sink.produce(values)
    props = {
        "partitioner.class": "io.confluent.connect.storage.partitioner.FieldPartitioner",
        "partition.field.name": "origin,year",
    }
    task = sink.task({**JSON, **props})
    sink.drain(task)
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
        other.produce([{"id": 1}])
        other.drain(other.task({**JSON, **props, "partition.field.name": "gone"}))


def test_a_bad_record_fails_the_load_and_names_itself(sink: Sink) -> None:
    sink.produce([{"id": 0}, {"id": 1}, b"{broken", {"id": 3}])
    task = sink.task(JSON)
    with pytest.raises(DataError, match=rf"topic {sink.topic}, partition 0, offset 1: "):
        sink.drain(task)
    assert list(sink.store.rglob("*.parquet")) == []
    assert task.committed() == {}


def test_with_tolerance_a_bad_record_is_left_out_and_told(sink: Sink, caplog: pytest.LogCaptureFixture) -> None:
    sink.produce([{"id": 0}, {"id": 1}, b"{broken", {"id": "text"}, None, {"id": 5}])
    with caplog.at_level(logging.WARNING):
        sink.drain(sink.task({**JSON, "errors.tolerance": "all"}))
    assert [row["id"] for row in by_id(sink.rows())] == [0, 1, 5]
    assert "3 of 6 records are left out" in caplog.text
    assert "partition 0, offset 1" in caplog.text
    assert "has no value" in caplog.text


@pytest.mark.parametrize(("behavior", "expected"), [("ignore", [1, 3]), ("write", [1, 3, None])])
def test_records_without_a_value(sink: Sink, behavior: str, expected: list[Any]) -> None:
    sink.produce([{"id": 1}, None, {"id": 3}])
    sink.drain(sink.task({**JSON, "behavior.on.null.values": behavior}))
    assert sorted((row["id"] for row in sink.rows()), key=lambda each: (each is None, each)) == expected


def test_a_record_that_would_change_a_type_is_bad(sink: Sink) -> None:
    task = sink.task(JSON)
    sink.produce([{"id": 1, "price": 10}])
    sink.drain(task)
    sink.produce([{"id": 3, "price": 10.5}])
    with pytest.raises(DataError, match="price"):
        sink.drain(task)


def test_a_declared_schema_is_what_the_table_begins_with(sink: Sink) -> None:
    schema = {"type": "struct", "fields": [{"field": "id", "type": "int64"}, {"field": "price", "type": "double"}]}
    task = sink.task({**JSON, "value.schema": json.dumps(schema)})
    sink.produce([{"id": 1, "price": 10}, {"id": 2}, {"id": 3, "price": 10.5, "more": True}])
    sink.drain(task)
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
    task = sink.task(JSON)
    assert isinstance(task.context, Context)
    task.context.consumer_properties["isolation.level"] = "read_committed"
    tp = TopicPartition(sink.topic, 0)
    task.load([OffsetRange(*tp, 0, 4)])
    task.load([OffsetRange(*tp, 4, 8)])
    assert [row["id"] for row in by_id(sink.rows())] == [0, 2]
    assert task.committed() == {tp: 8}
    task.load([OffsetRange(*tp, 0, 8)])  # all of it is loaded already
    assert len(sink.rows()) == 2


def test_several_topics_of_one_connector_are_tables_each(sink: Sink, tmp_path: Path) -> None:
    other = Sink(sink.bootstrap, f"{sink.topic}-other", tmp_path)
    sink.produce([{"id": 1, "a": 1}])
    other.produce([{"id": 2, "b": "x"}])
    task = sink.task(JSON)
    ends = {**sink.ends, **other.ends}
    task.load([OffsetRange(*tp, 0, end) for tp, end in ends.items()])
    assert sink.rows() == [{"id": 1, "a": 1}]
    assert other.rows() == [{"id": 2, "b": "x"}]
    assert task.committed() == ends


def test_offsets_that_kafka_no_longer_has_are_an_error(sink: Sink) -> None:
    sink.produce([{"id": n} for n in range(10)])
    tp = TopicPartition(sink.topic, 0)
    admin = AdminClient({"bootstrap.servers": sink.bootstrap})
    for deleted in admin.delete_records([ClientPartition(*tp, 3)]).values():
        deleted.result()
    task = sink.task(JSON)
    with pytest.raises(ConnectError, match="no longer has all of the records"):
        task.load([OffsetRange(*tp, 0, 5)])
    assert task.committed() == {}


def test_a_topic_that_was_made_again_is_not_taken_for_the_one_that_was_loaded(sink: Sink) -> None:
    """However long it is: its first records would never be loaded (I4)."""
    sink.produce([{"id": n} for n in range(10)])
    tp = TopicPartition(sink.topic, 0)
    task = sink.task(JSON)
    task.load([OffsetRange(*tp, 0, 2, "first")])
    task.load([OffsetRange(*tp, 2, 3)])
    with pytest.raises(ConnectError, match=f"Topic {sink.topic} was deleted and made again"):
        task.load([OffsetRange(*tp, 3, 5, "second")])
    assert task.committed() == {tp: 3}
    SparkSinkConnector.alter_offsets(task.config, {tp: 4})
    task = sink.task(JSON)
    task.load([OffsetRange(*tp, 4, 5, "second")])
    assert task.committed() == {tp: 5}


def test_a_task_that_is_to_stop_gives_its_load_up(sink: Sink) -> None:
    sink.produce([{"id": n} for n in range(10)])
    task = sink.task(JSON)
    assert isinstance(task.context, Context)
    task.context.stop = True
    with pytest.raises(RetriableError, match="given up because the task stops"):
        sink.drain(task)
    task.context.stop = False
    sink.drain(task)
    assert len(sink.rows()) == 10
