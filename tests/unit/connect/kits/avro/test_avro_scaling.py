"""What is twice as large takes twice as long: schemas both ways, and messages, whoever made them up."""

from __future__ import annotations

import contextlib
import json
import tracemalloc
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from connect.data import Schema, decimal_schema
from connect.errors import DataError, SchemaError
from connect.kits.avro.avro_schema import AvroSchema, parse_avro
from connect.kits.avro.avro_text import avro_text
from connect.kits.avro.config import AvroDataConfig
from connect.kits.avro.decode import decoder
from connect.kits.avro.encode import encoder
from connect.kits.avro.from_connect import avro_from_connect
from connect.kits.avro.to_connect import connect_from_avro
from equipment.growth import assert_grows_evenly
from equipment.proofs import thorough
from unit.connect.kits.avro.codecs_of import reader_of, writer_of

PLAIN = AvroDataConfig()
ENHANCED = AvroDataConfig(enhanced_avro_schema_support=True)
GENERALIZED = AvroDataConfig(generalized_sum_type_support=True)
BARE = AvroDataConfig(connect_meta_data=False)
HEADER = b"\0\0\0\0\x07"


def record(name: str, *fields: tuple[Any, ...]) -> dict[str, Any]:
    shown = [
        {"name": field, "type": kind} | ({"default": default[0]} if default else {}) for field, kind, *default in fields
    ]
    return {"type": "record", "name": name, "fields": shown}


def array(items: Any) -> dict[str, Any]:
    return {"type": "array", "items": items}


def entry(name: str, *fields: tuple[Any, ...]) -> dict[str, Any]:
    return record(name, *fields) | {"connect.internal.type": "MapEntry"}


def chain(size: int, use: Callable[[Any], Any], leaf: dict[str, Any]) -> dict[str, Any]:
    """Records that use each other twice a level: the first time they are defined, the second they are named."""
    last = leaf
    for level in range(size):
        last = record(f"R{level}", ("a", use(last)), ("b", use(last["name"])))
    return last


def nullable_chain(size: int) -> Any:
    return chain(size, lambda used: ["null", used], record("L", ("x", "int")))


def array_chain(size: int) -> Any:
    return chain(size, array, record("L", ("x", "int")))


def union_chain(size: int) -> Any:
    return chain(size, lambda used: ["null", "int", used], record("L", ("x", "int")))


def defaults_chain(size: int) -> Any:
    """Records whose fields have defaults that say nothing themselves, and mean twice as much at each level."""
    last = record("L", ("x", "int", 7))
    for level in range(size):
        last = record(f"R{level}", ("a", last, {}), ("b", last["name"], {}))
    return record("Top", ("a", last))


def entries_chain(size: int) -> Any:
    """Maps whose keys and values are maps of the level below."""
    last: Any = entry("E", ("key", "int"), ("value", "int"))
    for level in range(size):
        both = record(f"V{level}", ("a", array(last)), ("b", array(last["name"])))
        last = entry(f"E{level}", ("key", "int"), ("value", both))
    return array(last)


def wide_record(size: int) -> Any:
    return record("R", *((f"f{number}", ["null", "int"], None) for number in range(size * 8)))


def wide_union(size: int) -> Any:
    return record("R", ("u", ["null", *(record(f"M{number}", ("x", "int")) for number in range(size * 4))]))


def enum_in_many_fields(size: int) -> Any:
    enum = {"type": "enum", "name": "E", "symbols": [f"S{number}" for number in range(size * 8)]}
    return record("R", ("f", enum), *((f"f{number}", "E") for number in range(size * 8)))


def record_in_many_fields(size: int) -> Any:
    wide = record("W", *((f"f{number}", "int", 1) for number in range(size * 4)))
    return record("R", ("f", wide), *((f"f{number}", "W") for number in range(size * 4)))


# With the smaller of the two sizes.
SCHEMAS: dict[str, tuple[Callable[[int], Any], int]] = {
    "records used twice a level": (nullable_chain, 18),
    "arrays of records used twice a level": (array_chain, 18),
    "unions of records used twice a level": (union_chain, 18),
    "defaults that double each level": (defaults_chain, 30),
    "maps of maps": (entries_chain, 11),
    "a wide record": (wide_record, 40),
    "a wide union": (wide_union, 40),
    "an enum in many fields": (enum_in_many_fields, 30),
    "a record in many fields": (record_in_many_fields, 30),
}


