"""Java's numbers: its integer ranges, single precision, and the text of any number."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal
from functools import cache
from typing import Final

__all__ = [
    "EXACT",
    "INT32_MAX",
    "INT32_MIN",
    "INT64_MAX",
    "INT64_MIN",
    "decimal_from_integer",
    "double_text",
    "float_text",
    "halves_single",
    "integer_from_decimal",
    "integer_range",
    "integer_text",
    "single",
    "single_digits",
    "to_single",
    "wrapped",
]

EXACT: Final = Context(MAX_PREC, Emin=MIN_EMIN, Emax=MAX_EMAX)
"""Computes with decimals of any length and rounds nothing."""


def integer_range(bits: int) -> tuple[int, int]:
    """Return the smallest and the largest signed integer of this many bits."""
    half = 1 << (bits - 1)
    return -half, half - 1


INT32_MIN, INT32_MAX = integer_range(32)
INT64_MIN, INT64_MAX = integer_range(64)

_SINGLE: Final = struct.Struct("<f")
_SINGLE_BITS: Final = struct.Struct("<I")
_DOUBLE: Final = struct.Struct("<d")
_DOUBLE_BITS: Final = struct.Struct("<Q")
_SMALLEST_NORMAL_SINGLE: Final = 2.0**-126
_LARGE_SINGLE: Final = 1e38
_PLAIN_FROM: Final = 1e-3
_PLAIN_BELOW: Final = 1e7
_PYTHON_PLAIN_BELOW: Final = 1e16
"""From here on Python, too, writes doubles with an exponent."""

_DROPPED: Final = (1 << 29) - 1
_HALF: Final = 1 << 28
_SHORT_BITS: Final = 2048
_SHORT_DIGITS: Final = 600
_BITS_A_DIGIT: Final = math.log2(10)


def wrapped(number: int, bits: int) -> int:
    """Return the signed integer in the low ``bits`` of another, as Java's casts do."""
    half = 1 << (bits - 1)
    return ((number + half) & ((1 << bits) - 1)) - half


