"""Reads one table, or the query, again and again: a pass finds what is new and reads it block by block.

=================================  ===========================================================================
a pass                             does
=================================  ===========================================================================
begins                             reads the columns, and determines the end to read to
waits                              on PostgreSQL, until transactions that may add earlier rows have ended
reads                              blocks of rows, with offsets from which reading can continue after any row
ends                               and the next begins ``poll.interval.ms`` after this one began
=================================  ===========================================================================
"""

from __future__ import annotations

import datetime as dt
import logging
import time
from collections.abc import Hashable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final

from connect.data import Constant, Offset, SourceBatch
from connect.data.logical import EPOCH
from connect.errors import ConnectError
from connectors.jdbc.connection import Database
from connectors.jdbc.dialects.column import Column, TableId
from connectors.jdbc.dialects.dialect import Cursor
from connectors.jdbc.source.config import JdbcSourceConfig, JdbcTaskConfig, LateCommits, Mode
from connectors.jdbc.source.criteria import Bounds, Criteria
from connectors.jdbc.source.layout import Layout, UnfitRow, layout_of
from connectors.jdbc.source.offsets import Position, RowOffsets, safe_times
from connectors.jdbc.source.tables import column_mapping

__all__ = ["Polled", "TableReader", "incrementing_column"]

logger = logging.getLogger(__name__)

_RECHECK: Final = 0.1
_MARGIN_MS: Final = 250
"""A transaction has the time of its beginning a moment before others can see that it is under way."""
_NEWEST: Final = -1
_NO_OFFSET: Final[Offset] = {}


@dataclass(frozen=True, slots=True)
class Polled:
    """A block of records, and the rows that cannot be read."""

    batch: SourceBatch
    partition: Offset
    good: Sequence[int] | None = None
    unfit: Sequence[tuple[UnfitRow, Offset]] = ()

    def before(self, row: UnfitRow) -> SourceBatch:
        """Return the records of the rows before one."""
        assert self.good is not None
        return self.batch.slice(0, sum(place < row.index for place in self.good))


@dataclass(frozen=True, slots=True)
class _Pass:
    """What a pass reads, and what it waits for."""

    criteria: Criteria
    select: str
    bounds: Bounds
    columns: tuple[Column, ...] | None
    keys: tuple[str, ...]
    names: tuple[str, tuple[str, ...]]
    transactions: Hashable | None


