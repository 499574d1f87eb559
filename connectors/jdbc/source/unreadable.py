"""The rows whose time cannot be read: which of them were reported, without remembering each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

__all__ = ["UnreadableRows"]


class UnreadableRows:
    """Knows the rows that were reported by their count and a digest.

    As long as they are the first ones found, only those after them are new. If one of them has changed or is gone, all
    are.
    """

    def __init__(self) -> None:
        self._reported = (0, 0)
        self._found = (0, 0)

    def known(self, blocks: Iterable[Sequence[Any]]) -> int | None:
        """Return how many of the rows found, from the first on, were reported; ``None`` if there are no others."""
        count, digest = 0, 0
        is_first = self._reported == (0, 0)
        for rows in blocks:
            for row in rows:
                count, digest = count + 1, hash((digest, str(tuple(row))))
                is_first = is_first or (count, digest) == self._reported
        self._found = (count, digest)
        skipped = self._reported[0] if is_first else 0
        if count > skipped:
            return skipped
        self._reported = self._found
        return None

    def reported(self) -> None:
        """Remember that all that were found are reported."""
        self._reported = self._found
