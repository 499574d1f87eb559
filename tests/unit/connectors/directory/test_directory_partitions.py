"""Folders that stand for fields."""

from __future__ import annotations

import datetime as dt
import io
from collections.abc import Callable
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from connect.data import Schema, date_schema
from connect.errors import DataError

Rows = Callable[..., Any]


@pytest.fixture
def read(start: Any, rows: Rows) -> Callable[..., Any]:
    def values(context: Any, **props: str) -> list[Any]:
        given = {"recursive": "true", "partition.fields": "string", **props}
        return [record.value for record in rows(start(context, **given))]

    return values


def test_folders_become_fields_after_those_of_the_rows(folder: Any, start: Any, context: Any, rows: Rows) -> None:
    folder.write("year=2013/month=01/a.csv", "x,y\n1,2\n")
    (record,) = rows(start(context, recursive="true", **{"partition.fields": "string"}))
    assert record.value == {"x": "1", "y": "2", "year": "2013", "month": "01"}
    assert record.value_schema.field_names == ("x", "y", "year", "month")
    assert record.value_schema.field("year").schema is Schema.string(optional=True)


def test_without_the_key_they_do_not(folder: Any, context: Any, read: Any) -> None:
    folder.write("year=2013/a.csv", "x\n1\n")
    assert read(context, **{"partition.fields": "none"}) == [{"x": "1"}]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2013", 2013),
        ("01", "01"),
        ("2013-05-01", dt.date(2013, 5, 1)),
        ("1.5", 1.5),
        ("true", True),
        ("a%3Ab%2Fc", "a:b/c"),
        ("__HIVE_DEFAULT_PARTITION__", None),
        ("", None),
        ("a=b", "a=b"),
    ],
)
def test_types_are_inferred_as_those_of_columns(folder: Any, context: Any, read: Any, text: str, value: Any) -> None:
    folder.write(f"k={text}/a.csv", "x\n1\n")
    (row,) = read(context, **{"partition.fields": "inferred"})
    assert row == {"x": "1", "k": value}
    assert type(row["k"]) is type(value)


def test_a_type_may_be_given(folder: Any, start: Any, context: Any, rows: Rows) -> None:
    folder.write("month=01/day=2013-05-01/a.csv", "x\n1\n")
    folder.write("month=__HIVE_DEFAULT_PARTITION__/day=2013-05-02/a.csv", "x\n2\n")
    given = {"types": "x:int32,month:int8,day:date", "partition.fields": "string", "recursive": "true"}
    one, other = rows(start(context, **given))
    assert one.value == {"x": 1, "month": 1, "day": dt.date(2013, 5, 1)}
    assert other.value == {"x": 2, "month": None, "day": dt.date(2013, 5, 2)}
    assert one.value_schema is other.value_schema
    assert one.value_schema.field("day").schema is date_schema(optional=True)


def test_every_format_with_fields_has_them(folder: Any, context: Any, read: Any) -> None:
    out = io.BytesIO()
    fastavro.writer(out, {"type": "record", "name": "r", "fields": [{"name": "x", "type": "string"}]}, [{"x": "avro"}])
    folder.write("k=1/a.avro", out.getvalue())
    folder.write("k=1/b.csv", "x\ncsv\n")
    folder.write("k=1/c.jsonl", '{"x": "json"}\n')
    pq.write_table(pa.table({"x": ["parquet", None]}), folder.path / "k=1/d.parquet")
    folder.settle(folder.path / "k=1/d.parquet")
    found = read(context, **{"partition.fields": "inferred"})
    assert found == [{"x": x, "k": 1} for x in ("avro", "csv", "json", "parquet", None)]


def test_rows_and_columns_agree(folder: Any, start: Any, context: Any) -> None:
    folder.write("k=1/l=__HIVE_DEFAULT_PARTITION__/b.csv", "x,y\n1,\n2,b\n")
    given = {"types": "x:int64,k:int16,l:decimal(2)", "partition.fields": "string", "recursive": "true"}
    batch = start(context, **given).poll()
    assert batch.value.to_arrow().to_pylist() == [row.value for row in batch]
    assert [row.value for row in batch] == [
        {"x": 1, "y": None, "k": 1, "l": None},
        {"x": 2, "y": "b", "k": 1, "l": None},
    ]


@pytest.mark.parametrize(
    ("name", "content", "props", "reason"),
    [
        ("x=1/a.csv", "x\n1\n", {}, "its rows already have a field x"),
        ("k=1/a.jsonl", '{"k": 1}\n', {}, "its rows already have a field k"),
        ("k=1/a.jsonl", "[1]\n", {}, "not all of its rows are objects"),
        ("k=1/a.txt", "line\n", {}, "its rows are not structs"),
        ("k=1/k=2/a.csv", "x\n1\n", {}, "is in two folders for the field k"),
        ("k=x/a.csv", "x\n1\n", {"types": "k:int8"}, "k is 'x', which is not of type int8"),
    ],
)
def test_what_cannot_be_added_is_refused(
    folder: Any, source_context: Any, read: Any, name: str, content: str, props: dict[str, str], reason: str
) -> None:
    folder.write(name, content)
    context = source_context(tolerate=True)
    assert read(context, **props) == []
    ((_, error),) = context.errant_record_reporter.reported
    assert isinstance(error, DataError)
    assert reason in str(error)


def test_a_task_resumes_in_such_a_file(folder: Any, start: Any, source_context: Any, rows: Rows) -> None:
    folder.write("k=1/a.csv", "x\n1\n2\n3\n")
    given = {"partition.fields": "string", "recursive": "true"}
    records = rows(start(source_context(), **given))
    context = source_context()
    context.commit(records[0].source_partition, records[0].source_offset)
    assert [record.value for record in rows(start(context, **given))] == [record.value for record in records[1:]]
