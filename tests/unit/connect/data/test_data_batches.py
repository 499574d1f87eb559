"""Batches: records as columns and back, and as Arrow tables."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest

from connect.data import (
    NO_HEADERS,
    ArrowColumn,
    Constant,
    Header,
    Headers,
    Schema,
    SinkBatch,
    SinkRecord,
    SourceBatch,
    SourceRecord,
    TimestampType,
    TopicPartition,
    ValueColumn,
)
from connect.errors import DataError, SchemaError

INT = Schema.int32()
TEXT = Schema.string()


def source(value: Any, schema: Schema | None = INT, topic: str = "t", **more: Any) -> SourceRecord:
    return SourceRecord(topic, value, schema, source_partition={"file": "a"}, source_offset={"line": value}, **more)


def sink(offset: int, topic: str = "t", original: str = "t", **more: Any) -> SinkRecord:
    return SinkRecord(
        topic,
        offset,
        INT,
        partition=offset % 2,
        offset=offset,
        timestamp_type=TimestampType.CREATE_TIME,
        original_topic=original,
        original_partition=offset % 2,
        original_offset=offset,
        **more,
    )


def test_source_records_come_back() -> None:
    records = [source(1, key="k", key_schema=TEXT, timestamp=5), source(2, key="l", key_schema=TEXT)]
    batches = SourceBatch.from_records(records)
    assert len(batches) == 1
    assert list(batches[0]) == records
    assert (batches[0].value_schema, batches[0].key_schema) == (INT, TEXT)


def test_sink_records_come_back() -> None:
    records = [sink(0), sink(1, headers=Headers([Header("a", 1)])), sink(2, timestamp=7)]
    (batch,) = SinkBatch.from_records(records)
    assert list(batch) == records
    assert batch.origins == [TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("t", 0)]


def test_a_batch_ends_where_topic_or_schema_change() -> None:
    values = [source(1), source(2, TEXT), source(3), source(4), source(5, topic="u"), source(6, None)]
    assert [len(batch) for batch in SourceBatch.from_records(values)] == [1, 1, 2, 1, 1]
    routed = [sink(0), sink(1, original="other"), sink(2, topic="u")]
    assert [batch.original_topic for batch in SinkBatch.from_records(routed)] == ["t", "other", "t"]
    assert SourceBatch.from_records([]) == []


def test_slice_and_take_agree_with_the_rows() -> None:
    records = [sink(offset) for offset in range(6)]
    (batch,) = SinkBatch.from_records(records)
    assert list(batch.slice(2, 5)) == records[2:5]
    assert list(batch.take([5, 0, 0])) == [records[5], records[0], records[0]]
    assert len(batch.take([])) == 0


def test_replace_leaves_the_batch_as_it_was() -> None:
    (batch,) = SourceBatch.from_records([source(1), source(2)])
    changed = batch.replace(topic="u", value=ValueColumn(["a", "b"], TEXT))
    assert [(record.topic, record.value, record.value_schema) for record in changed] == [
        ("u", "a", TEXT),
        ("u", "b", TEXT),
    ]
    assert [record.value for record in batch] == [1, 2]


def test_a_batch_of_one_source_partition() -> None:
    batch = SourceBatch.of(
        "t", ValueColumn([1, 2], INT), source_partition={"p": 1}, source_offsets=[{"o": 1}, {"o": 2}]
    )
    assert list(batch) == [
        SourceRecord("t", value, INT, source_partition={"p": 1}, source_offset={"o": value}) for value in (1, 2)
    ]
    assert isinstance(batch.take([1]).source_partitions, Constant)
    assert isinstance(batch.slice(0, 1).headers, Constant)


def test_columns_of_another_length_are_refused() -> None:
    with pytest.raises(ValueError, match="source_offsets has 1 elements for 2 records"):
        SourceBatch.of("t", ValueColumn([1, 2], INT), source_partition={}, source_offsets=[{}])


# -- Arrow -------------------------------------------------------------------------------------------------


def test_from_arrow() -> None:
    table = pa.table({"id": pa.array([1, 2], pa.uint8()), "name": pa.array(["a", None], pa.large_string())})
    batch = SourceBatch.from_arrow("t", table, source_partition={"p": 1}, source_offsets=[{"o": 1}, {"o": 2}])
    fields = {"id": Schema.int16(optional=True), "name": Schema.string(optional=True)}
    assert batch.value_schema is Schema.struct(fields)
    assert [record.value for record in batch] == [{"id": 1, "name": "a"}, {"id": 2, "name": None}]


@pytest.mark.parametrize("rows", [0, 3])
def test_from_arrow_with_a_schema(rows: int) -> None:
    schema = Schema.struct({"id": Schema.int64(), "state": Schema.string(default="new")}, name="Row")
    chunks = [pa.record_batch({"id": pa.array([row], pa.int32())}) for row in range(rows)]
    table = pa.Table.from_batches(chunks, pa.schema({"id": pa.int32()}))
    offsets = [{"o": row} for row in range(rows)]
    batch = SourceBatch.from_arrow("t", table, source_partition={}, source_offsets=offsets, schema=schema)
    assert list(batch.value) == [{"id": row, "state": "new"} for row in range(rows)]
    assert batch.value_schema is schema


def test_from_a_record_batch() -> None:
    data = pa.record_batch({"id": [1, 2, 3]}).slice(1)
    batch = SourceBatch.from_arrow("t", data, source_partition={}, source_offsets=[{}, {}])
    assert list(batch.value) == [{"id": 2}, {"id": 3}]


def test_from_arrow_says_what_to_cast() -> None:
    table = pa.table({"at": pa.array([dt.datetime(2020, 1, 1)], pa.timestamp("us"))})  # noqa: DTZ001
    with pytest.raises(SchemaError, match=r'"at" has the Arrow type timestamp\[us\].*assume_timezone'):
        SourceBatch.from_arrow("t", table, source_partition={}, source_offsets=[{}])


def test_a_sink_batch_as_a_table() -> None:
    headers = [Headers([Header("a", 1, Schema.int8()), Header("a", None)]), NO_HEADERS]
    records = [sink(offset, timestamp=5, headers=headers[offset]) for offset in range(2)]
    table = SinkBatch.from_records(records)[0].to_arrow()
    assert table.column_names == [
        "key",
        "value",
        "topic",
        "partition",
        "timestamp",
        "headers",
        "offset",
        "timestamp_type",
        "original_topic",
        "original_partition",
        "original_offset",
    ]
    assert table.schema.field("value").type == pa.int32()
    assert not table.schema.field("value").nullable
    first = table.to_pylist()[0]
    assert first["headers"] == [{"key": "a", "value": 1}, {"key": "a", "value": None}]
    assert first["timestamp"] == dt.datetime(1970, 1, 1, microsecond=5000, tzinfo=dt.UTC)
    assert first["timestamp_type"] == "CreateTime"
    assert table.column("key").null_count == 2


def test_a_source_batch_as_a_table() -> None:
    value = ArrowColumn(pa.array([{"a": 1}, {"a": 2}]), Schema.struct({"a": Schema.int64()}))
    batch = SourceBatch.of("t", value, source_partition={"p": "x"}, source_offsets=[{"o": 1}, {"o": 2}])
    table = batch.to_arrow()
    assert table.column("value").to_pylist() == [{"a": 1}, {"a": 2}]
    assert table.column("source_partition").to_pylist() == [{"p": "x"}, {"p": "x"}]
    assert table.column("partition").to_pylist() == [None, None]
    assert table.schema.field("headers").type == pa.list_(
        pa.struct([pa.field("key", pa.string(), False), pa.field("value", pa.binary())])
    )


def test_an_empty_batch_as_a_table() -> None:
    batch = SourceBatch.of("t", ValueColumn([], INT), source_partition={}, source_offsets=[])
    assert batch.to_arrow().num_rows == 0


def test_headers_of_several_schemas_are_no_column() -> None:
    headers = Headers([Header("a", 1, Schema.int8()), Header("b", "x", TEXT)])
    (batch,) = SinkBatch.from_records([sink(0, headers=headers)])
    with pytest.raises(DataError, match=r"header\.converter=converters\.string\.StringConverter"):
        batch.to_arrow()