def read(text: str, config: AvroDataConfig) -> None:
    """All that is made of a schema to read in it."""
    avro = parse_avro(text)
    with contextlib.suppress(SchemaError):  # refusing it is an answer too
        decoder(avro, avro, connect_from_avro(avro, config), config)


@pytest.mark.growth
@pytest.mark.parametrize("config", [PLAIN, *thorough(ENHANCED, GENERALIZED)], ids=["plain", "enhanced", "generalized"])
@pytest.mark.parametrize("name", SCHEMAS)
def test_schemas_to_read_in(name: str, config: AvroDataConfig) -> None:
    make, size = SCHEMAS[name]
    assert_grows_evenly(lambda text: read(text, config), lambda size: json.dumps(make(size)), size)


@pytest.mark.growth
@pytest.mark.parametrize("config", [PLAIN, *thorough(ENHANCED, BARE)], ids=["plain", "enhanced", "bare"])
@pytest.mark.parametrize("name", SCHEMAS)
def test_schemas_to_write_in(name: str, config: AvroDataConfig) -> None:
    make, size = SCHEMAS[name]
    if make is enum_in_many_fields and config is PLAIN:
        return  # there the symbols are written with every use, as Java writes them

    def connect(size: int) -> Schema:
        schema = connect_from_avro(parse_avro(json.dumps(make(size))), config)
        assert schema is not None
        return schema

    def write(schema: Schema) -> None:
        avro = avro_from_connect(schema, config)
        encoder(schema, parse_avro(avro_text(avro)), 1, config)

    assert_grows_evenly(write, connect, size)


def evolving(text: str, other: str) -> None:
    writer, reader = parse_avro(text), parse_avro(other)
    schema = connect_from_avro(reader, PLAIN)
    assert schema is not None
    decoder(writer, reader, schema, PLAIN)
    encoder(schema, writer, 1, PLAIN)


@pytest.mark.growth
@pytest.mark.parametrize("name", [name for name in SCHEMAS if name != "defaults that double each level"])
def test_schemas_that_differ(name: str) -> None:
    make, size = SCHEMAS[name]

    def pair(size: int) -> tuple[str, str]:
        text = json.dumps(make(size))
        return text, json.dumps(json.loads(text) | {"doc": "another"})

    assert_grows_evenly(lambda texts: evolving(*texts), pair, size)


@pytest.mark.growth
def test_fields_that_the_message_lacks_and_the_schema_lacks() -> None:
    wide = record("W", *((f"f{number}", "int", 1) for number in range(60)))

    def pair(size: int) -> tuple[AvroSchema, AvroSchema]:
        more = [("w", wide, {}), *((f"w{number}", "W", {}) for number in range(size))]
        return parse_avro(json.dumps(record("R"))), parse_avro(json.dumps(record("R", *more)))

    def work(schemas: tuple[AvroSchema, AvroSchema]) -> None:
        less, more = schemas
        decoder(less, more, connect_from_avro(more, PLAIN), PLAIN)
        decoder(more, less, connect_from_avro(less, PLAIN), PLAIN)
        encoder(connect_from_avro(less, PLAIN), more, 1, PLAIN)

    assert_grows_evenly(work, pair, 100)


@pytest.mark.growth
def test_structs_of_one_name_that_are_the_same_in_avro() -> None:
    """Without meta data the docs do not tell them apart, and each is compared with the one before it."""

    def twins(size: int) -> Schema:
        one = other = Schema.int32()
        for level in range(size):
            one, other = (
                Schema.struct({"a": one, "b": other}, name=f"N{level}", doc=doc) for doc in ("one", "the other")
            )
        return Schema.struct({"one": one, "other": other}, name="Top")

    assert_grows_evenly(lambda schema: avro_text(avro_from_connect(schema, BARE)), twins, 30)


def test_a_schema_that_avro_can_only_write_out_is_refused() -> None:
    schema = Schema.int32()
    for _ in range(30):
        schema = Schema.struct({"array": Schema.array(schema), "map": Schema.map(Schema.string(), schema)},
                               name="io.confluent.connect.avro.Union")  # fmt: skip
    with pytest.raises(SchemaError, match="more than 200000 types"):
        avro_text(avro_from_connect(schema, PLAIN))


# -- messages ------------------------------------------------------------------------------------------------------


def varint(number: int) -> bytes:
    out, number = bytearray(), number << 1
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


