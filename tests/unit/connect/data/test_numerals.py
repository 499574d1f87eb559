"""Java's ranges of whole numbers, and what is left of numbers beyond them."""

from __future__ import annotations

import pytest

from connect.data import Type
from connect.data.numerals import integer_range, wrapped
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
