"""The events of the log as records: each carries the position from which the next one would be read."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from connect.data import Offset, Schema, SourceRecord
from connect.errors import ConnectError
from connect.kits.cdc.envelope import ChangeEvents, Operation, source_schema
from connect.kits.cdc.filters import NameFilter
from connect.kits.cdc.measurements import StreamNumbers
from connect.kits.cdc.tables import TableId
from connect.kits.cdc.transactions import TransactionMetadata
from connectors.cdc.mysql.binlog.log import Began, Committed, LogEvent, RowsChanged, Stated
from connectors.cdc.mysql.captures import Capture, Captures
from connectors.cdc.mysql.gtids import GtidSet
from connectors.cdc.mysql.position import PARTIAL_GTID, PREPARED, SENT_ROWS, Position
from connectors.cdc.mysql.prepared import PreparedTransactions
from connectors.cdc.mysql.statements import Statement, is_row_change, parse_statement

__all__ = ["Changes", "SchemaChanges", "SourceBlock", "mysql_source_schema"]

_TRANSACTION_ID: Final = "transaction_id"
_COLLECTION_ORDER: Final = "transaction_data_collection_order_"
_MICROS_PER_SECOND: Final = 1_000_000


def mysql_source_schema(connector: str) -> Schema:
    """Return the schema of the ``source`` block."""
    return source_schema(
        f"io.debezium.connector.{connector}.Source",
        {
            "table": Schema.string(optional=True),
            "server_id": Schema.int64(),
            "gtid": Schema.string(optional=True),
            "file": Schema.string(),
            "pos": Schema.int64(),
            "row": Schema.int32(),
            "thread": Schema.int64(optional=True),
            "query": Schema.string(optional=True),
        },
    )


@dataclass(frozen=True, slots=True)
class SourceBlock:
    """What all ``source`` blocks of a connector have."""

    version: str
    connector: str
    name: str

    def of(
        self,
        database: str,
        table: str | None,
        micros: int,
        *,
        snapshot: str = "false",
        server_id: int = 0,
        gtid: str | None = None,
        file: str,
        position: int,
        thread: int | None = None,
        query: str | None = None,
        nanos: int | None = None,
    ) -> dict[str, Any]:
        """Return the block of an event."""
        return {
            "version": self.version,
            "connector": self.connector,
            "name": self.name,
            "ts_ms": micros // 1000,
            "snapshot": snapshot,
            "db": database,
            "sequence": None,
            "ts_us": micros,
            "ts_ns": micros * 1000 if nanos is None else nanos,
            "table": table,
            "server_id": server_id,
            "gtid": gtid,
            "file": file,
            "pos": position,
            "row": 0,
            "thread": thread,
            "query": query,
        }


class Watcher(Protocol):
    """Takes note of what the stream tells, for incremental snapshots."""

    def began(self, gtid: str) -> None:
        """Take note of a transaction."""

    def changed(self, capture: Capture, rows: Sequence[Sequence[Any]], gtid: str) -> None:
        """Take note of changed rows of the watched table."""

    def truncated(self, gtid: str) -> None:
        """Take note that the watched table was emptied."""

    def inserted(self, raw: Sequence[Any]) -> None:
        """Take a new row of the signal table."""


class SchemaChanges(Protocol):
    """Tells of statements that change captured tables."""

    def changed(
        self, stated: Stated, statement: Statement, source: Mapping[str, Any], offset: Offset, position: Offset
    ) -> list[SourceRecord]:
        """Return the records of a statement; ``position`` is that of its transaction."""


@dataclass(slots=True)
class _Transaction:
    """The transaction at hand."""

    gtid: str | None
    offset: dict[str, Any]
    """The position before it."""
    micros: int
    timestamp: int
    server_id: int
    thread: int | None
    skip_events: int = 0
    skip_rows: int = 0
    skip_sent: int | None = None
    """How many captured rows were sent before the start; if not known, ``skip_events`` and ``skip_rows`` tell."""
    rows: int = 0
    """How many captured rows were seen."""
    is_resumed: bool = False
    is_statement: bool = False
    is_left_out: bool = False
    extra: dict[str, Any] = field(default_factory=dict)
    """What offsets within it have besides, such as its id."""


class Changes:
    """Makes records of what the log says, from a position on.

    Crash point: a record's offset names all that precedes it and nothing else, so a kill at any moment neither loses
    nor repeats a change whose offset is stored together with its record.
    """

    def __init__(
        self,
        captures: Captures,
        events: ChangeEvents,
        source: SourceBlock,
        schema_changes: SchemaChanges,
        position: Position,
        gtids: GtidSet | None,
        *,
        is_mariadb: bool,
        metadata: TransactionMetadata | None = None,
        with_query: bool = False,
        sources: NameFilter | None = None,
    ) -> None:
        self._captures = captures
        self._events = events
        self._source = source
        self._schema_changes = schema_changes
        is_partial = position.event or position.row or position.sent_rows is not None
        self._partial = position if is_partial else None
        self._gtids = gtids
        self.prepared = PreparedTransactions(position.prepared)
        """The distributed transactions whose changes are still to be passed on."""
        self._is_mariadb = is_mariadb
        self._metadata = metadata
        self._with_query = with_query
        self._sources = sources
        self._transaction: _Transaction | None = None
        self._offset: dict[str, Any] = position.whole().to_offset()
        self._last_micros: int | None = None
        self._lag_seconds = -1.0
        self._transactions = 0
        self._counts: Counter[str] = Counter()
        self._kept: dict[str, Any] = {}
        self._last: tuple[Began, int] | None = None
        self.watcher: Watcher | None = None
        self.watched = ""
        """The table whose changes the watcher is told."""
        self.signal_table = ""
        """The table whose new rows are signals."""
        self.warning: str | None = None
        """Something that an operator should know, until it is taken."""

    @property
    def is_between_transactions(self) -> bool:
        """Whether all of the last transaction was seen."""
        return self._transaction is None

    @property
    def offset(self) -> dict[str, Any]:
        """The position after the last whole transaction."""
        return self.offset_with(self._kept)

    def offset_with(self, kept: Mapping[str, Any]) -> dict[str, Any]:
        """Return that position with the state of an incremental snapshot."""
        offset = self._offset if self._partial is None else self._partial.to_offset()
        return {**offset, **kept} if kept else offset

    def keep(self, kept: dict[str, Any]) -> None:
        """Have all offsets from now on carry the state of incremental snapshots."""
        self._kept = kept

    @property
    def is_settled(self) -> bool:
        """Whether all that was sent is whole transactions."""
        return self._transaction is None and self._partial is None

    def source_of_last(self, table: TableId, marker: str, nanos: int) -> dict[str, Any]:
        """Return the ``source`` block of a row that was read beside the stream, at the place of the last event."""
        began, position = self._last or (None, int(self._offset["pos"]))
        return self._source.of(
            table.catalog,
            table.table,
            nanos // 1000,
            snapshot=marker,
            server_id=began.server_id if began else 0,
            gtid=began.gtid if began else None,
            file=began.file if began else str(self._offset["file"]),
            position=position,
            thread=began.thread if began else None,
            nanos=nanos,
        )

    def numbers(self) -> StreamNumbers:
        """Return how the stream is doing."""
        last = self._last_micros
        return StreamNumbers(
            is_connected=True,
            lag_seconds=self._lag_seconds,
            since_last_event_seconds=-1.0 if last is None else time.time() - last / _MICROS_PER_SECOND,
            creates=self._counts[Operation.CREATE],
            updates=self._counts[Operation.UPDATE],
            deletes=self._counts[Operation.DELETE],
            transactions=self._transactions,
            log_position=int(self._offset["pos"]),
        )

    @property
    def gtids(self) -> GtidSet | None:
        """The transactions that were read whole."""
        return self._gtids

    def take(self, event: LogEvent, out: list[SourceRecord]) -> None:
        """Add the records of an event."""
        match event:
            case RowsChanged():
                self._rows(event, out)
            case Began():
                self._begin(event, out)
            case Committed():
                self._commit(event, out)
            case Stated():
                self._state(event, out)

    # -- transactions --------------------------------------------------------------------------------------

    def _begin(self, event: Began, out: list[SourceRecord]) -> None:
        offset = self._offset_at(event)
        offset["server_id"] = event.server_id
        micros = event.micros if event.micros is not None else event.timestamp * _MICROS_PER_SECOND
        self._last_micros = micros
        self._lag_seconds = max(0.0, time.time() - micros / _MICROS_PER_SECOND)
        transaction = _Transaction(event.gtid, offset, micros, event.timestamp, event.server_id, event.thread)
        transaction.is_statement = event.is_statement
        transaction.is_left_out = not self._is_wanted(event.gtid)
        self._resume(transaction)
        if event.gtid is not None:
            transaction.extra[PARTIAL_GTID] = event.gtid
        self._transaction = transaction
        self._last = event, event.position
        if self.watcher is not None and event.gtid is not None:
            self.watcher.began(event.gtid)
        if self._metadata is not None and event.gtid is not None and not event.is_statement:
            transaction.extra[_TRANSACTION_ID] = event.gtid
            del transaction.extra[PARTIAL_GTID]
            begun = self._metadata.begin(event.gtid, micros // 1000, self._within(transaction, 1, 0))
            if not transaction.is_resumed and not transaction.is_left_out:
                out.append(begun)

    def _offset_at(self, event: Began | Committed) -> dict[str, Any]:
        offset: dict[str, Any] = {"ts_sec": event.timestamp, "file": event.file, "pos": event.position}
        if self._gtids:
            offset["gtids"] = str(self._gtids)
        if self.prepared.text:
            offset[PREPARED] = self.prepared.text
        return offset

    def _resume(self, transaction: _Transaction) -> None:
        """Find out how much of the transaction was sent before the start."""
        partial, self._partial = self._partial, None
        if partial is None:
            return
        if partial.partial_gtid and transaction.gtid and partial.partial_gtid != transaction.gtid:
            self.warning = (
                f"Transaction {partial.partial_gtid}, of which a part was sent, is not the next one of this server: "
                f"that is {transaction.gtid}. All of both is sent, so some changes come twice."
            )
            return
        transaction.is_resumed = True
        transaction.skip_events, transaction.skip_rows = partial.event, partial.row
        transaction.skip_sent = partial.sent_rows

    def _is_wanted(self, gtid: str | None) -> bool:
        if self._sources is None or gtid is None:
            return True
        return self._sources(gtid.partition("-" if self._is_mariadb else ":")[0])

    def _within(self, transaction: _Transaction, event: int, row: int) -> dict[str, Any]:
        offset = {**transaction.offset, **transaction.extra, **self._kept}
        if event:
            offset["event"] = event
        if row:
            offset["row"] = row
        return offset

    def _commit(self, event: Committed, out: list[SourceRecord]) -> None:
        transaction, self._transaction = self._transaction, None
        self._transactions += 1
        if event.gtid is not None and self._gtids is not None:
            self._gtids = self._gtids.with_gtid(event.gtid)
        self._offset = self._offset_at(event)
        if transaction is None:
            return
        self._offset["server_id"] = transaction.server_id
        is_told = not (transaction.is_left_out or transaction.is_statement)
        if self._metadata is not None and transaction.gtid is not None and is_told:
            out.append(self._metadata.end(transaction.gtid, transaction.micros // 1000, self.offset))

    # -- rows ----------------------------------------------------------------------------------------------

    def _rows(self, event: RowsChanged, out: list[SourceRecord]) -> None:
        transaction = self._transaction
        if transaction is None:
            raise ConnectError(
                f"The log has rows at position {event.position} outside a transaction: the offset lies within one. "
                "Delete the connector's offsets, and start it again."
            )
        capture = self._captures.of(event.table)
        if capture is None or transaction.is_left_out:
            return
        head = event.head
        operation = head.operation
        rows = capture.rows(head.data, head.start, event.end, head.images, is_partial=head.is_partial)
        if self.watcher is not None:
            self._tell(self.watcher, event, capture, transaction, rows)
        if not capture.is_sent:
            return
        if not self._events.is_skipped(operation):
            self._send(event, capture, transaction, rows, _first(event, transaction, len(rows)), out)
        transaction.rows += len(rows)
        self._counts[operation] += len(rows)

    def _tell(
        self, watcher: Watcher, event: RowsChanged, capture: Capture, transaction: _Transaction, rows: list[Any]
    ) -> None:
        """Tell the watcher of changes of the watched table, and of new rows of the signal table."""
        name = str(capture.id)
        if name == self.watched and transaction.gtid is not None:
            raws = [raw for pair in rows for raw in pair] if event.head.operation == Operation.UPDATE else rows
            watcher.changed(capture, raws, transaction.gtid)
        if name == self.signal_table and event.head.operation == Operation.CREATE:
            for raw in rows[_first(event, transaction, len(rows)) :]:
                watcher.inserted(raw)

    def _send(
        self,
        event: RowsChanged,
        capture: Capture,
        transaction: _Transaction,
        rows: list[Any],
        first: int,
        out: list[SourceRecord],
    ) -> None:
        """Add the records of the rows of an event from the ``first`` on; those before are only counted."""
        table = capture.id
        block = self._source.of(
            table.catalog,
            table.table,
            transaction.micros,
            server_id=event.server_id,
            gtid=transaction.gtid,
            file=str(transaction.offset["file"]),
            position=event.position,
            thread=transaction.thread,
            query=event.query if self._with_query else None,
        )
        operation = event.head.operation
        self._last = self._last and (self._last[0], event.position)
        base = {**transaction.offset, **transaction.extra, **self._kept, "event": event.done}
        sent = transaction.rows
        previous = {**base, "row": first, SENT_ROWS: sent + first} if first else {**base, SENT_ROWS: sent}
        passed: list[SourceRecord] = []
        for number, row in enumerate(rows):
            if number < first and self._metadata is None:
                continue
            offset = {**base, "row": number + 1, SENT_ROWS: sent + number + 1}
            source = {**block, "row": number}
            taken = out if number >= first else passed
            self._row(capture, operation, row, source, previous, offset, transaction, taken)
            if number >= first:
                previous = offset

    def _row(
        self,
        capture: Capture,
        operation: str,
        row: Any,
        source: dict[str, Any],
        previous: dict[str, Any],
        offset: dict[str, Any],
        transaction: _Transaction,
        out: list[SourceRecord],
    ) -> None:
        """Add the records of a row."""
        schema = capture.schema
        events = self._events
        has_key = schema.key_schema is not None
        if operation == Operation.CREATE:
            after = schema.row(row)
            key = self._key(capture, row, after) if has_key else None
            events.created(out, schema, key, after, source, self._block(capture, transaction, offset), offset)
        elif operation == Operation.DELETE:
            before = schema.row(row)
            key = self._key(capture, row, before) if has_key else None
            events.deleted(
                out, schema, key, before, source, self._block(capture, transaction, offset), previous, offset
            )
        else:
            self._update(capture, row, source, previous, offset, transaction, out)

    def _update(
        self,
        capture: Capture,
        row: Any,
        source: dict[str, Any],
        previous: dict[str, Any],
        offset: dict[str, Any],
        transaction: _Transaction,
        out: list[SourceRecord],
    ) -> None:
        schema, events = capture.schema, self._events
        before, after = schema.row(row[0]), schema.row(row[1])
        if schema.key_schema is None:
            block = self._block(capture, transaction, offset)
            events.updated(out, schema, None, before, after, source, block, offset)
            return
        old_key, key = self._key(capture, row[0], before), self._key(capture, row[1], after)
        if old_key == key:
            block = self._block(capture, transaction, offset)
            events.updated(out, schema, key, before, after, source, block, offset)
            return
        blocks = (
            self._block(capture, transaction, previous if self._metadata is None else offset),
            self._block(capture, transaction, offset),
        )
        events.rekeyed(out, schema, old_key, key, before, after, source, blocks, previous, offset)

    def _key(self, capture: Capture, raw: Any, row: dict[str, Any]) -> dict[str, Any]:
        make = capture.schema.key
        return make(row) if make is not None else capture.schema.key_of_raw(raw)

    def _block(self, capture: Capture, transaction: _Transaction, offset: dict[str, Any]) -> dict[str, Any] | None:
        """Count an event, and return its ``transaction`` block."""
        if self._metadata is None or transaction.gtid is None:
            return None
        name = str(capture.id)
        block = self._metadata.event(transaction.gtid, name)
        order = _COLLECTION_ORDER + name
        transaction.extra[order] = offset[order] = block["data_collection_order"]
        return block

    # -- statements ----------------------------------------------------------------------------------------

    def _state(self, event: Stated, out: list[SourceRecord]) -> None:
        transaction = self._transaction
        if transaction is None:
            return
        sql = event.query.sql
        statement = parse_statement(sql, event.query.database)
        if statement is None:
            if is_row_change(sql):
                self._refuse_statement(event)
            return
        self._forget(statement)
        captured = tuple(table for table in statement.tables if self._captures.wanted(table))
        before = tuple(table for table in statement.previous if self._captures.wanted(table))
        is_passed = event.done < transaction.skip_events
        if is_passed or transaction.is_left_out:
            return
        offset = self._within(transaction, event.done + 1, 0)
        micros = transaction.micros // 1000 * 1000
        source = self._source.of(
            statement.database,
            statement.tables[0].table if statement.tables else None,
            micros,
            server_id=event.server_id,
            gtid=event.gtid,
            file=str(transaction.offset["file"]),
            position=event.position,
        )
        if statement.kind == "TRUNCATE":
            if self.watcher is not None and event.gtid and any(str(each) == self.watched for each in captured):
                self.watcher.truncated(event.gtid)
            for table in captured:
                self._truncate(table, source, offset, out)
        elif captured or before or statement.kind == "DATABASE":
            out += self._schema_changes.changed(event, statement, source, offset, transaction.offset)

    def _forget(self, statement: Statement) -> None:
        for table in (*statement.tables, *statement.previous):
            self._captures.forget(table)
        if statement.kind == "DATABASE":
            self._captures.forget_all()

    def _truncate(self, table: Any, source: dict[str, Any], offset: dict[str, Any], out: list[SourceRecord]) -> None:
        if self._events.is_skipped(Operation.TRUNCATE):
            return
        schema = self._captures.known(table)
        if schema is not None:
            self._events.truncated(out, schema, {**source, "table": table.table}, None, offset)

    def _refuse_statement(self, event: Stated) -> None:
        if not self._captures.wants_database(event.query.database):
            return
        raise ConnectError(
            f"The log has a change of rows as a statement at position {event.position} "
            f"({event.query.sql[:60]!r}...), from which the rows cannot be told. Run SET GLOBAL binlog_format = "
            "'ROW', and end the sessions that have another. The change needs a new snapshot: delete the connector's "
            "offsets, and start it again."
        )


def _first(event: RowsChanged, transaction: _Transaction, count: int) -> int:
    """Return the number of the first row of an event that was not sent before the start."""
    if not transaction.is_resumed:
        return 0
    if transaction.skip_sent is not None:
        return min(count, max(0, transaction.skip_sent - transaction.rows))
    if event.done != transaction.skip_events:
        return count if event.done < transaction.skip_events else 0
    return min(count, transaction.skip_rows)
