"""Tables: complete files of rows with a schema."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from connect.data import Column

__all__ = ["BLOCK_BYTES", "MOST_ROWS", "Block", "Table"]

MOST_ROWS = 5_000
BLOCK_BYTES = 8 * 1024 * 1024
"""The size of a block that is aimed at, if it can be told before it is read."""


@dataclass(frozen=True, slots=True)
class Block:
    """Consecutive rows: the good ones, their indices among all rows, and the errors of the others.

    ``good`` is ``None`` if all rows are good.
    """

    size: int
    column: Column
    good: Sequence[int] | None = None
    bad: Sequence[tuple[int, str]] = ()


class Table(Protocol):
    """The rows of one complete file, from any row on."""

    @property
    def identity(self) -> str:
        """A value that distinguishes the file from others that were at its path."""

    def verify(self) -> int:
        """Read the whole file once to detect damage before any row is used; return the number of rows.

        Raises :class:`~connect.errors.DataError`, as all methods do for a damaged file.
        """

    def blocks(self, start: int) -> Iterator[Block]:
        """Yield the rows from index ``start`` on. A block is a few megabytes, unless a single row is larger."""

    def close(self) -> None:
        """Close the file."""
