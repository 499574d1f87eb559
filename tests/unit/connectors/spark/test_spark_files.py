"""Files of tables as they are counted, named and merged."""

from __future__ import annotations

import gzip
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import orc

from connect.data import Schema
from connect.errors import SchemaError
from connectors.spark import file_metadata
from connectors.spark.formats import make_format, paths_of
from connectors.spark.sink.config import SparkSinkConfig
from connectors.spark.sink.ledger.merge_groups import DataFile, all_groups, data_file, merge_groups

RECORDS = {
    "type": "record",
    "name": "r",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "tags", "type": ["null", {"type": "array", "items": {"type": "map", "values": "string"}}]},
        {"name": "gate", "type": {"type": "record", "name": "g", "fields": [{"name": "floor", "type": "int"}]}},
    ],
}
PATHS = {"id", "tags", "tags[]", "tags[][]", "gate", "gate.floor"}


def avro(rows: int, **options: Any) -> bytes:
    content = io.BytesIO()
    records = [{"id": n, "tags": [{"a": "b"}], "gate": {"floor": n}} for n in range(rows)]
    fastavro.writer(content, fastavro.parse_schema(RECORDS), records, **options)
    return content.getvalue()


def columns(rows: int) -> pa.Table:
    tags = pa.array([[[("a", "b")]]] * rows, pa.list_(pa.map_(pa.string(), pa.string())))
    return pa.table({"id": pa.array(range(rows)), "tags": tags, "gate": pa.array([{"floor": 1}] * rows)})


def written(write: Callable[[Any], object]) -> bytes:
    content = io.BytesIO()
    write(content)
    return content.getvalue()


@pytest.mark.parametrize(
    ("count", "data", "rows"),
    [
        (file_metadata.parquet_rows, written(lambda file: pq.write_table(columns(5), file)), 5),
        (file_metadata.orc_rows, written(lambda file: orc.write_table(columns(5).select(["id"]), file)), 5),
        (file_metadata.avro_rows, avro(1000, sync_interval=100, codec="deflate"), 1000),
        (file_metadata.avro_rows, avro(0), 0),
        (file_metadata.line_rows, b"a\n\nb\n", 3),
        (file_metadata.line_rows, b"", 0),
        (file_metadata.line_rows, gzip.compress(b"a\nb\n", mtime=0), 2),
        (file_metadata.csv_rows, b'id,text\n1,"two\nlines, and ""quotes"""\n2,\n', 2),
        (file_metadata.csv_rows, gzip.compress(b"id\n1\n", mtime=0), 1),
    ],
)
def test_rows_are_counted(count: Callable[[BinaryIO], int], data: bytes, rows: int) -> None:
    assert count(io.BytesIO(data)) == rows


@pytest.mark.parametrize(
    ("count", "data"),
    [
        (file_metadata.parquet_rows, b"PAR1"),
        (file_metadata.orc_rows, b"ORC"),
        (file_metadata.avro_rows, avro(10)[:-1]),
        (file_metadata.avro_rows, avro(10)[:-1] + b"x"),
        (file_metadata.avro_rows, avro(10)[:20]),
        (file_metadata.avro_rows, b"Obj\x01" + b"\xff" * 20),
        (file_metadata.line_rows, b"a\nb"),
        (file_metadata.line_rows, gzip.compress(b"a\nb\n" * 1000, mtime=0)[:-9]),
        (file_metadata.csv_rows, b'id\n"1'),
    ],
)
def test_a_broken_file_is_told(count: Callable[[BinaryIO], int], data: bytes) -> None:
    with pytest.raises((ValueError, OSError)):
        count(io.BytesIO(data))


@given(st.binary(max_size=200))
def test_any_bytes_are_counted_or_refused(data: bytes) -> None:
    for count in (file_metadata.avro_rows, file_metadata.line_rows, file_metadata.parquet_rows):
        try:
            assert count(io.BytesIO(data)) >= 0
        except (ValueError, OSError):
            continue


def test_the_fields_of_a_file_are_told_as_those_of_a_table() -> None:
    assert file_metadata.avro_fields(io.BytesIO(avro(1))) == PATHS
    parquet = written(lambda file: pq.write_table(columns(1), file))
    assert file_metadata.parquet_fields(io.BytesIO(parquet)) == PATHS
    tags = Schema.array(Schema.map(Schema.string(), Schema.string()))
    table = Schema.struct({"id": Schema.int64(), "tags": tags, "gate": Schema.struct({"floor": Schema.int64()})})
    assert paths_of(table) - {""} == PATHS


@pytest.mark.parametrize(
    ("format_class", "field", "reason"),
    [
        ("AvroFormat", Schema.map(Schema.int64(), Schema.string()), "a map whose keys are not strings"),
        ("JsonFormat", Schema.map(Schema.float64(), Schema.string()), "keys are neither strings nor integers"),
        ("CsvFormat", Schema.struct({"x": Schema.string()}), "of type struct"),
        ("CsvFormat", Schema.bytes(), "of type bytes"),
        ("StringFormat", Schema.int64(), "of type int64"),
    ],
)
def test_a_field_that_a_format_cannot_hold_is_named(format_class: str, field: Schema, reason: str) -> None:
    file_format = make_format(SparkSinkConfig.parse({"store.url": "/lake", "format.class": format_class}))
    with pytest.raises(SchemaError, match=reason) as told:
        file_format.check(Schema.struct({"odd": field}))
    assert f"format.class={format_class} cannot hold the field odd" in str(told.value)


