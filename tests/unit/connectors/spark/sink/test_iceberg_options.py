"""The options, names, partitions and types of Iceberg tables."""

from __future__ import annotations

import json
from typing import Any

import pytest

from connect.config.errors import InvalidConfigError
from connect.data import Schema
from connect.data.logical import decimal_schema, time_schema, timestamp_schema
from connect.errors import ConfigError, SchemaError
from connect.internals.jvm.jars import Jar, read_lock
from connectors.spark.format_session import format_session
from connectors.spark.iceberg.catalog import TableName
from connectors.spark.iceberg.partitions import PartitionBy, parse_partition_by
from connectors.spark.schema import table_schema
from connectors.spark.session import without_doubles
from connectors.spark.sink.config import SparkSinkConfig
from connectors.spark.sink.iceberg.layout import partitions_of, write_options
from connectors.spark.sink.iceberg.table_names import TableNames
from connectors.spark.sink.iceberg.types import columns_of


def config(**props: str) -> SparkSinkConfig:
    keys = {key.replace("__", "-").replace("_", "."): value for key, value in props.items()}
    return SparkSinkConfig.parse({"store.url": "/lake", "table.format": "iceberg", **keys})


def refused(**props: str) -> str:
    with pytest.raises((ConfigError, InvalidConfigError)) as caught:
        config(**props)
    return str(caught.value)


def test_without_a_named_catalog_the_store_is_a_hadoop_catalog() -> None:
    assert config().iceberg_catalog_properties("file:///lake") == {"warehouse": "file:///lake", "type": "hadoop"}
    given = config(iceberg_catalog_type="rest", iceberg_catalog_uri="http://c", iceberg_catalog_warehouse="w")
    assert given.iceberg_catalog_properties("s3a://b") == {"type": "rest", "uri": "http://c", "warehouse": "w"}


def test_mistakes_are_told_by_their_keys() -> None:
    assert "iceberg.catalog.type" in refused(iceberg_catalog_uri="http://c")
    assert "thrift://HOST:9083" in refused(iceberg_catalog_type="hive")
    assert "loses commits" in refused(iceberg_catalog_type="hadoop", iceberg_catalog_warehouse="s3://b/w")
    assert "name one" in refused(iceberg_tables="a.b,a.c")
    assert "is no partition field" in refused(iceberg_tables_default__partition__by="weekly(at)")
    assert "set table.format=iceberg" in refused(table_format="parquet", iceberg_catalog_type="rest")
    assert "table.name.format" in refused(table_name_format="${topic}.raw")
    assert "RecordField" in refused(partitioner_class="DailyPartitioner")
    assert "JsonFormat" in refused(format_class="JsonFormat")
    assert "set table.format=iceberg or delta" in refused(table_format="parquet", write_mode="upsert")
    plan = config(write_mode="upsert", iceberg_tables_default__id__columns="a, b").changes
    assert plan is not None
    assert plan.keys == ("a", "b")


def test_secrets_are_not_shown() -> None:
    shown = repr(
        config(iceberg_catalog_type="jdbc", iceberg_catalog_jdbc_password="hunter2", iceberg_catalog_token="t0k3n")
    )
    assert "hunter2" not in shown
    assert "t0k3n" not in shown


def test_names() -> None:
    naming = TableNames.of(config(topics_dir="a/b", topics="x, y"))
    assert naming.known == [TableName(("a", "b"), "x"), TableName(("a", "b"), "y")]
    named = TableNames.of(config(table_name_format="lake.${topic}_raw", topics="x", transforms="t"))
    assert named.known is None
    assert str(named.table("x")) == "lake.x_raw"
    assert named.parsed("lake.x_raw") == named.table("x")
    one = TableNames.of(config(iceberg_tables="lake.events", topics_regex=".*"))
    assert one.known == [one.table("any")] == [TableName(("lake",), "events")]


def test_partitions() -> None:
    assert parse_partition_by("days(at), bucket(16, id), bucket(id,4),truncate(name, 3) , a.b") == (
        PartitionBy("at", "day"),
        PartitionBy("id", "bucket", 16),
        PartitionBy("id", "bucket", 4),
        PartitionBy("name", "truncate", 3),
        PartitionBy("a.b"),
    )
    for text in ("bucket(id)", "bucket(0, id)", "day(a, b)", "a b"):
        with pytest.raises(ValueError, match="is no partition field"):
            parse_partition_by(text)
    fields = Schema.struct({"at": Schema.int64(), "a": Schema.struct({"b": Schema.string()})})
    PartitionBy("a.b").check(fields)
    with pytest.raises(SchemaError, match=r"partitioned by a\.c"):
        PartitionBy("a.c").check(fields)


