"""Whatever a registry, a topic or a connector hands over, the answer is a value, a message or a DataError."""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import math
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from connect.data import Schema, date_schema, decimal_schema, time_schema, timestamp_schema
from connect.errors import DataError, SchemaError
from connect.kits.avro.avro_schema import AvroSchema, parse_avro
from connect.kits.avro.avro_text import avro_text
from connect.kits.avro.config import AvroDataConfig
from connect.kits.avro.decode import decoder
from connect.kits.avro.encode import encoder
from connect.kits.avro.from_connect import avro_from_connect
from connect.kits.avro.structure import DEEPEST_SCHEMA
from connect.kits.avro.to_connect import connect_from_avro
from equipment.examples import examples
from equipment.strategies.schemas import schemas
from unit.connect.kits.avro.codecs_of import avro_of, reader_of, writer_of

SLOW = settings(deadline=None, max_examples=examples(150), suppress_health_check=[HealthCheck.too_slow])
HEADER = b"\0\0\0\0\x07"
CONFIGS = [
    AvroDataConfig(),
    AvroDataConfig(enhanced_avro_schema_support=True, scrub_invalid_names=True, flatten_singleton_unions=False),
    AvroDataConfig(generalized_sum_type_support=True, discard_type_doc_default=True),
    AvroDataConfig(connect_meta_data=False, allow_optional_map_keys=True),
]
LOGICAL = "org.apache.kafka.connect.data."

odd = st.sampled_from(
    [
        *(None, True, -1, 0, 3, 2**31, 10**30, 1.5, math.inf, math.nan, "", "A", "a.b", "int8", "12", "é", "\ud800"),
        *([], [1], ["A"], {}, {"a": 1}, {"a": "b"}, [[]], [{"key": 1, "value": 2}], [[1, 2]], [[1]]),
        *(f"{LOGICAL}{name}" for name in ("Decimal", "Date", "Time", "Timestamp")),
        *("io.confluent.connect.avro.Union", "io.confluent.connect.avro.Anything", "decimal", "date", "MapEntry"),
    ]
)
KEYS = (
    *("logicalType", "scale", "precision", "connect.name", "connect.version", "connect.type", "connect.default"),
    *("connect.parameters", "connect.doc", "connect.internal.type", "avro.x", "doc", "default", "aliases", "namespace"),
    *("order", "symbols", "size", "name"),
)
props = st.dictionaries(st.sampled_from(KEYS), odd, max_size=3)
names = st.sampled_from(["A", "B", "C", "a.B", "x y", "io.confluent.connect.avro.MapEntry"])
primitives = st.sampled_from(["null", "boolean", "int", "long", "float", "double", "bytes", "string", "A", "B", "oops"])


@st.composite
def nodes(draw: st.DrawFn, depth: int = 3) -> Any:
    """An Avro schema as JSON, more or less."""
    kinds = ["primitive", "enum", "fixed", "odd"] + (["record", "array", "map", "union", "type"] * 2 if depth else [])
    more, name = draw(props), draw(names)
    inner = nodes(depth - 1)
    match draw(st.sampled_from(kinds)):
        case "primitive":
            return draw(st.one_of(primitives, primitives.map(lambda kind: {"type": kind} | more)))
        case "enum":
            return {"type": "enum", "name": name, "symbols": ["A", "B"]} | more
        case "fixed":
            return {"type": "fixed", "name": name, "size": draw(st.sampled_from([0, 2, 10**12]))} | more
        case "array":
            return {"type": "array", "items": draw(inner)} | more
        case "map":
            return {"type": "map", "values": draw(inner)} | more
        case "union":
            return draw(st.lists(inner, max_size=3))
        case "type":
            return {"type": draw(inner)}
        case "record":
            field_names = draw(st.lists(st.sampled_from(["key", "value", "x y", "f"]), max_size=3, unique=True))
            extras = st.one_of(st.just({}), st.fixed_dictionaries({"default": odd}), props)
            fields = [{"name": field, "type": draw(inner)} | draw(extras) for field in field_names]
            return {"type": "record", "name": name, "fields": fields} | more
    return draw(odd)


