"""Where the JSON converter ends: depth, odd names, values that do not fit. What is refused is a ``DataError``."""

from __future__ import annotations

import datetime as dt
import enum
import uuid
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connect.data import (
    Column,
    Constant,
    Schema,
    StructColumn,
    ValueColumn,
    date_schema,
    decimal_schema,
    time_schema,
    timestamp_schema,
)
from connect.errors import DataError
from converters.json import JsonConverter, JsonConverterConfig
from equipment.examples import examples
from equipment.strategies.schemas import schemas
from equipment.strategies.values import schemaless_values, values_of

MOST_DEPTH = 500
MOST_SCHEMA_DEPTH = 100
NAMES = [
    "\U0001f600",
    "\x01",
    "\x1f",
    "\x7f",
    '"',
    "\\",
    "\u2028",
    "é",
    "\ufeff",
    "\ue000",
    "a.b",
    "},{",
    '",\n  "',
]


def converter(**options: Any) -> JsonConverter:
    return JsonConverter(JsonConverterConfig(**options))


def refused_or(work: Callable[[], Any]) -> Any:
    try:
        return work()
    except DataError:
        return DataError


# -- depth -------------------------------------------------------------------------------------------------------


def nested(text: str, levels: int, kind: str) -> bytes:
    opening, closing = {"array": ("[", "]"), "object": ('{"a":', "}")}[kind]
    return (opening * levels + text + closing * levels).encode()


@pytest.mark.parametrize("kind", ["array", "object"])
@pytest.mark.parametrize("text", ["1", "12345678901234567890", "007", '"[[{"', '"\\\\\\"["', "[],[]"])
@pytest.mark.parametrize("enveloped", [True, False])
def test_what_is_read_is_written_and_what_is_not_is_not(kind: str, text: str, enveloped: bool) -> None:
    json_converter = converter(schemas_enable=enveloped)
    inner = 1 if "[]" in text else 0
    if inner and kind == "object":
        text = "[]"
    for levels in (255, 300, MOST_DEPTH - inner):
        message = nested(text, levels, kind)
        message = b'{"schema":null,"payload":%b}' % message if enveloped else message
        value = json_converter.to_connect("t", message).value
        (column,) = json_converter.to_connect_column("t", [message] * 5)
        assert column.values() == [value] * 5
        written = json_converter.from_connect("t", None, value)
        assert json_converter.from_connect_column("t", ValueColumn([value] * 5)) == [written] * 5
        assert json_converter.to_connect("t", written).value == value
        if text == "1":
            assert written == message
    for levels in (MOST_DEPTH - inner + 1, 1000, 3000, 100_000):
        message = nested(text, levels, kind)
        message = b'{"schema":null,"payload":%b}' % message if enveloped else message
        with pytest.raises(DataError, match="levels deep"):
            json_converter.to_connect("t", message)
        with pytest.raises(DataError, match="levels deep"):
            json_converter.to_connect_column("t", [message] * 5)


@pytest.mark.parametrize("levels", [MOST_DEPTH + 1, 3000, 100_000])
@pytest.mark.parametrize("wrap", [lambda value: [value], lambda value: {"a": value}, lambda value: (value,)])
def test_values_that_are_too_deep_are_not_written(levels: int, wrap: Callable[[Any], Any]) -> None:
    value: Any = 1
    for _ in range(levels):
        value = wrap(value)
    for json_converter in (converter(), converter(schemas_enable=False)):
        with pytest.raises(DataError, match="levels deep"):
            json_converter.from_connect("t", None, value)
        with pytest.raises(DataError, match="levels deep"):
            json_converter.from_connect_column("t", ValueColumn([value] * 5))


def schema_of_depth(levels: int) -> tuple[Schema, Any]:
    schema, value = Schema.int32(), 1
    for level in range(levels - 1):
        schema, value = (Schema.struct({"a": schema}), {"a": value}) if level % 2 else (Schema.array(schema), [value])
    return schema, value


