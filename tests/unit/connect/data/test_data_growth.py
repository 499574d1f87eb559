"""However hostile a value is, twice as much of it takes some twice the time."""

from __future__ import annotations

from contextlib import suppress
from decimal import Decimal
from typing import Any

import pytest

from connect.data import Schema, Type, decimal_schema, validate
from connect.data.arrow import to_values
from connect.data.logical import decimal_from_unscaled, unscaled_from_decimal
from connect.data.numerals import decimal_from_integer, integer_from_decimal, integer_text
from connect.data.values import convert_to_decimal, convert_to_int64, convert_to_string, infer_schema, parse_string
from connect.errors import DataError
from connect.transforms.cast import cast_function
from equipment.growth import assert_grows_evenly

HASH_MODULUS = 2**61 - 1


def repeated(unit: str, before: str = "", after: str = "") -> Any:
    return lambda size: before + unit * size + after


def listed(element: str, brackets: str = "[]") -> Any:
    return lambda size: brackets[0] + ",".join(element.format(number) for number in range(size)) + brackets[1]


@pytest.mark.growth
@pytest.mark.parametrize(
    "make",
    [
        listed('"k":1', "{}"),
        listed("1:{}", "{}"),
        lambda size: "{" + ",".join(f"{HASH_MODULUS * number}:1" for number in range(1, size)) + "}",
        listed("[{}]"),
        listed('{{"a":[{}]}}'),
        listed("[],[1]"),
        listed("{{}}"),
        repeated("["),
        repeated("[["),
        repeated("[1,"),
        repeated("1,", "[" * 99),
        repeated("{1:{1:["),
        repeated("a\\", '["'),
        repeated('"",', "["),
        repeated("\\", "["),
        repeated(" ", after="["),
        repeated(" ", "[", "1"),
        repeated("1:1:1.1Z,", "["),
        repeated("1"),
        repeated("1", "0."),
        repeated("0", after="1e5"),
        repeated("1", after="x"),
        repeated("1", "[", "x"),
    ],
)
def test_text_is_parsed(make: Any) -> None:
    assert_grows_evenly(parse_string, make, 2500)


def test_keys_of_one_hash_make_no_map() -> None:
    text = "{" + ",".join(f"{HASH_MODULUS * number}:1" for number in range(1, 3000)) + "}"
    assert parse_string(text) == (Schema.string(), text)
    few = "{" + ",".join(f"{HASH_MODULUS * number}:1" for number in range(1, 100)) + "}"
    assert len(parse_string(few).value) == 99


def unscaled(size: int) -> bytes:
    return bytes(range(1, 126)) * (size // 125)


@pytest.mark.growth
@pytest.mark.parametrize(
    ("run", "make"),
    [
        (lambda data: str(decimal_from_unscaled(data, 2)), unscaled),
        (lambda value: unscaled_from_decimal(value, 2), lambda size: Decimal("7" * size + ".77")),
        (lambda data: convert_to_decimal(None, data, 2), unscaled),
        (lambda value: convert_to_int64(None, value), lambda size: Decimal("7" * size)),
        (lambda value: convert_to_string(None, value), lambda size: 7 ** (size // 2)),
        (cast_function(decimal_schema(0), Type.INT64), lambda size: Decimal("7" * size)),
        (cast_function(decimal_schema(0), Type.FLOAT32), lambda size: Decimal("7" * size)),
        (cast_function(decimal_schema(0), Type.STRING), lambda size: Decimal("7" * size)),
    ],
)
def test_decimals(run: Any, make: Any) -> None:
    assert_grows_evenly(run, make, 60_000)


@pytest.mark.parametrize(
    ("base", "power", "more"), [(0, 1, 0), (-1, 1, 0), (2, 2048, 0), (2, 5000, -1), (10, 5000, 0), (-7, 9001, 0)]
)
def test_long_numbers_and_decimals_are_made_of_each_other(base: int, power: int, more: int) -> None:
    number = base**power + more
    made = decimal_from_integer(number)
    assert made == Decimal(number)
    assert made.as_tuple().exponent == 0
    assert integer_from_decimal(made) == number
    assert integer_text(number) == str(made)


@pytest.mark.growth
def test_structures() -> None:
    schema = Schema.array(Schema.map(Schema.string(), Schema.array(Schema.int64())))
    make = lambda size: [{"a": [1], "b": []}] * size  # noqa: E731
    assert_grows_evenly(lambda value: validate(schema, value), make, 3000)
    assert_grows_evenly(lambda value: convert_to_string(schema, value), make, 3000)
    assert_grows_evenly(infer_schema, make, 3000)


@pytest.mark.growth
def test_a_repeated_key_of_an_arrow_map_is_found() -> None:
    pa = pytest.importorskip("pyarrow")
    kind = pa.map_(pa.int64(), pa.int64())

    def refuse(array: Any) -> None:
        with pytest.raises(DataError, match="more than once"):
            to_values(array, Schema.map(Schema.int64(), Schema.int64()))

    make = lambda size: pa.array([[*((number, 1) for number in range(size)), (size - 1, 2)]], kind)  # noqa: E731
    assert_grows_evenly(refuse, make, 3000)


@pytest.mark.growth
def test_an_arrow_map_of_decimals_of_one_hash_is_refused() -> None:
    pa = pytest.importorskip("pyarrow")
    kind = pa.map_(pa.decimal128(38, 0), pa.int64())

    def refuse(array: Any) -> None:
        with pytest.raises(DataError, match="keys with the same hash"):
            to_values(array, Schema.map(decimal_schema(0), Schema.int64()))

    def make(size: int) -> Any:
        return pa.array([[(Decimal(HASH_MODULUS * number), 1) for number in range(1, size)]], kind)

    assert_grows_evenly(refuse, make, 3000)


@pytest.mark.growth
@pytest.mark.parametrize(
    "make", [repeated("1"), repeated("0", after="x"), repeated("a", "0x", "p"), repeated(" ", after="x")]
)
@pytest.mark.parametrize("target", [Type.INT64, Type.FLOAT32, Type.BOOLEAN])
def test_text_is_cast(target: Type, make: Any) -> None:
    def cast(text: str) -> None:
        with suppress(DataError):
            cast_function(None, target)(text)

    assert_grows_evenly(cast, make, 40_000)
