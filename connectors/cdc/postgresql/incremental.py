"""Incremental snapshots of PostgreSQL: what the stream tells them, and the records of their rows."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from connect.data import SourceRecord
from connect.kits.cdc.envelope import ChangeEvents, Operation
from connect.kits.cdc.incremental import IncrementalSnapshots, ReadyRow
from connect.kits.cdc.table_schemas import UNAVAILABLE, TableSchema
from connectors.cdc.postgresql.chunks import identity_places
from connectors.cdc.postgresql.stream import ChangeStream, StreamedTable, StreamNames

__all__ = ["StreamWatch"]


class StreamWatch:
    """Connects incremental snapshots with one run of the stream.

    ``on_signal`` takes the texts of the columns of each new row of the signal table.
    """

    def __init__(
        self,
        snapshots: IncrementalSnapshots,
        stream: ChangeStream,
        names: StreamNames,
        events: ChangeEvents,
        on_signal: Callable[[Sequence[str | None]], None],
    ) -> None:
        self._snapshots = snapshots
        self._stream = stream
        self._names = names
        self._events = events
        self._on_signal = on_signal
        self._kept = snapshots.state
        self._places: tuple[TableSchema, tuple[int, ...]] | None = None
        self.has_news = snapshots.state.is_running
        """Whether the state has changed since the task has asked: offsets without records have to carry it too."""

        stream.watcher = self
        stream.keep(snapshots.state.to_offset())
        self.look()

    # -- what the stream tells ---------------------------------------------------------------------------------

    def began(self, xid: int) -> None:
        """Take note of a transaction."""
        self._snapshots.began(xid)

    def changed(self, table: StreamedTable, rows: Sequence[Sequence[Any]], xid: int) -> None:
        """Take note of a change of the table that is being read."""
        if not rows or table.schema is None:
            self._snapshots.truncated(xid)
            return
        places = self._identity_places(table.schema)
        identities = [tuple(raw[place] for place in places) for raw in rows]
        if any(value is UNAVAILABLE for identity in identities for value in identity):
            # The key was not sent, since it did not change and is long: the chunk is read again.
            self._snapshots.truncated(xid)
            return
        self._snapshots.touched(identities, xid)

    def inserted(self, raw: Sequence[Any]) -> None:
        """Take a signal of the signal table."""
        self._on_signal([None if value is None else value.decode(errors="replace") for value in raw])
        self.look()

    @property
    def is_active(self) -> bool:
        """Whether there is anything to read."""
        return self._snapshots.state.is_running

    # -- what the task asks ------------------------------------------------------------------------------------

    def due(self, position: int) -> list[SourceRecord]:
        """Return the records of rows that are due at a position between two transactions."""
        ready = self._snapshots.due(position)
        records = [self._record(row) for row in ready]
        self.look()
        return records

    def look(self) -> None:
        """Have the stream watch the table that is being read, and carry the state in its offsets."""
        snapshots, stream = self._snapshots, self._stream
        stream.watched = snapshots.watched() or ""
        if snapshots.state is not self._kept:
            self._kept = snapshots.state
            stream.keep(snapshots.state.to_offset())
            self.has_news = True

    def _identity_places(self, schema: TableSchema) -> tuple[int, ...]:
        if self._places is None or self._places[0] is not schema:
            self._places = schema, identity_places(schema, self._snapshots.surrogate)
        return self._places[1]

    def _record(self, ready: ReadyRow) -> SourceRecord:
        schema, now = ready.schema, time.time_ns()
        row = schema.row(ready.raw)
        key = None
        if schema.key_schema is not None:
            key = schema.key(row) if schema.key is not None else schema.key_of_raw(ready.raw)
        out: list[SourceRecord] = []
        offset = self._stream.offset_with(ready.state.to_offset())
        source = self._source(schema, now)
        self._events.created(out, schema, key, row, source, None, offset, Operation.READ)
        return out[0]

    def _source(self, schema: TableSchema, now: int) -> dict[str, Any]:
        names, last = self._names, self._stream.position().commit_lsn
        return {
            "version": names.version,
            "connector": "postgresql",
            "name": names.prefix,
            "ts_ms": now // 1_000_000,
            "snapshot": "incremental",
            "db": names.database,
            "sequence": f'["{last}","{last}"]',
            "ts_us": now // 1000,
            "ts_ns": now,
            "schema": schema.table.id.schema,
            "table": schema.table.id.table,
            "txId": None,
            "lsn": None,
            "xmin": None,
            "origin": None,
            "origin_lsn": None,
        }
