"""The records of a snapshot: what the tables look like, and then their rows."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

from connect.data import SourceRecord
from connect.kits.cdc.envelope import ChangeEvents, Operation
from connect.kits.cdc.filters import NameFilter
from connect.kits.cdc.incremental_state import Collection, IncrementalState
from connect.kits.cdc.measurements import SnapshotNumbers
from connect.kits.cdc.tables import Table
from connectors.cdc.mysql.captures import Captures
from connectors.cdc.mysql.catalog import Catalog
from connectors.cdc.mysql.changes import SourceBlock
from connectors.cdc.mysql.chunks import greatest_key, key_of, key_types
from connectors.cdc.mysql.column_types import ColumnType
from connectors.cdc.mysql.config import BinlogConfig
from connectors.cdc.mysql.position import Position
from connectors.cdc.mysql.schema_changes import SchemaChangeRecords, snapshot_statements
from connectors.cdc.mysql.snapshot import RowSource, SnapshotRow, View, opened_view

__all__ = ["SnapshotRecords"]

_PROGRESS_ROWS: Final = 500
_RESUMED_MODES: Final = ("initial", "when_needed")


class SnapshotRecords:
    """Takes a snapshot.

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
    ) -> None:
        self._config = config
        self._captures = captures
        self._events = events
        self._block = block
        self._schema_changes = schema_changes
        self._view: View = opened_view(config, captures.wanted)
        self._rows = RowSource(self._view, config.select_overrides())
        self._started_at = int(time.time())
        self._begun_at = time.monotonic()
        self._ended_at: float | None = None
        place = self._view.place
        self.position = Position(place.file, place.position, place.gtids, self._started_at)
        """The place of the snapshot, from which the stream goes on."""
        self._under_way = replace(self.position, snapshot="INITIAL").to_offset()
        self._offset = self._under_way
        self._resumes = self._view.session.server.has_gtids and config.snapshot_mode.lower() in _RESUMED_MODES

        self._left: list[tuple[Collection, Sequence[ColumnType]]] = []
        self._since = 0

    def records(self) -> Iterator[SourceRecord]:
        """Yield the records."""
        yield from self._schema_records()
        yield from self._row_records()

    def close(self) -> None:
        """End the view, and release its locks."""
        self._ended_at = time.monotonic()
        self._view.close()

    def numbers(self, *, is_running: bool) -> SnapshotNumbers:
        """Return how the snapshot is doing."""
        read = self._rows.rows_of
        remaining = len(self._view.tables) - len(read) + 1 if is_running else 0
        return SnapshotNumbers(
            is_running=is_running,
            is_completed=not is_running,
            tables=len(self._view.tables),
            remaining_tables=remaining,
            seconds=(self._ended_at or time.monotonic()) - self._begun_at,
            rows=dict(read),
        )

    def _tables(self) -> list[Table]:
        """The tables to read, in order."""
        wanted = NameFilter.of(self._config.snapshot_include_collection_list, ())
        chosen = [(table, rows) for table, rows in self._view.tables if wanted(str(table.id))]
        order = self._config.snapshot_tables_order_by_row_count
        if order != "disabled":
            chosen.sort(key=lambda pair: pair[1], reverse=order == "descending")
        return [table for table, _ in chosen]

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
            source = self._source(database, table_name, "true", now // 1000) | {"ts_ns": now}
            offset = self._under_way
            yield from self._schema_changes.records(database, ddl, changes, source, offset, offset)
        self._schema_changes.flush()

    def _source(self, database: str, table: str | None, marker: str, micros: int) -> dict[str, Any]:
        place = self._view.place
        return self._block.of(database, table, micros, snapshot=marker, file=place.file, position=place.position)

    def _row_records(self) -> Iterator[SourceRecord]:
        """Yield the records of the rows, each when it is known what follows it."""
        held: SnapshotRow | None = None
        is_first = True
        for row in self._ordered_rows():
            if held is not None:
                self._progress(held, row)
                yield self._record(held, _marker(held, row, is_first=is_first), self._offset)
                is_first = False
            held = row
        if held is not None:
            yield self._record(held, "last", self.position.to_offset())

    def _ordered_rows(self) -> Iterator[SnapshotRow]:
        """Yield the rows of the tables whose progress cannot be kept, and then those of the others."""
        ordered: list[Table] = []
        for table in self._tables():
            kinds = key_types(table) if self._resumes and not self._rows.has_own_statement(table) else None
            if kinds is None:
                yield from self._rows.rows(table, in_order=False)
                continue
            until = greatest_key(self._view.session, table, kinds)
            if until is not None:
                ordered.append(table)
                self._left.append((Collection(str(table.id), until=until), kinds))
        for table in ordered:
            yield from self._rows.rows(table, in_order=True)

    def _progress(self, row: SnapshotRow, following: SnapshotRow) -> None:
        """Have offsets say what is left after a row, every so many rows and at the end of a table."""
        if row.key is None:
            return
        is_last = following.table is not row.table
        self._since += 1
        if self._since < _PROGRESS_ROWS and not is_last:
            return
        self._since = 0
        collection, kinds = self._left[0]
        if is_last:
            del self._left[0]
        else:
            self._left[0] = replace(collection, after=key_of(row.key, kinds)), kinds
        state = IncrementalState(tuple(each for each, _ in self._left), "initial-snapshot")
        self._offset = {**self.position.to_offset(), **state.to_offset()}

    def _record(self, row: SnapshotRow, marker: str, offset: dict[str, Any]) -> SourceRecord:
        schema = self._captures.schema_of(row.table)
        after = schema.row(row.values)
        key = None
        if schema.key_schema is not None:
            key = schema.key(after) if schema.key is not None else schema.key_of_raw(row.values)
        out: list[SourceRecord] = []
        source = self._source(row.table.id.catalog, row.table.id.table, marker, self._started_at * 1_000_000)
        self._events.created(out, schema, key, after, source, None, offset, Operation.READ)
        return out[0]


def _marker(row: SnapshotRow, following: SnapshotRow, *, is_first: bool) -> str:
    if is_first:
        return "first"
    if following.table is not row.table:
        return "last_in_data_collection"
    return "first_in_data_collection" if row.is_first else "true"
