"""Chunks of incremental snapshots: rows of a table, read beside the stream in a transaction that writes nothing.

The transaction's own snapshot tells which transactions the rows have. Afterwards the end of the log is looked up: all
of these transactions are before it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from connect.errors import ConnectError
from connect.kits.cdc.chunk_queries import ChunkQueries, Query, SqlForm
from connect.kits.cdc.incremental import Chunk, ChunkRow, UnknownTableError
from connect.kits.cdc.incremental_state import Collection
from connect.kits.cdc.java_keys import Key
from connect.kits.cdc.table_schemas import TableSchema
from connect.kits.cdc.tables import Table
from connectors.cdc.postgresql.catalog import Catalog
from connectors.cdc.postgresql.config import PostgresConfig
from connectors.cdc.postgresql.connection import open_session, retriable_if_lost
from connectors.cdc.postgresql.offsets import parse_lsn
from connectors.cdc.postgresql.publications import named
from connectors.cdc.postgresql.replication import quoted
from connectors.cdc.postgresql.snapshot import begin_reading, is_whole_number, key_of, selected_columns

if TYPE_CHECKING:
    import psycopg

__all__ = ["ChunkReader", "VisibleTransactions", "identity_places", "is_passed"]

logger = logging.getLogger(__name__)
_FORM: Final = SqlForm(quoted, numbers=True, compares_rows=True)
_SNAPSHOT: Final = "SELECT txid_current_snapshot()::text"
_END: Final = """
SELECT (CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_insert_lsn() END)::text
"""
_XID_BITS: Final = 32
_PAGE_BYTES: Final = 8192
_LARGEST_PAGE_HEADER: Final = 40


@dataclass(frozen=True, slots=True)
class VisibleTransactions:
    """Which transactions a snapshot of the database sees: all below ``xmax`` but those that were under way."""

    xmax: int
    under_way: frozenset[int]

    @classmethod
    def parse(cls, text: str) -> VisibleTransactions:
        """Parse ``xmin:xmax:xid,xid``, as PostgreSQL writes a snapshot."""
        _, xmax, under_way = text.split(":")
        return cls(int(xmax), frozenset(int(xid) for xid in under_way.split(",") if xid))

    def sees(self, xid: Hashable) -> bool:
        """Return whether a transaction is seen, by its number in the stream, which has 32 bits."""
        if not isinstance(xid, int):
            return False
        whole = (self.xmax >> _XID_BITS << _XID_BITS) | (xid & 0xFFFFFFFF)
        # The nearest number with these bits: the stream is never 2^31 transactions away.
        if whole - self.xmax > 1 << 31:
            whole -= 1 << _XID_BITS
        elif self.xmax - whole > 1 << 31:
            whole += 1 << _XID_BITS
        return whole < self.xmax and whole not in self.under_way


def is_passed(position: int, end: int) -> bool:
    """Return whether the stream has passed an end of the log.

    The end that the server tells may stand behind the header of a page that has no record yet, the stream before it.
    """
    return position >= end or (position % _PAGE_BYTES == 0 and end - position <= _LARGEST_PAGE_HEADER)


def identity_places(schema: TableSchema, surrogate: str) -> tuple[int, ...]:
    """Return where a raw row has what identifies it: its key, or the surrogate column of a table without one."""
    if schema.key_columns:
        return tuple(column.place for column in schema.key_columns)
    return tuple(place for place, column in enumerate(schema.table.columns) if column.name == surrogate)


class ChunkReader:
    """Reads chunks through a session and in a thread of its own, which are begun when they are needed.

    ``wake`` is called whenever a chunk is there.
    """

    def __init__(self, config: PostgresConfig, make: Callable[[Table], TableSchema], wake: Callable[[], None]) -> None:
        self._wake = wake
        self._config = config
        self._make = make
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="chunks")
        self._session: psycopg.Connection[Any] | None = None

    def read(self, collection: Collection, rows: int) -> Future[Chunk]:
        """Read the next rows of a table."""
        chunk = self._thread.submit(self._read, collection, rows)
        chunk.add_done_callback(lambda _: self._wake())
        return chunk

    def close(self) -> None:
        """End the session and the thread; a chunk that is being read is given up."""
        if (session := self._session) is not None:
            session.cancel()
        self._thread.shutdown(cancel_futures=True)
        # The thread has ended; it may have opened the session only now.
        if self._session is not None:
            self._session.close()
            self._session = None

    # -- in the thread -----------------------------------------------------------------------------------------

    def _read(self, collection: Collection, rows: int) -> Chunk:
        import psycopg  # noqa: PLC0415 - psycopg is loaded only where it is used

        if self._session is None:
            self._session = open_session(self._config)
        session = self._session
        try:
            return self._chunk(session, collection, rows)
        except psycopg.Error as error:
            if session.closed:
                session.close()
                self._session = None
            else:
                session.execute("ROLLBACK")
            raise retriable_if_lost(error, f"A chunk of {collection.table} cannot be read") from error
        except ConnectError:
            session.execute("ROLLBACK")
            raise

    def _chunk(self, session: psycopg.Connection[Any], collection: Collection, rows: int) -> Chunk:
        begin_reading(session)
        visible = VisibleTransactions.parse(_text(session, _SNAPSHOT))
        table, expected = self._table(session, collection.table)
        schema = self._make(table)
        names = (collection.surrogate,) if collection.surrogate else table.key_columns
        numbers = [self._is_number(table, name) for name in names]
        if not names:
            raise ConnectError("It has no primary key: name a column to go by as surrogate-key in the signal.")
        selected = selected_columns(table, schema, [*names, collection.surrogate])
        selected = ", ".join([selected, *map(quoted, names)])
        queries = ChunkQueries(_FORM, named(table.id), selected, names, collection.condition)
        until = collection.until or self._last_key(session, queries, numbers)
        found = [] if until is None else _rows(session, queries.chunk(collection.after, until, rows))
        session.execute("COMMIT")
        end = parse_lsn(_text(session, _END))
        places, width = identity_places(schema, collection.surrogate), len(table.columns)
        chunk = [
            ChunkRow(raw[:width], key_of(raw[width:], numbers), tuple(raw[place] for place in places)) for raw in found
        ]
        is_last = len(chunk) < rows or chunk[-1].key == until
        return Chunk(schema, chunk, until, is_last, visible.sees, lambda position: is_passed(position, end), expected)

    def _table(self, session: psycopg.Connection[Any], name: str) -> tuple[Table, int]:
        catalog = Catalog(session, self._config.database_dbname)
        for each in catalog.tables():
            if str(each.id) == name and (table := catalog.table(each.oid, each.id)) is not None:
                return table, each.rows
        raise UnknownTableError("It does not exist any more.")

    @staticmethod
    def _is_number(table: Table, name: str) -> bool:
        column = table.column(name)
        if column is None:
            raise ConnectError(f"It has no column {name}, which the signal names as surrogate-key.")
        if column.optional:
            raise ConnectError(f"Column {name} may be null, so rows could be missed: name one that is NOT NULL.")
        return is_whole_number(table, name)

    @staticmethod
    def _last_key(session: psycopg.Connection[Any], queries: ChunkQueries, numbers: Sequence[bool]) -> Key | None:
        found = _rows(session, queries.last_key())
        return key_of(found[0], numbers) if found else None


def _text(session: psycopg.Connection[Any], statement: str) -> str:
    row = session.execute(statement.encode()).fetchone()
    if row is None:
        raise ConnectError(f"The server has not answered {statement}.")
    return str(row[0])


def _rows(session: psycopg.Connection[Any], query: Query) -> list[list[bytes | None]]:
    """Return the rows of a query, each as the texts of its columns, as the stream has them."""
    import psycopg  # noqa: PLC0415 - psycopg is loaded only where it is used
    from psycopg.pq import ExecStatus  # noqa: PLC0415 - as above

    values = [str(value).encode() for value in query.values]
    result = session.pgconn.exec_params(query.text.encode(), values)
    if result.status != ExecStatus.TUPLES_OK:
        state = result.error_field(psycopg.pq.DiagnosticField.SQLSTATE)
        kind = psycopg.errors.lookup(state.decode()) if state else psycopg.OperationalError
        raise kind((result.error_message or b"").decode(errors="replace").strip())
    columns = range(result.nfields)
    return [[result.get_value(row, column) for column in columns] for row in range(result.ntuples)]
