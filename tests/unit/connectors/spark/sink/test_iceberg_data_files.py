"""Which Iceberg tables the executors write the files of, and what these files are like."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from connect.data import Schema
from connect.data.logical import date_schema, decimal_schema, time_schema, timestamp_schema
from connect.kits.objects.s3 import S3Account
from connectors.spark.arrow_types import table_type
from connectors.spark.decoding.part_files import PartFiles, PartWriter
from connectors.spark.iceberg.metadata import TableMetadata
from connectors.spark.sink.iceberg.data_files import DataWriting, file_columns, may_be_written
from connectors.spark.stores.parts import DataFolder
from connectors.spark.stores.s3_parts import ObjectFolder

MARK = "0b9dd6ac-4a43-4ed1-a4ce-0a6a3b0a3c53"


def field(number: int, name: str, kind: Any, **more: Any) -> dict[str, Any]:
    return {"id": number, "name": name, "required": False, "type": kind, **more}


def struct(*fields: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "struct", "fields": list(fields)}


def table(*fields: Mapping[str, Any], **more: Any) -> TableMetadata:
    document = {
        "current-schema-id": 1,
        "schemas": [{"schema-id": 0, **struct()}, {"schema-id": 1, **struct(*fields)}],
        "default-spec-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": []}],
        "default-sort-order-id": 0,
        "properties": {"write.parquet.compression-codec": "zstd"},
    }
    return TableMetadata({**document, **more}, "lake.t")


def test_columns_have_the_ids_of_the_table_however_deep_they_are() -> None:
    rows = Schema.struct(
        {
            "small": Schema.int8(),
            "at": timestamp_schema(),
            "day": date_schema(),
            "clock": time_schema(),
            "price": decimal_schema(2, parameters={"connect.decimal.precision": "9"}),
            "tags": Schema.array(Schema.struct({"n": Schema.int16()})),
            "counts": Schema.map(Schema.string(), Schema.int64()),
        }
    )
    found = file_columns(
        struct(
            field(7, "counts", {"type": "map", "key-id": 8, "key": "string", "value-id": 9, "value": "long"} | LOOSE),
            field(1, "small", "int"),
            field(2, "at", "timestamptz"),
            field(3, "day", "date"),
            field(4, "clock", "int"),
            field(5, "price", "decimal(9, 2)"),
            field(6, "tags", {"type": "list", "element-id": 10, "element": struct(field(11, "n", "int"))} | LOOSE),
        ),
        table_type(rows).columns,
    )
    assert found is not None
    assert [(column.name, ident(column)) for column in found] == [
        *(("small", 1), ("at", 2), ("day", 3), ("clock", 4), ("price", 5), ("tags", 6), ("counts", 7))
    ]
    assert found.field("small").type == found.field("clock").type == pa.int32()
    element = found.field("tags").type.value_field
    assert (ident(element), ident(element.type.field("n")), element.type.field("n").type) == (10, 11, pa.int32())
    counts = found.field("counts").type
    assert (ident(counts.key_field), ident(counts.item_field)) == (8, 9)


LOOSE = {"element-required": False, "value-required": False}


def ident(column: Any) -> int:
    return int(column.metadata[b"PARQUET:field_id"])


@pytest.mark.parametrize(
    "fields",
    [
        (),
        (field(1, "id", "long"), field(2, "other", "string")),
        (field(1, "ID", "long"),),
        ({**field(1, "id", "long"), "required": True},),
        (field(1, "id", "long", **{"initial-default": 0}),),
        (field(1, "id", "long", **{"write-default": 0}),),
        (field(1, "id", "int"),),
        (field(1, "id", "timestamp"),),
        (field(1, "id", "decimal(19, 0)"),),
        (field(1, "id", struct(field(2, "n", "long"))),),
        (field(1, "id", {"type": "list", "element-id": 2, "element": "long", "element-required": True}),),
    ],
)
def test_what_only_spark_knows_how_to_write_is_left_to_it(fields: tuple[Mapping[str, Any], ...]) -> None:
    rows = table_type(Schema.struct({"id": Schema.int64()})).columns
    assert file_columns(struct(*fields), rows) is None
    assert file_columns(struct(field(1, "id", "long")), rows) is not None


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({}, True),
        ({"properties": {}}, True),
        ({"properties": {"write.metadata.metrics.default": "full", "write.format.default": "orc"}}, True),
        ({"properties": {"write.object-storage.enabled": "true"}}, False),
        ({"properties": {"write.parquet.bloom-filter-enabled.column.id": "true"}}, False),
        ({"properties": {"encryption.key-id": "k"}}, False),
        ({"default-sort-order-id": 1}, False),
        ({"default-spec-id": 1, "partition-specs": [{"spec-id": 1, "fields": [{"source-id": 1}]}]}, False),
        (
            {"default-spec-id": 0, "partition-specs": [{"spec-id": 0, "fields": []}, {"spec-id": 1, "fields": [1]}]},
            True,
        ),
    ],
)
def test_tables_with_ways_of_their_own_are_left_to_spark(more: Mapping[str, Any], expected: bool) -> None:
    assert may_be_written(table(**more).document) == expected


STORE = ObjectFolder(S3Account("r"), "bucket", "lake", 1000)


@pytest.mark.parametrize(
    ("location", "expected"),
    [
        ("file:/data/lake/t/data", DataFolder("/data/lake/t/data")),
        ("file:///data/lake/t/data", DataFolder("/data/lake/t/data")),
        ("/data/lake/t/data", None),
        ("file://elsewhere/data/lake", None),
        ("file:/data/a lake/data", DataFolder("/data/a lake/data")),
        ("s3://bucket/lake/t/data", replace(STORE, folder="lake/t/data")),
        ("s3a://bucket/lake/t/data", replace(STORE, folder="lake/t/data")),
        ("s3a://bucket/lakes/t/data", None),
        ("s3a://other/lake/t/data", None),
        ("file:/data/50%/data", None),
        ("hdfs://name/lake/data", None),
        ("lake/data", None),
    ],
)
def test_only_folders_and_the_store_are_reached(location: str, expected: Any) -> None:
    assert DataWriting("snappy", None, STORE).folder(location) == expected


def test_a_table_says_how_large_its_files_are_unless_the_connector_does(tmp_path: Path) -> None:
    schema, one = Schema.struct({"id": Schema.int64()}), field(1, "id", "long")

    def size(wanted: int | None, **properties: str) -> int | None:
        files = DataWriting("snappy", wanted).files(table(one, properties=properties), tmp_path.as_uri(), schema)
        assert files is not None
        return files.parts.size

    own = {"write.target-file-size-bytes": "1000"}
    assert [size(None), size(None, **own), size(2000, **own)] == [512 * 1024 * 1024, 1000, 2000]


def test_each_attempt_has_files_of_its_own_until_they_are_large_enough(tmp_path: Path) -> None:
    columns = pa.schema([pa.field("id", pa.int32(), metadata={b"PARQUET:field_id": b"4"})])
    rows = pa.RecordBatch.from_pydict({"id": pa.array(range(1_000_000), pa.int64())})
    folder = DataFolder(str(tmp_path / "data"))
    files = PartFiles(folder, MARK, "none", size=400_000, columns=columns)
    names = {}
    for attempt in (1, 2):
        with PartWriter(files, rows.schema, 3, attempt) as writer:
            for start in range(0, 1_000_000, 100_000):
                writer.write(rows.slice(start, 100_000))
            writer.finish()
        names[attempt] = writer.names
    with pytest.raises(RuntimeError), PartWriter(files, rows.schema, 3, 3) as writer:
        writer.write(rows)
        raise RuntimeError("cut off")
    assert names[1] == [f"{MARK}-00003-1-c{number:03}.parquet" for number in range(len(names[1]))]
    assert folder.names(MARK) == sorted([*names[1], *names[2]])
    found = [pq.ParquetFile(tmp_path / "data" / name) for name in names[1]]
    assert len(found) > 1
    assert [value for file in found for value in file.read()["id"].to_pylist()] == list(range(1_000_000))
    assert "field_id=4" in str(found[0].schema)
    assert found[0].schema.column(0).physical_type == "INT32"
