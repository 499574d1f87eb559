"""Java's ranges of whole numbers, and what is left of numbers beyond them."""

from __future__ import annotations

import pytest

from connect.data import Type
from connect.data.numerals import double_text, integer_range, wrapped
from connect.data.schema import INTEGER_BITS, INTEGER_RANGES


def test_each_integer_type_has_the_range_of_java() -> None:
    assert INTEGER_RANGES == {
        Type.INT8: (-128, 127),
        Type.INT16: (-32768, 32767),
        Type.INT32: (-2147483648, 2147483647),
        Type.INT64: (-9223372036854775808, 9223372036854775807),
    }
    assert all(integer_range(bits) == INTEGER_RANGES[kind] for kind, bits in INTEGER_BITS.items())


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
def test_numbers_beyond_the_range_wrap_around(bits: int) -> None:
    low, high = integer_range(bits)
    assert [wrapped(number, bits) for number in (low, -1, 0, high)] == [low, -1, 0, high]
    assert (wrapped(high + 1, bits), wrapped(low - 1, bits)) == (low, high)
    assert wrapped(5 + (7 << bits), bits) == 5


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (9_999_999.999999998, "9999999.999999998"),
        (1e7, "1.0E7"),
        (-12_345_678.0, "-1.2345678E7"),
        (1_764_495_097.123456, "1.764495097123456E9"),
        (10_000_000.5, "1.00000005E7"),
        (9_999_999_999_999_998.0, "9.999999999999998E15"),
        (-1e16, "-1.0E16"),
        (1.5e300, "1.5E300"),
    ],
)
def test_large_doubles_are_written_as_java_does(value: float, text: str) -> None:
    assert double_text(value) == text
