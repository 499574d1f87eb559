"""The JSON converter's way straight into Arrow: whatever the messages are, its columns hold what the rows would be."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connect.data import ArrowColumn, Column, Schema, ValueColumn, date_schema, decimal_schema, time_schema
from connect.errors import DataError
from converters.json import JsonConverter, JsonConverterConfig
from equipment.examples import examples
from equipment.strategies.schemas import schemas, structs
from equipment.strategies.values import values_of
from equipment.vectors import encoded

pytestmark = pytest.mark.skipif(importlib.util.find_spec("pyarrow") is None, reason="pyarrow is not installed")

Outcome = list[tuple[Schema | None, Any]] | type[DataError]
READABLE = schemas(maps=False)
ORDER = Schema.struct(
    {
        "a": Schema.int32(),
        "b": Schema.string(optional=True),
        "c": Schema.float64(optional=True),
        "d": Schema.float32(optional=True, default=1.5),
        "e": Schema.struct({"x": Schema.array(Schema.int64(optional=True)), "y": Schema.boolean()}, optional=True),
        "f": time_schema(optional=True),
        "g": decimal_schema(2, optional=True),
    }
)
WITHOUT_DEFAULT = ORDER.replace(
    fields={field.name: field.schema.replace(default=None) for field in ORDER.fields},
)
SOUND = [
    b'{"a":1,"b":"x","c":0.5,"d":1.1,"e":{"x":[1,null],"y":true},"f":1000,"g":"AJw="}',
    b'{"a":1,"b":"\\u00e9\xc3\xa9","c":-1e5,"d":null,"e":null}',
    b'{"c":2,"a":3}',
    b'{"a":4,"other":{"x":[1.5,"y"]},"b":null}',
]
PIECES = [b"{", b"}", b"[", b"]", b",", b":", b'"', b"\\", b"1", b"0", b"-", b"e", b".", b"null", b"true", b" ", b"\n"]
PIECES += [b"\xff", b'"a":1', b"99999999999999999999", b"-0", b"1e400", b"NaN", b"-Infinity", b"\\ud83d", b"00", b"1.5"]
PIECES += [
    b'}{"a":1',
    b"} null",
    b"}\n{",
    b'"other":NaN',
    b'"a":null',
    b"\x00",
    b"\xef\xbb\xbf",
    b"1" * 400,
    b"3000000000",
]


def converter(**options: Any) -> JsonConverter:
    return JsonConverter(JsonConverterConfig(**options))


def by_rows(json_converter: JsonConverter, data: Sequence[bytes | None]) -> Outcome:
    try:
        pairs = [json_converter.to_connect("t", item) for item in data]
    except DataError:
        return DataError
    return [(schema, encoded(value, schema)) for schema, value in pairs]


def by_arrow(json_converter: JsonConverter, data: Sequence[bytes | None], schema: Schema | None = None) -> Outcome:
    try:
        columns = json_converter.to_connect_arrow("t", data, schema)
    except DataError:
        return DataError
    return [(column.schema, encoded(value, column.schema)) for column in columns for value in column]


def plain_rows(data: Sequence[bytes | None], schema: Schema) -> Outcome:
    """The rows of messages without an envelope, by a converter that has their schema in its config."""
    enveloped = converter()
    described = enveloped.from_connect("t", schema.as_optional(), None)
    assert described is not None
    content = described.removeprefix(b'{"schema":').removesuffix(b',"payload":null}').decode()
    outcome = by_rows(converter(schema_content=content), data)
    if isinstance(outcome, list):
        return [(schema if found is not None else None, value) for found, value in outcome]
    return outcome


@settings(deadline=None)
@given(st.data(), structs(READABLE, optional=False, least=1), st.booleans())
def test_what_was_written_is_read_as_by_rows(data: st.DataObject, schema: Schema, replace_null: bool) -> None:
    json_converter = converter(replace_null_with_default=replace_null)
    values = data.draw(st.lists(values_of(schema), max_size=4))
    try:
        messages = [json_converter.from_connect("t", schema, value) for value in values]
    except DataError:
        return
    assert by_arrow(json_converter, messages) == by_rows(json_converter, messages)


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    message = draw(st.sampled_from(SOUND))
    for _ in range(draw(st.integers(0, 2))):
        start = draw(st.integers(0, len(message)))
        stop = draw(st.integers(start, min(len(message), start + 6)))
        message = message[:start] + draw(st.sampled_from(PIECES)) + message[stop:]
    return message


@settings(max_examples=examples(600), deadline=None)
@given(st.lists(damaged() | st.none(), max_size=4), st.sampled_from([ORDER, WITHOUT_DEFAULT]))
def test_damaged_payloads_are_read_as_by_rows(messages: list[bytes | None], schema: Schema) -> None:
    assert by_arrow(converter(schemas_enable=False), messages, schema) == plain_rows(messages, schema)


@settings(max_examples=examples(300), deadline=None)
@given(st.lists(damaged(), max_size=4), st.sampled_from([ORDER, WITHOUT_DEFAULT]))
def test_damaged_envelopes_are_read_as_by_rows(payloads: list[bytes], schema: Schema) -> None:
    described = converter().from_connect("t", schema, {"a": 1, "d": 1.5})
    assert described is not None
    prefix = described[: described.rindex(b'"payload":')] + b'"payload":'
    messages = [prefix + payload + b"}" for payload in payloads]
    assert by_arrow(converter(), messages) == by_rows(converter(), messages)


def columns_of(messages: Sequence[bytes], schema: Schema) -> Sequence[Column]:
    return converter(schemas_enable=False).to_connect_arrow("t", messages, schema)


def test_sound_messages_come_in_arrow() -> None:
    (column,) = columns_of(SOUND, WITHOUT_DEFAULT)
    assert isinstance(column, ArrowColumn)
    assert column[0]["e"] == {"x": [1, None], "y": True}


def test_envelopes_of_several_schemas_come_in_as_many_columns() -> None:
    json_converter = converter()
    first, second = Schema.struct({"a": Schema.int32()}), Schema.struct({"b": Schema.string()})
    messages = [json_converter.from_connect("t", first, {"a": number}) for number in range(40)]
    messages += [None, *[json_converter.from_connect("t", second, {"b": "x"})] * 40]
    messages += [None, json_converter.from_connect("t", first, {"a": 1})]
    columns = json_converter.to_connect_arrow("t", messages)
    assert [(column.schema, list(column)) for column in columns] == [
        (first, [{"a": number} for number in range(40)]),
        (None, [None]),
        (second, [{"b": "x"}] * 40),
        (None, [None]),
        (first, [{"a": 1}]),
    ]
    kinds = [type(column) for column in columns]
    assert kinds == [ArrowColumn, ValueColumn, ArrowColumn, ValueColumn, ValueColumn]


@pytest.mark.parametrize(
    "broken",
    [
        [b'{"a":1}{"a":2}', b" "],
        [b'{"a":[', b"1]}"],
        [b'{"a":1}null', b'{"a":2}'],
        [b"null", b'{"a":2}'],
        [b'\n{"a":1}', b'{"a":2}'],
        [b'{"a":1}', b""],
        [b'{"a":1,"x":' + b"[" * 3000 + b"]" * 3000 + b"}"],
        [b'{"a":1,"x":NaN}'],
        [b'{"a":1,"x":"\xff"}'],
        [b'{"a":1,"\xff":2}'],
    ],
)
def test_messages_that_pyarrow_would_misread_are_read_as_by_rows(broken: list[bytes]) -> None:
    schema = Schema.struct({"a": Schema.int32()}, optional=True)
    assert by_arrow(converter(schemas_enable=False), broken, schema) == plain_rows(broken, schema)


def test_days_beyond_the_calendar_are_refused() -> None:
    schema = Schema.struct({"a": date_schema()})
    assert isinstance(columns_of([b'{"a":2932896}'], schema)[0], ArrowColumn)
    with pytest.raises(DataError, match="years"):
        columns_of([b'{"a":2932897}'], schema)


def test_the_sign_of_zero_is_kept() -> None:
    schema = Schema.struct({"a": Schema.float64()})
    columns = columns_of([b'{"a":-0}', b'{"a":-0.0}'], schema)
    assert [str(value["a"]) for column in columns for value in column] == ["0.0", "-0.0"]
