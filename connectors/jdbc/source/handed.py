"""The rows that were handed out though the position has not passed them, so that the next pass leaves them out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

__all__ = ["HandedOut"]

_MOST_ROWS: Final = 250_000
"""Rows remembered at most, in some 50 MB."""


class HandedOut:
    """Remembers rows by their hashes, each as often as it was handed out."""

    def __init__(self, most: int = _MOST_ROWS) -> None:
        self._most = most
        self._counts: dict[int, int] = {}
        self._left: dict[int, int] = {}

    @property
    def is_full(self) -> bool:
        """Whether no more rows are remembered."""
        return len(self._counts) >= self._most

    def begin(self) -> None:
        """Begin a pass, which may find all of them again."""
        self._left = dict(self._counts)

    def new(self, rows: Sequence[Any]) -> Sequence[Any]:
        """Return the rows of a pass that were not handed out in an earlier one."""
        return [row for row in rows if self._is_new(row)] if self._left else rows

    def add(self, rows: Iterable[Any]) -> None:
        """Remember rows, as long as there is room."""
        for row in rows:
            if self.is_full:
                return
            key = _key(row)
            self._counts[key] = self._counts.get(key, 0) + 1

    def clear(self) -> None:
        """Forget all: the position has passed them."""
        self._counts.clear()

    def _is_new(self, row: Any) -> bool:
        key = _key(row)
        count = self._left.get(key, 0)
        if count:
            self._left[key] = count - 1
        return not count


def _key(row: Any) -> int:
    # Values may be lists, which have no hash.
    return hash(str(tuple(row)))