def test_only_files_that_sluice_has_named_are_known() -> None:
    assert data_file("partition=3/t.x+3+0007+0009+1.zstd.parquet", 5) == DataFile(
        "partition=3/t.x+3+0007+0009+1.zstd.parquet", 5, "t.x", (3, 3), (7, 9), "zstd.parquet"
    )
    mixed = data_file("a=1/t+0-3+load-0000000012+2.json.gz", 5)
    assert mixed is not None
    assert (mixed.partitions, mixed.offsets, mixed.folder, mixed.extension) == ((0, 3), None, "a=1", "json.gz")
    assert data_file("t+3+0007+0009+compacted-0000000012.orc", 1) is not None
    for other in ("part-00000-0f3c.snappy.parquet", "notes.txt", "t.parquet", "t+x+1+2.parquet"):
        assert data_file(other, 1) is None


def files(*sizes: int) -> list[DataFile]:
    found = [data_file(f"p/t+0+{n}+{n}.parquet", size) for n, size in enumerate(sizes)]
    return [file for file in found if file is not None]


def test_small_files_are_merged_in_their_order_until_they_are_large_enough() -> None:
    groups = list(merge_groups(files(40, 30, 40, 60, 10, 20), 100))
    assert [[file.offsets for file in group.files] for group in groups] == [
        [(0, 0), (1, 1), (2, 2)],
        [(4, 4), (5, 5)],
    ]
    assert groups[0].merged_path(4, 12, 0, "parquet") == "p/t+0+0000+0002+compacted-0012.parquet"
    assert groups[0].merged_path(4, 12, 3, "parquet") == "p/t+0+0000+0002+compacted-0012+3.parquet"
    assert list(merge_groups(files(10), 100)) == []
    assert list(merge_groups(files(60, 60, 10), 100)) == []


def test_all_files_are_written_again_where_a_table_is_rewritten() -> None:
    groups = all_groups(files(40, 300, 40, 60), 100)
    assert [[file.size for file in group.files] for group in groups] == [[40, 300], [40, 60]]
    assert [[file.size for file in group.files] for group in all_groups(files(10), 100)] == [[10]]


def test_files_with_the_names_that_spark_gives_tell_of_no_records() -> None:
    path = "partition=0/part-00003-dd98ad91-5b1c-4b3f-a4f0-a3f1a9e0a6f5-c000.snappy.parquet"
    expected = DataFile(path, 10, "", (0, 0), None, "snappy.parquet")
    assert data_file(path, 10, named=False) == expected
    assert data_file(path, 10) is None
    assert data_file("t+0+1+2.parquet", 10, named=False) is None
    assert data_file("notes.txt", 10, named=False) is None


@given(st.lists(st.integers(1, 200), max_size=40))
def test_merging_ends(sizes: list[int]) -> None:
    left = files(*sizes)
    for _ in range(3):
        groups = list(merge_groups(left, 100))
        gone = {file.path for group in groups for file in group.files}
        merged = [data_file(group.merged_path(4, 1, n, "parquet"), group.size) for n, group in enumerate(groups)]
        left = [file for file in left if file.path not in gone] + [file for file in merged if file is not None]
        assert sum(file.size for file in left) == sum(sizes)
    assert list(merge_groups(left, 100)) == []


def test_merged_files_of_several_partitions_say_so() -> None:
    both = [data_file("p/t+0+1+2.parquet", 1), data_file("p/t+3+1+2.parquet", 1)]
    (group,) = merge_groups([file for file in both if file is not None], 100)
    assert group.merged_path(4, 12, 0, "parquet") == "p/t+0-3+compacted-0012.parquet"


def test_options_of_layout_are_checked_together(tmp_path: Path) -> None:
    def mistakes(**props: str) -> list[str]:
        keys = {"store.url": str(tmp_path), **{key.replace("_", "."): value for key, value in props.items()}}
        return sorted(value.name for value in SparkSinkConfig.validate(keys) if value.errors)

    timed = {"partitioner_class": "TimeBasedPartitioner", "partition_duration_ms": "1000", "path_format": "YYYY"}
    assert mistakes(**timed) == []
    assert mistakes(**timed | {"path_format": "'year"}) == ["path.format"]
    assert mistakes(**timed | {"path_format": "'_'YYYY"}) == ["path.format"]
    by_field = {"partitioner_class": "FieldPartitioner"}
    assert mistakes(**by_field, partition_field_name="a,.c") == ["partition.field.name"]
    assert mistakes(**by_field, partition_field_name="_b", sql="SELECT 1 AS _b") == ["partition.field.name"]
    assert mistakes(**by_field, partition_field_name="_b", table_format="delta") == []
    assert mistakes(**timed | {"partition_duration_ms": "0"}) == ["partition.duration.ms"]
    assert mistakes(**timed | {"timezone": "Nowhere"}) == ["timezone"]
    assert mistakes(**timed | {"timestamp_extractor": "Sundial"}) == ["timestamp.extractor"]
    assert mistakes(**timed | {"path_format": "MMMM", "locale": "de-DE"}) == ["locale"]
    assert mistakes(**timed | {"path_format": "MM", "locale": "de-DE"}) == []
    assert mistakes(format_class="ByteArrayFormat") == ["format.class"]
    assert mistakes(format_class="CsvFormat", compact_interval_ms="1") == ["compact.interval.ms"]
    assert mistakes(format_class="JsonFormat", hive_integration="true") == ["format.class"]
    assert mistakes(hive_integration="true", **timed) == ["path.format"]
    java = "io.confluent.connect.storage.partitioner.TimeBasedPartitioner$RecordFieldTimestampExtractor"
    assert mistakes(**timed | {"timestamp_extractor": java}) == []