def test_schemas_are_read_as_deep_as_they_are_written() -> None:
    json_converter = converter()
    schema, value = schema_of_depth(MOST_SCHEMA_DEPTH)
    message = json_converter.from_connect("t", schema, value)
    assert message is not None
    assert converter().to_connect("t", message) == (schema, value)
    (column,) = converter().to_connect_column("t", [message] * 5)
    assert (column.schema, column.values()) == (schema, [value] * 5)
    assert converter().from_connect_column("t", ValueColumn([value] * 5, schema)) == [message] * 5
    described = message.partition(b',"payload":')[0].removeprefix(b'{"schema":')
    with pytest.raises(DataError, match="levels deep"):
        converter().to_connect("t", b'{"schema":{"type":"array","items":%b},"payload":[]}' % described)


@pytest.mark.parametrize("levels", [MOST_SCHEMA_DEPTH + 1, 300, 3000])
def test_schemas_that_are_too_deep_are_not_written(levels: int) -> None:
    schema, value = schema_of_depth(levels)
    for json_converter in (converter(), converter(schemas_enable=False)):
        with pytest.raises(DataError, match="levels deep"):
            json_converter.from_connect("t", schema, value)
        with pytest.raises(DataError, match="levels deep"):
            json_converter.from_connect_column("t", ValueColumn([value], schema))


# -- names -------------------------------------------------------------------------------------------------------


def by_all_ways(schema: Schema, rows: Sequence[dict[str, Any]], **options: Any) -> list[Any]:
    """The messages of structs, each time by a converter that has not written yet."""
    columns: list[Column] = [
        ValueColumn(rows, schema),
        StructColumn({name: [row[name] for row in rows] for name in schema.field_names}, schema),
        StructColumn({name: Constant(rows[0][name], len(rows)) for name in schema.field_names}, schema),
    ]
    row_converter = converter(**options)
    ways = [refused_or(lambda: [row_converter.from_connect("t", schema, row) for row in rows])]
    for column in columns:
        column_converter = converter(**options)
        ways.append(refused_or(lambda c=column_converter, column=column: list(c.from_connect_column("t", column))))
    return ways


@settings(max_examples=examples(60), deadline=None)
@given(
    st.lists(st.sampled_from(NAMES) | st.text(min_size=1, max_size=3), min_size=1, max_size=4, unique=True),
    st.booleans(),
)
def test_odd_field_names_are_written_alike(names: list[str], enveloped: bool) -> None:
    schema = Schema.struct(dict.fromkeys(names, Schema.int32()))
    row = {name: index for index, name in enumerate(names)}
    first, *others = by_all_ways(schema, [row] * 3, schemas_enable=enveloped)
    assert others == [first] * 3
    if first is not DataError:
        plain = refused_or(lambda: converter(schemas_enable=False).from_connect("t", None, row))
        assert first[0].endswith(b":" + plain + b"}" if enveloped else plain)
        assert list(converter(schemas_enable=False).from_connect_column("t", ValueColumn([row] * 3))) == [plain] * 3
        schemaless = converter(schemas_enable=enveloped).to_connect("t", first[0]).value
        assert schemaless == row


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("\U0001f600", rb"\uD83D\uDE00"),
        ("\x01", rb"\u0001"),
        ('\x1f"\\', rb"\u001F\"\\"),
        ("\x7f", b"\x7f"),
        ("\u2028é", "\u2028é".encode()),
    ],
)
def test_field_names_are_written_as_by_jackson(name: str, written: bytes) -> None:
    """The bytes are those that Kafka Connect 4.3.1 wrote for these names."""
    schema = Schema.struct({name: Schema.int32()})
    described = (
        b'{"schema":{"type":"struct","fields":[{"type":"int32","optional":false,"field":"%b"}],"optional":false}'
    )
    enveloped = described % written + b',"payload":{"%b":1}}' % written
    assert by_all_ways(schema, [{name: 1}], schemas_enable=True) == [[enveloped]] * 4
    assert by_all_ways(schema, [{name: 1}], schemas_enable=False) == [[b'{"%b":1}' % written]] * 4


def test_a_name_that_is_half_a_character_is_refused() -> None:
    schema = Schema.struct({"\ud83d": Schema.int32()})
    for enveloped in (True, False):
        assert by_all_ways(schema, [{"\ud83d": 1}], schemas_enable=enveloped) == [DataError] * 4


# -- values ------------------------------------------------------------------------------------------------------


