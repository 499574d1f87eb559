"""Numbers that JSON can hold and Connect's types cannot, and the other way round, by row, by column and into Arrow."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect.data import Schema, ValueColumn
from connect.errors import DataError
from converters.json import JsonConverter

PLAIN = JsonConverter.configured({"schemas.enable": "false"})
WITH_SCHEMA = JsonConverter.configured({})
WEI = 12345678901234567890123


def envelope(kind: str, payload: str) -> bytes:
    field = f'{{"type":"{kind}","optional":false,"field":"n"}}'
    schema = f'{{"type":"struct","fields":[{field}],"optional":false}}'
    return f'{{"schema":{schema},"payload":{{"n":{payload}}}}}'.encode()


def read_all(converter: JsonConverter, message: bytes) -> list[Any]:
    """The value by row, by column and, through Arrow, as rows again."""
    by_column = [column.values() for column in converter.to_connect_column("t", [message] * 6)]
    in_arrow = [column.values() for column in converter.to_connect_arrow("t", [message] * 40)]
    return [converter.to_connect("t", message).value, *chain(by_column), *chain(in_arrow)]


def chain(columns: Sequence[Sequence[Any]]) -> list[Any]:
    return [value for column in columns for value in column]


@given(st.integers(-(10**60), 10**60) | st.sampled_from([2**63 - 1, 2**63, -(2**63) - 1, 2**64 - 1, 2**64, 10**999]))
def test_whole_numbers_without_a_schema_are_read_and_written_exactly(number: int) -> None:
    for value in (number, {"n": number}, [number, {"m": [number]}]):
        text = PLAIN.from_connect("t", None, value)
        assert text == str(value).replace("'", '"').replace(" ", "").encode()
        assert PLAIN.from_connect_column("t", ValueColumn([value] * 3, None)) == [text] * 3
        assert read_all(PLAIN, text) == [value] * 47


def test_a_whole_number_beyond_64_bits_beside_fractions_stays_exact() -> None:
    message = b'{"id":18446744073709551615,"wei":12345678901234567890123,"price":0.1,"big":1e20}'
    assert read_all(PLAIN, message) == [{"id": 2**64 - 1, "wei": WEI, "price": 0.1, "big": 1e20}] * 47


def test_a_number_of_more_digits_than_are_read_is_not_written() -> None:
    with pytest.raises(DataError, match=r'field "\[\'n\'\]": the whole number has more than 1000 digits'):
        PLAIN.from_connect("t", None, {"n": 10**1001})


@pytest.mark.parametrize(
    ("kind", "payload", "told"),
    [
        ("int8", "300", "The whole number 300 does not fit INT8"),
        ("int16", "-40000", "The whole number -40000 does not fit INT16"),
        ("int32", "2147483648", "The whole number 2147483648 does not fit INT32"),
        ("int32", "5e9", "The whole number 5000000000 does not fit INT32"),
        ("int64", "9223372036854775808", "The whole number 9223372036854775808 does not fit INT64"),
        ("int64", "-18446744073709551617", "The whole number -18446744073709551617 does not fit INT64"),
        ("int64", "1e100", "The whole number 1E+100 does not fit INT64"),
        ("int64", "1e999999", "The whole number 1E+999999 does not fit INT64"),
        ("float", "1e39", "is too large for FLOAT32"),
        ("float", "-1e999", "is too large for FLOAT32"),
        ("double", "1e400", "The number 1E+400 is too large for FLOAT64"),
        ("double", "9" * 400, "is too large for FLOAT64"),
    ],
)
def test_a_number_that_does_not_fit_its_schema_is_refused_by_name(kind: str, payload: str, told: str) -> None:
    message = envelope(kind, payload)
    for read in (
        lambda: WITH_SCHEMA.to_connect("t", message),
        lambda: WITH_SCHEMA.to_connect_column("t", [message] * 6),
        lambda: WITH_SCHEMA.to_connect_arrow("t", [message] * 40),
    ):
        with pytest.raises(DataError, match='Invalid value for field "n"') as refused:
            read()
        assert told in str(refused.value)


@pytest.mark.parametrize("text", ["1e400", '{"a":[1e400]}', "[-1e999]"])
def test_no_number_without_a_schema_becomes_infinite(text: str) -> None:
    with pytest.raises(DataError, match="is too large for FLOAT64"):
        PLAIN.to_connect("t", text.encode())
    with pytest.raises(DataError, match="is too large for FLOAT64"):
        PLAIN.to_connect_column("t", [text.encode()] * 6)


@pytest.mark.parametrize("schema", [Schema.float32(), Schema.float64()])
@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf, 1.5])
def test_floats_are_read_as_they_were_written(schema: Schema, number: float) -> None:
    struct = Schema.struct({"n": schema, "many": Schema.array(schema), "by": Schema.map(Schema.string(), schema)})
    value = {"n": number, "many": [number, 1.0], "by": {"a": number}}
    message = WITH_SCHEMA.from_connect("t", struct, value)
    assert message is not None
    assert [repr(read) for read in read_all(WITH_SCHEMA, message)] == [repr(value)] * 47


@pytest.mark.parametrize("text", ["nan", "INF", "+Infinity", "x", ""])
def test_other_text_in_a_float_is_0_as_in_java(text: str) -> None:
    assert read_all(WITH_SCHEMA, envelope("double", f'"{text}"')) == [{"n": 0.0}] * 47


@pytest.mark.parametrize("is_in_order", [True, False])
def test_structs_with_changed_fields_are_copies(*, is_in_order: bool) -> None:
    """Numbers that Java writes in another way are put into copies, however deep, and what was given stays."""
    inner = Schema.struct({"a": Schema.string(), "b": Schema.float64(optional=True)}, optional=True)
    schema = Schema.struct({"n": Schema.int32(), "inner": inner, "c": Schema.float64()})
    rows = [{"n": n, "inner": {"a": "x", "b": n * 1e9} if n % 2 else None, "c": 1e8 + n} for n in range(6)]
    if not is_in_order:
        rows = [dict(reversed(row.items())) for row in rows]
    before = copy.deepcopy(rows)

    by_row = [PLAIN.from_connect("t", schema, row) for row in rows]

    assert PLAIN.from_connect_column("t", ValueColumn(rows, schema)) == by_row
    assert by_row[1] == b'{"n":1,"inner":{"a":"x","b":1.0E9},"c":1.00000001E8}'
    assert rows == before
