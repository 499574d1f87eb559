"""Records that an Iceberg table cannot hold, names and values that it can, and tables that others have made."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from connect.bulk import OffsetRange
from connect.data import TopicPartition
from connect.errors import ConnectError, DataError
from connectors.spark.sink import make_target
from equipment.brokers.dead_letters import dead_letters
from equipment.proofs import thorough
from equipment.stores.iceberg_lake import ENVELOPED, IcebergLake, iceberg_session

SparkSession = pytest.importorskip("pyspark.sql").SparkSession

pytestmark = [
    pytest.mark.integration,
    pytest.mark.spark,
    pytest.mark.timeout(1200),
    # Connections to Java of threads that have ended are left to the garbage collector by py4j.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(scope="module", autouse=True)
def session(table_java: None) -> Iterator[Any]:
    """Spark, kept for all tests of this file."""
    with iceberg_session() as spark:
        yield spark


@pytest.fixture
def lake(bootstrap: str, topic: str, tmp_path: Path) -> IcebergLake:
    return IcebergLake(bootstrap, topic, tmp_path)


def test_bad_records_skipped_offsets_and_widening(lake: IcebergLake) -> None:
    lake.records.produce([{"id": 1, "n": 1}, b"{"])
    task = lake.task()
    with pytest.raises(DataError, match="offset 0"):
        lake.records.drain(task)
    assert not (lake.store / "topics" / lake.topic).exists()
    task.load([OffsetRange(lake.topic, 0, 0, 1)])
    skipping = make_target(task.config, "lake", task._session)
    skipping.open()
    skipping.skip({TopicPartition(lake.topic, 1): 1})
    again = lake.task()
    assert again.committed() == {TopicPartition(lake.topic, 0): 1, TopicPartition(lake.topic, 1): 1}
    assert lake.rows() == [{"id": 1, "n": 1}]

    def typed(kind: str, value: Any) -> dict[str, Any]:
        fields = [{"field": "id", "type": "int64"}, {"field": "v", "type": kind, "optional": True}]
        return {"schema": {"type": "struct", "fields": fields}, "payload": {"id": 2, "v": value}}

    lake.records.produce([typed("int32", 7)])
    opened = lake.task({**ENVELOPED, "iceberg.tables.evolve-schema-enabled": "true"})
    lake.records.drain(opened)
    lake.records.produce([typed("int64", 2**40), typed("int16", 3)])
    lake.records.drain(opened)
    assert sorted(row["v"] for row in lake.rows() if row["v"] is not None) == [3, 7, 2**40]
    assert str(lake.table().schema().find_field("v").field_type) == "long"
    # Iceberg has no way from long to double.
    lake.records.produce([typed("double", 0.5)])
    with pytest.raises(ConnectError, match="v"):
        lake.records.drain(opened)


def test_a_value_for_which_iceberg_cannot_widen_a_column_is_a_bad_record(lake: IcebergLake) -> None:
    def typed(number: int, kind: str, value: Any) -> dict[str, Any]:
        fields = [{"field": "id", "type": "int64"}, {"field": "v", "type": kind, "optional": True}]
        return {"schema": {"type": "struct", "fields": fields}, "payload": {"id": number, "v": value}}

    task = lake.task({**lake.queue(), **ENVELOPED})
    lake.records.produce([typed(1, "int32", 7)])
    lake.records.drain(task)
    lake.records.produce([typed(2, "double", 0.5), typed(3, "float", 0.5)])
    lake.records.drain(task)
    lake.records.produce([typed(4, "int64", 2**40)])
    lake.records.drain(task)
    assert lake.rows() == [{"id": 1, "v": 7}, {"id": 4, "v": 2**40}]
    assert len(dead_letters(lake.bootstrap, f"{lake.topic}-dlq")) == 2


def test_columns_that_are_not_to_change_leave_out_new_fields_and_no_record(
    lake: IcebergLake, caplog: pytest.LogCaptureFixture
) -> None:
    def typed(number: int, kind: str, value: Any) -> dict[str, Any]:
        fields = [{"field": "id", "type": "int64"}, {"field": "v", "type": kind, "optional": True}]
        return {"schema": {"type": "struct", "fields": fields}, "payload": {"id": number, "v": value}}

    kept = {"iceberg.tables.evolve-schema-enabled": "false", **lake.queue()}
    with_schema = lake.task({**kept, **ENVELOPED})
    lake.records.produce([typed(1, "int32", 7)])
    lake.records.drain(with_schema)
    lake.records.produce([typed(2, "int64", 8), typed(3, "int64", 2**40), typed(4, "double", 0.5)])
    lake.records.drain(with_schema)
    without = lake.task(kept)
    lake.records.produce([{"id": 5, "v": 9, "new": "x"}, {"id": 6, "of": {"a": 1}}, {"id": 7, "v": "text"}])
    lake.records.drain(without)
    assert lake.rows() == [
        {"id": 1, "v": 7},
        {"id": 2, "v": 8},
        {"id": 5, "v": 9},
        {"id": 6, "v": None},
    ]
    assert len(dead_letters(lake.bootstrap, f"{lake.topic}-dlq")) == 3
    assert f"Leaving out fields of topic {lake.topic} that have no column" in caplog.text
    assert "new, of" in caplog.text
    lake.records.produce([{"id": 8, "new": "y"}])
    lake.records.drain(lake.task({"iceberg.tables.evolve-schema-enabled": "false"}))
    assert lake.rows()[-1] == {"id": 8, "v": None}


@pytest.mark.parametrize("divided", ["truncate(k, 400)", *thorough("k", "of.k")])
def test_a_value_for_which_there_can_be_no_folder_is_a_bad_record_and_odd_ones_are_exact(
    lake: IcebergLake, divided: str
) -> None:
    def record(number: int, value: str | None) -> dict[str, Any]:
        return {"id": number, "k": value, "of": {"k": value}}

    by_default = {"iceberg.tables.default-partition-by": divided}
    by_field = {"partitioner.class": "FieldPartitioner", "partition.field.name": divided}
    task = lake.task({**(by_default if "(" in divided else by_field), **lake.queue()})
    odd = ["", "__HIVE_DEFAULT_PARTITION__", None, "null", "y" * 230, "ü" * 40, "a/b=c"]
    for load in range(2):
        lake.records.produce([record(10 * load + number, value) for number, value in enumerate(odd)])
        lake.records.produce([record(10 * load + 8, "y" * 300), record(10 * load + 9, "ü" * 60)])
        lake.records.drain(task)
    assert lake.rows() == [record(10 * load + number, value) for load in range(2) for number, value in enumerate(odd)]
    assert len(dead_letters(lake.bootstrap, f"{lake.topic}-dlq")) == 4
    lake.records.produce([record(30, "y" * 300)])
    with pytest.raises(DataError, match=r"Bad record in topic .* has 300 characters, and the name of a folder"):
        lake.records.drain(lake.task())


@pytest.mark.parametrize("first", [*thorough({"id": 1, "a": 2}), {"id": 1, "_pos": 3}])
def test_a_name_that_iceberg_has_for_itself_is_that_of_a_bad_record(lake: IcebergLake, first: dict[str, Any]) -> None:
    task = lake.task(lake.queue())
    names = ("_file", "_pos", "_deleted", "_spec_id", "_partition", "_row_id", "_last_updated_sequence_number")
    lake.records.produce([first, {"id": 2, "_x": 1, ".y": 2, "_Z": {"_pos": 1}}])
    lake.records.drain(task)
    lake.records.produce([{"id": 10, name: "7"} for name in names])
    lake.records.produce([{"id": 3, "_x": 3, "_new": 4}])
    lake.records.drain(task)
    shown = [{"id": row["id"], "_x": row["_x"], ".y": row[".y"], "_new": row["_new"]} for row in lake.rows()]
    assert shown == [
        *([{"id": 1, "_x": None, ".y": None, "_new": None}] if "a" in first else []),
        {"id": 2, "_x": 1, ".y": 2, "_new": None},
        {"id": 3, "_x": 3, ".y": None, "_new": 4},
    ]
    assert len(dead_letters(lake.bootstrap, f"{lake.topic}-dlq")) == len(names) + ("a" not in first)
    lake.records.produce([{"id": 11, "_file": 1}])
    with pytest.raises(DataError, match="Iceberg has a column _file of its own"):
        lake.records.drain(lake.task())


@pytest.mark.parametrize("name", [*thorough("_k", ".k"), "a.k"])
def test_a_table_is_divided_by_a_field_of_any_name(lake: IcebergLake, name: str) -> None:
    task = lake.task({"partitioner.class": "FieldPartitioner", "partition.field.name": name})
    for number in (0, 2):
        lake.records.produce([{"id": number, name: "a"}, {"id": number + 1, name: ""}])
        lake.records.drain(task)
    assert lake.rows() == [{"id": number, name: ("a", "")[number % 2]} for number in range(4)]


def made_by_another(lake: IcebergLake, fields: Sequence[tuple[str, Any, bool]]) -> None:
    """Make the table of the topic as others do, with columns that are required or of types that records lack."""
    lake.task()  # it starts Spark
    spark = SparkSession.getActiveSession()
    assert spark is not None
    java: Any = spark._jvm
    columns = [
        {"id": number, "name": name, "type": kind, "required": required}
        for number, (name, kind, required) in enumerate(fields, 1)
    ]
    text = json.dumps({"type": "struct", "schema-id": 0, "fields": columns})
    tables = java.org.apache.iceberg.hadoop.HadoopTables(spark.sparkContext._jsc.hadoopConfiguration())
    iceberg = java.org.apache.iceberg
    made = iceberg.SchemaParser.fromJson(text), iceberg.PartitionSpec.unpartitioned(), java.java.util.HashMap()
    tables.create(*made, str(lake.store / "topics" / lake.topic))


def test_a_value_that_a_table_of_others_does_not_allow_is_that_of_a_bad_record(lake: IcebergLake) -> None:
    struct = {"type": "struct", "fields": [{"id": 9, "name": "a", "type": "long", "required": True}]}
    made_by_another(lake, [("id", "long", True), ("v", "string", True), ("u", "uuid", False), ("of", struct, False)])
    task = lake.task(lake.queue())
    one = "00000000-0000-0000-0000-00000000000a"
    for load in range(2):
        bad = [{"id": 2}, {"v": "x"}, {"id": 4, "v": "x", "u": "abc"}, {"id": 5, "v": "x", "of": {"a": None}}]
        lake.records.produce([*bad, {"id": 10 + load, "v": "a", "u": one}])
        lake.records.drain(task)
    lake.records.produce([{"id": 20, "v": "b", "new": 1, "of": {"a": 1}}])
    lake.records.drain(task)
    assert [{**row, "u": row["u"] and str(row["u"])} for row in lake.rows()] == [
        {"id": 10, "v": "a", "u": one, "of": None, "new": None},
        {"id": 11, "v": "a", "u": one, "of": None, "new": None},
        {"id": 20, "v": "b", "u": None, "of": {"a": 1}, "new": 1},
    ]
    assert len(dead_letters(lake.bootstrap, f"{lake.topic}-dlq")) == 8
    lake.records.produce([{"id": 30}])
    with pytest.raises(DataError, match=r"Bad record in topic .* v is null, which the table does not allow"):
        lake.records.drain(lake.task())