class Colour(enum.Enum):
    RED = 1


class Number(int):
    pass


class Text(str):
    __slots__ = ()


FIRST_MOMENT = dt.datetime.min.replace(tzinfo=dt.timezone(dt.timedelta(hours=5)))
NAIVE = dt.datetime(2025, 1, 1)  # noqa: DTZ001 - it is to be refused
LAST_MOMENT = dt.datetime.max.replace(tzinfo=dt.timezone(-dt.timedelta(hours=5)))
ODD: list[Any] = [
    *(None, True, 0, -(2**63), 2**63, 2**64, 10**5000, -(10**5000), Number(5), Number(2**70)),
    *(0.1, -0.0, 1e-7, 1e300, float("nan"), float("inf"), "", "x", "\ud800", "\U0001f600", Text("t"), b"\x00", b""),
    *(bytearray(b"x"), memoryview(b"abcd"), memoryview(b"abcd")[::2], (1, 2), [1, "x", None], {"a": 1}, {1: 2}),
    *(
        {None: 1},
        {10**5000: 1},
        {Text("t"): 1},
        {(1, 2): 1},
        {"\ud800": 1},
        {1, 2},
        object(),
        Colour.RED,
        uuid.UUID(int=1),
    ),
    *(Decimal("1.50"), Decimal("NaN"), Decimal("1E+400000"), Decimal("-0.00"), dt.date.min, dt.date.max, dt.time.max),
    *(dt.time(1, tzinfo=dt.UTC), FIRST_MOMENT, LAST_MOMENT, NAIVE, dt.timedelta.max, range(3), [10**5000]),
    *({"a": 10**5000}, {"a": {"b": {1, 2}}}, [[[object()]]], {"a": [Decimal(1)]}, 1 + 2j, type, len, iter([1])),
]
KINDS = [
    *(
        Schema.int8(),
        Schema.int64(),
        Schema.float32(),
        Schema.float64(),
        Schema.boolean(),
        Schema.string(optional=True),
    ),
    *(
        Schema.bytes(),
        decimal_schema(2),
        date_schema(),
        time_schema(),
        timestamp_schema(),
        Schema.array(Schema.int64()),
    ),
    *(Schema.map(Schema.string(), Schema.int32()), Schema.map(Schema.int64(), Schema.string(optional=True))),
    *(Schema.struct({"a": Schema.int64()}), Schema.struct({}), decimal_schema(-3), Schema.array(decimal_schema(2))),
    *(Schema.struct({"a": Schema.array(Schema.struct({"b": Schema.float32(optional=True)}))}), None),
]


@pytest.mark.parametrize("options", [{}, {"schemas_enable": False}, {"decimal_format": "NUMERIC"}])
@pytest.mark.parametrize("kind", range(len(KINDS)))
def test_odd_values_are_written_alike_or_refused(kind: int, options: dict[str, Any]) -> None:
    schema, json_converter = KINDS[kind], converter(**options)
    for value in ODD:
        row = refused_or(lambda value=value: json_converter.from_connect("t", schema, value))
        for others in ([], [value] * 4, ODD):
            column = ValueColumn([value, *others], schema)
            rows = refused_or(lambda column=column: [json_converter.from_connect("t", schema, item) for item in column])
            found = refused_or(lambda column=column: list(json_converter.from_connect_column("t", column)))
            assert found == rows
        if schema is not None:
            outer = Schema.struct({"f": schema})
            ways = by_all_ways(outer, [{"f": value}] * 3, **options)
            assert ways == [ways[0]] * 4
            assert (ways[0] is DataError) == (row is DataError)


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(st.sampled_from(ODD) | schemaless_values(), max_size=6), st.booleans())
def test_schemaless_columns_of_odd_values_are_written_as_rows(values: list[Any], enveloped: bool) -> None:
    json_converter = converter(schemas_enable=enveloped)
    for column in (values, [{"a": value, "\U0001f600": 1} for value in values], [[value] for value in values]):
        rows = refused_or(lambda column=column: [json_converter.from_connect("t", None, value) for value in column])
        found = refused_or(lambda column=column: list(json_converter.from_connect_column("t", ValueColumn(column))))
        assert found == rows


