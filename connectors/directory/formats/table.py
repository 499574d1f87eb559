"""Tables: whole files of rows with a schema."""

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
    """Rows that follow each other: the good ones, where they are among all, and what is wrong with the others.

    ``good`` is ``None`` if all are.
    """

    size: int
    column: Column
    good: Sequence[int] | None = None
    bad: Sequence[tuple[int, str]] = ()


class Table(Protocol):
    """The rows of one file, from any row on. It is not read before it is whole."""

    @property
    def identity(self) -> str:
        """Distinguishes the file from others that were at its place."""

    def verify(self) -> int:
        """Read the whole file once, to find damage before any row is used; returns the number of its rows.

        Raises :class:`~connect.errors.DataError`, as all methods do for a file that is damaged.
        """

    def blocks(self, start: int) -> Iterator[Block]:
        """The rows from number ``start`` on. A block is a few megabytes, unless a single row is larger."""

    def close(self) -> None:
        """Close the file."""
