"""Snapshots: the rows that exist, as of one place in the log.

The place is exact: all tables are locked against writing for the moment in which a transaction with a consistent view
begins and the log's end is read; or, without a lock, the two are repeated until the log's end has not moved meanwhile.
Memory is bounded by one batch: the server sends rows as they are taken.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from connect.errors import ConnectError, RetriableError
from connect.kits.cdc.tables import Column, Table, TableId
from connectors.cdc.mysql.catalog import Catalog
from connectors.cdc.mysql.config import BinlogConfig, LockingMode
from connectors.cdc.mysql.session import LogPlace, Session, connected, failure
from connectors.cdc.mysql.texts import quoted, reader, selected

__all__ = ["BEGIN", "ISOLATION", "RowSource", "SnapshotRow", "View", "opened_view", "place_of_view"]

logger = logging.getLogger(__name__)

BEGIN: Final = "START TRANSACTION WITH CONSISTENT SNAPSHOT"
ISOLATION: Final = "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ"
_QUIET_ATTEMPTS: Final = 200
"""How often a moment without a write is looked for."""
_FETCHED_ROWS: Final = 500


@dataclass(frozen=True, slots=True)
class SnapshotRow:
    """A row of a snapshot, and where in its table it is."""

    table: Table
    values: Sequence[Any]
    is_first: bool
    key: tuple[Any, ...] | None = None
    """The texts of its key, if the table is read in the order of its key."""


@dataclass(slots=True)
class View:
    """A consistent view of all tables, and its place in the log."""

    session: Session
    place: LogPlace
    tables: list[tuple[Table, int]]
    """The captured tables, each with a rough number of its rows."""
    lock: Session | None = None
    """The connection that holds the locks until the end, if any."""

    def close(self) -> None:
        """End the view, and release the locks."""
        self.session.close()
        if self.lock is not None:
            self.lock.close()


def opened_view(config: BinlogConfig, wanted: Callable[[TableId], bool]) -> View:
    """Begin a view. Raises :class:`~connect.errors.ConnectError`, with the remedy, if a right is missing."""
    session = connected(config)
    # Values come as text, and are read by the columns' types.
    session.execute(ISOLATION)
    try:
        if config.snapshot_locking_mode is LockingMode.NONE:
            return _quiet_view(session, wanted)
        return _locked_view(config, session, wanted)
    except BaseException:
        session.close()
        raise


def _locked_view(config: BinlogConfig, session: Session, wanted: Callable[[TableId], bool]) -> View:
    lock = connected(config)
    keeps = config.snapshot_locking_mode is LockingMode.EXTENDED
    try:
        _lock(config, lock, session, wanted)
        session.execute(BEGIN)
        place = session.end_of_log()
        tables = _captured(session, wanted)
        if not keeps:
            lock.execute("UNLOCK TABLES")
    except BaseException:
        lock.close()
        raise
    if keeps:
        return View(session, place, tables, lock)
    lock.close()
    return View(session, place, tables)


def _lock(config: BinlogConfig, lock: Session, session: Session, wanted: Callable[[TableId], bool]) -> None:
    seconds = max(1, -(-config.snapshot_lock_timeout_ms // 1000))
    lock.execute(f"SET SESSION lock_wait_timeout = {seconds}")
    if config.snapshot_locking_mode in (LockingMode.MINIMAL_PERCONA, LockingMode.MINIMAL_PERCONA_NO_TABLE_LOCKS):
        lock.execute("LOCK TABLES FOR BACKUP")
        return
    try:
        lock.execute("FLUSH TABLES WITH READ LOCK")
    except RetriableError as error:
        raise RetriableError(
            f"The lock for the snapshot was not granted in {seconds} s: {error} A long statement or transaction holds "
            "it up (SHOW PROCESSLIST): wait for its end, or set snapshot.lock.timeout.ms or snapshot.locking.mode=none."
        ) from error
    except ConnectError as error:
        # A managed server grants no global lock: one on each captured table does as well.
        logger.info("FLUSH TABLES WITH READ LOCK is refused (%s); the captured tables are locked instead.", error)
        names = [
            f"{quoted(table.catalog)}.{quoted(table.table)}" for table, _ in Catalog(session).tables() if wanted(table)
        ]
        if names:
            _lock_tables(lock, names)


def _lock_tables(lock: Session, names: Sequence[str]) -> None:
    try:
        lock.execute("LOCK TABLES " + ", ".join(f"{name} READ" for name in names))
    except RetriableError:
        raise
    except ConnectError as error:
        raise ConnectError(
            f"The snapshot cannot lock its tables: {error} Run GRANT RELOAD, LOCK TABLES ON *.* TO the connector's "
            "user, or set snapshot.locking.mode=none."
        ) from error


def _quiet_view(session: Session, wanted: Callable[[TableId], bool]) -> View:
    """A view without a lock: begun in a moment in which nothing was written."""
    for _ in range(_QUIET_ATTEMPTS):
        before = session.end_of_log()
        session.execute(BEGIN)
        place = place_of_view(session) or session.end_of_log()
        if session.server.is_mariadb or place == before:
            return View(session, place, _captured(session, wanted))
        session.execute("ROLLBACK")
        time.sleep(_PAUSE_SECONDS)
    raise RetriableError(
        f"In {_QUIET_ATTEMPTS} attempts there was no moment without a write in which the snapshot could begin: set "
        "snapshot.locking.mode=minimal, or try again when there is less to do."
    )


_PAUSE_SECONDS: Final = 0.01


def place_of_view(session: Session) -> LogPlace | None:
    """Return the place of a view that has begun, which MariaDB itself tells; ``None`` for MySQL."""
    if not session.server.is_mariadb:
        return None
    rows = session.rows("SHOW STATUS LIKE 'binlog_snapshot_%'")
    found = {str(row["variable_name"]).lower(): str(row["value"]) for row in rows}
    file, position = found["binlog_snapshot_file"], int(found["binlog_snapshot_position"])
    gtids = session.rows("SELECT BINLOG_GTID_POS(%s, %s) AS gtids", (file, position))
    return LogPlace(file, position, str(gtids[0]["gtids"] or ""))


def _captured(session: Session, wanted: Callable[[TableId], bool]) -> list[tuple[Table, int]]:
    catalog = Catalog(session)
    found = []
    for name, rows in catalog.tables():
        if wanted(name) and (table := catalog.table(name)) is not None:
            found.append((table, rows))
    return found


class RowSource:
    """Reads the rows of tables in a view, one after the other."""

    def __init__(self, view: View, overrides: dict[str, str]) -> None:
        self._view = view
        self._overrides = overrides
        self.rows_of: dict[str, int] = {}
        """How many rows were read, by table."""

    def has_own_statement(self, table: Table) -> bool:
        """Return whether the rows of a table are chosen by a statement of the user's."""
        return self._override(table) is not None

    def rows(self, table: Table, *, in_order: bool) -> Iterator[SnapshotRow]:
        """Yield the rows of a table, in the order of its key if that is wanted."""
        name = str(table.id)
        self.rows_of[name] = 0
        columns, statement = self._statement(table)
        keys: list[int] = []
        if in_order:
            statement += f" ORDER BY {', '.join(map(quoted, table.key_columns))}"
            names = [column.name for column in columns]
            keys = [names.index(name) for name in table.key_columns]
        readers = [reader(column) for column in columns]
        width = len(table.columns)
        places = {column.name: place for place, column in enumerate(table.columns)}
        order = [places[column.name] for column in columns]
        is_first = True
        for raw in _streamed(self._view.session, statement):
            values: list[Any] = [None] * width
            for place, read, value in zip(order, readers, raw, strict=True):
                if value is not None:
                    values[place] = read(value)
            yield SnapshotRow(table, values, is_first, tuple(raw[place] for place in keys) if keys else None)
            is_first = False
            self.rows_of[name] += 1

    def _override(self, table: Table) -> str | None:
        name = str(table.id).lower()
        return next((text for each, text in self._overrides.items() if each.lower() == name), None)

    def _statement(self, table: Table) -> tuple[list[Column], str]:
        columns = list(table.columns)
        override = self._override(table)
        chosen = ", ".join(f"{selected(column)} AS {quoted(column.name)}" for column in columns)
        if override is not None:
            return columns, f"SELECT {chosen} FROM ({override.strip().rstrip(';')}) AS chosen"  # noqa: S608 - quoted
        return columns, f"SELECT {chosen} FROM {quoted(table.id.catalog)}.{quoted(table.id.table)}"  # noqa: S608 - quoted


def _streamed(session: Session, statement: str) -> Iterator[tuple[Any, ...]]:
    """Run a statement, and yield its rows as text while the server sends them.

    Given up before its end, it closes the session: PyMySQL would read all rows that are left.
    """
    import pymysql  # noqa: PLC0415 - loaded where a database is used
    from pymysql.cursors import SSCursor  # noqa: PLC0415 - as above

    cursor: Any = SSCursor(session.connection)
    is_read = False
    try:
        with session.undecoded():
            cursor.execute(statement)
        while rows := cursor.fetchmany(_FETCHED_ROWS):
            yield from rows
        is_read = True
    except pymysql.MySQLError as error:
        raise failure(error) from error
    finally:
        if is_read:
            cursor.close()
        else:
            if (result := cursor._result) is not None:
                result.unbuffered_active = False
            cursor.connection = None
            session.close()
