"""Incremental snapshots: what the stream tells them, and the records of their rows."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from connect.data import SourceRecord
from connect.kits.cdc.envelope import ChangeEvents, Operation
from connect.kits.cdc.incremental import IncrementalSnapshots, ReadyRow
from connect.kits.cdc.incremental_state import IncrementalState
from connect.kits.cdc.table_schemas import UNAVAILABLE, TableSchema
from connectors.cdc.mysql.captures import Capture
from connectors.cdc.mysql.changes import Changes
from connectors.cdc.mysql.chunks import identity_places

__all__ = ["StreamWatch"]


class StreamWatch:
    """Connects incremental snapshots with one run of the stream.

    ``on_signal`` takes the first columns of each new row of the signal table.
    """

    def __init__(
        self,
        snapshots: IncrementalSnapshots,
        changes: Changes,
        events: ChangeEvents,
        on_signal: Callable[[Sequence[str | None]], None],
    ) -> None:
        self._snapshots = snapshots
        self._changes = changes
        self._events = events
        self._on_signal = on_signal
        self._kept: IncrementalState | None = None
        self._places: tuple[TableSchema, tuple[int, ...]] | None = None
        changes.watcher = self
        self.look()

    # -- what the stream tells ---------------------------------------------------------------------------------

    def began(self, gtid: str) -> None:
        """Take note of a transaction."""
        self._snapshots.began(gtid)

    def changed(self, capture: Capture, rows: Sequence[Sequence[Any]], gtid: str) -> None:
        """Take note of changed rows of the table that is being read."""
        places = self._identity_places(capture.schema)
        identities = [tuple(raw[place] for place in places) for raw in rows]
        if any(value is UNAVAILABLE for identity in identities for value in identity):
            self._snapshots.truncated(gtid)
        else:
            self._snapshots.touched(identities, gtid)

    def truncated(self, gtid: str) -> None:
        """Take note that the table that is being read was emptied."""
        self._snapshots.truncated(gtid)

    def inserted(self, raw: Sequence[Any]) -> None:
        """Take a signal of the signal table."""
        self._on_signal([None if value is None else str(value) for value in raw])
        self.look()

    # -- what the task asks ------------------------------------------------------------------------------------

    def due(self) -> list[SourceRecord]:
        """Return the records of rows that are due between two transactions."""
        if not self._snapshots.state.is_running or not self._changes.is_settled:
            return []
        ready = self._snapshots.due(self._changes.gtids)
        records = [self._record(row) for row in ready]
        self.look()
        return records

    def look(self) -> None:
        """Have the stream watch the table that is being read, and carry the state in its offsets."""
        snapshots, changes = self._snapshots, self._changes
        changes.watched = snapshots.watched() or ""
        if snapshots.state is not self._kept:
            self._kept = snapshots.state
            changes.keep(snapshots.state.to_offset())

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
        offset = self._changes.offset_with(ready.state.to_offset())
        source = self._changes.source_of_last(schema.table.id, "incremental", now)
        self._events.created(out, schema, key, row, source, None, offset, Operation.READ)
        return out[0]
