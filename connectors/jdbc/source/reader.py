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
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final

from connect.data import Constant, Offset, SourceBatch
from connect.data.logical import EPOCH
from connect.errors import ConnectError
from connect.kits.sql.column import Column, TableId
from connect.kits.sql.connection import Database
from connect.kits.sql.dialect import Cursor
from connectors.jdbc.source.config import JdbcSourceConfig, JdbcTaskConfig, LateCommits, Mode
from connectors.jdbc.source.criteria import Bounds, Criteria
from connectors.jdbc.source.handed import HandedOut
from connectors.jdbc.source.layout import Layout, UnfitRow, layout_of
from connectors.jdbc.source.local_times import LocalTimes
from connectors.jdbc.source.offsets import Position, RowOffsets, filled, safe_times
from connectors.jdbc.source.tables import column_mapping

__all__ = ["Polled", "TableReader", "UnreadableRows", "incrementing_column"]

logger = logging.getLogger(__name__)

_RECHECK_SECONDS: Final = 0.1
_MARGIN_MS: Final = 250
"""A transaction has the time of its beginning a moment before others can see that it is under way."""
_NEWEST: Final = -1
_LAST_NUMBER: Final = 2**63 - 1
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

    @property
    def times(self) -> LocalTimes:
        """The clock by which its rows are ordered."""
        return self.criteria.times


