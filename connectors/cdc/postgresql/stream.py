"""The stream of changes: messages of ``pgoutput`` become records, each with the position after it.

Pure: messages go in, records come out. Relations are looked up by a function that may ask the catalog.

================================================  ===============================================================
kill -9 here                                      then
================================================  ===============================================================
before the records are acknowledged by Kafka      the server sends their transaction again, and the events that
                                                  the stored position counts are passed over: nothing is lost;
                                                  doubled are those after it, or none with exactly-once support
between the acknowledgement and the commit of     the same
the offset
after the offset's commit, before the slot is     the stored offset is ahead of the slot: the server is asked to
told                                              start there
while the slot is told                            the same; the slot is never ahead of a stored offset
================================================  ===============================================================
"""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol

from connect.data import Offset, Schema, SourceRecord
from connect.errors import ConnectError
from connect.kits.cdc.blanks import blank_fields
from connect.kits.cdc.envelope import ChangeEvents, Operation, source_schema
from connect.kits.cdc.filters import NameFilter
from connect.kits.cdc.table_schemas import UNAVAILABLE, TableSchema
from connect.kits.cdc.transactions import BLOCK_SCHEMA, TransactionMetadata
from connectors.cdc.postgresql import pgoutput
from connectors.cdc.postgresql.offsets import Position, ServerIdentity, format_lsn, identity_of, partial_offset
from connectors.cdc.postgresql.replication import PAYLOAD

__all__ = ["SOURCE_SCHEMA", "ChangeStream", "ChangeWatcher", "StreamNames", "StreamedTable"]

SOURCE_SCHEMA: Final = source_schema(
    "io.debezium.connector.postgresql.Source",
    {
        "schema": Schema.string(),
        "table": Schema.string(),
        "txId": Schema.int64(optional=True),
        "lsn": Schema.int64(optional=True),
        "xmin": Schema.int64(optional=True),
        "origin": Schema.string(optional=True),
        "origin_lsn": Schema.int64(optional=True),
    },
)
_MESSAGE_KEY: Final = Schema.struct(
    {"prefix": Schema.string(optional=True)}, name="io.debezium.connector.postgresql.MessageKey"
)
_MESSAGE_VALUE: Final = Schema.struct(
    {
        "op": Schema.string(),
        "ts_ms": Schema.int64(optional=True),
        "source": SOURCE_SCHEMA,
        "transaction": BLOCK_SCHEMA,
        "message": Schema.struct(
            {"prefix": Schema.string(optional=True), "content": Schema.bytes(optional=True)},
            optional=True,
            name="io.debezium.connector.postgresql.Message",
        ),
    },
    name="io.debezium.connector.postgresql.MessageValue",
)
_POSITION: Final = struct.Struct(">Q")
_OID: Final = struct.Struct(">I")
_EVENT: Final = struct.Struct(">Q17xI")
"""The position of a change, and the table that it concerns."""

_NEW: Final = ord("N")
_OLD: Final = ord("O")
_MESSAGES: Final = "message"
"""The last part of the topic of logical messages, and their name in the metadata of transactions."""


@dataclass(frozen=True, slots=True)
class StreamedTable:
    """A version of a table in the stream; ``schema`` is None if the table is not captured.

    ``has_old_key`` says whether an old row that is sent without its other columns has all columns of the key.
    ``whole_row`` makes values of new rows, if it can.
    """

    name: str
    schema: TableSchema | None
    split: pgoutput.Split
    table_schema: str
    table: str
    has_old_key: bool
    whole_row: pgoutput.WholeRow | None = None


class ChangeWatcher(Protocol):
    """What is told of the changes of some tables as the stream comes to them."""

    def began(self, xid: int) -> None:
        """Take note of a transaction."""

    def changed(self, table: StreamedTable, rows: Sequence[Sequence[Any]], xid: int) -> None:
        """Take note of raw rows of a watched table, before and after a change; of none if it was emptied."""

    def inserted(self, raw: Sequence[Any]) -> None:
        """Take a new row of the signal table."""


@dataclass(frozen=True, slots=True)
class StreamNames:
    """What records are named by: the connector's version and name, the database, and the topic of messages."""

    version: str
    prefix: str
    database: str
    message_topic: str


