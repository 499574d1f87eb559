"""The snapshot: the rows of all captured tables, as they were where the stream starts.

One transaction reads all tables, in the snapshot that the server has exported with the slot: what was committed
before is read, what is committed after is streamed, without a gap or a row twice. The progress is not kept: a
snapshot that was interrupted begins again.

===============================  =====================================================================================
kill -9 here                     then
===============================  =====================================================================================
before the last row is stored    the stored offset says that the snapshot runs: it begins again, in a new snapshot of
                                 the server, and rows that were sent are sent again
after it, before the stream      the stream starts at the position of the snapshot
===============================  =====================================================================================
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from connect.data import Offset, SourceRecord
from connect.errors import ConnectError
from connect.kits.cdc.envelope import ChangeEvents, Operation
from connect.kits.cdc.table_schemas import TableSchema
from connect.kits.cdc.tables import Table
from connectors.cdc.postgresql.catalog import CapturedTable, Catalog
from connectors.cdc.postgresql.connection import retriable_if_lost
from connectors.cdc.postgresql.offsets import ServerIdentity, identity_of, parse_lsn
from connectors.cdc.postgresql.publications import named
from connectors.cdc.postgresql.replication import literal, quoted
from connectors.cdc.postgresql.stream import StreamNames
from connectors.cdc.postgresql.text import unescaped_copy

if TYPE_CHECKING:
    import psycopg

__all__ = [
    "RowReader",
    "Snapshot",
    "SnapshotPoint",
    "SnapshotTable",
    "begin_snapshot",
    "copied_rows",
    "ordered",
    "snapshot_tables",
    "statement_of",
]

logger = logging.getLogger(__name__)

_SNAPSHOT: Final = """
SELECT txid_snapshot_xmax(txid_current_snapshot()),
       (extract(epoch FROM transaction_timestamp()) * 1000000)::bigint,
       pg_is_in_recovery()
"""


@dataclass(frozen=True, slots=True)
class SnapshotTable:
    """A table to read: its schemas, and the statement that selects all its columns."""

    captured: CapturedTable
    schema: TableSchema
    statement: str


@dataclass(frozen=True, slots=True)
class SnapshotPoint:
    """Where the snapshot stands: its LSN, its transaction number, and its time."""

    lsn: int
    xid: int
    at_us: int


def begin_snapshot(
    session: psycopg.Connection[Any],
    exported: str | None,
    lsn: int | None,
    *,
    locks_ms: int | None,
    tables: Sequence[str],
) -> SnapshotPoint:
    """Begin the transaction of a snapshot, in one that was exported or in a new one."""
    session.execute("SET statement_timeout = 0")
    session.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
    if exported is not None:
        session.execute(f"SET TRANSACTION SNAPSHOT {literal(exported)}".encode())
    if locks_ms is not None and tables:
        session.execute(f"SET LOCAL lock_timeout = {locks_ms}")
        session.execute(f"LOCK TABLE {', '.join(tables)} IN ACCESS SHARE MODE".encode())
    row = session.execute(_SNAPSHOT).fetchone()
    if row is None:
        raise ConnectError("The server has not told its snapshot.")
    if lsn is None:
        function = "pg_last_wal_replay_lsn" if row[2] else "pg_current_wal_lsn"
        told = session.execute(f"SELECT {function}()::text".encode()).fetchone()
        lsn = parse_lsn(told[0]) if told else 0
    return SnapshotPoint(lsn, row[0], row[1])


def statement_of(table: Table, schema: TableSchema, override: str | None) -> str:
    """Return the statement that selects a table's columns, null for those that no record has."""
    needed = {column.place for column in (*schema.columns, *schema.key_columns)}
    columns = (
        quoted(column.name) if place in needed else f"NULL AS {quoted(column.name)}"
        for place, column in enumerate(table.columns)
    )
    source = f"({override.strip().rstrip(';')}) AS rows_of_table" if override else named(table.id)
    return f"SELECT {', '.join(columns) or 'NULL'} FROM {source}"  # noqa: S608 - names are quoted


def copied_rows(session: psycopg.Connection[Any], statement: str) -> Iterator[list[bytes | None]]:
    """Yield the rows that a statement selects, each as the texts of its columns."""
    from psycopg.pq import ExecStatus  # noqa: PLC0415 - psycopg is loaded only where it is used

    connection = session.pgconn
    result = connection.exec_(f"COPY ({statement}) TO STDOUT".encode())
    if result.status != ExecStatus.COPY_OUT:
        raise ConnectError(f"The rows cannot be read by {statement}: {connection.get_error_message().strip()}")
    get = connection.get_copy_data
    while True:
        size, data = get(0)
        if size <= 0:
            break
        line = bytes(data)[:-1]
        if b"\\" in line:
            yield [_field(field) if b"\\" in field else field for field in line.split(b"\t")]
        else:
            yield [*line.split(b"\t")]
    ended = connection.get_result()
    if size < -1 or ended is None or ended.status != ExecStatus.COMMAND_OK:
        import psycopg  # noqa: PLC0415 - as above

        error = psycopg.OperationalError(connection.get_error_message().strip())
        raise retriable_if_lost(error, "Reading the rows was interrupted")
    while connection.get_result() is not None:
        pass


