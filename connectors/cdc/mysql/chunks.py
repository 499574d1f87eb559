"""Chunks of incremental snapshots: rows of a table, read beside the stream in a transaction that writes nothing.

Which transactions the rows have is told by GTIDs. MySQL counts a transaction as executed once others see it: those
that are executed before the chunk's view begins are seen, and those that are not when it has ended are not. What lies
between counts as not seen, since the stream will tell of it. MariaDB names the place of the view itself.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, Final

from connect.errors import ConnectError, RetriableError
from connect.kits.cdc.chunk_queries import ChunkQueries, Query, SqlForm
from connect.kits.cdc.incremental import Chunk, ChunkRow, UnknownTableError
from connect.kits.cdc.incremental_state import Collection
from connect.kits.cdc.java_keys import Key
from connect.kits.cdc.table_schemas import TableSchema
from connect.kits.cdc.tables import Column, Table
from connectors.cdc.mysql.catalog import Catalog, table_id
from connectors.cdc.mysql.column_types import ColumnType
from connectors.cdc.mysql.config import BinlogConfig
from connectors.cdc.mysql.gtids import GtidSet
from connectors.cdc.mysql.session import Session, connected
from connectors.cdc.mysql.snapshots.views import BEGIN, ISOLATION, place_of_view
from connectors.cdc.mysql.texts import quoted, reader, selected

__all__ = ["ChunkReader", "identity_places", "key_of", "key_types"]

logger = logging.getLogger(__name__)
_FORM: Final = SqlForm(quoted, numbers=False, compares_rows=False)
_WHOLE_NUMBERS: Final = frozenset({"tinyint", "smallint", "mediumint", "int", "bigint", "year"})
_UNORDERED: Final = frozenset({"enum", "set", "json", "bit", "float", "double"})
"""Types whose values, written as text, are not compared as the server orders them."""
_LARGEST_NUMBER: Final = 2**63 - 1


def identity_places(schema: TableSchema, surrogate: str) -> tuple[int, ...]:
    """Return where a raw row has what identifies it: its key, or the surrogate column of a table without one."""
    if schema.key_columns:
        return tuple(column.place for column in schema.key_columns)
    return tuple(place for place, column in enumerate(schema.table.columns) if column.name == surrogate)


class ChunkReader:
    """Reads chunks through a session and in a thread of its own, which are begun when they are needed.

    ``wake`` is called whenever a chunk is there.
    """

    def __init__(self, config: BinlogConfig, make: Callable[[Table], TableSchema], wake: Callable[[], None]) -> None:
        self._wake = wake
        self._config = config
        self._make = make
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="chunks")
        self._session: Session | None = None

    def read(self, collection: Collection, rows: int) -> Future[Chunk]:
        """Read the next rows of a table."""
        chunk = self._thread.submit(self._read, collection, rows)
        chunk.add_done_callback(lambda _: self._wake())
        return chunk

    def close(self) -> None:
        """End the session and the thread; a chunk that is being read is given up."""
        if (session := self._session) is not None:
            session.close()
        self._thread.shutdown(cancel_futures=True)
        # The thread has ended; it may have opened the session only now.
        if self._session is not None:
            self._session.close()
            self._session = None

    # -- in the thread -----------------------------------------------------------------------------------------

    def _read(self, collection: Collection, rows: int) -> Chunk:
        if self._session is None:
            self._session = connected(self._config)
            self._session.execute(ISOLATION)
        session = self._session
        try:
            return self._chunk(session, collection, rows)
        except RetriableError:
            session.close()
            self._session = None
            raise
        except ConnectError:
            session.execute("ROLLBACK")
            raise

    def _chunk(self, session: Session, collection: Collection, rows: int) -> Chunk:
        server = session.server
        if not server.has_gtids:
            raise ConnectError(
                "Without GTIDs it is not certain which changes a chunk has: set gtid_mode=ON on the server, or take a "
                "new snapshot in place of an incremental one."
            )
        seen = session.executed()
        session.execute(BEGIN)
        if (place := place_of_view(session)) is not None:
            seen = server.gtid_set(place.gtids)
        table = self._table(session, collection.table)
        schema = self._make(table)
        names = (collection.surrogate,) if collection.surrogate else table.key_columns
        if not names:
            raise ConnectError("It has no primary key: name a column to go by as surrogate-key in the signal.")
        kinds = [_key_type(table, name) for name in names]
        columns = [selected(column) for column in table.columns] + [quoted(name) for name in names]
        name = f"{quoted(table.id.catalog)}.{quoted(table.id.table)}"
        queries = ChunkQueries(_FORM, name, ", ".join(columns), tuple(names), collection.condition)
        until = collection.until or _last_key(session, queries, kinds)
        found = [] if until is None else _rows(session, queries.chunk(collection.after, until, rows))
        session.execute("COMMIT")
        end = seen if place is not None else session.executed()
        chunk = _chunk_rows(found, table, kinds, identity_places(schema, collection.surrogate))
        is_last = len(chunk) < rows or chunk[-1].key == until
        # Once for a table: the server has to look into its statistics.
        expected = Catalog(session).expected_rows(table.id) if collection.after is None else 0
        return Chunk(schema, chunk, until, is_last, partial(_sees, seen), partial(_is_passed, end), expected)

    @staticmethod
    def _table(session: Session, name: str) -> Table:
        database, _, table = name.partition(".")
        found = Catalog(session).table(table_id(database, table))
        if found is None:
            raise UnknownTableError("It does not exist any more.")
        return found


def key_types(table: Table) -> list[ColumnType] | None:
    """Return the types of a table's key; ``None`` if the table cannot be read in the order of its key."""
    try:
        return [_key_type(table, name) for name in table.key_columns] or None
    except ConnectError:
        return None


