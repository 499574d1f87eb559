"""Generators, each of which produces columns of random values of one type."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Any, Final

from connectors.datagen.random_block import RandomBlock, below

__all__ = [
    "Arrays",
    "Bytes",
    "Choice",
    "Converted",
    "Generator",
    "Lengths",
    "Maps",
    "Odds",
    "Records",
    "Texts",
    "Union",
    "Uuids",
    "cost_of",
]

_LETTERS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
_TEXT_OF_BYTES: Final = (_LETTERS * 4).encode()
_CHARACTERS_OF_A_VALUE: Final = 16


def cost_of(characters: int) -> int:
    """Return the cost of a string or of bytes of that length."""
    return 1 + characters // _CHARACTERS_OF_A_VALUE


class Generator(ABC):
    """Generates values of one type; equal random blocks give equal values.

    ``cost`` is the maximum number of values that one value consists of, nested values included. A long string counts as
    several.
    """

    cost: int = 1

    @abstractmethod
    def column(self, draw: RandomBlock, count: int) -> list[Any]:
        """Return ``count`` values."""


class Lengths:
    """Lengths of strings, arrays and so on: from ``low`` up to, but not including, ``high``."""

    def __init__(self, stream: int, low: int, high: int) -> None:
        self._stream = stream
        self._low = low
        self.most = high - 1

    def column(self, draw: RandomBlock, count: int) -> list[int]:
        """Return ``count`` lengths."""
        span = self.most - self._low + 1
        if span == 1:
            return [self._low] * count
        return [self._low + number for number in below(draw, self._stream, count, span)]


class Choice(Generator):
    """One of several values, all equally likely."""

    def __init__(self, stream: int, values: Sequence[Any], cost: int = 1) -> None:
        self._stream = stream
        self._values = values
        self.cost = cost

    def column(self, draw: RandomBlock, count: int) -> list[Any]:
        """Return ``count`` of the values."""
        if len(self._values) == 1:
            return list(self._values) * count
        return [self._values[index] for index in below(draw, self._stream, count, len(self._values))]


class Odds(Generator):
    """True with a given probability."""

    def __init__(self, stream: int, odds: float) -> None:
        self._stream = stream
        self._limit = round(odds * (1 << 32))

    def column(self, draw: RandomBlock, count: int) -> list[bool]:
        """Return ``count`` booleans."""
        limit = self._limit
        return [word < limit for word in draw.words(self._stream, count)]


class Texts(Generator):
    """Strings of random letters, digits, ``-`` and ``_``."""

    def __init__(self, stream: int, lengths: Lengths) -> None:
        self._stream = stream
        self._lengths = lengths
        self.cost = cost_of(lengths.most)

    def column(self, draw: RandomBlock, count: int) -> list[str]:
        """Return ``count`` strings."""
        ends = list(accumulate(self._lengths.column(draw, count), initial=0))
        text = draw.data(self._stream, ends[-1]).translate(_TEXT_OF_BYTES).decode("ascii")
        return [text[start:end] for start, end in pairwise(ends)]


class Bytes(Generator):
    """Random bytes."""

    def __init__(self, stream: int, lengths: Lengths) -> None:
        self._stream = stream
        self._lengths = lengths
        self.cost = cost_of(lengths.most)

    def column(self, draw: RandomBlock, count: int) -> list[bytes]:
        """Return ``count`` byte strings."""
        ends = list(accumulate(self._lengths.column(draw, count), initial=0))
        data = draw.data(self._stream, ends[-1])
        return [data[start:end] for start, end in pairwise(ends)]


class Uuids(Generator):
    """Random UUIDs (version 4) as strings."""

    cost = 3

    def __init__(self, stream: int) -> None:
        self._stream = stream

    def column(self, draw: RandomBlock, count: int) -> list[str]:
        """Return ``count`` strings."""
        digits = draw.data(self._stream, 16 * count).hex()
        return [_uuid(digits[place : place + 32]) for place in range(0, 32 * count, 32)]


def _uuid(digits: str) -> str:
    variant = "89ab"[int(digits[16], 16) & 3]
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}"


class Converted(Generator):
    """The values of another generator, each converted."""

    def __init__(self, inner: Generator, convert: Callable[[Any], Any], cost: int = 1) -> None:
        self._inner = inner
        self._convert = convert
        self.cost = inner.cost + cost

    def column(self, draw: RandomBlock, count: int) -> list[Any]:
        """Return ``count`` converted values."""
        return list(map(self._convert, self._inner.column(draw, count)))


class Arrays(Generator):
    """Lists of values of another generator."""

    def __init__(self, lengths: Lengths, items: Generator) -> None:
        self._lengths = lengths
        self._items = items
        self.cost = 1 + lengths.most * items.cost

    def column(self, draw: RandomBlock, count: int) -> list[list[Any]]:
        """Return ``count`` lists."""
        ends = list(accumulate(self._lengths.column(draw, count), initial=0))
        items = self._items.column(draw, ends[-1])
        return [items[start:end] for start, end in pairwise(ends)]


class Maps(Generator):
    """Dicts. Duplicate keys are merged."""

    def __init__(self, lengths: Lengths, keys: Generator, values: Generator) -> None:
        self._lengths = lengths
        self._keys = keys
        self._values = values
        self.cost = 1 + lengths.most * (keys.cost + values.cost)

    def column(self, draw: RandomBlock, count: int) -> list[dict[Any, Any]]:
        """Return ``count`` dicts."""
        ends = list(accumulate(self._lengths.column(draw, count), initial=0))
        keys, values = self._keys.column(draw, ends[-1]), self._values.column(draw, ends[-1])
        return [dict(zip(keys[start:end], values[start:end], strict=True)) for start, end in pairwise(ends)]


class Records(Generator):
    """Structs, as dicts."""

    def __init__(self, fields: Mapping[str, Generator]) -> None:
        self._fields = fields
        self.cost = sum(cost_of(len(name)) + field.cost for name, field in fields.items()) + 1

    def columns(self, draw: RandomBlock, count: int) -> dict[str, list[Any]]:
        """Return the values of each field."""
        return {name: field.column(draw, count) for name, field in self._fields.items()}

    def column(self, draw: RandomBlock, count: int) -> list[dict[str, Any]]:
        """Return ``count`` dicts."""
        if not self._fields:
            return [{} for _ in range(count)]
        columns = self.columns(draw, count)
        names = tuple(columns)
        return [dict(zip(names, row, strict=True)) for row in zip(*columns.values(), strict=True)]


class Union(Generator):
    """Values of one of several generators, chosen by weight.

    Every generator produces all values, so that a series among them advances with each record.
    """

    def __init__(self, stream: int, members: Sequence[Generator], weights: Sequence[float]) -> None:
        self._stream = stream
        self._members = members
        total = sum(weights)
        self._limits = [*(round(part / total * (1 << 32)) for part in accumulate(weights[:-1])), 1 << 32]
        self.cost = 1 + sum(member.cost for member in members)

    def column(self, draw: RandomBlock, count: int) -> list[Any]:
        """Return ``count`` values."""
        columns = [member.column(draw, count) for member in self._members]
        words = draw.words(self._stream, count)
        if len(columns) == 1:
            return columns[0]
        if len(columns) == 2:
            limit = self._limits[0]
            return [one if word < limit else other for word, one, other in zip(words, *columns, strict=True)]
        limits = self._limits
        places = (next(place for place, limit in enumerate(limits) if word < limit) for word in words)
        return [columns[place][row] for row, place in enumerate(places)]
