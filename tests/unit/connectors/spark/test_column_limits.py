"""The columns that a target cannot have: each makes one record bad, whatever the table has already."""

from __future__ import annotations

import pytest

from connect.data import Schema
from connect.errors import SchemaError
from connectors.spark.sink.config import SparkSinkConfig

HOURLY = {"partitioner.class": "HourlyPartitioner", "timestamp.extractor": "Record"}
LAKE, BUCKET = {"store.url": "/lake"}, {"store.url": "s3://lake"}
HIVE = {**LAKE, "hive.integration": "true"}
ICEBERG = {**LAKE, "table.format": "iceberg"}


def check(props: dict[str, str], schema: Schema) -> None:
    limits = SparkSinkConfig.parse(props).evolution.refuses
    assert limits is not None
    limits(schema)


@pytest.mark.parametrize(
    ("props", "name", "told"),
    [
        (BUCKET | HOURLY, "hour", "hour, which is also the name of a part of the folders"),
        (BUCKET | {"target.file.size.bytes": "1048576"}, "partition", "partition, which is also the name of a part"),
        (HIVE, "a-b", "Hive cannot have the field a-b"),
        (HIVE, "partition", "a field partition, and there are folders with that name"),
        (HIVE | HOURLY, "day", "a field day, and there are folders with that name"),
        (ICEBERG, "_pos", "Iceberg has a column _pos of its own"),
        (LAKE | {"format.class": "AvroFormat"}, "a.b", "cannot hold the field a.b, because Avro names"),
        (LAKE | {"format.class": "CsvFormat"}, None, "cannot hold the field x, which is of type array"),
    ],
)
def test_a_column_that_a_target_cannot_have_is_refused_by_name(
    props: dict[str, str], name: str | None, told: str
) -> None:
    kept = Schema.struct({"id": Schema.int64(optional=True)})
    check(props, kept)
    items = Schema.array(Schema.string(), optional=True)
    field = {"x": items} if name is None else {name: Schema.string(optional=True)}
    with pytest.raises(SchemaError, match=told):
        check(props, Schema.struct({"id": Schema.int64(optional=True), **field}))


def test_names_that_do_no_harm_are_taken() -> None:
    nested = Schema.struct({"_pos": Schema.string(optional=True)}, optional=True)
    check(ICEBERG, Schema.struct({"of": nested, "_POS": nested, ".x": nested}))
    check(LAKE | HOURLY, Schema.struct({"hour": Schema.string(optional=True), "_x": nested}))
    check(BUCKET, Schema.struct({"partition": Schema.string(optional=True)}))
    check(LAKE | {"table.format": "delta"}, Schema.struct({"_metadata": nested, "a b": nested}))
