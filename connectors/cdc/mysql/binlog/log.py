"""The log as transactions: follows the events of a connection, and tells where each change lies in it.

A transaction's events are counted as Debezium counts them, since a position within a transaction is the number of its
events that are done: MySQL's begins with BEGIN, MariaDB's with its GTID, and everything after that counts.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

from connectors.cdc.mysql.binlog import events
from connectors.cdc.mysql.binlog.errors import BinlogError
from connectors.cdc.mysql.binlog.events import EventType, Gtid, Header, Query, RowsHead
from connectors.cdc.mysql.binlog.table_map import TableMap, parse_table_map

__all__ = ["Began", "Committed", "Log", "LogEvent", "Resolved", "RowsChanged", "Stated"]

_ARTIFICIAL: Final = 0x20
"""The flag of events that are in no file."""
_WRAP: Final = 1 << 32
_BEGIN: Final = re.compile(r"\s*(BEGIN|XA\s+START|START\s+TRANSACTION)\b", re.IGNORECASE)
_END: Final = re.compile(r"\s*(COMMIT|ROLLBACK)\s*;?\s*\Z", re.IGNORECASE)
_INSIDE: Final = re.compile(r"\s*(SAVEPOINT|ROLLBACK\s+TO|RELEASE\s+SAVEPOINT|XA\s+END)\b", re.IGNORECASE)
_DISTRIBUTED: Final = re.compile(r"\s*XA\s+START\b", re.IGNORECASE)
_DISTRIBUTED_END: Final = re.compile(r"\s*XA\s+(COMMIT|ROLLBACK)\b", re.IGNORECASE)
_XID: Final = re.compile(r"\bX'([0-9a-f]*)'\s*,\s*X'([0-9a-f]*)'\s*,\s*([0-9]+)", re.IGNORECASE)
_OPENS: Final = re.compile(r"\bSTART\s+TRANSACTION\s*\Z", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Began:
    """A transaction begins; ``file`` and ``position`` are where to begin reading to read it again."""

    gtid: str | None
    file: str
    position: int
    timestamp: int
    server_id: int
    thread: int | None
    micros: int | None
    """When the transaction was committed, in microseconds since 1970, if the log says."""
    is_statement: bool = False
    """Whether it is a single statement, such as a change of the schema."""
    is_distributed: bool = False
    """Whether it is a distributed (XA) transaction, whose changes count only once another one commits it."""


@dataclass(slots=True)
class RowsChanged:
    """Rows of one table, still packed."""

    table: TableMap
    head: RowsHead
    end: int
    """Where the rows end in the event."""
    position: int
    done: int
    """How many events of the transaction precede this one."""
    timestamp: int
    server_id: int
    query: str | None


@dataclass(frozen=True, slots=True)
class Stated:
    """A statement that is logged as such: a change of the schema, as a rule."""

    query: Query
    gtid: str | None
    position: int
    timestamp: int
    server_id: int
    done: int


@dataclass(frozen=True, slots=True)
class Committed:
    """The transaction is whole; reading goes on at ``file`` and ``position``."""

    gtid: str | None
    file: str
    position: int
    timestamp: int
    done: int
    prepared: str | None = None
    """The id of the distributed transaction that is only prepared by this, if any."""


@dataclass(frozen=True, slots=True)
class Resolved:
    """A prepared distributed transaction is committed or rolled back, in a transaction that has nothing else."""

    xid: str
    is_committed: bool
    position: int
    server_id: int


LogEvent: TypeAlias = Began | RowsChanged | Stated | Committed | Resolved


@dataclass(slots=True)
class _Transaction:
    gtid: Gtid
    position: int
    done: int = 0
    is_open: bool = False


class Log:
    """What one connection has sent so far. Not shared between threads."""

    def __init__(self, file: str, position: int, *, is_mariadb: bool) -> None:
        self.file = file
        self.position = position
        """Where the next event begins."""
        self._is_mariadb = is_mariadb
        self._has_checksums = False
        self._tables: dict[int, TableMap] = {}
        self._parsed: dict[bytes, TableMap] = {}
        self._transaction: _Transaction | None = None
        self._statement: str | None = None
        self._thread: int | None = None

    def read(self, raw: bytes) -> Iterator[LogEvent]:
        """Take an event as it came, and yield what it means. Raises :class:`BinlogError` if it is damaged."""
        try:
            yield from self._read(raw)
        except (IndexError, ValueError, struct.error) as error:
            raise BinlogError(f"An event at {self.file}:{self.position} in the log is damaged: {error}.") from error

    def _read(self, raw: bytes) -> Iterator[LogEvent]:
        header = events.parse_header(raw, 0)
        kind = header.type
        if kind == EventType.ROTATE:
            self._rotate(raw)
            return
        if kind == EventType.FORMAT_DESCRIPTION:
            self._has_checksums = events.checksum_of(raw)
            self._advance(header)
            self._parsed.clear()
            return
        body = self._body(raw)
        if kind in (EventType.HEARTBEAT, EventType.HEARTBEAT_V2):
            return
        start = self._advance(header)
        if kind == EventType.TRANSACTION_PAYLOAD:
            for inner in events.unpacked_payload(body):
                inner_header = events.parse_header(inner, 0)
                yield from self._event(inner_header, inner[events.HEADER_BYTES :], start)
        else:
            yield from self._event(header, body, start)

    def _body(self, raw: bytes) -> bytes:
        if not self._has_checksums:
            return raw[events.HEADER_BYTES :]
        events.verified(raw)
        return raw[events.HEADER_BYTES : -events.CHECKSUM_BYTES]

    def _rotate(self, raw: bytes) -> None:
        # The first one comes before anything has told whether there are checksums.
        end = len(raw) - (events.CHECKSUM_BYTES if events.is_checked(raw) else 0)
        self.file, self.position = events.rotation(raw[events.HEADER_BYTES : end])
        self._tables.clear()

    def _advance(self, header: Header) -> int:
        """Move past an event, and return where it began."""
        if header.end == 0 or header.flags & _ARTIFICIAL:
            return self.position
        # The header has the lower 32 bits only, and a transaction may make a file larger than that.
        end = self.position - self.position % _WRAP + header.end
        if end < self.position:
            end += _WRAP
        self.position = end
        return end - header.size

    def _event(self, header: Header, body: bytes, start: int) -> Iterator[LogEvent]:
        kind = header.type
        transaction = self._transaction
        if kind == EventType.TABLE_MAP:
            self._map(body)
        elif kind in events.ROWS_EVENTS:
            yield self._rows(header, body, start)
        elif kind in (EventType.QUERY, EventType.QUERY_COMPRESSED):
            query = events.query(body, is_compressed=kind == EventType.QUERY_COMPRESSED)
            yield from self._query(header, query, start)
            return
        elif kind == EventType.XID:
            yield from self._end(header)
            return
        elif kind == EventType.XA_PREPARE:
            yield from self._end(header, prepared=events.prepared_xid(body))
            return
        elif kind in _GTIDS:
            yield from self._begin(header, body, start)
            return
        elif kind in (EventType.ROWS_QUERY, EventType.ANNOTATE_ROWS):
            read = events.rows_query if kind == EventType.ROWS_QUERY else events.annotated_query
            self._statement = read(body)
        elif kind == EventType.INCIDENT:
            raise BinlogError(
                f"The server has lost events of its log at {self.file}:{start} (an incident event): its log does not "
                "have all changes. Take a new snapshot: reset the connector's offsets, and start it again."
            )
        elif kind == EventType.START_ENCRYPTION:
            raise BinlogError("The server sends an encrypted log, which only the server itself can read.")
        if transaction is not None and transaction.is_open:
            transaction.done += 1

    def _begin(self, header: Header, body: bytes, start: int) -> Iterator[LogEvent]:
        if header.type == EventType.MARIADB_GTID:
            gtid = events.mariadb_gtid(body, header.server_id)
        elif header.type == EventType.GTID_TAGGED:
            gtid = events.tagged_gtid(body)
        else:
            gtid = events.mysql_gtid(body, is_anonymous=header.type == EventType.ANONYMOUS_GTID)
        self._transaction = _Transaction(gtid, start)
        self._statement, self._thread = None, None
        if self._is_mariadb:
            self._transaction.is_open = not gtid.is_standalone
            if not gtid.is_completed:  # Otherwise the statement tells which of both it is.
                is_statement, is_distributed = gtid.is_standalone, gtid.is_prepared
                yield self._began(header, start, is_statement=is_statement, is_distributed=is_distributed)
            self._transaction.done = 1

    def _began(self, header: Header, start: int, *, is_statement: bool, is_distributed: bool = False) -> Began:
        gtid = self._transaction.gtid if self._transaction else Gtid(None)
        return Began(
            gtid.text,
            self.file,
            start,
            header.timestamp,
            header.server_id,
            self._thread,
            gtid.micros,
            is_statement,
            is_distributed,
        )

    def _query(self, header: Header, query: Query, start: int) -> Iterator[LogEvent]:
        sql = query.sql
        if _BEGIN.match(sql):
            self._thread = query.thread
            yield from self._open(header, start, is_distributed=_DISTRIBUTED.match(sql) is not None)
        elif _END.match(sql):
            yield from self._end(header)
        elif _INSIDE.match(sql):
            self._count()
        elif end := _DISTRIBUTED_END.match(sql):
            yield from self._resolve(header, sql, start, is_committed=end[1].upper() == "COMMIT")
        else:
            yield from self._state(header, query, start)

    def _resolve(self, header: Header, sql: str, start: int, *, is_committed: bool) -> Iterator[LogEvent]:
        xid = _XID.search(sql)
        if xid is None:
            raise BinlogError(f"At {self.file}:{start} the log ends a distributed transaction without its id: {sql!r}.")
        yield from self._open(header, start, is_statement=not is_committed)
        yield Resolved(events.xid_text(xid[1], xid[2], int(xid[3])), is_committed, start, header.server_id)
        yield from self._end(header)

    def _open(
        self, header: Header, start: int, *, is_statement: bool = False, is_distributed: bool = False
    ) -> Iterator[LogEvent]:
        if self._transaction is None:  # A log without GTIDs, or read from the middle of a transaction's head.
            self._transaction = _Transaction(Gtid(None), start)
        if not self._transaction.is_open:
            self._transaction.is_open = True
            if not self._is_mariadb or self._transaction.gtid.is_completed:
                yield self._began(header, start, is_statement=is_statement, is_distributed=is_distributed)
        self._transaction.done += 1

    def _state(self, header: Header, query: Query, start: int) -> Iterator[LogEvent]:
        alone = self._transaction is None or not self._transaction.is_open
        if alone and not (self._is_mariadb and self._transaction):
            yield from self._open(header, start, is_statement=not _OPENS.search(query.sql))
            assert self._transaction is not None
            self._transaction.done -= 1
        transaction = self._transaction
        gtid = transaction.gtid.text if transaction else None
        done = transaction.done if transaction else 0
        yield Stated(query, gtid, start, header.timestamp, header.server_id, done)
        if alone and not _OPENS.search(query.sql):
            yield from self._end(header)
        else:
            self._count()

    def _count(self) -> None:
        if self._transaction is not None:
            self._transaction.done += 1

    def _end(self, header: Header, prepared: str | None = None) -> Iterator[LogEvent]:
        transaction = self._transaction
        gtid = transaction.gtid.text if transaction else None
        done = transaction.done if transaction else 0
        yield Committed(gtid, self.file, self.position, header.timestamp, done, prepared)
        self._transaction, self._statement = None, None
        self._tables.clear()

    def _map(self, body: bytes) -> None:
        # A table's map comes before each of its statements, mostly the same: only its bytes are compared then.
        table = self._parsed.get(body)
        if table is None:
            if len(self._parsed) >= _MOST_MAPS:
                self._parsed.clear()
            table = self._parsed[body] = parse_table_map(body, is_mariadb=self._is_mariadb)
        self._tables[table.table_id] = table

    def _rows(self, header: Header, body: bytes, start: int) -> RowsChanged:
        head = events.rows_head(body, header.type)
        table = self._tables.get(head.table_id)
        if table is None:
            raise BinlogError(
                f"The rows at {self.file}:{start} in the log belong to a table that it has not described."
            )
        done = self._transaction.done if self._transaction else 0
        return RowsChanged(
            table, head, len(head.data), start, done, header.timestamp, header.server_id, self._statement
        )


_GTIDS: Final = frozenset({EventType.GTID, EventType.ANONYMOUS_GTID, EventType.GTID_TAGGED, EventType.MARIADB_GTID})
_MOST_MAPS: Final = 1000
"""How many table maps are remembered."""
