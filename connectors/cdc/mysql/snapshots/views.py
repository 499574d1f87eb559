"""Snapshots: the rows that exist, as of one place in the log.

The place is exact: all tables are locked against writing for the moment in which a transaction with a consistent view
begins in each session and the log's end is read; or, without a lock, these are repeated until the log's end has not
moved meanwhile.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

from connect.errors import ConnectError, RetriableError
from connect.kits.cdc.tables import Table, TableId
from connectors.cdc.mysql.catalog import Catalog
from connectors.cdc.mysql.config import BinlogConfig, LockingMode
from connectors.cdc.mysql.session import LogPlace, Session, connected
from connectors.cdc.mysql.texts import quoted

__all__ = ["BEGIN", "ISOLATION", "View", "ViewOpening", "place_of_view"]

logger = logging.getLogger(__name__)

BEGIN: Final = "START TRANSACTION WITH CONSISTENT SNAPSHOT"
ISOLATION: Final = "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ"
_QUIET_ATTEMPTS: Final = 200
"""How often a moment without a write is looked for."""
_BACKUP_LOCKS: Final = (LockingMode.MINIMAL_PERCONA, LockingMode.MINIMAL_PERCONA_NO_TABLE_LOCKS)


@dataclass(slots=True)
class View:
    """A consistent view of all tables, which each of its sessions has, and its place in the log."""

    sessions: list[Session]
    place: LogPlace
    tables: list[tuple[Table, int]]
    """The captured tables, each with a rough number of its rows."""
    lock: Session | None = None
    """The connection that holds the locks until the end, if any."""

    @property
    def session(self) -> Session:
        """The session for questions, as long as no rows are read."""
        return self.sessions[0]

    def close(self) -> None:
        """End the view, and release the locks."""
        for session in (*self.sessions, *filter(None, (self.lock,))):
            session.close()


class ViewOpening:
    """Opens a view in a thread, since locks and quiet moments may have to be waited for.

    Used by the task's thread alone; ``wake`` is called when the view is open, or cannot be opened.
    """

    def __init__(self, config: BinlogConfig, wanted: Callable[[TableId], bool], wake: Callable[[], None]) -> None:
        self._config = config
        self._wanted = wanted
        self._ends = threading.Event()
        self._sessions: list[Session] = []
        thread = ThreadPoolExecutor(1, thread_name_prefix="view")
        self._view: Future[View] = thread.submit(self._open)
        self._view.add_done_callback(lambda _: wake())
        thread.shutdown(wait=False)

    def take(self) -> View | None:
        """Return the view once it is open.

        Raises :class:`~connect.errors.ConnectError`, with the remedy, if it cannot be opened.
        """
        return self._view.result() if self._view.done() else None

    def close(self) -> None:
        """End the view; one that is still being opened is given up at once."""
        self._ends.set()
        for session in list(self._sessions):
            session.interrupt()
        self._view.add_done_callback(_close)

    # -- in the thread -----------------------------------------------------------------------------------------

    def _open(self) -> View:
        config = self._config
        try:
            sessions = [self._connected() for _ in range(config.snapshot_max_threads)]
            for session in sessions:
                # Values come as text, and are read by the columns' types.
                session.execute(ISOLATION)
            if config.snapshot_locking_mode is LockingMode.NONE:
                return self._quiet_view(sessions)
            return self._locked_view(sessions)
        except BaseException:
            for session in self._sessions:
                session.close()
            raise

    def _connected(self) -> Session:
        session = connected(self._config)
        self._sessions.append(session)
        # Either this is seen here, or the session is interrupted there.
        if self._ends.is_set():
            raise _given_up()
        return session

    def _locked_view(self, sessions: list[Session]) -> View:
        mode, lock = self._config.snapshot_locking_mode, self._connected()
        _lock(self._config, lock, sessions[0], self._wanted)
        if mode in _BACKUP_LOCKS:
            # Such a lock lets rows be written.
            view = self._quiet_view(sessions)
        else:
            for session in sessions:
                session.execute(BEGIN)
            view = View(sessions, sessions[0].end_of_log(), _captured(sessions[0], self._wanted))
        if mode is LockingMode.EXTENDED:
            view.lock = lock
        else:
            lock.execute("UNLOCK TABLES")
            lock.close()
        return view

    def _quiet_view(self, sessions: list[Session]) -> View:
        """A view without a lock: begun in a moment in which nothing was written."""
        for _ in range(_QUIET_ATTEMPTS):
            before = sessions[0].end_of_log()
            for session in sessions:
                session.execute(BEGIN)
            # MariaDB tells the place of each view. One alone needs no quiet moment.
            places = [place for session in sessions if (place := place_of_view(session)) is not None]
            place = places[0] if places else sessions[0].end_of_log()
            if len(set(places)) == 1 if places else place == before:
                return View(sessions, place, _captured(sessions[0], self._wanted))
            for session in sessions:
                session.execute("ROLLBACK")
            if self._ends.wait(_PAUSE_SECONDS):
                raise _given_up()
        raise RetriableError(
            f"In {_QUIET_ATTEMPTS} attempts there was no moment without a write in which the snapshot could begin: set "
            "snapshot.locking.mode=minimal, or try again when there is less to do."
        )


_PAUSE_SECONDS: Final = 0.01


def _given_up() -> RetriableError:
    return RetriableError("The snapshot is given up before it has begun, since the task is being stopped.")


def _close(opening: Future[View]) -> None:
    if opening.exception() is None:
        opening.result().close()


def _lock(config: BinlogConfig, lock: Session, session: Session, wanted: Callable[[TableId], bool]) -> None:
    seconds = max(1, -(-config.snapshot_lock_timeout_ms // 1000))
    lock.execute(f"SET SESSION lock_wait_timeout = {seconds}")
    if config.snapshot_locking_mode in _BACKUP_LOCKS:
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