class TableReader:
    """Reads one table, or the query if ``table`` is ``None``. Used by the task's thread alone.

    ``position`` is where it continues; the offsets of its records are stored under ``partition``.
    """

    def __init__(
        self, config: JdbcTaskConfig, database: Database, table: TableId | None, partition: Offset, position: Position
    ) -> None:
        self.table = table
        self.due = 0.0
        self.passes = 0
        self.failures = 0
        self._config = config
        self._database = database
        self._partition = partition
        self._position = position
        self._begun = 0.0
        self._pass: _Pass | None = None
        self._cursor: Cursor | None = None
        self._layout: Layout | None = None
        self._held: list[Any] = []
        self._query_columns: list[Column] | None = None

    @property
    def name(self) -> str:
        """The table, or the query, for display."""
        return f"table {self.table}" if self.table is not None else "the query"

    def poll(self) -> Polled | None:
        """Return the next rows; ``None`` if there are none now. ``due`` is then the time of the next attempt."""
        if self._pass is None:
            self._begin()
        if self._pass is not None and self._cursor is None:
            self._open(self._pass)
        return self._read() if self._cursor is not None else None

    @property
    def is_reading(self) -> bool:
        """Whether there may be more rows immediately."""
        return self._cursor is not None

    def reset(self) -> None:
        """Abandon the pass when the connection is closed: the next begins after the last row handed out."""
        if self._cursor is not None:
            # A cursor of PyMySQL complains that it cannot read to the end of its result.
            with suppress(Exception):
                self._cursor.close()
        self._pass, self._cursor, self._layout, self._held = None, None, None, []

    # -- a pass begins -------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        self._begun = time.monotonic()
        connection, dialect = self._database.connection(), self._database.dialect
        if self.table is None:
            self._pass = self._query_pass()
        else:
            columns = dialect.columns(connection, self.table)
            if not columns:
                logger.warning("Table %s no longer exists or is not accessible; checking again later.", self.table)
                self._end()
                return
            self._pass = self._table_pass(self.table, columns)
        connection.commit()

    def _query_pass(self) -> _Pass:
        config = self._config
        if self._query_columns is None:
            self._query_columns = self._query_times()
        columns = self._query_columns
        criteria = Criteria(self._database.dialect, config.mode, config.incrementing_column_name, columns)
        statement = config.statement
        bounds, transactions = self._bounds(criteria, f"({statement}) sluice_rows")
        names = (config.incrementing_column_name, config.timestamp_column_name)
        return _Pass(criteria, statement, bounds, None, config.key_columns, names, transactions)

    def _query_times(self) -> list[Column]:
        """Return the timestamp columns of a query, whose types determine how times are compared with them."""
        config, dialect, connection = self._config, self._database.dialect, self._database.connection()
        if not config.mode.has_timestamp:
            return []
        nothing = f"SELECT * FROM ({config.statement}) sluice_rows WHERE 1 = 0"  # noqa: S608 - the query is the user's
        cursor = self._executed(nothing)
        try:
            found = {column.name.lower(): column for column in dialect.result_columns(connection, cursor, nothing)}
        finally:
            cursor.close()
        missing = [name for name in config.timestamp_column_name if name.lower() not in found]
        if missing:
            raise ConnectError(f"The query has no column {missing[0]}, which is in timestamp.column.name.")
        return [replace(found[name.lower()], name=name) for name in config.timestamp_column_name]

    def _table_pass(self, table: TableId, columns: tuple[Column, ...]) -> _Pass:
        config, dialect, connection = self._config, self._database.dialect, self._database.connection()
        number = incrementing_column(config, table, columns) if config.mode.has_incrementing else ""
        times = self._timestamps(table) if config.mode.has_timestamp else ()
        keys = dialect.primary_key(connection, table) if config.takes_primary_key else config.key_columns
        if config.validate_non_null:
            _check_not_null(table, columns, number, times)
        # Its own check says which column is not there.
        layout = layout_of(dialect, table.name, columns, config.mode, keys=keys, incrementing=number, timestamps=times)
        by_place = [columns[place] for place, _ in layout.times]
        number = "" if layout.number is None else columns[layout.number].name
        criteria = Criteria(dialect, config.mode, number, by_place)
        read = [column for column in columns if dialect.reading(column) is not None]
        select = f"SELECT {', '.join(map(dialect.selected, read))} FROM {dialect.quoted(table)}"  # noqa: S608 - quoted
        bounds, transactions = self._bounds(criteria, dialect.quoted(table))
        return _Pass(criteria, select, bounds, tuple(read), keys, (number, times), transactions)

    def _timestamps(self, table: TableId) -> tuple[str, ...]:
        config = self._config
        if config.timestamp_column_name:
            return config.timestamp_column_name
        return _mapped(config.timestamp_columns_mapping, table, "timestamp.columns.mapping")

    def _bounds(self, criteria: Criteria, source: str) -> tuple[Bounds, Hashable | None]:
        """Return the bounds of the pass and the transactions to wait for, which are determined after the end."""
        config, dialect, connection = self._config, self._database.dialect, self._database.connection()
        mode, waits = config.mode, config.late_commits is LateCommits.WAIT and dialect.tells_transactions
        number = -1 if self._position.incrementing is None else self._position.incrementing
        bounds = Bounds(max(number, config.split_after), last=config.split_last)
        if mode is Mode.BULK:
            return bounds, None
        if mode.has_timestamp:
            now = dialect.now(connection)
            self._start_at(now)
            delay = max(config.timestamp_delay_interval_ms, _MARGIN_MS if waits else 0)
            moments = (self._position.moment, now - dt.timedelta(milliseconds=delay))
            after, before = (dialect.timestamp_parameter(criteria.timestamps, moment) for moment in moments)
            bounds = replace(bounds, time=after, end=before)
            return bounds, dialect.under_way(connection, None) if waits else None
        if not waits:
            return bounds, None
        statement, parameters = criteria.last_statement(source, bounds.number, escape=self.table is None)
        last = connection.exec_driver_sql(statement, tuple(parameters)).scalar()
        newest = bounds.number if last is None else int(last)
        bounds = replace(bounds, last=newest if bounds.last is None else min(newest, bounds.last))
        connection.commit()
        return bounds, dialect.under_way(connection, self.table)

    def _start_at(self, now: Any) -> None:
        """Without an offset, start where ``timestamp.initial`` says."""
        if self._position.micros is not None:
            return
        initial = self._config.timestamp_initial
        millis = int((now - EPOCH).total_seconds() * 1000) if initial == _NEWEST else initial or 0
        self._position = replace(self._position, micros=millis * 1000)

    # -- it waits and reads --------------------------------------------------------------------------------------

    def _open(self, each: _Pass) -> None:
        connection, dialect = self._database.connection(), self._database.dialect
        if each.transactions is not None:
            over = dialect.are_over(connection, each.transactions)
            connection.commit()
            if not over:
                self.due = time.monotonic() + _RECHECK
                return
        statement, parameters = each.criteria.statement(
            each.select, each.bounds, self._config.query_suffix, escape=self.table is None
        )
        self._cursor = cursor = self._executed(statement, parameters)
        columns = each.columns if each.columns is not None else dialect.result_columns(connection, cursor, each.select)
        number, times = each.names
        name = self.table.name if self.table is not None else "query"
        self._layout = layout_of(
            dialect, name, columns, self._config.mode, keys=each.keys, incrementing=number, timestamps=times
        )

    def _executed(self, statement: str, parameters: Sequence[Any] = ()) -> Cursor:
        """Return a cursor with a result, in a transaction that SQLAlchemy's first statement begins."""
        connection = self._database.connection()
        connection.exec_driver_sql("SELECT 1").close()
        cursor = self._database.dialect.cursor(connection)
        cursor.execute(statement, *([tuple(parameters)] if parameters else []))
        return cursor

    def _read(self) -> Polled | None:
        """Read the next block. One row is held back, to know whether more rows with the last time follow."""
        assert self._cursor is not None
        assert self._layout is not None
        size = self._config.batch_max_rows
        fetched = self._cursor.fetchmany(size + 1 - len(self._held))
        rows = [*self._held, *fetched]
        ended = len(rows) <= size
        self._held, rows = ([], rows) if ended else (rows[-1:], rows[:-1])
        polled = self._polled(self._layout, rows) if rows else None
        if ended:
            self._end()
        return polled

    def _polled(self, layout: Layout, rows: list[Any]) -> Polled | None:
        offsets = self._offsets(layout, rows)
        block = layout.block(rows)
        unfit = [(each, offsets[each.index] if offsets is not None else _NO_OFFSET) for each in block.unfit]
        if offsets is not None:
            self._position = offsets.position(len(rows) - 1)
            if block.good is not None:
                offsets = offsets.take(block.good)
        count = len(block.value)
        topic = self._config.topic_prefix + (self.table.name if self.table is not None else "")
        batch = SourceBatch.of(
            topic,
            block.value,
            key=block.key,
            source_partition=self._partition if offsets is not None else _NO_OFFSET,
            source_offsets=offsets if offsets is not None else Constant(_NO_OFFSET, count),
        )
        return Polled(batch, self._partition, block.good, unfit)

    def _offsets(self, layout: Layout, rows: Sequence[Any]) -> RowOffsets | None:
        mode = self._config.mode
        if mode is Mode.BULK:
            return None
        numbers = layout.numbers(rows) if mode.has_incrementing else None
        if not mode.has_timestamp:
            return RowOffsets(numbers, None)
        times: Sequence[int | None] = layout.micros(rows)
        if mode is Mode.TIMESTAMP:
            following = layout.micros(self._held)[0] if self._held else None
            times = safe_times(layout.micros(rows), following, self._position.micros)
        return RowOffsets(numbers, times)

    def _end(self) -> None:
        if self._cursor is not None:
            self._cursor.close()
            self._cursor = None
        self._database.connection().rollback()
        self.reset()
        self.passes += 1
        self.failures = 0
        self.due = self._begun + self._config.poll_interval_ms / 1000


