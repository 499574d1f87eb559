"""Random numbers for one block of records, computable for any block without those before it."""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass

__all__ = ["RandomBlock", "below"]

_NARROW = 1 << 16


@dataclass(frozen=True, slots=True)
class RandomBlock:
    """The random numbers of one block: a function of the seed, the task, the block and the generator's stream.

    They come from a hash instead of a stateful generator, so that a task that starts in the middle of the stream needs
    none of the earlier blocks, and the numbers are the same in every version of Python.
    """

    seed: int
    task: int
    first: int
    """The index of the first record of the block in the stream of its task."""

    def data(self, stream: int, size: int) -> bytes:
        """Return random bytes; each generator has one or more streams of its own."""
        key = f"{self.seed}/{self.task}/{self.first}/{stream}"
        return hashlib.shake_128(key.encode()).digest(size)

    def words(self, stream: int, count: int) -> tuple[int, ...]:
        """Return random 32-bit numbers."""
        return struct.unpack(f"<{count}I", self.data(stream, 4 * count))

    def long_words(self, stream: int, count: int) -> tuple[int, ...]:
        """Return random 64-bit numbers."""
        return struct.unpack(f"<{count}Q", self.data(stream, 8 * count))


def below(draw: RandomBlock, stream: int, count: int, bound: int) -> list[int]:
    """Return random integers from 0 up to, but not including, ``bound``, which is at most 2**64."""
    if bound <= _NARROW:
        return [word * bound >> 32 for word in draw.words(stream, count)]
    return [word * bound >> 64 for word in draw.long_words(stream, count)]
