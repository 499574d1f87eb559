"""The pieces of a load, such as files, and the marks of pieces that were sent but that the offset does not cover yet.

With exactly-once support, the rows of a load are published in several transactions, one for each share of its pieces.
Each commits a *mark* with its rows: the names of its pieces, under the source partition and the slot of the
transaction. When all shares are sent, one more transaction stores the offset after them and removes the marks. So at
any moment, the offset and the marks together tell which pieces have been sent.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self, TypeVar

from connect.data import Offset
from connect.errors import ConfigError

__all__ = ["MOST_SLOTS", "Mark", "NumberedPieces", "divide_evenly", "marked_partition", "numbered_pieces", "unmarked"]

T = TypeVar("T")

MOST_SLOTS: Final = 32
"""The maximum number of shares, and so of marks."""
_KEYS: Final = ("load", "pieces")


@dataclass(frozen=True, slots=True)
class Mark:
    """The pieces of one load that the transactions of one slot have sent."""

    load: str
    pieces: tuple[str, ...]

    def offset(self) -> dict[str, Any]:
        """Return the mark as a source offset."""
        return {"load": self.load, "pieces": " ".join(self.pieces)}

    @classmethod
    def of(cls, offset: Mapping[str, Any]) -> Self:
        """Return the mark in a source offset."""
        load, pieces = (offset.get(key) for key in _KEYS)
        if not isinstance(load, str) or not isinstance(pieces, str):
            reason = "A mark has load and pieces, which are texts: remove it with the offset that it belongs to."
            raise ConfigError("load", load, reason)
        return cls(load, tuple(pieces.split()))

    def with_pieces(self, load: str, pieces: Iterable[str]) -> Mark:
        """Return the mark once these pieces are sent too; pieces of another load no longer count."""
        return Mark(load, (*(self.pieces if load == self.load else ()), *pieces))


def marked_partition(partition: Offset, slot: int) -> dict[str, Any]:
    """Return the source partition under which the mark of a slot is stored."""
    return {**partition, "slot": slot}


def unmarked(offsets: Iterable[Offset | None]) -> Iterator[Offset | None]:
    """Yield the offsets that are not marks. Raises :class:`~connect.errors.ConfigError` for a mark that is
    malformed.
    """
    for offset in offsets:
        if offset is not None and "pieces" in offset:
            Mark.of(offset)
        else:
            yield offset


@dataclass(frozen=True, slots=True)
class NumberedPieces:
    """The numbers of the pieces of a load that remain to be sent, and the number after the load's last piece."""

    due: Sequence[int]
    end: int


def numbered_pieces(first: int, end: int, sent: Collection[str]) -> NumberedPieces:
    """Return the pieces from ``first`` to ``end`` that are not in ``sent``; the load extends to the last piece already
    sent.

    If such a piece lay beyond the end of the load (because less is to be sent at once now), its mark could not be
    removed.
    """
    numbers = {int(name) for name in sent}
    last = max(end, *(number + 1 for number in numbers), 0)
    return NumberedPieces([number for number in range(first, last) if number not in numbers], last)


def divide_evenly(items: Sequence[T], count: int, size: Callable[[T], int] = lambda _: 1) -> list[list[T]]:
    """Divide items into at most this many shares of about the same size, keeping the order of the items."""
    if count == 1 and items:
        return [list(items)]
    chosen: list[list[int]] = [[] for _ in range(min(count, len(items)))]
    least = [(0, number) for number in range(len(chosen))]
    for place in sorted(range(len(items)), key=lambda place: -size(items[place])):
        full, number = least[0]
        chosen[number].append(place)
        heapq.heapreplace(least, (full + size(items[place]), number))
    return [[items[place] for place in sorted(places)] for places in chosen]