def incrementing_column(config: JdbcSourceConfig, table: TableId, columns: Sequence[Column]) -> str:
    """Return the strictly increasing column of a table: the configured one, or the auto-increment column."""
    if config.incrementing_column_name:
        return config.incrementing_column_name
    if config.incrementing_column_mapping:
        return _mapped(config.incrementing_column_mapping, table, "incrementing.column.mapping")[0]
    found = [column.name for column in columns if column.autoincrement]
    if len(found) != 1:
        raise ConnectError(
            f"Table {table} has {len(found) or 'no'} auto-increment columns. Set incrementing.column.name or "
            "incrementing.column.mapping to the one to use."
        )
    return found[0]


def _check_not_null(table: TableId, columns: Sequence[Column], number: str, times: Sequence[str]) -> None:
    nullable = {column.name.lower() for column in columns if column.nullable}
    if number.lower() in nullable:
        raise ConnectError(
            f"The incrementing column {number} of {table} may be null, and rows with null are never read. Make it NOT "
            "NULL, or set validate.non.null=false."
        )
    if times and all(name.lower() in nullable for name in times):
        raise ConnectError(
            f"The timestamp columns {', '.join(times)} of {table} may all be null, and such rows are never read. Make "
            "one NOT NULL, or set validate.non.null=false."
        )


def _mapped(texts: Sequence[str], table: TableId, key: str) -> tuple[str, ...]:
    found = [names for pattern, names in column_mapping(texts) if pattern.fullmatch(str(table))]
    if len(found) != 1:
        raise ConnectError(
            f"{len(found) or 'No'} regular expressions in {key} match table {table}. Exactly one must match."
        )
    return found[0]
