"""What is written as Avro is read as it was; Avro's own implementation agrees on the bytes; bad bytes are refused."""

from __future__ import annotations

import io
import json
import math
import re
import tracemalloc
from decimal import Decimal
from typing import Any

import fastavro
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from connect.data import Schema, SchemaAndValue, Type, decimal_schema
from connect.errors import DataError
from connect.kits.avro.avro_schema import parse_avro
from equipment.strategies.schemas import schemas, schemas_and_values
from equipment.strategies.values import schemaless_values, values_of
from equipment.vectors import encoded
from unit.connect.kits.avro.codecs_of import avro_of, mutated, reader_of, text_of, writer_of

SLOW = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


def has_avro_names(schema: Schema) -> bool:
    parts = [field.schema for field in schema.fields] + [schema.key_schema, schema.value_schema]
    own = all(re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", field.name) for field in schema.fields)
    return own and all(has_avro_names(part) for part in parts if part is not None)


def has_plain_keys(schema: Schema) -> bool:
    """Whether no map has keys of more than a type, which an Avro map has no place for, as in Java."""
    parts = [field.schema for field in schema.fields] + [schema.key_schema, schema.value_schema]
    key = schema.key_schema
    own = key is None or key.type is not Type.STRING or key.optional or key == Schema.string()
    return own and all(has_plain_keys(part) for part in parts if part is not None)


def with_defaults(schema: Schema | None, value: Any) -> Any:
    """The value with the nulls of fields replaced as they are written."""
    if value is None or schema is None:
        return value
    if schema.fields:
        members = {field.name: with_defaults(field.schema, value[field.name]) for field in schema.fields}
        return {field.name: field.schema.default if members[field.name] is None else members[field.name]
                for field in schema.fields}  # fmt: skip
    if isinstance(value, dict):
        return {with_defaults(schema.key_schema, key): with_defaults(schema.value_schema, item)
                for key, item in value.items()}  # fmt: skip
    if isinstance(value, list):
        return [with_defaults(schema.value_schema, item) for item in value]
    return value


def has_bare_null(schema: Schema | None, value: Any, *, in_field: bool = False) -> bool:
    """Whether a null is where only a default of the schema allows it, and no field's default is written for it."""
    if schema is None:
        return False
    if value is None:
        return not schema.optional and (not in_field or schema.default is None)
    if schema.fields:
        return any(has_bare_null(field.schema, value[field.name], in_field=True) for field in schema.fields)
    if isinstance(value, dict):
        return any(has_bare_null(schema.key_schema, key) or has_bare_null(schema.value_schema, item)
                   for key, item in value.items())  # fmt: skip
    return isinstance(value, list) and any(has_bare_null(schema.value_schema, item) for item in value)


@SLOW
@given(schemas())
def test_a_schema_comes_back_as_the_same_object(schema: Schema) -> None:
    avro = avro_of(schema)
    fastavro.parse_schema(
        json.loads(re.sub(r'"scale":-?\d+,"precision":\d+,', "", text_of(schema, scrub_invalid_names=True)))
    )
    if has_avro_names(schema) and has_plain_keys(schema):
        assert reader_of(avro)[0] is schema


@SLOW
@given(schemas_and_values())
def test_a_value_comes_back_as_it_was(pair: SchemaAndValue) -> None:
    schema, value = pair
    if has_bare_null(schema, value):
        with pytest.raises(DataError):
            writer_of(schema)([value])
        return
    (message,) = writer_of(schema)([value])
    read_schema, decode = reader_of(avro_of(schema))
    (read,) = decode([message])
    if schema is not None and has_avro_names(schema):
        assert encoded(read, read_schema) == encoded(with_defaults(schema, value), schema)


@SLOW
@given(schemas(logical_types=False).flatmap(lambda schema: st.tuples(st.just(schema), values_of(schema))))
def test_the_bytes_are_those_of_avros_own_implementation(pair: tuple[Schema, Any]) -> None:
    schema, value = pair
    if has_bare_null(schema, value):
        return
    avro = avro_of(schema)
    if avro.kind == "bytes":
        return
    parsed = fastavro.parse_schema(json.loads(text_of(schema, scrub_invalid_names=True)))
    body = writer_of(schema)([value])[0][5:]
    stream = io.BytesIO(body)
    read = fastavro.schemaless_reader(stream, parsed, None)
    assert stream.tell() == len(body)
    again = io.BytesIO()
    fastavro.schemaless_writer(again, parsed, read)
    assert again.getvalue() == body or "NaN" in repr(read)


@SLOW
@given(schemaless_values())
def test_a_value_without_a_schema_comes_back(value: Any) -> None:
    schema, decode = reader_of(avro_of(None))
    try:
        message = writer_of(None)([value])
    except DataError:
        assert any(isinstance(number, int) and not -(2**63) <= number < 2**63 for number in _leaves(value))
        return
    assert schema is None
    try:
        assert encoded(decode(message)[0], None) == encoded(value, None)
    except DataError as error:
        assert "unhashable" in str(error)


def _leaves(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [leaf for pair in value.items() for part in pair for leaf in _leaves(part)]
    return [leaf for item in value for leaf in _leaves(item)] if isinstance(value, list) else [value]


@SLOW
@given(st.data())
def test_a_bad_message_is_refused_and_leaves_its_neighbours_alone(data: st.DataObject) -> None:
    schema, value = data.draw(schemas_and_values())
    if has_bare_null(schema, value):
        return
    (good,) = writer_of(schema)([value])
    bad = data.draw(mutated(good))
    read_schema, decode = reader_of(avro_of(schema))
    (expected,) = decode([good])
    try:
        (row,) = decode([bad])
    except DataError:
        with pytest.raises(DataError):
            decode([good, bad, good])
        return
    column = decode([good, bad, good])
    assert [encoded(each, read_schema) for each in column] == [
        encoded(each, read_schema) for each in (expected, row, expected)
    ]


@pytest.mark.parametrize(
    ("avro", "body", "reason"),
    [
        ('"int"', b"", "ends before"),
        ('"int"', b"\x80", "ends before"),
        ('"int"', b"\x02\x02", "1 bytes are left over"),
        ('"int"', b"\xff\xff\xff\xff\x7f", "more than 32 bits"),
        ('"long"', b"\xff" * 11, "more than 10 bytes"),
        ('"long"', b"\xff" * 9 + b"\x7f", "more than 64 bits"),
        ('"boolean"', b"\x02", "a boolean is 2"),
        ('"double"', b"\x00" * 7, "ends before"),
        ('"string"', b"\x06ab", "3 bytes should follow where 2 are left"),
        ('"string"', b"\x05ab", "length is negative"),
        ('"string"', b"\x04\xff\xff", "utf-8"),
        ('"string"', b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01", "should follow where 0 are left"),
        ('["null","int"]', b"\x04\x02", "a union of 2 has the member 2"),
        ('["null","int"]', b"\x01\x02", "a union of 2 has the member 0.5"),
        ('{"type":"enum","name":"E","symbols":["A","B"]}', b"\x04", "an enum of 2 symbols has the symbol 2"),
        ('{"type":"fixed","name":"F","size":4}', b"abc", "4 bytes should follow where 3 are left"),
        ('{"type":"array","items":"int"}', b"\x02\x02", "ends before"),
        ('{"type":"array","items":"int"}', b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01", "elements cannot be in the 0"),
        ('{"type":"map","values":"int"}', b"\xfe\xff\xff\xff\x0f", "elements cannot be in the 0"),
        ('{"type":"array","items":{"type":"record","name":"R","fields":[]}}', b"\xfe\xff\xff\xff\x0f\x00", "elements"),
        ('{"type":"bytes","logicalType":"decimal","scale":2,"precision":4}', b"", "no bytes"),
        ('{"type":"int","logicalType":"time-millis"}', b"\x01", "not within a day"),
        ('{"type":"int","logicalType":"date"}', b"\xfe\xff\xff\xff\x0f", "outside the years"),
        ('{"type":"long","logicalType":"timestamp-millis"}', b"\xfe" + b"\xff" * 8 + b"\x01", "outside the years"),
    ],
)
def test_malformed_bodies_are_refused_with_the_reason(avro: str, body: bytes, reason: str) -> None:
    _schema, decode = reader_of(parse_avro(avro))
    with pytest.raises(DataError, match=reason):
        decode([b"\0\0\0\0\x07" + body])


def test_a_huge_length_takes_no_memory() -> None:
    _schema, decode = reader_of(parse_avro('{"type":"array","items":"string"}'))
    huge = b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01"
    bodies = (huge, b"\x02" + huge, b"\x01" + huge, b"\x03\x02" + huge + b"\x02a")
    tracemalloc.start()
    for body in bodies:
        with pytest.raises(DataError):
            decode([b"\0\0\0\0\x07" + body])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1 << 20


def test_elements_in_several_groups_with_and_without_their_size() -> None:
    _schema, decode = reader_of(parse_avro('{"type":"array","items":"int"}'))
    assert decode([b"\0\0\0\0\x07\x02\x02\x03\x04\x04\x06\x00"]) == [[1, 2, 3]]


def test_schemas_of_many_levels_and_many_fields() -> None:
    schema = Schema.int32()
    value: Any = 1
    for level in range(60):
        if level % 2:
            schema, value = Schema.array(schema), [value]
        else:
            schema, value = Schema.struct({f"f{level}": schema}, name=f"n{level}"), {f"f{level}": value}
    assert reader_of(avro_of(schema))[1](writer_of(schema)([value])) == [value]
    wide = Schema.struct({f"f{number}": Schema.int64(optional=True) for number in range(2000)})
    row = {f"f{number}": number for number in range(2000)}
    assert reader_of(avro_of(wide))[1](writer_of(wide)([row])) == [row]


@pytest.mark.parametrize(
    ("schema", "value", "field"),
    [
        (Schema.struct({"a": Schema.int32()}), {"a": "x"}, '"a"'),
        (Schema.struct({"a": Schema.int32()}), {"a": True}, '"a"'),
        (Schema.struct({"a": Schema.int32()}), {"a": 2**31}, '"a"'),
        (Schema.struct({"a": Schema.int32()}), {"a": 1, "b": 2}, "b is not a valid field name"),
        (Schema.struct({"a": Schema.int32()}), {"b": 2}, "a"),
        (Schema.struct({"a": Schema.array(Schema.string())}), {"a": ["x", 1]}, r"a\[1\]"),
        (Schema.struct({"a": Schema.boolean()}), {"a": 1}, '"a"'),
        (Schema.string(), "\ud800", "surrogates"),
        (Schema.float32(), 1e300, "too large"),
        (Schema.float64(), 2**53 + 1, "cannot be held exactly"),
    ],
)
def test_a_value_that_is_not_what_the_schema_says_is_refused(schema: Schema, value: Any, field: str) -> None:
    with pytest.raises(DataError, match=field):
        writer_of(schema)([value])


def test_what_stands_for_a_value_is_written_like_it() -> None:
    class Text(str):
        __slots__ = ()

    schema = Schema.struct({"a": Schema.array(Schema.float64()), "b": Schema.bytes(), "c": Schema.string()})
    exact = {"a": [1.0, 2.5], "b": b"xy", "c": "t"}
    loose = {"a": (1, 2.5), "b": bytearray(b"xy"), "c": Text("t")}
    assert writer_of(schema)([exact]) == writer_of(schema)([loose])


def test_the_words_of_a_schema_never_become_code() -> None:
    name = "a'] or __import__('os') or x['"
    schema = Schema.struct({name: Schema.int32(default=3), '"""': Schema.string(optional=True)})
    (read,) = reader_of(avro_of(schema))[1](writer_of(schema)([{name: 5, '"""': "t"}]))
    assert list(read.values()) == [5, "t"]
    foreign = json.dumps({"type": "record", "name": "R", "fields": [{"name": name, "type": "int"}]})
    assert reader_of(parse_avro(foreign))[1]([b"\0\0\0\0\x07\x02"]) == [{name: 1}]


def test_numbers_at_the_edges() -> None:
    schema = Schema.struct({"i": Schema.int64(), "d": Schema.float64(), "f": Schema.float32()})
    for number in (0, -1, 63, 64, -64, -65, 8191, 8192, -8193, 2**31, -(2**63), 2**63 - 1):
        value = {"i": number, "d": -0.0, "f": math.inf}
        (read,) = reader_of(avro_of(schema))[1](writer_of(schema)([value]))
        assert repr(read) == repr(value)


def test_decimals_have_the_bytes_of_java() -> None:
    schema = Schema.struct({"d": decimal_schema(2)})
    for text, expected in (("0.00", "0200"), ("-1.28", "0280"), ("1.28", "040080"), ("-1.29", "04ff7f")):
        assert writer_of(schema)([{"d": Decimal(text)}])[0][5:].hex() == expected