def _sees(seen: GtidSet, gtid: Hashable) -> bool:
    return isinstance(gtid, str) and gtid in seen


def _is_passed(end: GtidSet, gtids: GtidSet | None) -> bool:
    return gtids is not None and gtids.contains(end)  # type: ignore[arg-type]


def _key_type(table: Table, name: str) -> ColumnType:
    column = table.column(name)
    if column is None:
        raise ConnectError(f"It has no column {name}, which the signal names as surrogate-key.")
    if column.optional:
        raise ConnectError(f"Column {name} may be null, so rows could be missed: name one that is NOT NULL.")
    kind: ColumnType = column.native
    if kind.kind in _UNORDERED:
        raise ConnectError(
            f"Column {name} is of type {column.type_name}, by which rows cannot be read in pieces: name another one, "
            "with a unique index, as surrogate-key in the signal."
        )
    return kind


def key_of(raw: Sequence[Any], kinds: Sequence[ColumnType]) -> Key:
    """Return a key of the texts of its columns."""
    return tuple(_key_part(value, kind) for value, kind in zip(raw, kinds, strict=True))


def _key_part(value: Any, kind: ColumnType) -> Any:
    if kind.kind not in _WHOLE_NUMBERS:
        return value
    number = int(value)
    if number > _LARGEST_NUMBER:
        raise ConnectError("Keys above 2^63-1 cannot be kept in an offset: name another column as surrogate-key.")
    return number


def _last_key(session: Session, queries: ChunkQueries, kinds: Sequence[ColumnType]) -> Key | None:
    found = _rows(session, queries.last_key())
    return key_of(found[0], kinds) if found else None


def _chunk_rows(
    found: Sequence[Sequence[Any]], table: Table, kinds: Sequence[ColumnType], places: Sequence[int]
) -> list[ChunkRow]:
    width = len(table.columns)
    readers = [_optional(column) for column in table.columns]
    rows = []
    for raw in found:
        values = [read(value) for read, value in zip(readers, raw, strict=False)]
        rows.append(ChunkRow(values, key_of(raw[width:], kinds), tuple(values[place] for place in places)))
    return rows


def _optional(column: Column) -> Callable[[Any], Any]:
    read = reader(column)
    return lambda value: None if value is None else read(value)


def _rows(session: Session, query: Query) -> Sequence[Sequence[Any]]:
    """Return the rows of a query, as text and bytes."""
    return session.texts(query.text, query.values)