def understood(node: Any) -> AvroSchema | None:
    try:
        return parse_avro(json.dumps(node))
    except SchemaError:
        return None


@SLOW
@given(nodes(), nodes(), st.lists(st.binary(max_size=24), max_size=4), st.sampled_from(CONFIGS))
def test_schemas_of_any_kind_and_messages_of_any_bytes(
    node: Any, other: Any, bodies: list[bytes], config: AvroDataConfig
) -> None:
    writer, reader = understood(node), understood(other)
    for written, read in ((writer, writer), (writer, reader)):
        if written is None or read is None:
            continue
        try:
            schema = connect_from_avro(read, config)
            decode = decoder(written, read, schema, config)
        except DataError:
            continue
        for body in (b"", bytes(8), *bodies):
            try:
                (value,) = decode([HEADER + body])
            except DataError:
                continue
            try:
                encoder(schema, avro_from_connect(schema, config), 7, config)([value])
            except DataError:
                continue


NOW = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


class Odd:
    """Stands for what a plugin may put into a record."""

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)


def endless() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


def nested(levels: int, kind: type) -> Any:
    value: Any = None
    for _ in range(levels):
        value = [value] if kind is list else {"a": value}
    return value


MISMATCHED = [
    *(None, True, 0, -(2**63), 2**63, 10**5000, -(10**5000), 0.5, math.nan, math.inf, ""),
    *("\ud800", b"", object(), Odd()),
    *(Decimal("NaN"), Decimal("1E+999999"), Decimal("-Infinity"), Decimal("0.01"), Decimal(10) ** 400, Decimal("sNaN")),
    *(dt.date.min, dt.date.max, dt.time(0, tzinfo=dt.UTC), dt.time(23, 59), NOW, NOW.replace(tzinfo=None)),
    dt.datetime.min.replace(tzinfo=dt.timezone(dt.timedelta(hours=5))),
    dt.datetime.max.replace(tzinfo=dt.timezone(dt.timedelta(hours=-5))),
    *([], [None], {}, {"a": 1}, {1: 2}, {None: None}, (1, 2), {1, 2}, range(3), memoryview(b"ab"), b"a" * 1000),
    *(nested(3000, list), nested(3000, dict), endless()),
]  # fmt: skip
TYPES = [
    *(Schema.int8(), Schema.int64(), Schema.float32(), Schema.float64(), Schema.boolean(), Schema.string()),
    *(Schema.bytes(), decimal_schema(2), decimal_schema(-3), date_schema(), time_schema(), timestamp_schema()),
    *(Schema.array(Schema.int32()), Schema.map(Schema.string(), Schema.int32())),
    *(Schema.map(Schema.int32(), Schema.string()), Schema.map(decimal_schema(2), Schema.string())),
    Schema.struct({"a": Schema.int64(), "b": timestamp_schema(optional=True)}),
    Schema.struct({"a": Schema.int64(), "b": Schema.string()}, name="io.confluent.connect.avro.Union"),
    Schema.bytes(name="F", parameters={"connect.fixed.size": "3"}),
    decimal_schema(2, parameters={"connect.fixed.size": "3"}),
]  # fmt: skip


@pytest.mark.parametrize("schema", [None, *TYPES], ids=str)
def test_values_of_any_kind(schema: Schema | None) -> None:
    wraps = [schema] if schema is None else [schema, Schema.array(schema), Schema.struct({"f": schema})]
    for wrapped, wrap in zip(
        wraps, (lambda value: value, lambda value: [value], lambda value: {"f": value}), strict=False
    ):
        write = writer_of(wrapped)
        decode = reader_of(avro_of(wrapped))[1]
        for value in MISMATCHED:
            try:
                messages = write([wrap(value)])
            except DataError:
                continue
            try:
                decode(messages)
            except DataError as error:
                # The years before 1 and after 9999 have milliseconds and no datetime; a list is no key.
                assert "outside the years" in str(error) or "unhashable" in str(error)


