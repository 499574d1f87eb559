"""What is decoded straight into columns is what the decoder by row returns, value by value and error by error."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from connect.data import Schema, logical
from connect.data.arrow import arrow_type, to_array
from connect.errors import DataError, SchemaError
from connect.kits.avro.avro_schema import AvroSchema, parse_avro
from connect.kits.avro.columns import column_decoder
from connect.kits.avro.config import AvroDataConfig
from connect.kits.avro.decode import Decode, decoder
from connect.kits.avro.encode import encoder
from connect.kits.avro.to_connect import connect_from_avro
from connect.kits.avro.wire_format import varint
from connect.kits.columns.decoder import ColumnDecoder
from connect.testing.strict_equality import exact
from equipment.examples import examples
from equipment.growth import assert_grows_evenly
from equipment.strategies.schemas import schemas
from equipment.strategies.values import values_of
from unit.connect.kits.avro.codecs_of import SCRUBBING, avro_of, mutated, writer_of
from unit.connect.kits.avro.test_avro_hostile import CONFIGS, nodes, understood

SLOW = settings(deadline=None, max_examples=examples(60), suppress_health_check=list(HealthCheck))
HEADER = b"\0\0\0\0\x07"
MANY = 100
"""Fewer messages are decoded one after the other anyway."""


def decoders(
    writer: AvroSchema, reader: AvroSchema | None = None, config: AvroDataConfig = SCRUBBING
) -> tuple[Schema, Decode, ColumnDecoder]:
    """The Connect schema, the decoder by row and the decoder by column."""
    target = writer if reader is None else reader
    schema = connect_from_avro(target, config)
    if schema is None:
        raise SchemaError("it has no schema")
    decode = decoder(writer, target, schema, config)
    return schema, decode, column_decoder(writer, target, schema, config, decode)


def outcome(read: Callable[[Sequence[bytes]], Any], messages: Sequence[bytes]) -> object:
    """The values of an array as something comparable, NaN and negative zero included; or the text of the error."""
    try:
        array = read(messages)
    except DataError as error:
        return str(error)
    array.validate(full=True)
    return array.type, [exact(value) for value in array.to_pylist()]


def check(schema: Schema, decode: Decode, columns: ColumnDecoder, messages: Sequence[bytes]) -> object:
    """Both decoders give the same, from a list as from an array, which may be a part of a longer one."""
    expected = outcome(lambda given: to_array(decode(given), schema), messages)
    assert outcome(columns.read, messages) == expected
    longer: Any = pa.array([b"first", *messages, b"last"], pa.binary())
    assert outcome(lambda _: columns.read_array(longer.slice(1, len(messages))), messages) == expected
    return expected


def repeated(items: Sequence[Any], seed: int = 0) -> list[Any]:
    """Many of these items, in no order."""
    found = [items[number % len(items)] for number in range(max(MANY, len(items)))]
    random.Random(seed).shuffle(found)
    return found


@SLOW
@given(schemas(), st.data())
def test_columns_hold_the_values_of_the_rows(schema: Schema, data: st.DataObject) -> None:
    values = data.draw(st.lists(values_of(schema), min_size=1, max_size=6))
    present = [value for value in values if value is not None]
    assume(present)
    try:
        messages = writer_of(schema)(present)
    except DataError:
        return
    known, decode, columns = decoders(avro_of(schema))
    check(known, decode, columns, repeated(messages))


@SLOW
@given(schemas(), st.data())
def test_bad_messages_among_good_ones_get_the_error_of_the_rows(schema: Schema, data: st.DataObject) -> None:
    value = data.draw(values_of(schema.as_required() if schema.default is None else schema))
    assume(value is not None)
    try:
        (good,) = writer_of(schema)([value])
    except DataError:
        return
    known, decode, columns = decoders(avro_of(schema))
    for bad in data.draw(st.lists(mutated(good), min_size=1, max_size=8)):
        messages = [good] * MANY
        messages[data.draw(st.integers(0, MANY - 1))] = bad
        check(known, decode, columns, messages)


@SLOW
@given(nodes(), nodes(), st.lists(st.binary(max_size=24), min_size=1, max_size=8), st.sampled_from(CONFIGS))
def test_schemas_read_as_others_and_messages_of_any_bytes(
    node: Any, other: Any, bodies: list[bytes], config: AvroDataConfig
) -> None:
    writer, reader = understood(node), understood(other)
    for written, read in ((writer, writer), (writer, reader)):
        if written is None or read is None:
            continue
        try:
            known, decode, columns = decoders(written, read, config)
            arrow_type(known)
        except DataError:
            continue
        for body in bodies:
            check(known, decode, columns, [HEADER + body] * MANY)
        check(known, decode, columns, repeated([HEADER + body for body in bodies]))


def field(name: str, kind: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, **more}


def record(name: str, *fields: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields)}


def array(items: Any) -> dict[str, Any]:
    return {"type": "array", "items": items}


LINE = record("Line", field("sku", "string"), field("n", "int"))
ENTRY = record("Entry", field("key", "int"), field("value", "string")) | {"connect.internal.type": "MapEntry"}
RICH = record(
    "Rich",
    *(field(kind, kind) for kind in ("boolean", "int", "long", "float", "double", "string", "bytes")),
    field("decimal", {"type": "bytes", "logicalType": "decimal", "precision": 30, "scale": 2}),
    field("wide", {"type": "bytes", "logicalType": "decimal", "precision": 50, "scale": 2}),
    field("money", {"type": "fixed", "name": "Money", "size": 16, "logicalType": "decimal", "precision": 9}),
    field("date", {"type": "int", "logicalType": "date"}),
    field("time", {"type": "int", "logicalType": "time-millis"}),
    field("timestamp", {"type": "long", "logicalType": "timestamp-millis"}),
    field("small", {"type": "int", "connect.type": "int8"}),
    field("enum", {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}),
    field("fixed", {"type": "fixed", "name": "Two", "size": 2}),
    field("maybe", ["null", "string"]),
    field("other", ["double", "null"]),
    field("union", ["null", "string", "long", LINE]),
    field("lines", array("Line")),
    field("numbers", array("double")),
    field("words", ["null", array(["null", "string"])]),
    field("tags", {"type": "map", "values": "string"}),
    field("lists", {"type": "map", "values": array(array("long"))}),
    field("entries", array(ENTRY)),
    field("inner", ["null", record("Inner", field("a", "long"), field("b", ["null", "Line"]))]),
)


def test_a_record_of_all_types_is_decoded_together() -> None:
    avro = parse_avro(json.dumps(RICH))
    schema, decode, columns = decoders(avro)
    assert columns.is_fast
    write = writer_of_avro(avro, schema)
    messages = write([rich(random.Random(number)) for number in range(200)])
    assert not isinstance(check(schema, decode, columns, messages), str)


def writer_of_avro(avro: AvroSchema, schema: Schema) -> Any:
    return encoder(schema, avro, 7, SCRUBBING)


def cents(number: int) -> Decimal:
    return logical.decimal_from_unscaled(number.to_bytes(17, "big", signed=True), 2)


def rich(of: random.Random) -> dict[str, Any]:
    """A value of :data:`RICH`."""

    def word() -> str:
        return "".join(of.choices("aé\u4e2d\U0001f600", k=of.randrange(20)))

    def line() -> dict[str, Any]:
        return {"sku": word(), "n": of.randrange(-(2**31), 2**31)}

    union = {"string": None, "long": None, "Line": None}
    kind = of.choice([None, *union])
    return {
        "boolean": of.random() < 0.5,
        "int": of.choice([0, -1, 2**31 - 1, -(2**31), of.randrange(1000)]),
        "long": of.choice([0, 2**63 - 1, -(2**63), 2**55, -(2**56), of.randrange(2**40)]),
        "float": 0.5,
        "double": of.choice([float("nan"), float("-inf"), -0.0, of.random()]),
        "string": word(),
        "bytes": word().encode(),
        "decimal": cents(of.choice([of.randrange(-(10**30) + 1, 10**30), 2**63, -(2**63), -1, 0])),
        "wide": cents(of.choice([of.randrange(-(2**127), 2**127), -1, -(2**127)])),
        "money": Decimal(of.randrange(-(10**9) + 1, 10**9)),
        "date": date(1, 1, 1) + timedelta(days=of.randrange(3_650_000)),
        "time": time(of.randrange(24), 59, 59, 999_000),
        "timestamp": datetime(1, 1, 1, tzinfo=UTC) + timedelta(days=of.randrange(3_650_000), milliseconds=1),
        "small": of.randrange(-128, 128),
        "enum": of.choice("AB"),
        "fixed": bytes([of.randrange(256), 0]),
        "maybe": of.choice([None, word()]),
        "other": of.choice([None, of.random()]),
        "union": None if kind is None else {**union, kind: {"string": word(), "long": 7, "Line": line()}[kind]},
        "lines": [line() for _ in range(of.randrange(4))],
        "numbers": [of.random() for _ in range(of.randrange(30))],
        "words": of.choice([None, [], [None], [word(), None, word()]]),
        "tags": {f"{word()}{number}": word() for number in range(of.randrange(3))},
        "lists": {str(number): [[number] * 2, [], [2**62]] for number in range(of.randrange(3))},
        "entries": {number: word() for number in range(of.randrange(3))},
        "inner": of.choice([None, {"a": 5, "b": None}, {"a": 5, "b": line()}]),
    }


FEW = record("Top", field("a", "int"), field("b", "string"))


@pytest.mark.parametrize(
    ("writer", "reader"),
    [
        (FEW, record("Top", field("b", "bytes"), field("a", "double"))),
        (FEW, record("Top", field("c", "int", aliases=["a"]), field("d", ["null", "string"], default=None))),
        (FEW, record("Top", field("a", ["null", "string", "long"]), field("e", "string", default="é"))),
        (record("Top", field("u", ["null", "int", "string"])), record("Top", field("u", ["null", "long"]))),
        (record("Top", field("u", ["null", "int", "long"])), record("Top", field("u", "long"))),
        (
            record("Top", field("x", array(record("I", field("p", "int"), field("q", "string")))), field("y", "int")),
            record("Top", field("x", array(record("I", field("q", "string")))), field("y", "float")),
        ),
        (record("Top", field("x", array(ENTRY)), field("y", "int")), record("Top", field("y", "int"))),
        (
            record("Top", field("k", {"type": "enum", "name": "K", "symbols": ["A", "B", "C"]})),
            record("Top", field("k", {"type": "enum", "name": "K", "symbols": ["B", "A"], "default": "B"})),
        ),
    ],
)
def test_schemas_are_read_as_others_together(writer: Any, reader: Any) -> None:
    """A message that the reader has no place for gets the error of the rows."""
    written = parse_avro(json.dumps(writer))
    schema, decode, columns = decoders(written, parse_avro(json.dumps(reader)))
    assert columns.is_fast
    source = connect_from_avro(written, SCRUBBING)
    assert source is not None
    values = [value for number in range(40) for value in values_drawn(source, number)]
    messages = writer_of_avro(written, source)(values)
    assert len(messages) >= MANY
    check(schema, decode, columns, messages)
    good = [
        message
        for message in messages
        if not isinstance(outcome(lambda m: to_array(decode(m), schema), [message]), str)
    ]
    assert not isinstance(check(schema, decode, columns, good), str)


def values_drawn(schema: Schema, seed: int) -> list[Any]:
    """Some values of a schema that has no more than :func:`value_of` knows."""
    of = random.Random(seed)
    return [value_of(schema, of) for _ in range(3)]


def value_of(schema: Schema, of: random.Random) -> Any:
    if schema.optional and of.random() < 0.3:
        return None
    if schema.name == "io.confluent.connect.avro.Union":
        chosen = of.choice(schema.field_names)
        return {each.name: value_of(each.schema.as_required(), of) if each.name == chosen else None
                for each in schema.fields}  # fmt: skip
    if schema.fields:
        return {each.name: value_of(each.schema, of) for each in schema.fields}
    if schema.key_schema is not None:
        assert schema.value_schema is not None
        return {value_of(schema.key_schema, of): value_of(schema.value_schema, of) for _ in range(of.randrange(3))}
    if schema.value_schema is not None:
        return [value_of(schema.value_schema, of) for _ in range(of.randrange(4))]
    symbols = [text for name, text in schema.parameters.items() if name.startswith("io.confluent.connect.avro.Enum.")]
    return of.choice(symbols or ["", "é", "text"]) if schema.type.value == "string" else of.randrange(-99, 99)


GOOD = {"double": bytes(8), str({"type": "bytes", "logicalType": "decimal", "precision": 4}): b"\x02\x07"}
"""What stands in good messages, unless it is a zero byte."""


@pytest.mark.parametrize(
    ("node", "body"),
    [
        ("string", b"\x04\xff\xff"),
        ("boolean", b"\x02"),
        ("int", b"\xff\xff\xff\xff\x7f"),
        ("long", b"\xff" * 9 + b"\x02"),
        ("long", b"\xff" * 10 + b"\x01"),
        ("bytes", b"\x01"),
        (["null", "int"], b"\x04"),
        (["null", "int"], b"\x01"),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, b"\x02"),
        ({"type": "int", "logicalType": "time-millis"}, b"\x01"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 4}, b"\x00"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 4}, b"\x08\x7f\xff\xff\xff"),
        (array("int"), b"\xfe\xff\xff\xff\x0f"),
        (array("double"), b"\x04" + bytes(8)),
        (array("string"), b"\x02\x02\xff\x00"),
        ({"type": "map", "values": "int"}, b"\x02\x02a"),
        ("int", b""),
        ("double", bytes(7)),
    ],
)
def test_one_bad_message_is_refused_and_no_other(node: Any, body: bytes) -> None:
    avro = parse_avro(json.dumps(record("Top", field("id", "int"), field("x", node))))
    schema, decode, columns = decoders(avro)
    assert columns.is_fast
    good = HEADER + b"\x02" + GOOD.get(str(node), b"\x00")
    for place in (0, 50, MANY - 1):
        messages = [good] * MANY
        assert not isinstance(check(schema, decode, columns, messages), str)
        messages[place] = HEADER + b"\x02" + body
        assert isinstance(check(schema, decode, columns, messages), str)


@pytest.mark.parametrize(
    "node",
    [
        array("null"),
        array(record("Empty")),
        array(array(array(array("int")))),
        {"type": "fixed", "name": "F", "size": 0},
        {"type": "array", "items": ENTRY | {"fields": [field("key", "double"), field("value", "int")]}},
        {"type": "fixed", "name": "F", "size": 17, "logicalType": "decimal", "precision": 38},
    ],
)
def test_some_schemas_are_left_to_the_rows(node: Any) -> None:
    avro = parse_avro(json.dumps(record("Top", field("id", "int"), field("x", node))))
    schema, decode, columns = decoders(avro)
    assert not columns.is_fast
    check(schema, decode, columns, [HEADER + bytes(size % 20) for size in range(MANY)])


def test_a_key_that_occurs_twice_has_its_last_value() -> None:
    avro = parse_avro(json.dumps({"type": "map", "values": "int"}))
    schema, decode, columns = decoders(avro)
    messages = [HEADER + b"\x04\x02a\x02\x02b\x04\x00"] * MANY
    messages[5] = HEADER + b"\x06\x02a\x02\x02b\x04\x02a\x06\x00"
    assert columns.is_fast
    check(schema, decode, columns, messages)
    assert columns.read(messages)[5].as_py() == [("a", 3), ("b", 2)]


def blocks(number: int) -> bytes:
    """An array of as many integers as its number says, in groups with and without a size."""
    groups = b"".join((b"\x02\x02" if item % 2 else b"\x01\x02\x04") for item in range(number))
    return HEADER + groups + b"\x00"


def test_arrays_in_groups_and_of_every_length() -> None:
    schema, decode, columns = decoders(parse_avro(json.dumps(array("int"))))
    assert columns.is_fast
    check(schema, decode, columns, [blocks(number) for number in range(MANY)])


def test_large_messages_are_decoded_in_shares() -> None:
    """Some together, and those that are too large one after the other."""
    schema, decode, columns = decoders(parse_avro(json.dumps(record("Top", field("a", "int"), field("b", "bytes")))))
    assert columns.is_fast
    sizes = [3_000] * 900 + [132_000] * 66 + [10] * 300 + [0] * 10
    messages = [HEADER + bytes([number % 120]) + varint(2 * size) + bytes(size) for number, size in enumerate(sizes)]
    check(schema, decode, columns, messages)


SHAPES: dict[str, tuple[Any, Callable[[int], list[bytes]]]] = {
    "one long array among short ones": (array("string"), lambda size: [HEADER + b"\x02\x02a\x00"] * size
    + [HEADER + (b"\x02\x02a" * 20 * size) + b"\x00"]),
    "arrays of many lengths": (array("string"), lambda size: [
        HEADER + b"\x02\x02a" * (number % 250) + b"\x00" for number in range(size)]),
    "every message is bad": (FEW, lambda size: [HEADER + b"\x02\x02\xff"] * size),
    "every other message is bad": (FEW, lambda size: [HEADER + b"\x02\x02a", HEADER] * size),
    "counts that promise too much": (array("long"), lambda size: [HEADER + b"\xfe\xff\xff\xff\x0f" * 20] * size),
    "the same key again and again": ({"type": "map", "values": "int"}, lambda size: [
        HEADER + b"\x02\x02a\x02" * 50 + b"\x00"] * (size // 10)),
}  # fmt: skip


@pytest.mark.growth
@pytest.mark.parametrize("shape", SHAPES)
def test_twice_as_many_odd_messages_take_twice_as_long(shape: str) -> None:
    node, make = SHAPES[shape]
    _, _, columns = decoders(parse_avro(json.dumps(node)))
    assert columns.is_fast
    assert_grows_evenly(lambda messages: outcome_of(columns, messages), make, 1000)


def outcome_of(columns: ColumnDecoder, messages: list[bytes]) -> bool:
    try:
        columns.read(messages)
    except DataError:
        return False
    return True


@pytest.mark.thorough
@pytest.mark.timeout(3000)
def test_a_hundred_thousand_damaged_messages_change_no_other() -> None:
    """Each is put among good messages, which keep their values; it has the verdict of the rows."""
    avro = parse_avro(json.dumps(RICH))
    schema, decode, columns = decoders(avro)
    of = random.Random(20261129)
    good = writer_of_avro(avro, schema)([rich(of) for _ in range(120)])
    shown = [repr(value) for value in to_array(decode(good), schema).to_pylist()]
    seen = {"read": 0, "refused": 0}
    for _ in range(100_000 // 20):
        messages: list[bytes | None] = list(good)
        expected: list[str | None] = list(shown)
        refusals: list[str] = []
        for place in sorted(of.sample(range(len(good)), 20)):
            message = messages[place] = damaged(of, good[place])
            try:
                (value,) = to_array(decode([message]), schema).to_pylist()
                expected[place] = repr(value)
                seen["read"] += 1
            except DataError as error:
                messages[place] = expected[place] = None
                refusals.append(str(error))
                seen["refused"] += 1
                if len(refusals) == 1:
                    with_bad = [message if other == place else each for other, each in enumerate(messages)]
                    with pytest.raises(DataError) as found:
                        columns.read([each for each in with_bad if each is not None])
                    assert str(found.value) == str(error)
        kept = columns.read([message for message in messages if message is not None])
        assert [repr(value) for value in kept.to_pylist()] == [text for text in expected if text is not None]
    assert min(seen.values()) > 5000, seen


def damaged(of: random.Random, message: bytes) -> bytes:
    """The message with some bytes changed, left out, added or cut off."""
    body = bytearray(message[len(HEADER) :])
    for _ in range(of.choice([1, 1, 2])):
        place = of.randrange(len(body) + 1)
        match of.randrange(5):
            case 0 if place < len(body):
                body[place] ^= 1 << of.randrange(8)
            case 1:
                body.insert(place, of.randrange(256))
            case 2:
                del body[place : place + 1]
            case 3:
                del body[place:]
            case _:
                body[place : place + 1] = b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01"
    return HEADER + bytes(body)