class ChangeStream:
    """Turns the messages of a stream into records, which it adds to ``out``, and knows its position.

    ``position`` is where the stream starts: at the end of its whole transaction. What is already sent of the next is
    passed over.
    """

    def __init__(
        self,
        names: StreamNames,
        events: ChangeEvents,
        look_up: Callable[[pgoutput.Relation], StreamedTable],
        with_nulls: Callable[[TableSchema, Sequence[Any]], TableSchema],
        position: Position,
        partition: Offset,
        *,
        identity: ServerIdentity | None = None,
        metadata: TransactionMetadata | None = None,
        prefixes: NameFilter,
    ) -> None:
        self._names = names
        self._events = events
        self._skipped = events.skipped
        self._look_up = look_up
        self._with_nulls = with_nulls
        self._partition = partition
        self._metadata = metadata
        self._prefixes = prefixes
        self._identity = dict(identity_of(identity))
        self._server = identity
        self._state: dict[str, Any] = {}
        self._blanks: dict[str, tuple[TableSchema, Mapping[str, Any]]] = {}
        self._tables: dict[int, StreamedTable] = {}
        self.out: list[SourceRecord] = []
        self._sink = self.out
        self.watcher: ChangeWatcher | None = None
        self.watched = ""
        """The table whose changes the watcher is told."""

        self.signal_table = ""
        self.xmin: int | None = None
        self.transactions = 0
        self.creates = self.updates = self.deletes = self.others = 0
        self.last_event_us: int | None = None
        self.lag_us = 0
        self._commit_lsn = position.commit_lsn
        self._sequence = _sequence_after(None if position.is_after_snapshot else position.commit_lsn)
        self._sources = {_MESSAGES: self._source_of("", "")}
        self._resume = position if position.xid is not None else None
        self._lsn = position.event_lsn
        self._count = position.events
        self._xid: int | None = None
        """The transaction that has begun and not ended."""

        self._origin: tuple[str, int] | None = None
        self._times: tuple[int, int, int] = (0, 0, 0)
        self._last_offset: Offset = {}
        self._ended: tuple[int, int | None, int] | None = None
        """The end, the number and the time of the last transaction if its offset is not made yet: few are asked for."""

        if position.xid is not None:
            self._last_offset = partial_offset(position)
        elif position.commit_lsn is not None:
            self._last_offset = self._whole_offset(position.commit_lsn, None, None)
        self._handlers: Mapping[int, Callable[[bytes], None]] = {
            ord("B"): self._begin,
            ord("C"): self._commit,
            ord("I"): self._insert,
            ord("U"): self._update,
            ord("D"): self._delete,
            ord("R"): self._relation,
            ord("T"): self._truncate,
            ord("M"): self._message,
            ord("O"): self._set_origin,
        }

    def handle(self, data: bytes) -> None:
        """Take a message of the stream."""
        handler = self._handlers.get(data[PAYLOAD])
        if handler is not None:
            handler(data)

    @property
    def is_between_transactions(self) -> bool:
        """Whether the last transaction is whole."""
        return self._xid is None

    def position(self) -> Position:
        """Return the position after all records that were made."""
        if self._resume is not None:
            return self._resume
        xid = self._xid if self._count else None
        if xid is None:
            return Position(self._commit_lsn, identity=self._server)
        return Position(self._commit_lsn, self._lsn, self._count, xid, identity=self._server)

    def offset(self) -> Offset:
        """Return the offset after all records that were made."""
        if self._ended is not None:
            self._last_offset, self._ended = self._whole_offset(*self._ended), None
        return self._last_offset

    def keep(self, state: Mapping[str, Any]) -> None:
        """Have offsets carry this state from now on, in place of the one before."""
        last, before, self._state = self.offset(), self._state, dict(state)
        self._identity = {**identity_of(self._server), **state}
        if last:
            self._last_offset = {key: last[key] for key in last if key not in before} | self._state

    def offset_with(self, state: Mapping[str, Any]) -> Offset:
        """Return the offset after all records that were made, with another state."""
        return {key: value for key, value in self.offset().items() if key not in self._state} | dict(state)

    def pass_to(self, lsn: int) -> Offset | None:
        """Move on to a position before which nothing is left to send; return its offset, None if it is not ahead.

        Allowed between transactions only, and only for a position up to which the server has sent everything.
        """
        if self._xid is not None or (self._commit_lsn is not None and lsn <= self._commit_lsn):
            return None
        self._resume = None
        self._commit_lsn = lsn
        self._ended = lsn, None, time.time_ns() // 1000
        return self.offset()

    # -- transactions ----------------------------------------------------------------------------------------------

    def _begin(self, data: bytes) -> None:
        _, at, xid = pgoutput.BEGIN.unpack_from(data, PAYLOAD + 1)
        self._xid = xid
        self._origin = None
        self._lsn = self._count = 0
        at += pgoutput.EPOCH_2000_US
        self._times = (at // 1000, at, at * 1000)
        if self.watcher is not None:
            self.watcher.began(xid)
        if self._resume is not None and self._resume.xid != xid:
            if self._resume.commit_lsn is not None:
                # The transaction that was begun is no longer published: nothing of this one was sent.
                self._resume = None
            else:
                self._metadata_begins(data)
                return
        if self._resume is None:
            self._metadata_begins(data)
        elif self._metadata is not None:
            self._metadata.begin("", 0, {})

    def _metadata_begins(self, data: bytes) -> None:
        if self._metadata is not None:
            identifier = self._transaction_id(self._start(data))
            self.out.append(self._metadata.begin(identifier, self._times[0], self.offset()))

    def _commit(self, data: bytes) -> None:
        _, _, end, at = pgoutput.COMMIT.unpack_from(data, PAYLOAD + 1)
        at += pgoutput.EPOCH_2000_US
        xid = self._xid
        if self._resume is not None and self._resume.xid == xid and xid is not None:
            self._resume = None
        self._commit_lsn = end
        self._sequence = _sequence_after(end)
        self._ended = end, xid, at
        if self._metadata is not None:
            self.out.append(self._metadata.end(f"{xid}:{end}", self._times[0], self.offset()))
        self._xid = None
        self.transactions += 1
        self.last_event_us = at
        self.lag_us = max(0, time.time_ns() // 1000 - at)

    def _set_origin(self, data: bytes) -> None:
        (lsn,) = _POSITION.unpack_from(data, PAYLOAD + 1)
        end = data.index(0, PAYLOAD + 9)
        self._origin = (data[PAYLOAD + 9 : end].decode(), lsn)

    def _relation(self, data: bytes) -> None:
        relation = pgoutput.relation(data, PAYLOAD + 1)
        self._tables[relation.oid] = table = self._look_up(relation)
        self._sources[table.name] = self._source_of(table.table_schema, table.table)

    # -- changes -----------------------------------------------------------------------------------------------

    def _insert(self, data: bytes) -> None:
        lsn, oid = _EVENT.unpack_from(data, 1)
        table = self._tables[oid]
        schema = self._counted(table, lsn, Operation.CREATE, "INSERT")
        if table.name == self.signal_table and self._sink is self.out and self.watcher is not None:
            self.watcher.inserted(table.split(data, PAYLOAD + 6)[0])
        if schema is None:
            return
        self.creates += 1
        row = None
        if table.whole_row is not None and table.name != self.watched:
            row = table.whole_row(data, PAYLOAD + 6)
        if row is None:
            schema, row, key = self._inserted(data, table, schema)
        else:
            key = None if schema.key_schema is None or schema.key is None else schema.key(row)
        offset = self._moved(lsn, "INSERT")
        source = self._source(table.name, lsn)
        block = None if self._metadata is None else self._block(table.name, lsn)
        self._events.created(self._sink, schema, key, row, source, block, offset)

    def _inserted(
        self, data: bytes, table: StreamedTable, schema: TableSchema
    ) -> tuple[TableSchema, dict[str, Any], dict[str, Any] | None]:
        """Return the schema, the value and the key of a new row that is watched, or out of the ordinary."""
        raw, _ = table.split(data, PAYLOAD + 6)
        if table.name == self.watched:
            self._tell(table, raw)
        schema = self._fitting(data, schema, raw)
        row = schema.row(raw)
        return schema, row, self._key(schema, row, raw)

    def _update(self, data: bytes) -> None:
        table, lsn = self._table(data), self._start(data)
        if (schema := self._counted(table, lsn, Operation.UPDATE, "UPDATE")) is None:
            return
        self.updates += 1
        at = PAYLOAD + 5
        kind = data[at]
        old: list[Any] | None = None
        if kind != _NEW:
            old, at = table.split(data, at + 1)
        raw, _ = table.split(data, at + 1)
        if old is not None:
            # The old row has values that the new one leaves out because they did not change: all, or those of the key.
            raw = [
                before if value is UNAVAILABLE and before is not None else value
                for value, before in zip(raw, old, strict=True)
            ]
        if table.name == self.watched:
            self._tell(table, raw, *(() if old is None else (old,)))
        whole = (raw,) if old is None or kind != _OLD else (raw, old)
        schema = self._fitting(data, schema, *whole)
        row = schema.row(raw)
        key = self._key(schema, row, raw)
        before = None if old is None else schema.row(old)
        if before is not None and kind != _OLD:
            before = self._without_gaps(table, schema, before)
        old_key = None
        if before is not None and old is not None and (kind == _OLD or table.has_old_key):
            old_key = self._key(schema, before, old)
        previous, offset = self.offset(), self._moved(lsn, "UPDATE")
        source = self._source(table.name, lsn)
        if before is not None and key is not None and old_key is not None and old_key != key:
            blocks = self._block(table.name, lsn), self._block(table.name, lsn)
            self._events.rekeyed(self._sink, schema, old_key, key, before, row, source, blocks, previous, offset)
            return
        self._events.updated(self._sink, schema, key, before, row, source, self._block(table.name, lsn), offset)

    def _delete(self, data: bytes) -> None:
        table, lsn = self._table(data), self._start(data)
        if (schema := self._counted(table, lsn, Operation.DELETE, "DELETE")) is None:
            return
        self.deletes += 1
        old, _ = table.split(data, PAYLOAD + 6)
        if data[PAYLOAD + 5] != _OLD and not table.has_old_key and schema.key_columns:
            raise ConnectError(
                f"A row of {table.name} was deleted, and the database has not sent the columns of its key, since the "
                "replica identity of the table is another index. Set message.key.columns to the columns of that index, "
                f"or run ALTER TABLE {table.name} REPLICA IDENTITY DEFAULT before rows are deleted. To pass over this "
                f"deletion, set the connector's offset behind {format_lsn(lsn)}."
            )
        if table.name == self.watched:
            self._tell(table, old)
        if data[PAYLOAD + 5] == _OLD:
            schema = self._fitting(data, schema, old)
        before = schema.row(old)
        key = self._key(schema, before, old)
        if data[PAYLOAD + 5] != _OLD:
            before = self._without_gaps(table, schema, before)
        previous, offset = self.offset(), self._moved(lsn, "DELETE")
        source = self._source(table.name, lsn)
        block = self._block(table.name, lsn)
        self._events.deleted(self._sink, schema, key, before, source, block, previous, offset)

    def _truncate(self, data: bytes) -> None:
        lsn = self._start(data)
        self._count_event(lsn)
        truncated = [self._tables[oid] for oid in pgoutput.truncation(data, PAYLOAD + 1).relations]
        kept = [(table, table.schema) for table in truncated if table.schema is not None]
        previous, offset = self.offset(), self._moved(lsn, "TRUNCATE")
        if Operation.TRUNCATE in self._skipped:
            return
        self.others += len(kept)
        for number, (table, schema) in enumerate(kept, start=1):
            if table.name == self.watched:
                self._tell(table)
            source = self._source(table.name, lsn)
            block = self._block(table.name, lsn)
            at = offset if number == len(kept) else previous
            self._events.truncated(self._sink, schema, source, block, at)

    def _message(self, data: bytes) -> None:
        message, lsn = pgoutput.logical_message(data, PAYLOAD + 1), self._start(data)
        if message.is_transactional and self._xid is not None:
            self._count_event(lsn)
            offset = self._moved(lsn, "MESSAGE")
            block = self._block(_MESSAGES, lsn) if self._prefixes(message.prefix) else None
        else:
            # It stands between two transactions, all earlier ones are sent: the position moves behind it.
            now = time.time_ns() // 1000
            self._times = (now // 1000, now, now * 1000)
            self._sink = self.out
            self._commit_lsn = message.lsn + 1
            self._ended = message.lsn + 1, None, now
            offset = self.offset()
            block = None
        if not self._prefixes(message.prefix):
            return
        value = {
            "op": Operation.MESSAGE,
            "ts_ms": time.time_ns() // 1_000_000,
            "source": self._source(_MESSAGES, lsn),
            "transaction": block,
            "message": {"prefix": message.prefix, "content": message.content},
        }
        self._sink.append(
            SourceRecord(
                self._names.message_topic,
                value,
                _MESSAGE_VALUE,
                {"prefix": message.prefix},
                _MESSAGE_KEY,
                source_partition=self._partition,
                source_offset=offset,
            )
        )

    def _fitting(self, data: bytes, schema: TableSchema, *rows: Sequence[Any]) -> TableSchema:
        """Return the schema for whole rows: from now on it allows a null that was written before it was forbidden."""
        for raw in rows:
            if schema.lacks(raw):
                schema = self._with_nulls(schema, raw)
                table = replace(self._table(data), schema=schema, whole_row=None)
                self._tables[_OID.unpack_from(data, PAYLOAD + 1)[0]] = table
        return schema

    def _without_gaps(self, table: StreamedTable, schema: TableSchema, row: dict[str, Any]) -> dict[str, Any]:
        """Return a row of which only the key was sent, with values for columns that must not be null."""
        blanks = self._blanks.get(table.name)
        if blanks is None or blanks[0] is not schema:
            blanks = self._blanks[table.name] = schema, blank_fields(schema.value_schema)
        missing = {name: blank for name, blank in blanks[1].items() if row[name] is None}
        return {**row, **missing} if missing else row

    def _tell(self, table: StreamedTable, *rows: Sequence[Any]) -> None:
        if self.watcher is not None and self._xid is not None:
            self.watcher.changed(table, rows, self._xid)

    # -- positions ---------------------------------------------------------------------------------------------

    @staticmethod
    def _start(data: bytes) -> int:
        lsn: int = _POSITION.unpack_from(data, 1)[0]
        return lsn

    def _table(self, data: bytes) -> StreamedTable:
        return self._tables[_OID.unpack_from(data, PAYLOAD + 1)[0]]

    def _counted(self, table: StreamedTable, lsn: int, operation: str, kind: str) -> TableSchema | None:
        """Count an event; return its table's schema unless it is left out, or was sent before and needs no counting."""
        self._count_event(lsn)
        schema = table.schema
        is_left_out = schema is None or operation in self._skipped
        if is_left_out or (self._sink is not self.out and self._metadata is None):
            self._moved(lsn, kind)
            return None
        return schema

    def _count_event(self, lsn: int) -> None:
        """Count an event of the transaction. The records of one that was sent before go nowhere."""
        if lsn == self._lsn:
            self._count += 1
        else:
            self._lsn, self._count = lsn, 1
        resume = self._resume
        if resume is None or self._xid is None or resume.xid != self._xid:
            self._sink = self.out
        elif (lsn, self._count) <= (resume.event_lsn, resume.events):
            self._sink = []
        else:
            self._resume = None
            self._sink = self.out

    def _moved(self, lsn: int, kind: str) -> Offset:
        """Return the offset after an event; that of the stream stays where it was while events are passed over."""
        offset: dict[str, Any] = {
            "lsn_proc": lsn,
            "lsn_events_processed": self._count,
            "messageType": kind,
            "lsn_commit": self._commit_lsn,
            "lsn": lsn,
            "txId": self._xid,
            "ts_usec": self._times[1],
            **self._identity,
        }
        if self.xmin is not None:
            offset["xmin"] = self.xmin
        if self._sink is self.out:
            self._last_offset, self._ended = offset, None
        return offset

    def _whole_offset(self, lsn: int, xid: int | None, at_us: int | None) -> Offset:
        offset: dict[str, Any] = {"lsn_proc": lsn, "messageType": "COMMIT", "lsn_commit": lsn, "lsn": lsn}
        if xid is not None:
            offset["txId"] = xid
        if at_us is not None:
            offset["ts_usec"] = at_us
        return offset | self._identity

    # -- blocks ------------------------------------------------------------------------------------------------

    @staticmethod
    def _key(schema: TableSchema, row: dict[str, Any], raw: list[Any]) -> dict[str, Any] | None:
        if schema.key_schema is None:
            return None
        return schema.key(row) if schema.key is not None else schema.key_of_raw(raw)

    def _transaction_id(self, lsn: int) -> str:
        return f"{self._xid}:{lsn}"

    def _block(self, collection: str, lsn: int) -> dict[str, Any] | None:
        return None if self._metadata is None else self._metadata.event(self._transaction_id(lsn), collection)

    def _source(self, name: str, lsn: int) -> dict[str, Any]:
        source = self._sources[name].copy()
        source["ts_ms"], source["ts_us"], source["ts_ns"] = self._times
        source["sequence"] = f'{self._sequence}"{lsn}"]'
        source["txId"] = self._xid
        source["lsn"] = lsn
        source["xmin"] = self.xmin
        if self._origin is not None:
            source["origin"], source["origin_lsn"] = self._origin
        return source

    def _source_of(self, schema: str, table: str) -> dict[str, Any]:
        """Return the source block of a table without what each event has of its own: copies are made of it quickly."""
        told = {"version": self._names.version, "connector": "postgresql", "name": self._names.prefix}
        told |= {"snapshot": "false", "db": self._names.database, "schema": schema, "table": table}
        return {field.name: told.get(field.name) for field in SOURCE_SCHEMA.fields}


def _sequence_after(lsn: int | None) -> str:
    """Return the beginning of the sequence of events: the end of the last transaction that was seen."""
    return "[null," if lsn is None else f'["{lsn}",'
