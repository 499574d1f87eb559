"""A snapshot that runs: what its readers have read becomes records, each with an offset, and it tells how far it is."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from connect.data import Offset, SourceRecord
from connect.kits.cdc.measurements import SnapshotNumbers
from connect.kits.cdc.notifications import Notification, SnapshotNotifications, SnapshotProgress
from connect.kits.cdc.snapshots.pieces import MarkedRow, Piece, Progress
from connect.kits.cdc.snapshots.readers import PieceReader, SnapshotReaders

__all__ = ["PlannedSnapshot", "SnapshotRecorder", "SnapshotRun", "Telling", "rows_of_table"]

logger = logging.getLogger(__name__)
_TELL_EVERY_S: Final = 10.0


@dataclass(frozen=True, slots=True)
class PlannedSnapshot:
    """What a snapshot reads: its tables with a rough number of their rows, and their pieces.

    ``open_reader`` opens what reads pieces, for each of at most ``threads`` threads, ``rows`` at most at once.
    """

    tables: Mapping[str, int]
    pieces: Sequence[Piece]
    open_reader: Callable[[], PieceReader]
    threads: int
    rows: int


@dataclass(frozen=True, slots=True)
class Telling:
    """How a snapshot is told of: its notifications, and the id that they have, each another one without it."""

    notify: Callable[[Notification], None]
    notifications: SnapshotNotifications
    identity: str | None = None


class SnapshotRecorder(Protocol):
    """Makes the records of rows, and the offsets that they carry."""

    def record(self, row: MarkedRow, offset: Offset) -> SourceRecord:
        """Return the record of a row."""

    def after(self, progress: Progress) -> Offset:
        """Return the offset after the rows that the progress has let go; asked once for each poll."""


class SnapshotRun:
    """Reads tables in parallel. :meth:`poll` returns the next records, until :attr:`is_done`.

    All records of a poll but the last carry the offset before it, which is ``begun`` at first. Used by the task's
    thread alone; ``wake`` is called when there is something to poll.
    """

    def __init__(
        self,
        planned: PlannedSnapshot,
        recorder: SnapshotRecorder,
        telling: Telling,
        begun: Offset,
        wake: Callable[[], None],
    ) -> None:
        self._recorder = recorder
        self._telling = telling
        self._previous = begun
        self._pieces = planned.pieces
        self._estimates = planned.tables
        self._names = ",".join(planned.tables)
        self._progress = Progress(planned.pieces)
        self._since = time.monotonic()
        self._ended: float | None = None
        self._begun: dict[str, float] = {}
        self._told_at: dict[str, float] = {}
        self._told_read: set[str] = set()
        self.is_done = False
        telling.notify(telling.notifications.started(telling.identity))
        telling.notify(telling.notifications.resolved(telling.identity, self._names))
        self._readers = SnapshotReaders(len(planned.pieces), planned.open_reader, planned.threads, wake, planned.rows)

    @property
    def rows(self) -> Mapping[str, int]:
        """How many rows of each table were read."""
        return self._progress.rows

    @property
    def piece_count(self) -> int:
        """Into how many pieces the tables are divided."""
        return len(self._pieces)

    @property
    def offset(self) -> Offset:
        """The offset after the records that were returned."""
        return self._previous

    def remaining(self) -> Mapping[str, int]:
        """Return how many tables and, as far as is known, rows are left."""
        left = sum(
            max(0, estimated - self._progress.rows[table])
            for table, estimated in self._estimates.items()
            if not self._progress.is_table_read(table)
        )
        return {"tables": self._progress.tables_left, "rows": left}

    def total(self) -> Mapping[str, int]:
        """Return how many tables and rows there are in all; no rows while the number of a table's is not known.

        A table that was read whole has as many as were read, another one as many as the database estimates.
        """
        rows = [
            rows_of_table(estimated, self._progress.rows[table], is_read=self._progress.is_table_read(table))
            for table, estimated in self._estimates.items()
        ]
        known = [count for count in rows if count is not None]
        return {"tables": len(rows), **({"rows": sum(known)} if len(known) == len(rows) else {})}

    def numbers(self) -> SnapshotNumbers:
        """Return how far it is."""
        return SnapshotNumbers(
            is_running=not self.is_done,
            is_completed=self.is_done,
            tables=len(self._estimates),
            remaining_tables=self._progress.tables_left,
            seconds=(self._ended or time.monotonic()) - self._since,
            rows=dict(self._progress.rows),
            estimated_rows=dict(self._estimates),
            pieces=len(self._pieces),
            pieces_read=self._progress.pieces_read(),
        )

    def poll(self, limit: int) -> list[SourceRecord]:
        """Return the next records, about as many as the limit; none if none were read yet."""
        marked: list[MarkedRow] = []
        while len(marked) < limit and not self._progress.is_read:
            found = self._readers.take()
            if found is None:
                break
            self._tell_begin(self._pieces[found.piece].table)
            marked += self._progress.take(found)
            self._tell_progress(self._pieces[found.piece].table)
        self._tell_read()
        is_done = self._progress.is_read
        if not marked and not is_done:
            return []
        after = self._recorder.after(self._progress)
        records = [self._recorder.record(row, self._previous) for row in marked[:-1]]
        records += [self._recorder.record(row, after) for row in marked[-1:]]
        self._previous = after
        if is_done:
            self.close()
            self.is_done = True
            self._ended = time.monotonic()
            self._telling.notify(self._telling.notifications.completed(self._telling.identity))
        return records

    def close(self) -> None:
        """End the readers."""
        self._readers.close()

    # -- telling -----------------------------------------------------------------------------------------------

    def _of_table(self, table: str) -> SnapshotProgress:
        return SnapshotProgress(
            self._progress.rows[table],
            max(0, self._estimates.get(table, 0)),
            self._progress.pieces_read(table),
            sum(piece.table == table for piece in self._pieces),
            is_read=self._progress.is_table_read(table),
        )

    def _tell_begin(self, table: str) -> None:
        if table not in self._begun:
            self._begun[table] = time.monotonic()
            logger.info("Reading the rows of %s, about %d.", table, max(0, self._estimates.get(table, 0)))
            self._tell(table)

    def _tell_progress(self, table: str) -> None:
        if time.monotonic() - self._told_at[table] >= _TELL_EVERY_S and not self._progress.is_table_read(table):
            self._tell(table)

    def _tell(self, table: str) -> None:
        self._told_at[table] = time.monotonic()
        telling = self._telling
        told = telling.notifications.in_progress(telling.identity, table, self._names, progress=self._of_table(table))
        telling.notify(told)

    def _tell_read(self) -> None:
        for table in self._estimates:
            if table in self._told_read or not self._progress.is_table_read(table):
                continue
            self._told_read.add(table)
            count, begun = self._progress.rows[table], self._begun.get(table, time.monotonic())
            logger.info("Read %d rows of %s in %.1f s.", count, table, time.monotonic() - begun)
            status = "SUCCEEDED" if count else "EMPTY"
            telling = self._telling
            told = telling.notifications.scan_completed(telling.identity, table, count, status, self._names)
            telling.notify(told)


def rows_of_table(estimated: int, read: int, *, is_read: bool) -> int | None:
    """Return how many rows a table has, as far as it was read; ``None`` if the database does not know."""
    if is_read:
        return read
    # An estimate of 0 may be that of a table that was never looked through.
    return None if estimated < 0 or (read and not estimated) else max(read, estimated)
