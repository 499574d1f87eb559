"""The JSON converter: round trips, columns against rows, bytes against Jackson's rules, malformed data."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connect.data import (
    Column,
    Constant,
    Schema,
    SchemaAndValue,
    StructColumn,
    ValueColumn,
    decimal_schema,
    timestamp_schema,
    validate,
)
from connect.errors import ConfigError, DataError
from converters.json import JsonConverter, JsonConverterConfig
from equipment.examples import examples
from equipment.strategies.schemas import schemas, schemas_and_values
from equipment.strategies.values import schemaless_values, values_of
from equipment.vectors import encoded

Outcome = list[tuple[Schema | None, Any]] | type[DataError]


def converter(**options: Any) -> JsonConverter:
    return JsonConverter(JsonConverterConfig(**options))


def by_rows(json_converter: JsonConverter, data: Sequence[bytes | None]) -> Outcome:
    try:
        pairs = [json_converter.to_connect("t", item) for item in data]
    except DataError:
        return DataError
    return [(schema, encoded(value, schema)) for schema, value in pairs]


def by_columns(columns: Sequence[Column]) -> Outcome:
    return [(column.schema, encoded(value, column.schema)) for column in columns for value in column]


def columns_outcome(json_converter: JsonConverter, data: Sequence[bytes | None]) -> Outcome:
    try:
        return by_columns(json_converter.to_connect_column("t", data))
    except DataError:
        return DataError


def defaults(value: Any, schema: Schema) -> Any:
    """A value with its nulls replaced by the defaults of their schemas."""
    if value is None:
        return schema.default
    if isinstance(value, dict) and schema.fields:
        return {field.name: defaults(value[field.name], field.schema) for field in schema.fields}
    if isinstance(value, dict) and schema.value_schema is not None:
        return {key: defaults(item, schema.value_schema) for key, item in value.items()}
    if isinstance(value, list) and schema.value_schema is not None:
        return [defaults(item, schema.value_schema) for item in value]
    return value


@settings(deadline=None)
@given(schemas_and_values(), st.booleans())
def test_what_is_written_is_read_back(pair: SchemaAndValue, numeric: bool) -> None:
    json_converter = converter(decimal_format="NUMERIC" if numeric else "BASE64")
    written = json_converter.from_connect("t", *pair)
    schema, value = json_converter.to_connect("t", written)
    assert schema == pair.schema
    assert encoded(value, schema) == encoded(defaults(pair.value, pair.schema), schema)
    validate(schema, value)


@settings(deadline=None)
@given(schemaless_values(), st.booleans())
def test_schemaless_values_are_read_back(value: Any, enveloped: bool) -> None:
    json_converter = converter(schemas_enable=enveloped)

    def text_of(item: Any) -> Any:
        if isinstance(item, float) and not math.isfinite(item):
            return "NaN" if math.isnan(item) else ("Infinity" if item > 0 else "-Infinity")
        if isinstance(item, dict):
            return {key: text_of(part) for key, part in item.items()}
        return [text_of(part) for part in item] if isinstance(item, list) else item

    schema, read = json_converter.to_connect("t", json_converter.from_connect("t", None, value))
    assert schema is None
    assert encoded(read) == encoded(text_of(value))


@settings(deadline=None)
@given(st.data(), schemas(), st.booleans())
def test_columns_are_written_as_rows(data: st.DataObject, schema: Schema, replace_null: bool) -> None:
    values = data.draw(st.lists(values_of(schema), max_size=5))
    json_converter = converter(replace_null_with_default=replace_null)
    column = ValueColumn(values, schema)
    try:
        rows = [json_converter.from_connect("t", schema, value) for value in values]
    except DataError:
        with pytest.raises(DataError):
            json_converter.from_connect_column("t", column)
        return
    before = [encoded(value, schema) for value in values]
    assert json_converter.from_connect_column("t", column) == rows
    assert [encoded(value, schema) for value in values] == before


@settings(deadline=None)
@given(st.data(), st.lists(schemas(), min_size=1, max_size=3), st.integers(0, 4), st.booleans())
def test_structs_held_by_field_are_written_as_rows(
    data: st.DataObject, fields: list[Schema], length: int, enveloped: bool
) -> None:
    schema = Schema.struct({f'{index}"\n': field for index, field in enumerate(fields)})
    columns: dict[str, Sequence[Any]] = {}
    for field in schema.fields:
        values = data.draw(st.lists(values_of(field.schema), min_size=max(length, 1), max_size=max(length, 1)))
        columns[field.name] = Constant(values[0], length) if data.draw(st.booleans()) else values[:length]
    json_converter = converter(schemas_enable=enveloped)
    column = StructColumn(columns, schema)
    try:
        rows = [json_converter.from_connect("t", schema, value) for value in column]
    except DataError:
        with pytest.raises(DataError):
            json_converter.from_connect_column("t", column)
        return
    assert json_converter.from_connect_column("t", StructColumn(columns, schema)) == rows


@pytest.mark.parametrize("text", ['",\n  "', '","', "\\", "\n", "\x01", "\U0001f600", "\u2028", "\ud800", None, 5])
def test_text_within_structs_held_by_field_is_written_as_in_rows(text: Any) -> None:
    json_converter = converter()
    schema = Schema.struct({"a": Schema.string(optional=True), "b": Schema.string()})
    column = StructColumn({"a": ["x", text, "y"], "b": Constant("z", 3)}, schema)
    try:
        rows: Any = [json_converter.from_connect("t", schema, value) for value in column]
    except DataError:
        with pytest.raises(DataError):
            json_converter.from_connect_column("t", column)
        return
    assert json_converter.from_connect_column("t", column) == rows


@settings(deadline=None)
@given(st.lists(schemaless_values(), max_size=5), st.booleans())
def test_schemaless_columns_are_written_as_rows(values: list[Any], enveloped: bool) -> None:
    json_converter = converter(schemas_enable=enveloped)
    rows = [json_converter.from_connect("t", None, value) for value in values]
    assert json_converter.from_connect_column("t", ValueColumn(values)) == rows


@settings(deadline=None)
@given(st.data(), st.lists(schemas(), min_size=1, max_size=3))
def test_columns_are_read_as_rows(data: st.DataObject, several: list[Schema]) -> None:
    json_converter = converter()
    messages: list[bytes | None] = []
    for _ in range(data.draw(st.integers(0, 6))):
        schema = data.draw(st.sampled_from([None, *several]))
        if schema is None:
            messages.append(data.draw(st.sampled_from([None, b'{"schema":null,"payload":[1.5,"x"]}'])))
        else:
            messages.append(json_converter.from_connect("t", schema, data.draw(values_of(schema))))
    assert columns_outcome(converter(), messages) == by_rows(converter(), messages)


PIECES = st.sampled_from(
    [
        b"{",
        b"}",
        b"[",
        b"]",
        b",",
        b":",
        b'"',
        b"\\",
        b"1",
        b"0",
        b"-",
        b"e",
        b".",
        b"null",
        b"true",
        b" ",
        b"\n",
        b"\xff",
        b'"a"',
        b'"payload":',
        b"99999999999999999999",
        b"-0",
        b"1e400",
        b"NaN",
        b"\\ud83d",
        b"00",
        b"1,2",
        b'"schema":null',
    ]
)


@st.composite
def damaged(draw: st.DrawFn, messages: Sequence[bytes]) -> bytes:
    """One of some messages, perhaps with bytes cut out, put in or repeated."""
    message = draw(st.sampled_from(messages))
    for _ in range(draw(st.integers(0, 2))):
        start = draw(st.integers(0, len(message)))
        stop = draw(st.integers(start, min(len(message), start + 8)))
        message = message[:start] + draw(PIECES) + message[stop:]
    return message


SOUND = [
    b'{"schema":{"type":"struct","fields":[{"type":"int32","field":"a"},{"type":"string","optional":true,"field":"b"},'
    b'{"type":"double","optional":true,"default":1.5,"field":"c"}]},"payload":{"a":1,"b":"x","c":0.5}}',
    b'{"schema":{"type":"array","items":{"type":"int8"}},"payload":[1,2,300]}',
    b'{"schema":{"type":"map","keys":{"type":"string"},"values":{"type":"float","optional":true}},"payload":{"a":1.1}}',
    b'{"payload":[1,{"a":null}],"schema":null}',
    b'{"schema":{"type":"bytes","name":"org.apache.kafka.connect.data.Decimal","parameters":{"scale":"2"}},'
    b'"payload":1.5}',
]
PLAIN = [
    b'{"a":1,"b":"x","c":[1.5,true,null]}',
    b"12",
    b"1.5",
    b'"text"',
    b"[[1],[2]]",
    b"null",
    b"-9223372036854775808",
]


@settings(max_examples=examples(400), deadline=None)
@given(st.lists(st.none() | damaged(SOUND), max_size=4))
def test_damaged_envelopes_are_read_alike(messages: list[bytes | None]) -> None:
    assert columns_outcome(converter(), messages) == by_rows(converter(), messages)


@settings(max_examples=examples(400), deadline=None)
@given(st.lists(st.none() | damaged(PLAIN), max_size=4))
def test_damaged_payloads_are_read_alike(messages: list[bytes | None]) -> None:
    options: dict[str, Any] = {"schemas_enable": False}
    assert columns_outcome(converter(**options), messages) == by_rows(converter(**options), messages)


@settings(deadline=None)
@given(st.binary(max_size=40))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    for options in ({"schemas_enable": False}, {"schemas_enable": True}):
        by_rows(converter(**options), [data])


def envelope(schema: str, payload: str) -> bytes:
    return f'{{"schema":{schema},"payload":{payload}}}'.encode()


class TestColumnsThatDoNotAddUp:
    """Records that are broken each, but would be well-formed together."""

    def test_a_payload_of_two_values(self) -> None:
        assert columns_outcome(converter(), [envelope('{"type":"int32"}', "1,2")] * 2) is DataError

    def test_values_that_span_records(self) -> None:
        broken = [envelope("null", payload) for payload in ("[1", "2]", "3,4")]
        assert columns_outcome(converter(), broken) is DataError

    def test_a_message_without_its_brace(self) -> None:
        sound = envelope('{"type":"int32"}', "12")
        assert columns_outcome(converter(), [sound, sound[:-1]]) is DataError
        assert by_rows(converter(), [sound, sound[:-1]]) is DataError

    def test_a_second_schema_after_the_payload(self) -> None:
        late = b'{"schema":{"type":"int32"},"payload":1,"schema":{"type":"int64"}}'
        assert by_columns(converter().to_connect_column("t", [envelope('{"type":"int32"}', "1"), late])) == [
            (Schema.int32(), {"t": "int", "v": 1}),
            (Schema.int64(), {"t": "int", "v": 1}),
        ]

    def test_the_word_payload_inside_the_schema(self) -> None:
        schema = '{"type":"int32","doc":"\\"payload\\":","parameters":{"payload":"x"}}'
        data = [envelope(schema, "1"), envelope(schema, "2")]
        assert [column.values() for column in converter().to_connect_column("t", data)] == [[1, 2]]


class TestMalformed:
    @pytest.mark.parametrize(
        "data",
        [
            b"{",
            b'{"a":',
            b"nope",
            b"\xff\xfe",
            b'"\xff"',
            b"[" * 10000 + b"]" * 10000,
            b'{"a":' * 10000,
            b"NaN",
            b"1" * 1001,
            b"1e99999999999999999999",
            b'"\\ud83d"',
            b'"a\x01"',
            b"1,2",
            b"12x",
            b"-",
        ],
    )
    def test_is_refused(self, data: bytes) -> None:
        enveloped = b'{"schema":null,"payload":' + data + b"}"
        for json_converter, message in (
            (converter(schemas_enable=False), data),
            (converter(), enveloped),
            (converter(), data),
        ):
            with pytest.raises(DataError):
                json_converter.to_connect("t", message)
            with pytest.raises(DataError):
                json_converter.to_connect_column("t", [message])

    def test_a_schema_nested_too_deeply_is_refused(self) -> None:
        schema = '{"type":"array","items":' * 400 + '{"type":"int32"}' + "}" * 400
        with pytest.raises(DataError):
            converter().to_connect("t", envelope(schema, "[" * 400 + "]" * 400))

    def test_an_error_deep_inside_is_found_at_once(self) -> None:
        schema = '{"type":"array","items":' * 60 + '{"type":"int32"}' + "}" * 60
        with pytest.raises(DataError, match=r"(\[0\]){59}"):
            converter().to_connect("t", envelope(schema, "[" * 60 + "{}" + "]" * 60))

    @pytest.mark.parametrize(
        ("schema", "payload"),
        [
            ('{"type":"int32"}', "[1]"),
            ('{"type":"string"}', "{}"),
            ('{"type":"array","items":{"type":"int32"}}', "1"),
            ('{"type":"array","items":{"type":"int32"}}', '{"a":1}'),
            ('{"type":"struct","fields":[]}', "[]"),
            ('{"type":"map","keys":{"type":"string"},"values":{"type":"int32"}}', "[]"),
            ('{"type":"map","keys":{"type":"array","items":{"type":"int32"}},"values":{"type":"int32"}}', "[[[1],1]]"),
            ('{"type":"struct","fields":[{"type":"string","field":"a"}]}', '{"a":1}'),
        ],
    )
    def test_containers_and_scalars_do_not_stand_for_each_other(self, schema: str, payload: str) -> None:
        with pytest.raises(DataError):
            converter().to_connect("t", envelope(schema, payload))

    def test_the_error_names_the_field(self) -> None:
        schema = Schema.struct({"lines": Schema.array(Schema.struct({"n": Schema.int32()}))})
        with pytest.raises(DataError, match=r"lines\[1\]\.n"):
            converter().from_connect("t", schema, {"lines": [{"n": 1}, {"n": "x"}]})
        text = json.dumps({"lines": [{"n": 1}, {"n": None}]})
        described = converter().from_connect("t", schema, {"lines": []})
        assert described is not None
        with pytest.raises(DataError, match=r"lines\[1\]\.n"):
            converter().to_connect("t", described.replace(b'{"lines":[]}', text.encode()))

    @pytest.mark.parametrize(
        ("scale", "payload"),
        [
            ("9" * 20, "1"),
            ("2147483647", '"AQ=="'),
            ("2", '""'),
            ("2", "1e999999"),
            ("2", "true"),
            ("x", "1"),
            ("0", "[]"),
        ],
    )
    def test_decimals_out_of_all_range_are_refused_or_exact(self, scale: str, payload: str) -> None:
        described = (
            '{"type":"bytes","name":"org.apache.kafka.connect.data.Decimal","parameters":{"scale":"%s"}}' % scale  # noqa: UP031
        )
        outcome = by_rows(converter(), [envelope(described, payload)])
        assert outcome is DataError or scale == "2147483647"


class TestValuesThatDoNotFit:
    @pytest.mark.parametrize(
        ("schema", "value"),
        [
            (Schema.int8(), 128),
            (Schema.int64(), 2**63),
            (Schema.int32(), True),
            (Schema.int32(), 1.0),
            (Schema.float64(), 2**53 + 1),
            (Schema.float32(), 1e39),
            (Schema.string(), b"x"),
            (Schema.string(), "\ud800"),
            (Schema.bytes(), "x"),
            (Schema.struct({"a": Schema.int32()}), {"a": 1, "b": 2}),
            (Schema.struct({"a": Schema.int32()}), [1]),
            (Schema.array(Schema.string()), "text"),
            (Schema.map(Schema.string(optional=True), Schema.int32()), {None: 1}),
            (decimal_schema(2), Decimal("1.5")),
            (decimal_schema(2), Decimal("NaN")),
            (None, 10**1001),
            (None, {1, 2}),
        ],
    )
    def test_are_refused(self, schema: Schema | None, value: Any) -> None:
        with pytest.raises(DataError):
            converter().from_connect("t", schema, value)
        with pytest.raises(DataError):
            converter().from_connect_column("t", ValueColumn([value], schema))

    def test_a_value_without_end_is_refused(self) -> None:
        endless: list[Any] = []
        endless.append(endless)
        with pytest.raises(DataError):
            converter().from_connect("t", None, endless)


def test_numbers_that_a_float_cannot_hold_are_read_exactly() -> None:
    decimals = envelope(
        '{"type":"bytes","name":"org.apache.kafka.connect.data.Decimal","parameters":{"scale":"20"}}', "0.1"
    )
    assert converter().to_connect("t", decimals).value == Decimal("0.1").quantize(Decimal(10) ** -20)
    # 1 + 2**-24 lies midway between two numbers of single precision; a little more decides.
    midway = envelope('{"type":"float"}', "1.00000005960464477539062500000000001")
    assert converter().to_connect("t", midway).value == 1.0000001192092896
    assert converter().to_connect_column("t", [midway])[0][0] == 1.0000001192092896


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        ("12.345", "12.345"),
        ("12.3450", "12.3450"),
        ("-0.001", "-0.001"),
        ("1e-3", "0.001"),
        ("12", "12.00"),
        ("12.3", "12.30"),
        ("12.30", "12.30"),
        ("1e2", "100.00"),
        ("-0.00", "0.00"),
        ("0", "0.00"),
        ("1.2345678901234567890123", "1.2345678901234567890123"),
        ("123456789012345678.90", "123456789012345678.90"),
    ],
)
def test_a_numeric_decimal_is_what_the_text_says(payload: str, expected: str) -> None:
    schema = decimal_schema(2)
    nested = Schema.struct({"a": schema})
    described, wrapped = (
        str(converter().from_connect("t", of.as_optional(), None), "utf-8").removesuffix("null}")
        for of in (schema, nested)
    )
    messages = [f"{described}{payload}}}".encode()] * 6
    structs = [f'{wrapped}{{"a":{payload}}}}}'.encode()] * 6
    first = converter()
    # The first two are read before and after it is known that floats come along.
    values = [first.to_connect("t", message).value for message in messages[:2]]
    values += [value for column in converter().to_connect_column("t", messages) for value in column]
    values += [value["a"] for column in converter().to_connect_column("t", structs) for value in column]
    arrow = converter().to_connect_arrow("t", structs)
    values += [value["a"] for column in arrow for value in column]
    assert set(map(str, values)) == {expected}


def test_a_null_default_of_a_container_is_not_shared() -> None:
    described = '{"type":"array","items":{"type":"int32"},"default":[1]}'
    json_converter = converter()
    first = json_converter.to_connect("t", envelope(described, "null")).value
    first.append(2)
    assert json_converter.to_connect("t", envelope(described, "null")).value == [1]


def test_as_many_schemas_are_remembered_as_configured() -> None:
    json_converter = converter(schemas_cache_size=2)
    for version in range(5):
        schema = Schema.int32(version=version)
        data = json_converter.from_connect("t", schema, version)
        assert json_converter.to_connect("t", data) == (schema, version)
    assert len(json_converter._codecs._frames) == 2


def test_configured_schema_reads_payloads_alone() -> None:
    json_converter = converter(schema_content='{"type":"struct","fields":[{"type":"int64","name":"x","field":"a"}]}')
    schema = Schema.struct({"a": Schema.int64(name="x")})
    columns = json_converter.to_connect_column("t", [b'{"a":1}', None, b'{"a":2}'])
    assert [(column.schema, list(column)) for column in columns] == [
        (schema, [{"a": 1}]),
        (None, [None]),
        (schema, [{"a": 2}]),
    ]


@pytest.mark.parametrize("content", ["nope", "1", '{"type":"x"}', "[" * 2000])
def test_configured_schema_that_is_none_is_refused(content: str) -> None:
    with pytest.raises(ConfigError, match=r"schema\.content"):
        converter(schema_content=content)


def test_timestamps_keep_milliseconds() -> None:
    schema = timestamp_schema()
    data = converter().from_connect(
        "t",
        schema,
        converter()
        .to_connect(
            "t", envelope('{"type":"int64","name":"org.apache.kafka.connect.data.Timestamp","version":1}', "-1")
        )
        .value,
    )
    assert data is not None
    assert data.endswith(b'"payload":-1}')
