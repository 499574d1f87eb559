"""Fields of messages one after the other, as sinks with columns read them: alike from structs and from Arrow."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any, NoReturn

import pytest

from connect.converter import Converter
from connect.data import Schema, ValueColumn, date_schema, decimal_schema, time_schema, timestamp_schema
from converters.avro import AvroConverter
from converters.json_schema import JsonSchemaConverter
from converters.protobuf import ProtobufConverter
from converters.registry.codecs import Reader
from converters.registry.column import MessageColumn, Use
from equipment.fakes.schema_registry import MemoryRegistry, serving

FLAT = Schema.struct(
    {
        "i8": Schema.int8(),
        "i64": Schema.int64(optional=True),
        "f32": Schema.float32(),
        "f64": Schema.float64(optional=True),
        "b": Schema.boolean(),
        "s": Schema.string(optional=True),
        "y": Schema.bytes(),
        "dec": decimal_schema(2),
        "ts": timestamp_schema(optional=True),
        "d": date_schema(),
        "t": time_schema(),
    },
    name="Row",
)
PLAIN = Schema.struct({"i64": Schema.int64(), "s": Schema.string(optional=True), "f64": Schema.float64()}, name="Row")
NESTED = Schema.struct({"i64": Schema.int64(), "list": Schema.array(Schema.int32())}, name="Row")
FORMATS: dict[str, tuple[Any, dict[str, str]]] = {
    "avro": (AvroConverter, {}),
    "json": (JsonSchemaConverter, {}),
    "protobuf": (ProtobufConverter, {"optional.for.nullables": "true"}),
}


def row(number: int) -> dict[str, Any]:
    some = number % 3 != 0
    return {
        "i8": number % 256 - 128,
        "i64": 2**60 + number if some else None,
        "f32": 0.1 if number % 2 else -0.0,
        "f64": number / 3 if some else None,
        "b": bool(number % 2),
        "s": f"é{number}" if some else None,
        "y": b"\0" * (number % 4),
        "dec": Decimal(number).scaleb(-2),
        "ts": dt.datetime(2026, 1, 1, 0, 0, number % 60, 5000, tzinfo=dt.UTC) if some else None,
        "d": dt.date(1900 + number % 100, 1, 1),
        "t": dt.time(number % 24, 0, 0, 1000),
    }


@pytest.fixture(params=FORMATS)
def converter(request: pytest.FixtureRequest) -> Iterator[Converter[Any]]:
    made, options = FORMATS[request.param]
    with serving(MemoryRegistry()) as memory:
        found: Converter[Any] = made.configured({"schema.registry.url": memory.url, **options})
        yield found
        found.close()


def members(converter: Converter[Any], messages: Sequence[bytes | None], schema: Schema) -> dict[str, list[Any]]:
    (column,) = converter.to_connect_column("t", messages)
    return {name: list(column.members(name)) for name in [*schema.field_names, "none"]}


@pytest.mark.parametrize("schema", [FLAT, PLAIN, NESTED], ids=["flat", "plain", "nested"])
def test_members_are_alike_however_they_are_read(converter: Converter[Any], schema: Schema) -> None:
    rows = [{**row(number), "f64": number / 3, "i64": number, "list": [number]} for number in range(200)]
    if schema is FLAT:
        rows = [row(number) for number in range(200)]
    values = [{name: each[name] for name in schema.field_names} for each in rows]
    messages = converter.from_connect_column("t", ValueColumn(values, schema))
    first, second = (members(converter, messages, schema) for _ in range(2))
    by_row = [converter.to_connect("t", message).value for message in messages]
    expected = {name: [each.get(name) for each in by_row] for name in [*schema.field_names, "none"]}
    # The second column is decoded as the first was read. Texts show what == does not: -0.0, types, digits.
    assert repr(first) == repr(expected)
    assert repr(second) == repr(expected)


def test_structs_are_not_made_for_members() -> None:
    with serving(MemoryRegistry()) as memory:
        converter = AvroConverter.configured({"schema.registry.url": memory.url})
        values = [{"i64": number, "s": None, "f64": 0.5} for number in range(100)]
        messages: Any = converter.from_connect_column("t", ValueColumn(values, PLAIN))
        reader = converter.reader("t", messages[0][:5])
        converter.close()

    def refuse(messages: Sequence[bytes]) -> NoReturn:
        raise AssertionError(messages)

    use = Use()
    column = MessageColumn.decoded(messages, Reader(reader.schema, refuse, reader.columns), use, arrow=True)
    part = column.slice(10, 20)
    assert list(part.members("i64")) == list(range(10, 20))
    assert list(column.take([5, 1]).members("i64")) == [5, 1]
    assert not column.has_nulls()
    assert use.is_arrow
