"""Blocking snapshots: tables are read while the stream waits, as they are at one exact place of the log.

The stream stops between two transactions. A view is opened as for the first snapshot, the stream goes on up to the
view's place in the log and is closed, and the rows are read; then it is opened again. So the rows have the changes
that were streamed before them, and none that is streamed after them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from connect.data import Offset, SourceRecord
from connect.kits.cdc.chunk_queries import is_statement
from connect.kits.cdc.incremental import IncrementalSnapshots
from connect.kits.cdc.incremental_state import BlockingRequest
from connect.kits.cdc.snapshots.pieces import MarkedRow, Progress
from connect.kits.cdc.snapshots.run import SnapshotRun
from connect.kits.cdc.tables import Table, TableId
from connectors.cdc.mysql.changes import Changes
from connectors.cdc.mysql.config import BinlogConfig
from connectors.cdc.mysql.incremental import StreamWatch
from connectors.cdc.mysql.snapshots.pieces import WantedTable
from connectors.cdc.mysql.snapshots.records import RowRecords
from connectors.cdc.mysql.snapshots.views import View, ViewOpening

__all__ = ["BlockingRecorder", "BlockingSnapshot", "wanted_tables"]

logger = logging.getLogger(__name__)


class BlockingSnapshot:
    """One blocking snapshot, from the moment at which the stream stops.

    It is opening until :attr:`view` is there, reaching until the stream has come to it, then reading. Used by the
    task's thread alone; ``wake`` is called when the view is there.
    """

    def __init__(
        self,
        config: BinlogConfig,
        wanted: Callable[[TableId], bool],
        request: BlockingRequest,
        wake: Callable[[], None],
    ) -> None:
        self.request = request
        names = {collection.table for collection in request.collections}
        self._opening = ViewOpening(config, lambda table: wanted(table) and str(table) in names, wake)
        self.view: View | None = None
        self.run: SnapshotRun | None = None

    def look(self) -> None:
        """Look whether the view is open; raises why it cannot be opened now."""
        if self.view is None:
            self.view = self._opening.take()

    def close(self) -> None:
        """End all that is read; a view that is still being opened is given up."""
        if self.run is not None:
            self.run.close()
        self._opening.close()


class BlockingRecorder:
    """Makes the records of a blocking snapshot: their offsets are those of the stream, and tell what is left."""

    def __init__(
        self, records: RowRecords, snapshots: IncrementalSnapshots, changes: Changes, watch: StreamWatch
    ) -> None:
        self._records = records
        self._snapshots = snapshots
        self._changes = changes
        self._watch = watch

    def record(self, row: MarkedRow, offset: Offset) -> SourceRecord:
        """Return the record of a row."""
        return self._records.record(row, offset)

    def after(self, progress: Progress) -> Offset:
        """Return the offset after what is sent, which the stream has from then on too."""
        self._snapshots.leave_of_blocking(progress.left())
        self._watch.look()
        return self._changes.offset


def wanted_tables(tables: Sequence[tuple[Table, int]], request: BlockingRequest) -> list[WantedTable]:
    """Return what a signal wants to be read, without tables that are not there any more."""
    known = {str(table.id): (table, rows) for table, rows in tables}
    found: list[WantedTable] = []
    for collection in request.collections:
        if collection.table not in known:
            logger.error(
                "Table %s is left out of the blocking snapshot: it is not captured any more.", collection.table
            )
            continue
        own = collection.condition if is_statement(collection.condition) else None
        found.append(WantedTable(*known[collection.table], collection, own))
    return found
