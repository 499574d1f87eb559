"""Fields of Avro's type null are read as optional strings that are always null."""

from __future__ import annotations

from typing import Any

import pytest

from connect.data import Schema
from connect.errors import DataError
from equipment.fakes.schema_registry import MemoryRegistry
from unit.converters.avro.test_avro_converter import Make, converter

__all__ = ["converter"]

NULL = Schema.string(optional=True)


def record(kind: str) -> str:
    fields = f'{{"name":"a","type":"int"}},{{"name":"n","type":{kind}}},{{"name":"b","type":"int"}}'
    return f'{{"type":"record","name":"R","fields":[{fields}]}}'


@pytest.mark.parametrize(
    ("kind", "schema", "data", "value"),
    [
        ('"null"', NULL, b"", None),
        ('["null"]', NULL, b"\x00", None),
        ('{"type":"array","items":"null"}', Schema.array(NULL), b"\x04\x00", [None, None]),
        ('{"type":"map","values":"null"}', Schema.map(Schema.string(), NULL), b"\x02\x02k\x00", {"k": None}),
        (
            '{"type":"record","name":"I","fields":[{"name":"x","type":"null"}]}',
            Schema.struct({"x": NULL}, name="I"),
            b"",
            {"x": None},
        ),
    ],
)
def test_a_field_without_values_is_always_null(
    converter: Make, memory: MemoryRegistry, kind: str, schema: Schema, data: bytes, value: Any
) -> None:
    memory.add("t-value", record(kind))
    message = b"\0\0\0\0\x01\x02" + data + b"\x04"
    avro = converter()
    by_column = avro.to_connect_column("t", [message] * 40)
    for read_schema, read in (
        avro.to_connect("t", message),
        *((column.schema, row) for column in by_column for row in column.values()),
    ):
        assert read == {"a": 1, "n": value, "b": 2}
        assert read_schema is not None
        assert [field.schema for field in read_schema.fields] == [Schema.int32(), schema, Schema.int32()]
    elsewhere = avro.from_connect("elsewhere", *avro.to_connect("t", message))
    assert avro.to_connect("elsewhere", elsewhere).value == {"a": 1, "n": value, "b": 2}


def test_an_array_of_nulls_that_is_longer_than_its_message_is_refused(converter: Make, memory: MemoryRegistry) -> None:
    memory.add("t-value", '{"type":"array","items":"null"}')
    with pytest.raises(DataError):
        converter().to_connect("t", b"\0\0\0\0\x01" + b"\xfe\xff\xff\xff\x0f" + b"\x00")


def test_a_message_of_the_type_null_is_null(converter: Make, memory: MemoryRegistry) -> None:
    memory.add("t-value", '"null"')
    assert converter().to_connect("t", b"\0\0\0\0\x01").value is None
    assert [column.values() for column in converter().to_connect_column("t", [b"\0\0\0\0\x01"] * 3)] == [[None] * 3]