EMPTY = record("R")
NO_BYTES = {
    "empty records": EMPTY,
    "records of empty records": record("O", ("a", EMPTY), ("b", "R"), ("c", "R")),
    "fixed of no bytes": {"type": "fixed", "name": "F", "size": 0},
    "records of fixed of no bytes": record("O", ("a", {"type": "fixed", "name": "F", "size": 0})),
    "entries of no bytes": entry("E", ("key", {"type": "fixed", "name": "F", "size": 0}), ("value", EMPTY)),
}


@pytest.mark.parametrize("name", NO_BYTES)
def test_what_takes_no_bytes_counts_for_the_whole_message(name: str) -> None:
    """Nested arrays, and many groups: each with few enough elements, and together millions from some bytes."""
    _schema, decode = reader_of(parse_avro(json.dumps(array(array(NO_BYTES[name])))))
    _schema, decode_flat = reader_of(parse_avro(json.dumps(array(NO_BYTES[name]))))
    nested = varint(20) + 20 * (varint(900) + b"\0") + b"\0"
    groups = 20 * varint(900) + b"\0"
    tracemalloc.start()
    for read_body, body in ((decode, nested), (decode_flat, groups), (decode_flat, varint(2**60) + b"\0")):
        with pytest.raises(DataError, match="take no bytes"):
            read_body([HEADER + body])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1 << 20
    few = decode([HEADER + varint(2) + varint(20) + b"\0" + varint(30) + b"\0" + b"\0"])
    assert len(few[0]) == 2


def test_records_that_hold_more_and_more_of_no_bytes() -> None:
    """Thirty levels, each with twice the one below, are a billion dicts from nothing."""
    text = json.dumps(record("Top", ("x", "int"), ("a", chain(30, lambda used: used, EMPTY))))
    _schema, decode = reader_of(parse_avro(text))
    with pytest.raises(DataError, match="take no bytes"):
        decode([HEADER + b"\x02"])


def test_defaults_count_as_what_takes_no_bytes() -> None:
    less = record("R", ("x", "int"))
    more = record("R", ("x", "int"), ("d", array("int"), [1] * 500))
    writer, reader = parse_avro(json.dumps(array(less))), parse_avro(json.dumps(array(more)))
    decode = decoder(writer, reader, connect_from_avro(reader, PLAIN), PLAIN)
    assert len(decode([HEADER + varint(1) + b"\x02\0"])[0]) == 1
    with pytest.raises(DataError, match="take no bytes"):
        decode([HEADER + varint(50) + b"\x02" * 50 + b"\0"])


def test_each_message_has_its_own_budget_and_each_byte_its_share() -> None:
    _schema, decode = reader_of(parse_avro(json.dumps(array(record("O", ("a", EMPTY), ("x", "int"))))))
    message = HEADER + varint(5000) + b"\x02" * 5000 + b"\0"
    assert [len(value) for value in decode([message] * 3)] == [5000] * 3


MAP = '{"type":"map","values":"int"}'
DECIMAL_KEYS = json.dumps(
    array(entry("E", ("key", {"type": "bytes", "logicalType": "decimal", "scale": 0}), ("value", "int")))
)


def text_of(letters: bytes) -> bytes:
    return varint(len(letters)) + letters


def groups_of(items: list[bytes], size: int) -> bytes:
    parts = [items[place : place + size] for place in range(0, len(items), size)]
    return b"".join(varint(len(part)) + b"".join(part) for part in parts) + b"\0"


ANYTHING_NULL = b"\0" * 9


def deep_anything(levels: int) -> bytes:
    return (b"\0" * 7 + b"\x02\x02") * levels + ANYTHING_NULL + b"\0\0" * levels


BODIES: dict[str, tuple[str | None, Callable[[int], bytes]]] = {
    "one key over and over": (MAP, lambda size: groups_of([text_of(b"k") + b"\x02"] * size * 4, 10_000)),
    "one key in groups of one": (MAP, lambda size: groups_of([text_of(b"k") + b"\x02"] * size * 2, 1)),
    "many keys": (MAP, lambda size: groups_of([text_of(b"%d" % n) + b"\x02" for n in range(size * 2)], 10_000)),
    "a string of many bytes": ('"string"', lambda size: text_of(b"\xc3\xa9" * size * 200)),
    "a long array": ('{"type":"array","items":"int"}', lambda size: groups_of([b"\x02"] * size * 10, 10_000)),
    "anything of many maps": (
        None,
        lambda size: b"\0" * 8 + b"\x02" + groups_of([ANYTHING_NULL * 2] * size, 1),
    ),
}


