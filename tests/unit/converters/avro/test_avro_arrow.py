"""Columns of Avro are the same values as Python objects and as Arrow, whichever is asked for first."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from connect.data import Schema, ValueColumn
from connect.errors import DataError
from converters.avro import AvroConverter
from unit.converters.avro.test_avro_converter import Make, converter

__all__ = ["converter"]

ROW = Schema.struct({"a": Schema.int64(), "b": Schema.array(Schema.string(), optional=True)}, name="Row")
VALUES = [{"a": number, "b": None if number % 2 else ["x", str(number)]} for number in range(200)]


def messages_of(avro: AvroConverter, values: list[Any], schema: Schema | None = ROW) -> list[Any]:
    return list(avro.from_connect_column("t", ValueColumn(values, schema)))


def test_a_column_is_arrow_and_values_in_any_order(converter: Make) -> None:
    avro = converter()
    messages = messages_of(avro, VALUES)
    for _ in range(3):  # from the second one on, Arrow comes first
        (column,) = avro.to_connect_column("t", messages)
        assert len(column) == len(VALUES)
        assert not column.has_nulls()
        assert column.to_arrow().to_pylist() == VALUES
        assert list(column.values()) == VALUES
        part = column.slice(10, 150)
        for selected, expected in (
            (part, VALUES[10:150]),
            (part.take([5, 0, 5]), [VALUES[15], VALUES[10], VALUES[15]]),
            (column.take([]), []),
            (column.slice(5, 2), []),
        ):
            assert len(selected) == len(expected)
            assert list(selected) == expected
            assert selected.to_arrow().to_pylist() == expected
    (column,) = avro.to_connect_column("t", messages)
    assert list(column.slice(3, 90)) == VALUES[3:90]
    assert list(column.take([7, 3])) == [VALUES[7], VALUES[3]]
    assert repr(column).startswith("MessageColumn(<200 messages>")


def test_a_bad_message_is_found_whatever_is_asked_for(converter: Make) -> None:
    avro = converter()
    good = messages_of(avro, VALUES)
    bad = [*good[:100], good[100] + b"\x00", *good[101:]]
    for _ in range(2):
        with pytest.raises(DataError, match="1 bytes are left over"):
            avro.to_connect_column("t", bad)
        (column,) = avro.to_connect_column("t", good)
        column.to_arrow()
    with pytest.raises(DataError, match="1 bytes are left over"):
        avro.to_connect_arrow("t", pa.array(bad, pa.binary()))


def test_an_array_of_messages_is_a_column_for_each_schema(converter: Make) -> None:
    avro = converter()
    other = Schema.struct({"a": Schema.string()}, name="Row")
    parts = [(VALUES, ROW), ([{"a": "é"}] * 90, other), ([1.5] * 80, None), (VALUES[:3], ROW)]
    messages = [message for values, schema in parts for message in messages_of(avro, values, schema)]
    columns = avro.to_connect_arrow("t", pa.array(messages, pa.binary()))
    shown = [(list(column), None if column.schema is None else column.schema.field_names) for column in columns]
    assert shown == [(values, None if schema is None else schema.field_names) for values, schema in parts]
    mixed = [message for pair in zip(messages[:80], messages[200:280], strict=True) for message in pair]
    columns = avro.to_connect_arrow("t", pa.array(mixed, pa.binary()))
    assert [value for column in columns for value in column] == [
        value for pair in zip(VALUES[:80], [{"a": "é"}] * 80, strict=True) for value in pair
    ]


def test_a_null_of_a_union_is_a_null(converter: Make) -> None:
    avro = converter()
    messages = messages_of(avro, VALUES, ROW.as_optional())
    messages[3] = messages[3][:5] + b"\x00"
    for _ in range(2):
        (column,) = avro.to_connect_column("t", messages)
        assert column.has_nulls()
        assert column.to_arrow()[3].as_py() is None
        assert column.values()[3] is None
