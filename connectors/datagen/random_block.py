"""Random numbers that can be drawn at any place of the stream: those of one block of records."""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass

__all__ = ["RandomBlock", "below"]

_NARROW = 1 << 16


@dataclass(frozen=True, slots=True)
class RandomBlock:
    """The random numbers of one block: a function of the seed, the task, the block and the number of the generator.

    They come from a hash and not from a generator with a state, so that a task that starts in mid-stream needs none of
    the blocks before, and the numbers are the same in every version of Python.
    """

    seed: int
    task: int
    first: int
    """The index of the first record of the block in the stream of its task."""

    def data(self, stream: int, size: int) -> bytes:
        """Random bytes; each generator has a stream of its own, or several."""
        key = f"{self.seed}/{self.task}/{self.first}/{stream}"
        return hashlib.shake_128(key.encode()).digest(size)

    def words(self, stream: int, count: int) -> tuple[int, ...]:
        """Random numbers of 32 bits."""
        return struct.unpack(f"<{count}I", self.data(stream, 4 * count))

    def long_words(self, stream: int, count: int) -> tuple[int, ...]:
        """Random numbers of 64 bits."""
        return struct.unpack(f"<{count}Q", self.data(stream, 8 * count))


def below(draw: RandomBlock, stream: int, count: int, bound: int) -> list[int]:
    """Random whole numbers from 0 up to ``bound``, at most 2**64, which is not among them."""
    if bound <= _NARROW:
        return [word * bound >> 32 for word in draw.words(stream, count)]
    return [word * bound >> 64 for word in draw.long_words(stream, count)]