@SLOW
@given(schemas(), st.data())
def test_values_of_any_kind_in_schemas_of_any_kind(schema: Schema, data: st.DataObject) -> None:
    value = data.draw(st.sampled_from(MISMATCHED))
    with contextlib.suppress(DataError):
        (message,) = writer_of(schema)([value])
        reader_of(avro_of(schema))[1]([message])


def anything(levels: int) -> bytes:
    return HEADER + (b"\0" * 7 + b"\x02\x02") * levels + bytes(9) + b"\0\0" * levels


@pytest.mark.parametrize("levels", [1, 200, 300])
def test_what_is_read_at_some_depth_without_a_schema_is_written_again(levels: int) -> None:
    (value,) = reader_of(avro_of(None))[1]([anything(levels)])
    assert writer_of(None)([value]) == [anything(levels)]


@pytest.mark.parametrize("levels", [301, 3000, 100_000])
def test_what_is_too_deep_without_a_schema_is_neither_read_nor_written(levels: int) -> None:
    with pytest.raises(DataError, match="nested too deep"):
        reader_of(avro_of(None))[1]([anything(levels)])
    for kind in (list, dict):
        with pytest.raises(DataError, match="nested too deep"):
            writer_of(None)([nested(levels, kind)])


def deep(levels: int, kind: str) -> Any:
    """A schema of so many levels."""
    node: Any = "int"
    for level in range(levels):
        field = {"name": "f", "type": ["null", node] if kind == "nullable record" else node}
        match kind:
            case "array":
                node = {"type": "array", "items": node}
            case "map":
                node = {"type": "map", "values": node}
            case _:
                node = {"type": "record", "name": f"R{level}", "fields": [field]}
    return node


COSTS = {"array": 2, "map": 2, "record": 3, "nullable record": 5}