class TableReader:
    """Reads one table, or the query if ``table`` is ``None``. Used by the task's thread alone.

    ``position`` is where it continues; the offsets of its records are stored under ``partition``. ``pass_offset``
    stores one that no record has.
    """

    def __init__(
        self,
        config: JdbcTaskConfig,
        database: Database,
        table: TableId | None,
        partition: Offset,
        position: Position,
        pass_offset: Callable[[Offset, Offset], None],
    ) -> None:
        self.table = table
        self.due = 0.0
        self.passes = 0
        self.failures = 0
        self._config = config
        self._database = database
        self._partition = partition
        self._position = position
        self._pass_offset = pass_offset
        self._begun = 0.0
        self._pass: _Pass | None = None
        self._cursor: Cursor | None = None
        self._layout: Layout | None = None
        self._held: list[Any] = []
        self._local: int | None = None
        """The time of the last row handed out, as rows are compared by it."""
        self._handed = HandedOut()
        self._unreadable = UnreadableRows()
        self._skipped: int | None = None
        """How many of the rows whose time cannot be read were reported before, while the others are reported."""
        self._query_columns: tuple[Column, ...] | None = None

    @property
    def name(self) -> str:
        """The table, or the query, for display."""
        return f"table {self.table}" if self.table is not None else "the query"

    def poll(self) -> Polled | None:
        """Return the next rows; ``None`` if there are none now. ``due`` is then the time of the next attempt."""
        if self._pass is None:
            self._begin()
        if self._skipped is not None:
            return self._read_unreadable(self._skipped)
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
            with suppress(Exception):
                self._database.dialect.abandon(self._cursor)
        self._pass, self._cursor, self._layout, self._held, self._skipped = None, None, None, [], None

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
        config, dialect = self._config, self._database.dialect
        if dialect.rewrites_queries or (self._query_columns is None and config.mode.has_timestamp):
            self._query_columns = self._columns_of_query()
        columns = self._query_columns or ()
        times = self._query_times(columns)
        criteria = Criteria(dialect, config.mode, config.incrementing_column_name, times)
        statement = config.statement
        select = dialect.selected_of(statement, columns)
        bounds, transactions = self._bounds(criteria, f"({statement}\n) sluice_rows")
        names = (config.incrementing_column_name, config.timestamp_column_name)
        known = None if select == statement else columns
        return _Pass(criteria, select, bounds, known, config.key_columns, names, transactions)

    def _columns_of_query(self) -> tuple[Column, ...]:
        statement = self._config.statement
        nothing = f"SELECT * FROM ({statement}\n) sluice_rows WHERE 1 = 0"  # noqa: S608 - the query is the user's
        cursor = self._executed(nothing)
        try:
            return self._database.dialect.result_columns(self._database.connection(), cursor, nothing)
        finally:
            cursor.close()

    def _query_times(self, columns: Sequence[Column]) -> list[Column]:
        """Return the timestamp columns of a query, whose types determine how times are compared with them."""
        config = self._config
        if not config.mode.has_timestamp:
            return []
        found = {column.name.lower(): column for column in columns}
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
        # The check of the query reports which column is missing.
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
            local, number = self._last(criteria.times)
            delay = max(config.timestamp_delay_interval_ms, _MARGIN_MS if waits else 0)
            moments = (criteria.times.moment(local), now - dt.timedelta(milliseconds=delay))
            after, before = (dialect.timestamp_parameter(criteria.timestamps, moment) for moment in moments)
            self._warn_of_early(criteria, source, after)
            bounds = replace(bounds, number=number, time=after, end=before)
            self._handed.begin()
            return bounds, dialect.under_way(connection, None) if waits else None
        if not waits:
            return bounds, None
        statement, parameters = criteria.last_statement(source, bounds.number)
        last = connection.exec_driver_sql(statement, tuple(parameters)).scalar()
        newest = bounds.number if last is None else int(last)
        bounds = replace(bounds, last=newest if bounds.last is None else min(newest, bounds.last))
        connection.commit()
        return bounds, dialect.under_way(connection, self.table)

    def _last(self, times: LocalTimes) -> tuple[int, int]:
        """Return the time and number to read after: in an hour that comes twice, those before its beginning."""
        number = -1 if self._position.incrementing is None else self._position.incrementing
        local = self._local = self._position.local_time(times) if self._local is None else self._local
        start = None if self._handed.is_full else times.repeated_from(local)
        return (local, number) if start is None else (start - 1, _LAST_NUMBER)

    def _warn_of_early(self, criteria: Criteria, source: str, after: Any) -> None:
        """Warn once, before the first row, of rows that are never read since reading begins in 1970."""
        if self.passes or self._position.micros != 0 or self._config.timestamp_initial is not None:
            return
        statement, parameters = criteria.early_statement(source, after)
        if self._database.connection().exec_driver_sql(statement, tuple(parameters)).first() is not None:
            logger.warning(
                "There are rows in %s with a time at or before 1970-01-01, where reading begins. They are not read: "
                "copy them once with mode=bulk.",
                self.name,
            )

    def _start_at(self, now: Any) -> None:
        """Without an offset, start where ``timestamp.initial`` says."""
        if self._position.micros is not None:
            return
        initial = self._config.timestamp_initial
        millis = int((now - EPOCH).total_seconds() * 1000) if initial == _NEWEST else initial or 0
        self._position = replace(self._position, micros=millis * 1000)
        if initial == _NEWEST:
            # Else a restart before the first row would begin at its own time, and leave out the rows until then (I4).
            self._pass_offset(self._partition, self._position.to_offset())

    # -- it waits and reads --------------------------------------------------------------------------------------

    def _open(self, each: _Pass) -> None:
        connection, dialect = self._database.connection(), self._database.dialect
        if each.transactions is not None:
            over = dialect.are_over(connection, each.transactions)
            connection.commit()
            if not over:
                self.due = time.monotonic() + _RECHECK_SECONDS
                return
        statement, parameters = each.criteria.statement(each.select, each.bounds, self._config.query_suffix)
        self._cursor = cursor = self._executed(statement, parameters)
        columns = each.columns if each.columns is not None else dialect.result_columns(connection, cursor, each.select)
        number, times = each.names
        name = self.table.name if self.table is not None else "query"
        self._layout = layout_of(
            dialect, name, columns, self._config.mode, keys=each.keys, incrementing=number, timestamps=times
        )

    def _begin_unreadable(self, each: _Pass) -> bool:
        """Look for rows whose time cannot be read; return whether there are some to report.

        That they come after the others of the pass lets those be published, even if one of these fails the task.
        """
        statement = each.criteria.unreadable_statement(each.select)
        if statement is None:
            return False
        cursor = self._executed(statement)
        try:
            skipped = self._unreadable.known(self._blocks(cursor))
        finally:
            cursor.close()
        if skipped is not None:
            self._cursor, self._skipped = self._executed(statement), skipped
        return skipped is not None

    def _blocks(self, cursor: Cursor) -> Iterator[Sequence[Any]]:
        while rows := cursor.fetchmany(self._config.batch_max_rows):
            yield rows

    def _read_unreadable(self, skipped: int) -> Polled | None:
        """Report the next rows whose time cannot be read: their offset is the position at the end of the pass."""
        assert self._cursor is not None
        assert self._layout is not None
        rows = self._cursor.fetchmany(self._config.batch_max_rows)
        if not rows:
            self._unreadable.reported()
            self._end()
            return None
        self._skipped = max(0, skipped - len(rows))
        rows = rows[skipped:]
        if not rows:
            return None
        block, offset = self._layout.block(rows), self._position.to_offset()
        batch = SourceBatch.of(
            self._topic,
            block.value,
            key=block.key,
            source_partition=self._partition,
            source_offsets=Constant(offset, len(block.value)),
        )
        return Polled(batch, self._partition, block.good, [(row, offset) for row in block.unfit])

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
        asked = self._config.batch_max_rows + 1 - len(self._held)
        fetched = self._cursor.fetchmany(asked)
        ended = len(fetched) < asked
        rows = [*self._held, *self._handed.new(fetched)]
        self._held, rows = ([], rows) if ended else (rows[-1:], rows[:-1])
        polled = self._polled(self._layout, rows) if rows else None
        if ended:
            self._end_rows()
        return polled

    def _polled(self, layout: Layout, rows: list[Any]) -> Polled | None:
        offsets = self._offsets(layout, rows)
        block = layout.block(rows)
        unfit = [(each, offsets[each.index] if offsets is not None else _NO_OFFSET) for each in block.unfit]
        if offsets is not None:
            self._position = offsets.position(len(rows) - 1)
            self._local = offsets.time(len(rows) - 1)
            if block.good is not None:
                offsets = offsets.take(block.good)
        count = len(block.value)
        batch = SourceBatch.of(
            self._topic,
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
        assert self._pass is not None
        read = layout.micros([*rows, *self._held])
        if numbers is not None:
            # A row without a readable time has no place of its own: one that comes later may be before it.
            before = self._position.incrementing
            numbers = filled(numbers, read, -1 if before is None else before)
        known = filled(read, read, self._local or 0)
        times: Sequence[int | None] = known[: len(rows)]
        if mode is Mode.TIMESTAMP:
            times = safe_times(read[: len(rows)], read[-1] if self._held else None, self._local)
        self._remember(rows, read, known, self._pass.times)
        return RowOffsets(numbers, times, self._pass.times)

    def _remember(
        self, rows: Sequence[Any], read: Sequence[int | None], known: Sequence[int], times: LocalTimes
    ) -> None:
        """Remember the rows that the position does not pass: of an hour that comes twice, or without a time."""
        last = next((place for place in reversed(range(len(rows))) if read[place] is not None), None)
        start = times.repeated_from(known[len(rows) - 1])
        if start is not None:
            first = next(place for place in range(len(rows)) if known[place] >= start)
        else:
            first = 0 if last is None else last + 1
        if first:
            self._handed.clear()
        was_full = self._handed.is_full
        self._handed.add(rows[first:])
        if start is not None and self._handed.is_full and not was_full:
            logger.warning(
                "More rows of %s than can be remembered are in the hour before %s that comes twice. Rows of its second "
                "pass are missed if their time is before that of a row already read. Use a column with a time zone.",
                self.name,
                times.moment(start).isoformat(),
            )

    @property
    def _topic(self) -> str:
        return self._config.topic_prefix + (self.table.name if self.table is not None else "")

    def _end_rows(self) -> None:
        assert self._cursor is not None
        assert self._pass is not None
        self._cursor.close()
        self._cursor = None
        if not self._begin_unreadable(self._pass):
            self._end()

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
