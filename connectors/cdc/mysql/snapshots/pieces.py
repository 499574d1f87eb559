"""The pieces of a snapshot: which tables and ranges of keys are read, and the sessions of its view that read them."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Final

from connect.errors import ConnectError, RetriableError
from connect.kits.cdc.chunk_queries import ChunkQueries, Query, SqlForm
from connect.kits.cdc.incremental_state import Collection
from connect.kits.cdc.java_keys import Key
from connect.kits.cdc.snapshots.pieces import Piece
from connect.kits.cdc.snapshots.run import PlannedSnapshot
from connect.kits.cdc.tables import Table
from connectors.cdc.mysql.chunks import key_of, key_types
from connectors.cdc.mysql.column_types import ColumnType
from connectors.cdc.mysql.config import BinlogConfig
from connectors.cdc.mysql.session import Session, failure
from connectors.cdc.mysql.texts import quoted, reader, selected

__all__ = ["WantedTable", "planned_snapshot"]

logger = logging.getLogger(__name__)
_FORM: Final = SqlForm(quoted, numbers=False, compares_rows=False)
_ROWS_A_PIECE: Final = 100_000
_FETCHED_ROWS: Final = 500


@dataclass(frozen=True, slots=True)
class WantedTable:
    """A table to read, or a range of its keys; ``rows`` is about how many there are.

    ``statement`` is one of the user's that selects the rows.
    """

    table: Table
    rows: int
    collection: Collection
    statement: str | None = None

    @property
    def name(self) -> str:
        """The name of the table."""
        return str(self.table.id)

    @property
    def is_whole(self) -> bool:
        """Whether all rows are read."""
        collection = self.collection
        return self.statement is None and not collection.condition and collection.after is None


@dataclass(frozen=True, slots=True)
class _Work:
    """A piece, and the statement that reads it; ``kinds`` are the types of the key that the rows are ordered by."""

    piece: Piece
    table: Table
    query: Query
    kinds: tuple[ColumnType, ...] = ()


def planned_snapshot(
    config: BinlogConfig, sessions: Sequence[Session], wanted: Sequence[WantedTable], *, unordered_first: bool = False
) -> PlannedSnapshot:
    """Return what is read of some tables by the sessions of a view, of which the first plans it.

    With ``unordered_first`` the tables whose progress cannot be kept come first.
    """
    most = config.snapshot_max_threads * config.snapshot_max_threads_multiplier
    works = [work for each in wanted for work in _works(sessions[0], each, most)]
    if unordered_first:
        works.sort(key=lambda work: work.piece.collection is not None)
    free = list(sessions)
    return PlannedSnapshot(
        {each.name: max(0, each.rows) if each.is_whole else 0 for each in wanted},
        [work.piece for work in works],
        lambda: _PieceReader(free.pop(), works),
        len(sessions),
        config.max_batch_size,
    )


def _works(session: Session, each: WantedTable, most: int) -> list[_Work]:
    """Return the pieces of a table or a range of its keys: at most so many, none if it has no rows."""
    table, collection = each.table, each.collection
    columns = ", ".join(f"{selected(column)} AS {quoted(column.name)}" for column in table.columns)
    source = f"{quoted(table.id.catalog)}.{quoted(table.id.table)}"
    kinds = None if each.statement is not None else key_types(table)
    if each.statement is None and kinds is not None:
        queries = ChunkQueries(_FORM, source, columns, table.key_columns, collection.condition)
        try:
            return _ordered(session, each, queries, kinds, most)
        except RetriableError:
            raise
        except ConnectError as error:
            # An offset cannot hold such a key.
            logger.info("Table %s is read without keeping progress: %s", each.name, error)
    condition = ""
    if each.statement is not None:
        source = f"({each.statement.strip().rstrip(';')}) AS chosen"
    else:
        condition = collection.condition
    whole = ChunkQueries(_FORM, source, columns, (), condition).whole()
    return [_Work(Piece(each.name, None, collection.condition), table, whole)]


def _ordered(
    session: Session, each: WantedTable, queries: ChunkQueries, kinds: Sequence[ColumnType], most: int
) -> list[_Work]:
    collection = each.collection
    until = collection.until or _key(session, queries.last_key(), kinds)
    if until is None:
        return []
    count = 1 if collection.until else min(most, each.rows // _ROWS_A_PIECE)
    between = _bounds(session, queries, kinds, until, each.rows, count) if count > 1 else []
    bounds = [collection.after, *between, until]
    return [
        _Work(
            Piece(each.name, replace(collection, after=after, until=end)),
            each.table,
            queries.rest(after, end),
            tuple(kinds),
        )
        for after, end in pairwise(bounds)
    ]


def _bounds(
    session: Session, queries: ChunkQueries, kinds: Sequence[ColumnType], until: Key, rows: int, count: int
) -> list[Key]:
    """Return keys that divide a table: evenly by value if the key is a number, otherwise evenly by rows."""
    first = _key(session, queries.first_key(), kinds)
    if first is None:
        return []
    if len(kinds) == 1 and isinstance(first[0], int):
        low, high = first[0], until[0]
        numbers = dict.fromkeys(low + (high - low) * part // count for part in range(1, count))
        return [(number,) for number in numbers if low <= number < high]
    found: list[Key] = []
    while len(found) < count - 1:
        after = _key(session, queries.key_after(found[-1] if found else None, until, rows // count), kinds)
        if after is None or after == until:
            break
        found.append(after)
    return found


def _key(session: Session, query: Query, kinds: Sequence[ColumnType]) -> Key | None:
    found = session.texts(query.text, query.values)
    return key_of(found[0], kinds) if found else None


class _PieceReader:
    """Reads pieces through a session of the view. Used by one thread."""

    def __init__(self, session: Session, works: Sequence[_Work]) -> None:
        self._session = session
        self._works = works

    def read(self, piece: int) -> Iterator[tuple[Sequence[Any], Key | None]]:
        """Yield the rows of a piece."""
        work = self._works[piece]
        columns = work.table.columns
        readers = [reader(column) for column in columns]
        places = {column.name: place for place, column in enumerate(columns)}
        keys = [places[name] for name in work.table.key_columns] if work.kinds else []
        for raw in _streamed(self._session, work.query):
            values = [None if value is None else read(value) for read, value in zip(readers, raw, strict=True)]
            yield values, key_of([raw[place] for place in keys], work.kinds) if keys else None

    def cancel(self) -> None:
        """Have the thread that reads stop waiting for the server. Called from another thread."""
        self._session.interrupt()

    def close(self) -> None:
        """Close the session."""
        self._session.close()


def _streamed(session: Session, query: Query) -> Iterator[tuple[Any, ...]]:
    """Run a statement, and yield its rows as text while the server sends them.

    Given up before its end, it closes the session: PyMySQL would read all rows that are left.
    """
    import pymysql  # noqa: PLC0415 - loaded where a database is used
    from pymysql.cursors import SSCursor  # noqa: PLC0415 - as above

    cursor: Any = SSCursor(session.connection)
    is_read = False
    try:
        with session.undecoded():
            cursor.execute(query.text, query.values)
        while rows := cursor.fetchmany(_FETCHED_ROWS):
            yield from rows
        is_read = True
    except pymysql.MySQLError as error:
        raise failure(error) from error
    finally:
        if is_read:
            cursor.close()
        else:
            if (result := cursor._result) is not None:
                result.unbuffered_active = False
            cursor.connection = None
            session.close()