@pytest.mark.parametrize("kind", COSTS)
def test_schemas_of_some_depth_are_read_and_written(kind: str) -> None:
    avro = parse_avro(json.dumps(deep((DEEPEST_SCHEMA - 2) // COSTS[kind], kind)))
    for config in CONFIGS:
        schema = connect_from_avro(avro, config)
        assert schema is not None
        decoder(avro, avro, schema, config)
        again = parse_avro(avro_text(avro_from_connect(schema, config)))
        encoder(schema, again, 7, config)
        assert connect_from_avro(again, config) is schema


@pytest.mark.parametrize("levels", [(DEEPEST_SCHEMA - 2) // 2 + 1, 300, 3000])
@pytest.mark.parametrize("kind", COSTS)
def test_schemas_that_are_too_deep_are_refused(kind: str, levels: int) -> None:
    with pytest.raises(SchemaError, match="nested too deep"):
        connect_from_avro(parse_avro(nested_text(levels, kind)), CONFIGS[0])
    schema = Schema.int32()
    for level in range(levels):
        match kind:
            case "array":
                schema = Schema.array(schema)
            case "map":
                schema = Schema.map(Schema.string(), schema)
            case _:
                schema = Schema.struct({"f": schema.as_optional()}, name=f"R{level}")
    with pytest.raises(SchemaError, match="nested too deep"):
        avro_text(avro_from_connect(schema, CONFIGS[0]))


def nested_text(levels: int, kind: str) -> str:
    """The text of :func:`deep`, which json cannot write at any depth."""
    text = '"int"'
    for level in range(levels):
        match kind:
            case "array":
                text = f'{{"type":"array","items":{text}}}'
            case "map":
                text = f'{{"type":"map","values":{text}}}'
            case "record":
                text = f'{{"type":"record","name":"R{level}","fields":[{{"name":"f","type":{text}}}]}}'
            case _:
                text = f'{{"type":"record","name":"R{level}","fields":[{{"name":"f","type":["null",{text}]}}]}}'
    return text


LIST = {"type": "record", "name": "L", "fields": [{"name": "next", "type": ["null", "L"]}]}


def test_a_record_that_holds_itself_is_gone_past_where_nobody_wants_it() -> None:
    writer = {"type": "record", "name": "R", "fields": [{"name": "list", "type": LIST}, {"name": "x", "type": "int"}]}
    reader = parse_avro('{"type":"record","name":"R","fields":[{"name":"x","type":"int"}]}')
    schema = connect_from_avro(reader, CONFIGS[0])
    decode = decoder(parse_avro(json.dumps(writer)), reader, schema, CONFIGS[0])
    assert decode([HEADER + b"\x02" * 100 + b"\0" + b"\x0a"]) == [{"x": 5}]
    for body in (b"\x02" * 3000 + b"\0\x0a", b"\x02" * 10, b"\x04\x0a", b""):
        with pytest.raises(DataError):
            decode([HEADER + body])


SKIPPED: list[tuple[Any, bytes]] = [
    ("null", b""),
    ("boolean", b"\x01"),
    ("int", b"\x80\x01"),
    ("double", bytes(8)),
    ("float", bytes(4)),
    ("string", b"\x04ab"),
    ("bytes", b"\x04\xff\xff"),
    ({"type": "fixed", "name": "F", "size": 3}, b"abc"),
    ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, b"\x02"),
    ({"type": "array", "items": "string"}, b"\x04\x02a\x02b\x01\x04\x02c\x00"),
    ({"type": "map", "values": "long"}, b"\x02\x02k\x80\x02\x00"),
    ({"type": "array", "items": {"type": "record", "name": "N", "fields": []}}, b"\x80\x80\x80\x80\x01\x00"),
    (["null", "int", "string"], b"\x04\x02a"),
    ([{"type": "fixed", "name": f"F{size}", "size": size} for size in range(20)], b"\x06abc"),
    ({"type": "array", "items": {"type": "array", "items": ["null", LIST]}}, b"\x02\x02\x02\x02\0\0\0"),
]


@pytest.mark.parametrize(("kind", "body"), SKIPPED, ids=lambda part: str(part)[:40])
def test_fields_that_nobody_wants(kind: Any, body: bytes) -> None:
    fields = [{"name": "gone", "type": kind}, {"name": "x", "type": "int"}]
    reader = parse_avro('{"type":"record","name":"R","fields":[{"name":"x","type":"int"}]}')
    schema = connect_from_avro(reader, CONFIGS[0])
    writer = parse_avro(json.dumps({"type": "record", "name": "R", "fields": fields}))
    decode = decoder(writer, reader, schema, CONFIGS[0])
    assert decode([HEADER + body + b"\x0a"]) == [{"x": 5}]
    for end in range(len(body) + 1):
        with pytest.raises(DataError):
            decode([HEADER + body[:end]])


def test_a_member_that_cannot_be_read_leaves_the_code_of_the_others_as_it_was() -> None:
    """What is found out deep in a loop of its code must not leave half of it behind."""
    deep_one = {"type": "record", "name": "D", "fields": [{"name": "a", "type": deep(14, "array")}]}
    other_one = {"type": "record", "name": "D", "fields": [{"name": "a", "type": deep(13, "array")}]}
    fields = lambda kind: [{"name": "u", "type": ["int", kind]}, {"name": "x", "type": "int"}]  # noqa: E731
    writer = parse_avro(json.dumps({"type": "record", "name": "R", "fields": fields(deep_one)}))
    reader = parse_avro(json.dumps({"type": "record", "name": "R", "fields": fields(other_one)}))
    decode = decoder(writer, reader, connect_from_avro(reader, CONFIGS[0]), CONFIGS[0])
    assert decode([HEADER + b"\0\x02\x04"]) == [{"u": {"int": 1, "D": None}, "x": 2}]
    with pytest.raises(DataError, match="cannot be read as"):
        decode([HEADER + b"\x02\0\x04"])
