"""Generators of numbers: random numbers and series."""

from __future__ import annotations

import decimal
import math
from typing import Any

from connect.data.numerals import EXACT, single
from connectors.datagen.generator import Generator
from connectors.datagen.random_block import RandomBlock, below

__all__ = ["Alternation", "Decimals", "Floats", "Integers", "Series"]

_STEPS = 1 << 53


class Integers(Generator):
    """Integers from ``low`` up to, but not including, ``high``."""

    def __init__(self, stream: int, low: int, high: int) -> None:
        self._stream = stream
        self._low = low
        self._span = high - low

    def column(self, draw: RandomBlock, count: int) -> list[int]:
        """Return ``count`` numbers."""
        low = self._low
        return [low + number for number in below(draw, self._stream, count, self._span)]


class Floats(Generator):
    """Floating point numbers from ``low`` up to, but not including, ``high``."""

    def __init__(self, stream: int, low: float, high: float, *, is_single: bool) -> None:
        self._stream = stream
        self._low = low
        self._high = high
        self._is_single = is_single

    def column(self, draw: RandomBlock, count: int) -> list[float]:
        """Return ``count`` numbers."""
        low, high, factor = self._low, self._high, (self._high - self._low) / _STEPS
        numbers = [low + (word >> 11) * factor for word in draw.long_words(self._stream, count)]
        if self._is_single:
            numbers = list(map(single, numbers))
        # Rounding may give the upper end.
        return [number if low <= number < high else low for number in numbers]


class Decimals(Generator):
    """Decimals of one scale, from ``low`` up to ``high`` in units of the last digit."""

    def __init__(self, stream: int, low: int, high: int, scale: int) -> None:
        self._units = Integers(stream, low, high)
        self._scale = scale
        self.cost = 2

    def column(self, draw: RandomBlock, count: int) -> list[decimal.Decimal]:
        """Return ``count`` decimals."""
        return [decimal.Decimal(number).scaleb(-self._scale, EXACT) for number in self._units.column(draw, count)]


class Series(Generator):
    """Numbers that advance by ``step`` with each record, and start over at ``start`` when they reach ``restart``."""

    def __init__(self, start: Any, step: Any, initial: Any, restart: Any, *, is_single: bool = False) -> None:
        self._start = start
        self._step = step
        self._ahead = initial - start
        self._span = restart - start
        self._is_single = is_single

    def column(self, draw: RandomBlock, count: int) -> list[Any]:
        """Return the numbers of the block, one per record."""
        start, step, ahead, span = self._start, self._step, self._ahead, self._span
        remainder = math.fmod if isinstance(span, float) else _remainder
        steps = range(draw.first, draw.first + count)
        numbers = [start + remainder(ahead + index * step, span) for index in steps]
        return list(map(single, numbers)) if self._is_single else numbers


def _remainder(number: int, span: int) -> int:
    """Return the remainder with the sign of the span, which is also the sign of the number."""
    return number % span


class Alternation(Generator):
    """Alternating true and false."""

    def __init__(self, *, start: bool) -> None:
        self._start = start

    def column(self, draw: RandomBlock, count: int) -> list[bool]:
        """Return the booleans of the block."""
        return [self._start ^ bool(index & 1) for index in range(draw.first, draw.first + count)]