def _field(field: bytes) -> bytes | None:
    return None if field == b"\\N" else unescaped_copy(field)


class RowReader:
    """Makes the records of rows that a snapshot has read."""

    def __init__(
        self,
        names: StreamNames,
        events: ChangeEvents,
        point: SnapshotPoint,
        identity: ServerIdentity | None,
    ) -> None:
        self._names = names
        self._events = events
        self._point = point
        self._identity = dict(identity_of(identity))

    def record(self, schema: TableSchema, raw: Sequence[Any], marker: str, offset: Offset) -> SourceRecord:
        """Return the record of a row."""
        row = schema.row(raw)
        key = None
        if schema.key_schema is not None:
            key = schema.key(row) if schema.key is not None else schema.key_of_raw(raw)
        out: list[SourceRecord] = []
        source = self._source(schema.table, marker)
        self._events.created(out, schema, key, row, source, None, offset, Operation.READ)
        return out[0]

    def offset(self, *, is_complete: bool) -> Offset:
        """Return the offset while the snapshot runs, or of its end."""
        point = self._point
        return {
            "last_snapshot_record": is_complete,
            "lsn": point.lsn,
            "txId": point.xid,
            "ts_usec": point.at_us,
            "snapshot": "INITIAL",
            "snapshot_completed": is_complete,
            **self._identity,
        }

    def _source(self, table: Table, marker: str) -> dict[str, Any]:
        point, names = self._point, self._names
        return {
            "version": names.version,
            "connector": "postgresql",
            "name": names.prefix,
            "ts_ms": point.at_us // 1000,
            "snapshot": marker,
            "db": names.database,
            "sequence": f'[null,"{point.lsn}"]',
            "ts_us": point.at_us,
            "ts_ns": point.at_us * 1000,
            "schema": table.id.schema,
            "table": table.id.table,
            "txId": point.xid,
            "lsn": point.lsn,
            "xmin": None,
            "origin": None,
            "origin_lsn": None,
        }


class Snapshot:
    """Reads tables one after the other. ``poll`` returns the next records, until ``is_done``."""

    def __init__(
        self,
        session: psycopg.Connection[Any],
        tables: Sequence[SnapshotTable],
        reader: RowReader,
    ) -> None:
        self._session = session
        self._reader = reader
        self._records = self._read(tables)
        self.is_done = False
        self.rows: dict[str, int] = {}
        self.tables_left = len(tables)

    def poll(self, limit: int) -> list[SourceRecord]:
        """Return up to this many records; fewer at the end only."""
        records = list(islice(self._records, limit))
        if len(records) < limit:
            self.is_done = True
            self._session.execute("COMMIT")
        return records

    @property
    def end(self) -> Offset:
        """The offset when all rows are sent, also if there were none."""
        return self._reader.offset(is_complete=True)

    def _read(self, tables: Sequence[SnapshotTable]) -> Iterator[SourceRecord]:
        """Yield the records. A row waits for its successor, which decides its marker."""
        running = self._reader.offset(is_complete=False)
        waiting: tuple[SnapshotTable, list[Any]] | None = None
        is_first, is_first_in_table = True, True
        for table in tables:
            name = str(table.schema.table.id)
            begun, count = time.monotonic(), 0
            logger.info("Reading the rows of %s, about %d.", name, max(0, table.captured.rows))
            for raw in copied_rows(self._session, table.statement):
                count += 1
                if waiting is not None:
                    is_last_in_table = waiting[0] is not table
                    marker = _marker(is_first, is_first_in_table, is_last_in_table)
                    yield self._reader.record(waiting[0].schema, waiting[1], marker, running)
                    is_first, is_first_in_table = False, is_last_in_table
                waiting = table, raw
            self.rows[name] = count
            self.tables_left -= 1
            logger.info("Read %d rows of %s in %.1f s.", count, name, time.monotonic() - begun)
        if waiting is not None:
            yield self._reader.record(waiting[0].schema, waiting[1], "last", self.end)


def _marker(is_first: bool, is_first_in_table: bool, is_last_in_table: bool) -> str:
    if is_first:
        return "first"
    if is_last_in_table:
        return "last_in_data_collection"
    return "first_in_data_collection" if is_first_in_table else "true"


def snapshot_tables(
    catalog: Catalog,
    captured: Sequence[CapturedTable],
    make: Callable[[Table], TableSchema],
    overrides: Mapping[str, str],
) -> list[SnapshotTable]:
    """Return the tables to read as they are in the transaction of the snapshot."""
    tables = []
    for each in captured:
        table = catalog.table(each.oid, each.id)
        if table is not None:
            schema = make(table)
            tables.append(SnapshotTable(each, schema, statement_of(table, schema, overrides.get(str(each.id)))))
    return tables


def ordered(tables: Sequence[CapturedTable], order: str) -> list[CapturedTable]:
    """Return tables in the order of ``snapshot.tables.order.by.row.count``."""
    if order == "disabled":
        return list(tables)
    return sorted(tables, key=lambda table: table.rows, reverse=order == "descending")
