"""Values read by column are what the converter of the same name makes of them."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import orjson
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from connect.converter import Converter
from connect.data import Schema
from connect.data.arrow import to_array
from connectors.spark.decoding.column_reader import Reading, UncertainReadingError
from connectors.spark.decoding.columns import column_reader
from connectors.spark.decoding.inference import as_row, infer_rows, prune
from converters.byte_array import ByteArrayConverter
from converters.json import JsonConverter
from converters.numbers import LongConverter
from converters.string import StringConverter
from equipment.examples import examples
from equipment.growth import assert_grows_evenly

JSON = JsonConverter.configured({"schemas.enable": "false"})
ENVELOPED = JsonConverter.configured({})
STRING = StringConverter.configured({})


def one_reading(converter: Converter[Any]) -> Callable[[Any, Schema | None], Reading]:
    """The reader that replaces a converter, where its values are one column."""
    reader = column_reader(converter)
    assert reader is not None

    def read(array: Any, table: Schema | None) -> Reading:
        (reading,) = reader("t", array, table)
        return reading

    return read


def binary(values: list[bytes]) -> Any:
    return pa.array(values, pa.binary())


READ_JSON = one_reading(JSON)
READ_ENVELOPES = one_reading(ENVELOPED)
READ_TEXT = one_reading(STRING)


def read_json(texts: list[bytes], table: Schema | None = None) -> tuple[list[Any], Schema | None, frozenset[str]]:
    reading = READ_JSON(binary(texts), table)
    return list(reading.column.values()), reading.column.schema, reading.untyped


scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8)
    | st.sampled_from(["2013-01-01T05:00:00Z", "2013-01-01", "1", "true", "\u2028"])
)
values = st.recursive(
    scalars,
    lambda children: st.lists(children, max_size=3) | st.dictionaries(st.sampled_from("abc"), children, max_size=3),
    max_leaves=8,
)
objects = st.lists(
    st.dictionaries(st.sampled_from(["a", "b", "c", "i", "v"]), values, max_size=4), min_size=1, max_size=6
)


def converted(texts: list[bytes]) -> list[Any]:
    return [JSON.to_connect("t", text).value for text in texts]


@settings(max_examples=examples(80), deadline=None)
@given(objects, st.booleans())
def test_json_read_by_column_is_json_read_by_the_converter(rows: list[dict[str, Any]], with_table: bool) -> None:
    texts = [json.dumps(row, ensure_ascii=index % 2 == 0).encode() for index, row in enumerate(rows)]
    expected = converted(texts)
    seen = infer_rows([as_row(value) for value in expected])
    try:
        found, schema, _ = read_json(texts, seen if with_table else None)
    except UncertainReadingError:
        return  # the converter is asked
    assert schema is not None
    assert {field.name: field.schema for field in schema.fields} == {field.name: field.schema for field in seen.fields}
    if with_table:
        pruned = [prune(value, schema, set()) for value in expected]
        assert found == to_array(pruned, schema).to_pylist()


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b" ",
        b'{"a":1}{"a":2}',
        b'{"a":1}}\n{"i":1,"v":{"a":2}',
        b'{"a":1},"v":{"a":2}',
        b'{"a":1',
        b"[1]",
        b"1",
        b"null",
        b"\xff",
        b'{"a":"\xed\xa0\x80"}',
        b'{"a":"\\ud800"}',
        b'{"a":1180591620717411303424}',
        b'{"a":9007199254740993.0}',
        b'{"a":NaN}',
        b'{"a":1,"a":2}',
        b'{"a":1,}',
    ],
)
def test_a_text_out_of_the_ordinary_is_left_to_the_converter(text: bytes) -> None:
    with pytest.raises(UncertainReadingError):
        read_json([b'{"z":1}', text, b'{"z":3}'])


PIECES = (
    *("{", "}", "[", "]", '"', ":", ",", "1", "\n", " ", "\0", "\\", "/*", "*/", "\x0b", "\ufeff", "-"),
    *('{"a":1}', '{"a":', '{"b":{"a":2}}', '"}"', "{}", '{"a":[', '{"a":"x', 'x"}', "}{", '{"a":1}{"a":2}'),
)
broken_texts = st.lists(
    st.sampled_from(['{"a":1}', '{"a":1}{"a":2}'])
    | st.lists(st.sampled_from(PIECES), max_size=5).map(lambda parts: "{" + "".join(parts) + "}")
    | st.lists(st.sampled_from(PIECES), max_size=5).map("".join),
    min_size=1,
    max_size=4,
)


@settings(max_examples=examples(300), deadline=None)
@given(broken_texts, st.booleans())
@example(['{"a":1}{"a":2}\0}', '{"a":3}'], True)
@example(['{"a":[', '{"b":1},', "1]}", '{"a":1}{"a":2}{"a":3}'], False)
@example(['{"a":"}', '{"a":1}'], True)
def test_texts_that_are_as_many_objects_together_are_each_one(texts: list[str], with_table: bool) -> None:
    """All texts of a batch are parsed as one stream, in which one may make up for what another lacks."""
    raw = [text.encode() for text in texts]
    table = Schema.struct({"a": Schema.int64(optional=True)}) if with_table else None
    try:
        found, schema, _ = read_json(raw, table)
    except UncertainReadingError:
        return  # the converter is asked
    assert schema is not None
    assert found == to_array([prune(orjson.loads(text), schema, set()) for text in raw], schema).to_pylist()


def test_white_space_at_the_end_of_texts_is_none_of_theirs() -> None:
    found, _, _ = read_json([b'{"a":1}\r\n', b'{"a":2} \t', b'{"a":3}'])
    assert found == [{"a": 1}, {"a": 2}, {"a": 3}]
    with pytest.raises(UncertainReadingError):
        read_json([b'{"a":1}\x0b', b'{"a":2} '])


def test_texts_over_several_lines_and_fields_called_as_ours_are_read() -> None:
    found, _, _ = read_json([b'{"i":\n 7,\r\n"v":{"i":1}}', b'{"v":{}, "i":null}'])
    assert found == [{"i": 7, "v": {"i": 1}}, {"i": None, "v": {"i": None}}]


def test_a_field_that_does_not_fit_the_table_is_doubted_and_a_new_one_is_shown() -> None:
    table = Schema.struct({"a": Schema.int64(optional=True)})
    with pytest.raises(UncertainReadingError):
        read_json([b'{"a":"x"}'], table)
    found, schema, untyped = read_json([b'{"a":1,"b":[1.5],"c":[],"d":{"e":{}}}'], table)
    assert found == [{"a": 1, "b": [1.5]}]
    assert schema is not None
    assert schema.field_names == ("a", "b")
    assert untyped == {"c", "d.e"}


def test_a_table_with_types_json_does_not_show_is_left_to_the_converter() -> None:
    with pytest.raises(UncertainReadingError):
        read_json([b'{"a":"eA=="}'], Schema.struct({"a": Schema.bytes(optional=True)}))


def test_whole_numbers_in_a_column_of_floats_are_floats() -> None:
    found, _, _ = read_json([b'{"a":1}', b'{"a":2.5}'], Schema.struct({"a": Schema.float64(optional=True)}))
    assert found == [{"a": 1.0}, {"a": 2.5}]
    assert not math.isnan(found[0]["a"])


@given(st.lists(st.binary(max_size=6) | st.text(max_size=6).map(str.encode), min_size=1, max_size=5))
def test_text_read_by_column_is_text_read_by_the_converter(data: list[bytes]) -> None:
    expected = [STRING.to_connect("t", item) for item in data]
    try:
        column = READ_TEXT(binary(data), None).column
    except UncertainReadingError:
        return
    assert list(column.values()) == [item.value for item in expected]
    assert column.schema is expected[0].schema


def test_bytes_are_what_they_are() -> None:
    reader = one_reading(ByteArrayConverter.configured({}))
    assert list(reader(binary([b"\x00", b""]), None).column.values()) == [b"\x00", b""]


@pytest.mark.parametrize(
    "converter",
    [
        StringConverter.configured({"converter.encoding": "ISO-8859-1"}),
        JsonConverter.configured({"schema.content": '{"type":"int8"}'}),
        LongConverter.configured({}),
    ],
)
def test_other_converters_are_not_stood_for(converter: Converter[Any]) -> None:
    assert column_reader(converter) is None


# -- envelopes ---------------------------------------------------------------------------------------------------

FIELDS = {
    "id": {"type": "int32", "optional": False},
    "small": {"type": "int8", "optional": True},
    "price": {"type": "double", "optional": True},
    "late": {"type": "boolean", "optional": True},
    "tags": {"type": "array", "optional": True, "items": {"type": "string", "optional": True}},
    "inner": {"type": "struct", "optional": True, "fields": [{"field": "x", "type": "int64", "optional": False}]},
}
SCHEMA = {
    "type": "struct",
    "name": "row",
    "optional": False,
    "fields": [{"field": name, **schema} for name, schema in FIELDS.items()],
}
odd = st.sampled_from([None, "x", 1.0, 1.5, True, 300, 2**60 + 1, [], {}, {"x": None}, ["a", 1]])
payloads = st.fixed_dictionaries(
    {"id": st.integers(-(2**31), 2**31 - 1)},
    optional={
        "small": st.none() | st.integers(-128, 127),
        "price": st.none() | st.floats(-1e6, 1e6) | st.integers(-1000, 1000),
        "late": st.none() | st.booleans(),
        "tags": st.none() | st.lists(st.none() | st.sampled_from(["a", "2013-01-01"]), max_size=3),
        "inner": st.none() | st.fixed_dictionaries({"x": st.integers(-(2**63), 2**63 - 1)}),
        "more": odd,
    },
)


def enveloped(payload: object, schema: object = SCHEMA) -> bytes:
    return json.dumps({"schema": schema, "payload": payload}).encode()


@settings(max_examples=examples(80), deadline=None)
@given(st.lists(payloads, min_size=1, max_size=5), st.sampled_from([None, *FIELDS]), odd)
def test_envelopes_read_by_column_are_read_as_by_the_converter(
    rows: list[dict[str, Any]], field: str | None, value: Any
) -> None:
    if field is not None:
        rows = [*rows, {**rows[0], field: value}]
    try:
        column = READ_ENVELOPES(binary([enveloped(row) for row in rows]), None).column
    except UncertainReadingError:
        return
    expected = [ENVELOPED.to_connect("t", enveloped(row)) for row in rows]
    assert column.schema is expected[0].schema
    assert list(column.values()) == [item.value for item in expected]


def test_plain_envelopes_are_read_by_column() -> None:
    texts = [enveloped({"id": 1, "inner": {"x": 5}}), enveloped({"id": 2, "price": 3, "unknown": "x"})]
    column = READ_ENVELOPES(binary(texts), None).column
    assert [row["id"] for row in column] == [1, 2]
    assert [row["price"] for row in column] == [None, 3.0]


@pytest.mark.parametrize(
    "text",
    [
        b'{"payload":{"id":1},"schema":null}',
        b"{}",
        b"[1]",
        b'{"schema":null,"payload":{"id":1}}',
        enveloped({"id": 1}, {**SCHEMA, "name": "other"}),
        enveloped({"id": 1})[:-1] + b',"more":1}',
        enveloped({"id": 1})[:-1] + b',"payload":{"id":2}}',
        enveloped({"id": 1}) + b" ",
        enveloped({"id": 1}) + enveloped({"id": 2}),
        enveloped(None),
        enveloped({"small": 1}),
        enveloped({"id": 1, "inner": {}}),
        enveloped({"id": 1, "price": 2**60 + 1}),
    ],
)
def test_an_envelope_out_of_the_ordinary_is_left_to_the_converter(text: bytes) -> None:
    with pytest.raises(UncertainReadingError):
        READ_ENVELOPES(binary([enveloped({"id": 0}), text]), None)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "int32"},
        {"type": "struct", "fields": [{"field": "a", "type": "int32", "default": 5}]},
        {"type": "struct", "fields": [{"field": "a", "type": "float"}]},
        {"type": "struct", "fields": [{"field": "a", "type": "bytes"}]},
        {
            "type": "struct",
            "fields": [{"field": "a", "type": "int64", "name": "org.apache.kafka.connect.data.Timestamp"}],
        },
        {"type": "nothing"},
    ],
)
def test_schemas_whose_values_are_read_in_a_way_of_their_own_are_left_to_the_converter(schema: object) -> None:
    with pytest.raises(UncertainReadingError):
        READ_ENVELOPES(binary([enveloped({"a": 1}, schema)]), None)


def test_numbers_are_read_as_orjson_reads_them() -> None:
    texts = [b'{"a":%s}' % number for number in (b"0.1", b"1e3", b"-0.0", b"123456789.123", b"5e-324")]
    found, _, _ = read_json(texts)
    assert [row["a"] for row in found] == [orjson.loads(text)["a"] for text in texts]


@pytest.mark.parametrize("form", ['{{"payload":[{}],"schema":null}}', '{{"schema":[{}],"more":1}}', '{{"schema":[{}'])
def test_the_prefix_of_an_envelope_is_looked_for_in_linear_time(form: str) -> None:
    """However often the word stands in the message."""

    def read(array: pa.Array) -> None:
        with pytest.raises(UncertainReadingError):
            READ_ENVELOPES(array, None)

    def made(size: int) -> pa.Array:
        return binary([form.format(",".join(['{"payload":1}'] * size)).encode()])

    assert_grows_evenly(read, made, 2000)
