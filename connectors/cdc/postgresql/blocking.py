"""Blocking snapshots: tables are read while the stream waits, as they are at one exact place of the log.

The stream stops between two transactions. A temporary slot then exports a snapshot of all that is committed before a
place in the log, the stream goes on up to there, and the rows are read. So the rows have the changes that were
streamed before them, and none that is streamed after them.

The slot becomes consistent once the transactions have ended that were writing when it was made. If that takes too
long, it is given up, and made again after the stream has gone on for a while.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from connect.data import Offset, SourceRecord
from connect.errors import ConnectError
from connect.kits.cdc.chunk_queries import is_statement
from connect.kits.cdc.incremental import IncrementalSnapshots
from connect.kits.cdc.incremental_state import BlockingRequest, Collection
from connect.kits.cdc.snapshots.pieces import MarkedRow, Progress
from connect.kits.cdc.snapshots.run import SnapshotRun
from connectors.cdc.postgresql.catalog import CapturedTable, Catalog
from connectors.cdc.postgresql.config import PostgresConfig
from connectors.cdc.postgresql.connection import conninfo, open_session
from connectors.cdc.postgresql.incremental import StreamWatch
from connectors.cdc.postgresql.replication import ReplicationConnection
from connectors.cdc.postgresql.snapshot import (
    RowReader,
    SnapshotPoint,
    SnapshotTable,
    begin_snapshot,
    statement_of,
)
from connectors.cdc.postgresql.stream import ChangeStream

if TYPE_CHECKING:
    import psycopg

    from connect.kits.cdc.table_schemas import TableSchema
    from connect.kits.cdc.tables import Table

__all__ = ["BlockingRecorder", "BlockingSnapshot", "wanted_tables"]

logger = logging.getLogger(__name__)
_SUFFIX: Final = "_blocking"
_LONGEST_NAME: Final = 63
_LOOK_S: Final = 0.2


@dataclass(frozen=True, slots=True)
class _View:
    """A transaction that sees exactly what is committed before a place in the log."""

    session: psycopg.Connection[Any]
    point: SnapshotPoint


class _ViewOpening:
    """Opens a view in a thread, for at most some seconds. ``wake`` is called at the end."""

    def __init__(self, config: PostgresConfig, seconds: float, wake: Callable[[], None]) -> None:
        self._config = config
        self._replication: ReplicationConnection | None = None
        self._until = time.monotonic() + seconds
        self._ends = False
        self._taken = False
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="blocking")
        self._view: Future[_View] = self._thread.submit(self._open)
        self._view.add_done_callback(lambda _: wake())

    def take(self) -> _View | None:
        """Return the view once it is open; raises why it cannot be opened now."""
        if self._view.done():
            view = self._view.result()
            self._taken = True
            return view
        if time.monotonic() > self._until:
            self._cancel()
        return None

    def close(self) -> None:
        """End the thread; a view that it has opened is closed unless it was taken."""
        self._ends = True
        while not self._view.done():
            self._cancel()
            with suppress(TimeoutError):
                self._view.exception(_LOOK_S)
        self._thread.shutdown()
        if not self._taken and self._view.exception() is None:
            self._view.result().session.close()

    def _cancel(self) -> None:
        if (replication := self._replication) is not None:
            replication.cancel()

    def _open(self) -> _View:
        config = self._config
        name = config.slot_name[: _LONGEST_NAME - len(_SUFFIX)] + _SUFFIX
        self._replication = replication = ReplicationConnection(conninfo(config, replication=True))
        try:
            if self._ends:
                raise ConnectError("The task is being stopped.")
            created = replication.create_slot(name, exports=True, is_temporary=True)
            session = open_session(config)
            try:
                point = begin_snapshot(session, created.snapshot, created.consistent_lsn, locks_ms=None, tables=())
            except BaseException:
                session.close()
                raise
            return _View(session, point)
        finally:
            self._replication = None
            replication.close()


class BlockingSnapshot:
    """One blocking snapshot, from the moment at which the stream stops.

    It is opening until :attr:`view` is there, reaching until the stream has come to it, then reading. Used by the
    task's thread alone.
    """

    def __init__(self, config: PostgresConfig, seconds: float, wake: Callable[[], None]) -> None:
        self._opening = _ViewOpening(config, seconds, wake)
        self.view: _View | None = None
        self.run: SnapshotRun | None = None

    def look(self) -> None:
        """Look whether the view is open; raises why it cannot be opened now."""
        if self.view is None:
            self.view = self._opening.take()

    @property
    def is_reaching(self) -> bool:
        """Whether the stream goes on, up to the place of the view."""
        return self.view is not None and self.run is None

    def close(self) -> None:
        """End all that is read."""
        self._opening.close()
        if self.run is not None:
            self.run.close()
        if self.view is not None:
            self.view.session.close()


class BlockingRecorder:
    """Makes the records of a blocking snapshot: their offsets are those of the stream, and tell what is left."""

    def __init__(
        self,
        reader: RowReader,
        tables: Sequence[tuple[SnapshotTable, Collection]],
        snapshots: IncrementalSnapshots,
        stream: ChangeStream,
        watch: StreamWatch,
    ) -> None:
        self._reader = reader
        self._tables = {str(table.captured.id): table for table, _ in tables}
        self._snapshots = snapshots
        self._stream = stream
        self._watch = watch

    def record(self, row: MarkedRow, offset: Offset) -> SourceRecord:
        """Return the record of a row."""
        return self._reader.record(self._tables[row.table].schema, row.raw, row.marker, offset)

    def after(self, progress: Progress) -> Offset:
        """Return the offset after what is sent, which the stream has from then on too."""
        self._snapshots.leave_of_blocking(progress.left())
        self._watch.look()
        return self._stream.offset()


def wanted_tables(
    catalog: Catalog,
    captured: Sequence[CapturedTable],
    request: BlockingRequest,
    make: Callable[[Table], TableSchema],
) -> list[tuple[SnapshotTable, Collection]]:
    """Return what a signal wants to be read, without tables that are not there any more."""
    known = {str(each.id): each for each in captured}
    found: list[tuple[SnapshotTable, Collection]] = []
    for collection in request.collections:
        each = known.get(collection.table)
        table = catalog.table(each.oid, each.id) if each is not None else None
        if each is None or table is None:
            logger.error(
                "Table %s is left out of the blocking snapshot: it is not captured any more.", collection.table
            )
            continue
        schema = make(table)
        own = collection.condition if is_statement(collection.condition) else None
        found.append((SnapshotTable(each, schema, statement_of(table, schema, own), own is None), collection))
    return found
