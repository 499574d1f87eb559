"""Pieces of a snapshot, the markers of their rows, and the progress: what is left to read after each record.

The progress is that of an incremental snapshot of the rest. A snapshot that was interrupted therefore goes on as one,
beside the stream, from the position of the snapshot: the rest is read as it is then, and told in the right order with
the changes since.

=================================================  ==================================================================
kill -9 here                                       then
=================================================  ==================================================================
before all pieces without a key are sent           the snapshot begins anew
after that, within a piece                         the rest of each piece is read beside the stream, after the last
                                                   row whose offset is stored
after the last row                                 the stream begins
=================================================  ==================================================================
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from connect.kits.cdc.incremental_state import Collection, IncrementalState
from connect.kits.cdc.java_keys import Key

__all__ = ["MarkedRow", "Piece", "PieceRows", "Progress"]


@dataclass(frozen=True, slots=True)
class Piece:
    """A table, or a range of its keys. Without a ``collection`` the rows have no order, and no progress is kept.

    ``condition`` is that of rows without an order, which are read again as a whole.
    """

    table: str
    collection: Collection | None
    condition: str = ""


@dataclass(frozen=True, slots=True)
class PieceRows:
    """Rows of a piece, each with its key if the piece has an order; ``is_last`` if none follow."""

    piece: int
    rows: Sequence[tuple[Sequence[Any], Key | None]]
    is_last: bool


@dataclass(frozen=True, slots=True)
class MarkedRow:
    """A row to be sent, and what ``source.snapshot`` is for it."""

    table: str
    raw: Sequence[Any]
    marker: str


@dataclass(slots=True)
class _Held:
    piece: int
    raw: Sequence[Any]
    key: Key | None


class Progress:
    """Orders the rows of all pieces for sending. The last row of each table is held back until its marker is known."""

    def __init__(self, pieces: Sequence[Piece]) -> None:
        self._pieces = list(pieces)
        self._collections = [piece.collection for piece in pieces]
        self._open = set(range(len(pieces)))
        self._unread = Counter(piece.table for piece in pieces)
        self._held: dict[str, _Held] = {}
        self._last: _Held | None = None
        self._begun: set[str] = set()
        self._sent_any = False
        self.rows: Counter[str] = Counter()
        """How many rows of each table were sent or are about to be."""

    @property
    def tables_left(self) -> int:
        """The number of tables that are not read whole."""
        return sum(1 for count in self._unread.values() if count)

    @property
    def is_read(self) -> bool:
        """Whether all rows were taken."""
        return not self._open

    def pieces_read(self, table: str | None = None) -> int:
        """Return how many pieces were read whole, of a table or of all."""
        return sum(
            number not in self._open and table in (None, piece.table) for number, piece in enumerate(self._pieces)
        )

    def is_table_read(self, table: str) -> bool:
        """Return whether a table was read whole."""
        return not self._unread[table]

    def take(self, rows: PieceRows) -> list[MarkedRow]:
        """Take rows that were read; return those to be sent."""
        piece = self._pieces[rows.piece]
        sent: list[MarkedRow] = []
        if rows.rows and self._last is not None:
            sent.append(self._released())
        for raw, key in rows.rows:
            if (held := self._held.get(piece.table)) is not None:
                sent.append(self._sent(piece.table, held))
            self._held[piece.table] = _Held(rows.piece, raw, key)
        self.rows[piece.table] += len(rows.rows)
        if rows.is_last:
            self._open.discard(rows.piece)
            self._unread[piece.table] -= 1
            if not self._unread[piece.table]:
                sent += self._table_read(piece.table)
        return sent

    def state(self) -> IncrementalState | None:
        """Return what is left, after the rows to be sent; ``None`` if that cannot be told, or is nothing."""
        left = self._left()
        collections = [collection for number in left if (collection := self._collections[number]) is not None]
        if not left or len(collections) < len(left):
            return None
        return IncrementalState(tuple(collections), "initial-snapshot")

    def left(self) -> list[Collection]:
        """Return what is left, after the rows to be sent; tables whose rows have no order as a whole."""
        return [self._collections[number] or self._whole(number) for number in self._left()]

    def _left(self) -> list[int]:
        holding = {held.piece for held in self._held.values()}
        if self._last is not None:
            holding.add(self._last.piece)
        return [number for number in range(len(self._pieces)) if number in self._open or number in holding]

    def _whole(self, number: int) -> Collection:
        return Collection(self._pieces[number].table, self._pieces[number].condition)

    def _table_read(self, table: str) -> list[MarkedRow]:
        """Return the last row of the table before, whose marker is known now; hold that of this one."""
        sent = []
        held = self._held.pop(table, None)
        if held is not None:
            if self._last is not None:
                sent.append(self._released())
            self._last = held
        if not self._open and self._last is not None:
            last, self._last = self._last, None
            sent.append(self._sent(self._pieces[last.piece].table, last, "last"))
        return sent

    def _released(self) -> MarkedRow:
        """Return the last row of a table that is not the last one of the snapshot."""
        before, self._last = self._last, None
        assert before is not None
        return self._sent(self._pieces[before.piece].table, before, "last_in_data_collection")

    def _sent(self, table: str, held: _Held, marker: str | None = None) -> MarkedRow:
        collection = self._collections[held.piece]
        if collection is not None and held.key is not None:
            self._collections[held.piece] = replace(collection, after=held.key)
        is_first_of_table = table not in self._begun
        self._begun.add(table)
        if marker != "last" and not self._sent_any:
            marker = "first"
        self._sent_any = True
        return MarkedRow(table, held.raw, marker or ("first_in_data_collection" if is_first_of_table else "true"))
