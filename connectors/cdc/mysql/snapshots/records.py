"""The records of a snapshot: what the tables look like, and then their rows."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, Final

from connect.data import Offset, SourceRecord
from connect.kits.cdc.envelope import ChangeEvents, Operation
from connect.kits.cdc.filters import NameFilter
from connect.kits.cdc.incremental_state import Collection
from connect.kits.cdc.measurements import SnapshotNumbers
from connect.kits.cdc.snapshots.pieces import MarkedRow, Progress
from connect.kits.cdc.snapshots.run import SnapshotRun, Telling
from connect.kits.cdc.tables import Table
from connectors.cdc.mysql.captures import Captures
from connectors.cdc.mysql.catalog import Catalog
from connectors.cdc.mysql.changes import SourceBlock
from connectors.cdc.mysql.config import BinlogConfig
from connectors.cdc.mysql.position import Position
from connectors.cdc.mysql.schema_changes import SchemaChangeRecords, snapshot_statements
from connectors.cdc.mysql.session import LogPlace
from connectors.cdc.mysql.snapshots.pieces import WantedTable, planned_snapshot
from connectors.cdc.mysql.snapshots.views import View

__all__ = ["RowRecords", "SnapshotRecords"]

_RESUMED_MODES: Final = ("initial", "when_needed")


class RowRecords:
    """Makes the records of rows that were read at one place of the log."""

    def __init__(
        self, captures: Captures, events: ChangeEvents, block: SourceBlock, place: LogPlace, tables: Sequence[Table]
    ) -> None:
        self._captures = captures
        self._events = events
        self._block = block
        self._place = place
        self._tables = {str(table.id): table for table in tables}
        self.begun_at = int(time.time())
        """When the rows were read, in seconds since 1970."""

    def record(self, row: MarkedRow, offset: Offset) -> SourceRecord:
        """Return the record of a row."""
        table = self._tables[row.table]
        schema = self._captures.schema_of(table)
        after = schema.row(row.raw)
        key = None
        if schema.key_schema is not None:
            key = schema.key(after) if schema.key is not None else schema.key_of_raw(row.raw)
        out: list[SourceRecord] = []
        source = self.source(table.id.catalog, table.id.table, row.marker, self.begun_at * 1_000_000)
        self._events.created(out, schema, key, after, source, None, offset, Operation.READ)
        return out[0]

    def source(self, database: str, table: str | None, marker: str, micros: int) -> dict[str, Any]:
        """Return the ``source`` block of a record."""
        place = self._place
        return self._block.of(database, table, micros, snapshot=marker, file=place.file, position=place.position)


class SnapshotRecords:
    """Takes a snapshot of a view.

    Tables without an order come first, and a task that is killed while they are read begins the snapshot anew. After
    that, offsets have what is left to read, in the form of an incremental snapshot: the task goes on with the stream,
    and reads the rest beside it. Most records carry the offset of an earlier one, so a kill repeats some rows.
    """

    def __init__(
        self,
        config: BinlogConfig,
        captures: Captures,
        events: ChangeEvents,
        block: SourceBlock,
        schema_changes: SchemaChangeRecords,
        telling: Telling,
        view: View,
        wake: Callable[[], None],
    ) -> None:
        self._config = config
        self._captures = captures
        self._schema_changes = schema_changes
        self._telling = telling
        self._wake = wake
        self._view = view
        self._tables = self._chosen()
        place = view.place
        self._records = RowRecords(captures, events, block, place, [table for table, _ in self._tables])
        self.position = Position(place.file, place.position, place.gtids, self._records.begun_at)
        """The place of the snapshot, from which the stream goes on."""
        self._under_way = replace(self.position, snapshot="INITIAL").to_offset()
        self._resumes = view.session.server.has_gtids and config.snapshot_mode.lower() in _RESUMED_MODES
        self._schemas: Iterator[SourceRecord] | None = self._schema_records()
        self._run: SnapshotRun | None = None

    @property
    def is_done(self) -> bool:
        """Whether all rows were returned."""
        return self._run is not None and self._run.is_done

    @property
    def offset(self) -> Offset:
        """The offset after the records that were returned."""
        return self._under_way if self._run is None else self._run.offset

    def poll(self, limit: int) -> list[SourceRecord]:
        """Return the next records, about as many as the limit; none if none were read yet."""
        if self._schemas is not None:
            found = list(islice(self._schemas, limit))
            if found:
                return found
            self._schemas = None
        if self._run is None:
            # The session that was asked for the schemas now reads rows.
            wanted = [
                WantedTable(table, rows, Collection(str(table.id)), self._own(table)) for table, rows in self._tables
            ]
            planned = planned_snapshot(self._config, self._view.sessions, wanted, unordered_first=self._resumes)
            self._run = SnapshotRun(planned, self, self._telling, self._under_way, self._wake)
        return self._run.poll(limit)

    def record(self, row: MarkedRow, offset: Offset) -> SourceRecord:
        """Return the record of a row."""
        return self._records.record(row, offset)

    def after(self, progress: Progress) -> Offset:
        """Return the offset after what is sent."""
        if progress.is_read:
            return self.position.to_offset()
        state = progress.state() if self._resumes else None
        return self._under_way if state is None else {**self.position.to_offset(), **state.to_offset()}

    def close(self) -> None:
        """End the view, and release its locks."""
        if self._run is not None:
            self._run.close()
        self._view.close()

    def numbers(self) -> SnapshotNumbers:
        """Return how the snapshot is doing."""
        if self._run is not None:
            return self._run.numbers()
        return SnapshotNumbers(is_running=True, tables=len(self._tables), remaining_tables=len(self._tables))

    def remaining(self) -> Mapping[str, int]:
        """Return how many tables and, as far as is known, rows are left."""
        return {"tables": len(self._tables)} if self._run is None else self._run.remaining()

    def total(self) -> Mapping[str, int]:
        """Return how many tables and, if that is known, rows there are in all."""
        return {} if self._run is None else self._run.total()

    def _own(self, table: Table) -> str | None:
        """Return the statement of the user's that selects the rows of a table."""
        name = str(table.id).lower()
        overrides = self._config.select_overrides()
        return next((text for each, text in overrides.items() if each.lower() == name), None)

    def _chosen(self) -> list[tuple[Table, int]]:
        """The tables to read, in order, each with a rough number of its rows."""
        wanted = NameFilter.of(self._config.snapshot_include_collection_list, ())
        chosen = [(table, rows) for table, rows in self._view.tables if wanted(str(table.id))]
        order = self._config.snapshot_tables_order_by_row_count
        if order != "disabled":
            chosen.sort(key=lambda pair: pair[1], reverse=order == "descending")
        return chosen

    def _schema_records(self) -> Iterator[SourceRecord]:
        if not self._schema_changes.is_needed:
            return
        session = self._view.session
        catalog = Catalog(session)
        databases: dict[str, list[tuple[Table, str, str | None]]] = {}
        for name, _ in catalog.tables():
            if self._captures.wants_database(name.catalog) and (table := catalog.table(name)) is not None:
                entry = (table, catalog.definition(name) or "", catalog.charset(name))
                databases.setdefault(name.catalog, []).append(entry)
        charsets = catalog.database_charsets()
        for database, table_name, ddl, changes in snapshot_statements(session.server, databases, charsets):
            now = time.time_ns()
            source = self._records.source(database, table_name, "true", now // 1000) | {"ts_ns": now}
            offset = self._under_way
            yield from self._schema_changes.records(database, ddl, changes, source, offset, offset)
        self._schema_changes.flush()
