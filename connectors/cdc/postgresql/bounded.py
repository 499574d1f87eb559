"""The bounded work of a split that is not the stream: a piece of a snapshot, or an offset to be stored.

=================================================  ==================================================================
kill -9 here                                       then
=================================================  ==================================================================
an executor, within a piece                        another one goes on after the last row whose offset is stored, in
                                                   the same view: pieces without a key are read in the order in which
                                                   their rows lie, which a view does not change
the driver, or its session                         the view is gone. The stream is read up to that of the next one,
                                                   and what is left of each piece is read there: all of a table
                                                   without a key
=================================================  ==================================================================
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, Final, Protocol

from connect.data import Offset, SourceRecord
from connect.errors import ConnectError, RetriableError
from connect.kits.cdc.notifications import INITIAL, Notifications, SnapshotNotifications
from connectors.cdc.postgresql.assembly import events_of, made_dialect, made_schemas, names_of
from connectors.cdc.postgresql.catalog import Catalog
from connectors.cdc.postgresql.config import PostgresConfig
from connectors.cdc.postgresql.connection import money_digits, retriable_if_lost
from connectors.cdc.postgresql.orders import OffsetSplit, PieceProgress, PieceSplit, piece_partition
from connectors.cdc.postgresql.snapshot import (
    CopyReader,
    RowReader,
    SnapshotTable,
    session_in_view,
    snapshot_tables,
    works_of,
)

__all__ = ["BoundedRun", "OffsetRun", "PieceRun"]

_MOST_BYTES: Final = 1 << 20
_AGAIN_S: Final = 1.0
_IN_THE_ORDER_OF_THE_TABLE: Final = "SET synchronize_seqscans = off; SET max_parallel_workers_per_gather = 0"
_PassOffset = Callable[[Offset, Offset], None]


class BoundedRun(Protocol):
    """Work that comes to an end, in place of the snapshot and the stream. Used by the task's thread alone."""

    is_done: bool

    def poll(self, limit: int) -> list[SourceRecord]:
        """Return the next records, about as many as the limit."""

    def close(self) -> None:
        """Close what is open."""


class OffsetRun:
    """Stores an offset, with the notifications that are due."""

    def __init__(self, config: PostgresConfig, partition: Offset, split: OffsetSplit, pass_offset: _PassOffset) -> None:
        self._partition = partition
        self._offset = split.offset
        self._pass_offset = pass_offset
        self._notifications = Notifications(config, partition)
        made = SnapshotNotifications(config.topic_prefix, INITIAL)
        if split.begun:
            self._notifications.add(made.started(None))
            self._notifications.add(made.resolved(None, split.begun))
        if split.is_completed:
            self._notifications.add(made.completed(None))
        self.is_done = False

    def poll(self, limit: int) -> list[SourceRecord]:  # noqa: ARG002
        """Pass the offset."""
        self._pass_offset(self._partition, self._offset)
        self.is_done = True
        return self._notifications.take(self._offset)

    def close(self) -> None:
        """Do nothing."""


class PieceRun:
    """Reads a piece of a snapshot from where it was left. All records of a poll but the last carry the offset before
    it.
    """

    def __init__(
        self,
        config: PostgresConfig,
        split: PieceSplit,
        stored: Callable[[Offset], Offset | None],
        pass_offset: _PassOffset,
    ) -> None:
        self._config = config
        self._partition = piece_partition({"server": config.topic_prefix}, split.snapshot, split.number)
        self._progress = PieceProgress.of(stored(self._partition))
        self._pass_offset = pass_offset
        self.is_done = self._progress.is_read
        self._session = self._in_view(split.exported)
        self._table = self._found(split.collection.table)
        self._records = RowReader(names_of(config), events_of(config, self._partition), split.point, None)
        self._rows = self._opened(split)

    def poll(self, limit: int) -> list[SourceRecord]:
        """Return the next records, until :attr:`is_done`."""
        import psycopg  # noqa: PLC0415 - psycopg is loaded only where it is used

        if self.is_done:
            return []
        try:
            rows = list(_within(islice(self._rows, limit), _MOST_BYTES))
        except psycopg.Error as error:
            raise retriable_if_lost(error, "Reading the rows was interrupted") from error
        before, progress = self._progress, self._progress
        self.is_done = not rows
        after = rows[-1][1] if rows else progress.after
        self._progress = PieceProgress(progress.rows + len(rows), after, self.is_done)
        if self.is_done:
            self._pass_offset(self._partition, self._progress.to_offset())
        return self._made([raw for raw, _ in rows], before.to_offset(), self._progress.to_offset())

    def close(self) -> None:
        """Close the session."""
        self._session.close()

    def _made(self, rows: Sequence[Any], before: Offset, after: Offset) -> list[SourceRecord]:
        schema, record = self._table.schema, self._records.record
        records = [record(schema, raw, "true", before) for raw in rows[:-1]]
        return records + [record(schema, raw, "true", after) for raw in rows[-1:]]

    def _in_view(self, exported: str) -> Any:
        import psycopg  # noqa: PLC0415 - as above

        try:
            session = session_in_view(self._config, exported)
        except psycopg.Error as error:
            told = str(error).strip()
            raise RetriableError(
                f"The view of the snapshot is gone, and another is opened: {told}", _AGAIN_S
            ) from error
        session.execute(_IN_THE_ORDER_OF_THE_TABLE)
        return session

    def _found(self, name: str) -> SnapshotTable:
        catalog = Catalog(self._session, self._config.database_dbname)
        dialect = made_dialect(self._config)
        dialect.database_money_digits = money_digits(self._config)
        captured = [each for each in catalog.tables() if str(each.id) == name]
        tables = snapshot_tables(catalog, captured, made_schemas(self._config, dialect).of, {})
        if not tables:
            raise ConnectError(f"Table {name} is not there any more. Restart the task: a table is left out then.")
        return tables[0]

    def _opened(self, split: PieceSplit) -> Iterator[tuple[Sequence[Any], Any]]:
        progress = self._progress
        (work,) = works_of(self._session, [(self._table, progress.left_of(split.collection))], 1)
        if work.piece.collection is None and progress.rows:
            work = replace(work, statement=f"{work.statement} OFFSET {progress.rows}")
        return CopyReader(self._session, [work]).read(0)


def _within(rows: Iterator[tuple[Sequence[Any], Any]], most: int) -> Iterator[tuple[Sequence[Any], Any]]:
    """Yield rows until they have so many bytes."""
    size = 0
    for row in rows:
        yield row
        size += sum(map(sys.getsizeof, row[0]))
        if size >= most:
            return