def single(value: float) -> float:
    """Return the nearest number of single precision; infinity if ``value`` is too large."""
    try:
        rounded: float = _SINGLE.unpack(_SINGLE.pack(value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)
    return rounded


def to_single(value: Decimal | int) -> float:
    """Return the number of single precision nearest to an exact number.

    Converting through a double would round twice. Rounding the double to odd keeps the information that the second
    rounding needs.
    """
    try:
        double = float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
    if not math.isfinite(double) or double == value:
        return single(double)
    if not _DOUBLE_BITS.unpack(_DOUBLE.pack(double))[0] & 1:
        double = math.nextafter(double, math.inf if value > double else -math.inf)
    return single(double)


def single_digits(value: float) -> float:
    """Return the double whose digits are the shortest that identify the single nearest to ``value``.

    A single without a schema is represented this way: 0.1 is written as ``0.1``, although the nearest single is
    0.10000000149011612.
    """
    # Six digits survive single precision: a number that has no more keeps them. Eighths of a small number do too.
    if -8192 < value < 8192 and value * 8 % 1 == 0:
        return value
    if _SMALLEST_NORMAL_SINGLE <= abs(value) < _LARGE_SINGLE:
        if float(f"{value:.6g}") == value:
            return value
        value = single(value)
        digits = float(f"{value:.6g}")
        if single(digits) == value:
            return digits
        if abs(math.frexp(value)[0]) != 0.5:
            candidates = (float(f"{value:.{length}g}") for length in (7, 8, 9))
            return next(digits for digits in candidates if single(digits) == value)
    return float(float_text(value))


def halves_single(value: float) -> bool:
    """Return whether ``value`` may lie midway between two numbers of single precision.

    If so, only the text it was read from can tell which of them is nearest.
    """
    if abs(value) < _SMALLEST_NORMAL_SINGLE:
        return value != 0
    bits: int = _DOUBLE_BITS.unpack(_DOUBLE.pack(value))[0]
    return bits & _DROPPED == _HALF


def double_text(value: float) -> str:
    """Return the text of Java's ``Double.toString``: ``1.0``, ``1.0E10``, ``NaN``, ``-Infinity``."""
    if _PLAIN_FROM <= abs(value) < _PLAIN_BELOW:
        return repr(value)
    if _PLAIN_BELOW <= abs(value) < _PYTHON_PLAIN_BELOW:
        return _scientific(repr(value))
    if math.isfinite(value):
        text = repr(value)
        # Of the smallest numbers, Java shows two digits where one would do: 4.9E-324.
        one_digit = abs(value) < 1e-321 and len(text.lstrip("-").partition("e")[0]) == 1
        return _java_text(f"{value:.1e}" if one_digit and value else text)
    return _not_finite(value)


def float_text(value: float) -> str:
    """Return the text of Java's ``Float.toString`` for ``value`` in single precision."""
    rounded = single(value)
    if _PLAIN_FROM <= abs(rounded) < _PLAIN_BELOW:
        return repr(float(_shortest_single(rounded)))
    if math.isfinite(rounded):
        return _java_text(_shortest_single(rounded))
    return _not_finite(rounded)


def integer_text(value: int) -> str:
    """Return the digits of an integer, even if there are a million."""
    return str(value) if value.bit_length() <= _SHORT_BITS else str(decimal_from_integer(value))


def decimal_from_integer(value: int) -> Decimal:
    """Return an integer as a decimal.

    Python's own conversion takes quadratic time. This one splits the number in half recursively and joins the parts
    with the decimal library, whose multiplication is fast.
    """
    if value.bit_length() <= _SHORT_BITS:
        return Decimal(value)
    if value < 0:
        return EXACT.minus(decimal_from_integer(-value))
    two_to = _powers_of_two()

    def converted(number: int, bits: int) -> Decimal:
        if bits <= _SHORT_BITS:
            return Decimal(number)
        low = bits >> 1
        high = converted(number >> low, bits - low)
        return EXACT.add(EXACT.multiply(high, two_to(low)), converted(number & ((1 << low) - 1), low))

    return converted(value, value.bit_length())


def integer_from_decimal(value: Decimal) -> int:
    """Return a decimal without a fraction as an integer; the inverse of :func:`decimal_from_integer`."""
    if value.adjusted() < _SHORT_DIGITS:
        return int(value)
    if value < 0:
        return -integer_from_decimal(value.copy_negate())
    two_to = _powers_of_two()

    def converted(number: Decimal, bits: int) -> int:
        if bits <= _SHORT_BITS:
            return int(number)
        low = bits >> 1
        high, rest = EXACT.divmod(number, two_to(low))
        return (converted(high, bits - low) << low) | converted(rest, low)

    return converted(value, math.ceil((value.adjusted() + 1) * _BITS_A_DIGIT) + 1)


def _powers_of_two() -> Callable[[int], Decimal]:
    @cache
    def two_to(power: int) -> Decimal:
        if power <= _SHORT_BITS:
            return Decimal(1 << power)
        half = power >> 1
        return EXACT.multiply(two_to(half), two_to(power - half))

    return two_to


def _not_finite(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


def _shortest_single(value: float) -> str:
    """Return the shortest decimal to which ``value`` is the nearest number of single precision."""
    if value == 0:
        return repr(value)
    first = 5 if abs(value) >= _SMALLEST_NORMAL_SINGLE else 1
    for digits in range(first, 9):
        text = f"{value:.{digits}e}"
        if single(float(text)) == value:
            return text
        # Above a power of two the numbers are twice as far apart: the next decimal may serve where the
        # nearest does not.
        if not _SINGLE_BITS.unpack(_SINGLE.pack(value))[0] & 0x7FFFFF:
            upper = _next_decimal(text, digits)
            if single(float(upper)) == value:
                return upper
    raise AssertionError(f"nine digits do not distinguish {value!r} from its neighbours")


def _next_decimal(text: str, digits: int) -> str:
    number = Decimal(text)
    step = Decimal((int(number < 0), (1,), number.adjusted() - digits))
    return str(number + step)


def _scientific(plain: str) -> str:
    """Return a number that is written with a point, and is 10 at least, with one digit before the point."""
    whole, _, fraction = plain.partition(".")
    first = 2 if plain.startswith("-") else 1
    return f"{whole[:first]}.{(whole[first:] + fraction).rstrip('0') or '0'}E{len(whole) - first}"


def _java_text(text: str) -> str:
    """Return a finite Python numeral in Java's notation: plain from 0.001 to ten million, otherwise scientific."""
    sign, digits, exponent = Decimal(text).as_tuple()
    assert isinstance(exponent, int)
    point = len(digits) + exponent
    figures = "".join(map(str, digits)).rstrip("0")
    minus = "-" if sign else ""
    if not figures:
        return f"{minus}0.0"
    if not -3 < point <= 7:
        return f"{minus}{figures[0]}.{figures[1:] or '0'}E{point - 1}"
    if point <= 0:
        return f"{minus}0.{'0' * -point}{figures}"
    whole = figures[:point].ljust(point, "0")
    return f"{minus}{whole}.{figures[point:] or '0'}"