@settings(max_examples=examples(100), deadline=None)
@given(
    st.lists(
        st.fixed_dictionaries(
            {"id": st.integers(-(2**63), 2**63), "x": st.floats() | st.none(), "s": st.text(max_size=4)},
            optional={"more": st.sampled_from([{}, [], {"id": 1}, [{"id": 1}, {"id": 2}], "},{", {"id": {}}])},
        )
        | st.none(),
        max_size=6,
    ),
    st.booleans(),
)
def test_schemaless_rows_are_cut_apart_where_they_end(rows: list[Any], enveloped: bool) -> None:
    json_converter = converter(schemas_enable=enveloped)
    expected = refused_or(lambda: [json_converter.from_connect("t", None, row) for row in rows])
    assert refused_or(lambda: list(json_converter.from_connect_column("t", ValueColumn(rows)))) == expected


@settings(max_examples=examples(100), deadline=None)
@given(st.data(), schemas(), schemas())
def test_values_of_another_schema_are_written_alike_or_refused(
    data: st.DataObject, schema: Schema, other: Schema
) -> None:
    values = data.draw(st.lists(values_of(other) | values_of(schema), max_size=4))
    json_converter = converter()
    rows = refused_or(lambda: [json_converter.from_connect("t", schema, value) for value in values])
    assert refused_or(lambda: list(json_converter.from_connect_column("t", ValueColumn(values, schema)))) == rows


ODD_SCHEMAS = [
    '{"type":"struct","fields":[{"type":"int32","field":"a"},{"type":"int32","field":"a"}]}',
    '{"type":"struct","fields":[{"type":"int32"}]}',
    '{"type":"struct","fields":{}}',
    '{"type":"struct"}',
    '{"type":"array"}',
    '{"type":"map","keys":{"type":"string"}}',
    '{"type":"int8","default":300}',
    '{"type":"int8","default":"x"}',
    '{"type":"int8","default":[]}',
    '{"type":"bytes","default":"?"}',
    '{"type":"string","default":5}',
    '{"type":"string","name":5,"doc":[],"version":"x","parameters":[]}',
    '{"type":"string","parameters":{"a":1}}',
    '{"type":"int64","name":"org.apache.kafka.connect.data.Timestamp","default":9223372036854775807}',
    '{"type":"int32","name":"org.apache.kafka.connect.data.Date","default":2147483647}',
    '{"type":"int32","name":"org.apache.kafka.connect.data.Time","default":-1}',
    '{"type":"bytes","name":"org.apache.kafka.connect.data.Decimal"}',
    '{"type":"bytes","name":"org.apache.kafka.connect.data.Decimal","parameters":{"scale":"' + "9" * 5000 + '"}}',
    '{"type":"string","name":"org.apache.kafka.connect.data.Decimal","parameters":{"scale":"2"}}',
    '{"type":"struct","fields":[],"name":"org.apache.kafka.connect.data.Timestamp"}',
    '{"type":"map","keys":{"type":"map","keys":{"type":"string"},"values":{"type":"int8"}},"values":{"type":"int8"}}',
    '{"type":"int32","version":1e5}',
    '{"type":"int32","version":' + "9" * 900 + "}",
    "5",
    "[]",
    '"int32"',
    "true",
]
ODD_PAYLOADS = [
    "null",
    "1",
    "1.5",
    "-1e999",
    '"x"',
    "[]",
    "{}",
    "[[1,2]]",
    '[[{"a":1},1]]',
    '{"a":{}}',
    "9" * 900,
    '"AQ=="',
]


@pytest.mark.parametrize("number", range(len(ODD_SCHEMAS)))
def test_odd_schemas_are_read_or_refused(number: int) -> None:
    for payload in ODD_PAYLOADS:
        message = f'{{"schema":{ODD_SCHEMAS[number]},"payload":{payload}}}'.encode()
        row = refused_or(lambda message=message: converter().to_connect("t", message))
        columns = refused_or(lambda message=message: converter().to_connect_column("t", [message] * 5))
        if row is DataError:
            assert columns is DataError
        else:
            assert [(column.schema, column.values()) for column in columns] == [(row.schema, [row.value] * 5)]
            refused_or(lambda row=row: converter().from_connect("t", *row))