def test_partitioners_and_formats() -> None:
    by_time = {"timestamp_extractor": "RecordField", "timestamp_field": "at"}
    assert partitions_of(config()) == ()
    assert partitions_of(config(partitioner_class="DailyPartitioner", **by_time)) == (PartitionBy("at", "day"),)
    hours = {"path_format": "'h'=HH", "partition_duration_ms": "3600000", **by_time}
    assert partitions_of(config(partitioner_class="TimeBasedPartitioner", **hours)) == (PartitionBy("at", "hour"),)
    fields = config(partitioner_class="FieldPartitioner", partition_field_name="a,b")
    assert partitions_of(fields) == (PartitionBy("a"), PartitionBy("b"))
    assert write_options(config()) == {"write-format": "parquet", "compression-codec": "snappy"}
    avro = config(format_class="AvroFormat", target_file_size_bytes="2097152")
    assert write_options(avro)["compression-codec"] == "uncompressed"
    assert write_options(avro)["target-file-size-bytes"] == "2097152"


def test_the_driver_of_a_sql_catalog_comes_with_its_uri() -> None:
    props = {"table.format": "iceberg", "iceberg.catalog.uri": "jdbc:postgresql://h/d"}
    assert [path.name for path in format_session(props).jars] == ["iceberg.jars", "postgresql.jars"]
    assert format_session({"iceberg.catalog.uri": "jdbc:sqlite:x"}).jars == ()


@pytest.mark.parametrize(
    ("catalog", "expected"),
    [
        ({"type": "rest"}, []),
        ({"type": "rest", "io-impl": "org.apache.iceberg.hadoop.HadoopFileIO"}, []),
        ({"type": "rest", "io-impl": "org.apache.iceberg.aws.s3.S3FileIO"}, ["aws.jars"]),
        ({"type": "glue"}, ["aws.jars"]),
        ({"catalog-impl": "org.apache.iceberg.aws.glue.GlueCatalog"}, ["aws.jars"]),
    ],
)
def test_amazons_client_is_there_where_iceberg_asks_for_it(catalog: dict[str, str], expected: list[str]) -> None:
    props = {"table.format": "iceberg", **{f"iceberg.catalog.{key}": value for key, value in catalog.items()}}
    paths = format_session(props).jars
    assert [path.name for path in paths] == ["iceberg.jars", *expected]
    # One that is whole takes the place of the parts that Hadoop's S3A needs.
    s3a = [Jar("software.amazon.awssdk", "s3", "1", None, ""), Jar("org.apache.hadoop", "hadoop-aws", "1", None, "")]
    ours = [jar for path in paths for jar in read_lock(path)]
    assert without_doubles([*ours, *s3a]) == [*ours, *s3a[1:]] if expected else [*ours, *s3a]


def field(number: int, name: str, kind: Any) -> dict[str, Any]:
    return {"id": number, "name": name, "required": False, "type": kind}


def test_types_of_a_table() -> None:
    inner = {"type": "struct", "fields": [field(11, "x", "long")]}
    listed = {"type": "list", "element-id": 9, "element": "int", "element-required": False}
    columns = {
        "fields": [
            field(1, "n", "int"),
            field(2, "at", "timestamptz"),
            field(3, "price", "decimal(12, 2)"),
            field(4, "time", "int"),
            field(5, "small", "int"),
            field(6, "inner", inner),
            field(7, "list", listed),
            field(8, "odd", "geometry"),
        ]
    }
    found = columns_of(json.loads(json.dumps(columns)))
    assert found.field_names == ("n", "at", "price", "time", "small", "inner", "list")
    declared = table_schema(
        Schema.struct(
            {
                "time": time_schema(),
                "small": Schema.int16(),
                "at": timestamp_schema(),
                "price": decimal_schema(2, parameters={"connect.decimal.precision": "12"}),
            }
        )
    )
    known = columns_of(columns, declared)
    # A time is known for one by its declaration; a small number is not, for the table may hold larger ones.
    types = {item.name: item.schema for item in known.fields}
    assert types["time"].name == "org.apache.kafka.connect.data.Time"
    assert types["small"] == Schema.int32(optional=True)
    assert types["price"].parameters == {"scale": "2", "connect.decimal.precision": "12"}
