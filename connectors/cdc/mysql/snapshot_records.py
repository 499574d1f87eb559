"""The records of a snapshot: what the tables look like, and then their rows."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from connect.data import SourceRecord
from connect.kits.cdc.envelope import ChangeEvents, Operation
from connect.kits.cdc.filters import NameFilter
from connect.kits.cdc.tables import Table
from connect.measurement import Measurement
from connectors.cdc.mysql.captures import Captures
from connectors.cdc.mysql.catalog import Catalog
from connectors.cdc.mysql.changes import SourceBlock
from connectors.cdc.mysql.config import BinlogConfig
from connectors.cdc.mysql.position import Position
from connectors.cdc.mysql.schema_changes import SchemaChangeRecords, snapshot_statements
from connectors.cdc.mysql.snapshot import RowSource, SnapshotRow, View, opened_view

__all__ = ["SnapshotRecords"]


class SnapshotRecords:
    """Takes a snapshot.

    All its records but the last have an offset that says that the snapshot is under way; a task that finds it begins
    the snapshot anew.
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
        place = self._view.place
        self.position = Position(place.file, place.position, place.gtids, self._started_at)
        """The place of the snapshot, from which the stream goes on."""
        self._under_way = replace(self.position, snapshot="INITIAL").to_offset()
        self._whole = self.position.to_offset()

    def records(self) -> Iterator[SourceRecord]:
        """Yield the records."""
        yield from self._schema_records()
        yield from self._row_records()

    def close(self) -> None:
        """End the view, and release its locks."""
        self._view.close()

    def measurements(self) -> Iterable[Measurement]:
        """Yield how many rows of each table were read, and how many there are about."""
        for table, rows in self._view.tables:
            labels = (("table", str(table.id)),)
            read = self._rows.rows_of.get(str(table.id), 0)
            yield Measurement("cdc_snapshot_rows_read", read, "Rows that the snapshot has read.", labels)
            yield Measurement("cdc_snapshot_rows_estimated", rows, "Rows that there are, by the catalog.", labels)

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
        for row in self._rows.rows(self._tables()):
            if held is not None:
                yield self._record(held, _marker(held, row, is_first=is_first), self._under_way)
                is_first = False
            held = row
        if held is not None:
            yield self._record(held, "last", self._whole)

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