@pytest.mark.growth
@pytest.mark.parametrize("name", BODIES)
def test_messages(name: str) -> None:
    text, make = BODIES[name]
    decode = reader_of(avro_from_connect(None, PLAIN) if text is None else parse_avro(text))[1]
    assert_grows_evenly(lambda message: decode([message]), lambda size: HEADER + make(size), 10_000)


def test_keys_chosen_to_have_one_hash_are_refused() -> None:
    prime = 2**61 - 1
    keys = [prime * number for number in range(1, 5001)]
    parts = [text_of(number.to_bytes(10, "big")) + b"\x02" for number in keys]
    _schema, decode = reader_of(parse_avro(DECIMAL_KEYS))
    with pytest.raises(DataError, match="keys with the same hash"):
        decode([HEADER + groups_of(parts, 5000)])
    assert decode([HEADER + groups_of(parts[:60], 60)]) == [{Decimal(key): 1 for key in keys[:60]}]


@pytest.mark.growth
def test_values_to_write() -> None:
    flat = Schema.map(Schema.string(), Schema.array(Schema.string(optional=True)))
    write = writer_of(flat)
    assert_grows_evenly(lambda value: write([value]), lambda size: {str(n): ["a", None] for n in range(size)}, 20_000)
    anything = writer_of(None)

    def nested(size: int) -> Any:
        value: Any = "x" * 1000 * size
        for _ in range(size):
            value = [value]
        return value

    assert_grows_evenly(lambda value: anything([value]), nested, 120)


@pytest.mark.growth
def test_a_wrong_value_among_many_is_found_in_its_time() -> None:
    schema = Schema.struct({"a": Schema.array(Schema.int32())})
    write = writer_of(schema)

    def refused(value: Any) -> None:
        with pytest.raises(DataError, match=r"a\["):
            write([value])

    assert_grows_evenly(refused, lambda size: {"a": [1] * size + ["x"]}, 20_000)


def decimal_of(kind: str | dict[str, Any], *, size: int) -> AvroSchema:
    """The Avro schema of decimals; a fixed one holds ``size`` bytes."""
    shown = {"type": "bytes"} if kind == "bytes" else {"type": "fixed", "name": "F", "size": size}
    return parse_avro(json.dumps(shown | {"logicalType": "decimal", "precision": 3 * size, "scale": 2}))


@pytest.mark.growth
@pytest.mark.parametrize("kind", ["bytes", "fixed"])
def test_long_decimals_are_read(kind: str) -> None:
    def reading(size: int) -> Callable[[], object]:
        avro = decimal_of(kind, size=size)
        unscaled = bytes(number % 125 + 1 for number in range(size))
        decode = reader_of(avro)[1]
        message = HEADER + (text_of(unscaled) if kind == "bytes" else unscaled)
        return lambda: decode([message])

    assert_grows_evenly(lambda read_one: read_one(), reading, 60_000)


@pytest.mark.growth
@pytest.mark.parametrize("kind", ["bytes", "fixed"])
def test_long_decimals_are_written(kind: str) -> None:
    def writing(size: int) -> Callable[[], object]:
        avro = decimal_of(kind, size=size)
        write = encoder(connect_from_avro(avro, PLAIN), avro, 7, PLAIN)
        value = Decimal("7" * 2 * size + ".77")
        return lambda: write([value])

    assert_grows_evenly(lambda write_one: write_one(), writing, 30_000)


@pytest.mark.growth
def test_long_decimals_that_do_not_fit_are_refused_soon() -> None:
    write = writer_of(decimal_schema(2))

    def refuse(value: Decimal) -> None:
        with pytest.raises(DataError, match="scale"):
            write([value])

    assert_grows_evenly(refuse, lambda size: Decimal("7" * size + ".777"), 60_000)


@pytest.mark.growth
@pytest.mark.parametrize("kind", ["int", "string", "bytes", "decimal"])
def test_entries_with_a_repeated_key(kind: str) -> None:
    shown = {"type": "bytes", "logicalType": "decimal", "scale": 0} if kind == "decimal" else kind
    decode = reader_of(parse_avro(json.dumps(array(entry("E", ("key", shown), ("value", "int"))))))[1]
    key = b"\x02" if kind == "int" else text_of(b"k")
    assert_grows_evenly(
        lambda message: decode([message]), lambda size: HEADER + groups_of([key + b"\x02"] * size, 10_000), 5000
    )
