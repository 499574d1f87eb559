"""Damaged messages of JSON Schema and Protobuf are read or refused, and by column as by row."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connect.converter import Converter
from connect.data import Schema, decimal_schema, timestamp_schema
from connect.errors import DataError
from converters.json_schema import JsonSchemaConverter
from converters.protobuf import ProtobufConverter
from equipment.examples import examples
from equipment.fakes.schema_registry import MemoryRegistry, serving
from equipment.vectors import encoded
from unit.connect.kits.avro.codecs_of import mutated

WHOLE = Schema.struct(
    {
        "id": Schema.int64(),
        "name": Schema.string(optional=True),
        "price": decimal_schema(2),
        "at": timestamp_schema(),
        "tags": Schema.array(Schema.string()),
        "counts": Schema.map(Schema.string(), Schema.int32()),
        "inner": Schema.struct({"x": Schema.float64(), "b": Schema.bytes()}, name="Inner"),
    },
    name="Whole",
)
INSTANT = dt.datetime(2026, 1, 2, 3, 4, 5, tzinfo=dt.UTC)


@pytest.fixture(scope="module")
def registry() -> Iterator[MemoryRegistry]:
    """One registry for all examples."""
    with serving(MemoryRegistry()) as memory:
        yield memory


@pytest.fixture(scope="module", params=[JsonSchemaConverter, ProtobufConverter])
def shared(request: pytest.FixtureRequest, registry: MemoryRegistry) -> Iterator[Converter[Any]]:
    """A converter for many examples."""
    converter = request.param.configured({"schema.registry.url": registry.url})
    yield converter
    converter.close()


@given(st.data())
@settings(max_examples=examples(60), deadline=None)
def test_columns_are_read_like_rows_whatever_the_bytes(shared: Converter[Any], data: st.DataObject) -> None:
    topic = type(shared).__name__
    value = {
        "id": data.draw(st.integers(-(2**63), 2**63 - 1)),
        "name": data.draw(st.text(max_size=5)),
        "price": Decimal(data.draw(st.integers(-(10**20), 10**20))).scaleb(-2),
        "at": INSTANT,
        "tags": data.draw(st.lists(st.text(max_size=3), max_size=3)),
        "counts": {"a": 1},
        "inner": {"x": data.draw(st.floats(allow_nan=False)), "b": b"\x00\xff"},
    }
    good = shared.from_connect(topic, WHOLE, value)
    assert good is not None
    assert shared.to_connect(topic, good).value == value
    messages = data.draw(st.lists(st.sampled_from([good, None]) | mutated(good), max_size=5))
    try:
        rows = [shared.to_connect(topic, message) for message in messages]
    except DataError:
        with pytest.raises(DataError):
            shared.to_connect_column(topic, messages)
        return
    columns = shared.to_connect_column(topic, messages)
    found = [(column.schema, repr(encoded(item, column.schema))) for column in columns for item in column]
    assert found == [(schema, repr(encoded(item, schema))) for schema, item in rows]
