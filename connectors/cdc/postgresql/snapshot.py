"""The snapshot: the rows of all captured tables, as they were where the stream starts.

All tables are read in the snapshot that the server has exported with the slot: what was committed before is read, what
is committed after is streamed, without a gap or a row twice. Pieces are read in parallel. What is left is part of the
offset; an interrupted snapshot goes on beside the stream (:mod:`connect.kits.cdc.snapshots.pieces`).
"""

from __future__ import annotations

import select
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from connect.data import Offset, SourceRecord
from connect.errors import ConnectError, RetriableError
from connect.kits.cdc.chunk_queries import ChunkQueries, SqlForm
from connect.kits.cdc.envelope import ChangeEvents, Operation
from connect.kits.cdc.incremental_state import Collection
from connect.kits.cdc.java_keys import Key
from connect.kits.cdc.snapshots.pieces import MarkedRow, Piece, Progress
from connect.kits.cdc.snapshots.run import PlannedSnapshot
from connect.kits.cdc.table_schemas import TableSchema
from connect.kits.cdc.tables import Table
from connectors.cdc.postgresql.catalog import CapturedTable, Catalog
from connectors.cdc.postgresql.config import PostgresConfig
from connectors.cdc.postgresql.connection import open_session, retriable_if_lost
from connectors.cdc.postgresql.offsets import ServerIdentity, identity_of, parse_lsn
from connectors.cdc.postgresql.publications import named
from connectors.cdc.postgresql.replication import literal, quoted
from connectors.cdc.postgresql.stream import StreamNames
from connectors.cdc.postgresql.text import unescaped_copy

if TYPE_CHECKING:
    import psycopg

__all__ = [
    "BYPASSING",
    "CopyReader",
    "InitialRecorder",
    "RowReader",
    "SnapshotPoint",
    "SnapshotTable",
    "begin_reading",
    "begin_snapshot",
    "copied_rows",
    "exported_view",
    "is_whole_number",
    "key_of",
    "ordered",
    "planned_snapshot",
    "selected_columns",
    "session_in_view",
    "snapshot_offset",
    "snapshot_tables",
    "statement_of",
    "works_of",
]

_LITERALS: Final = SqlForm(
    quoted,
    numbers=True,
    compares_rows=True,
    literal=lambda value: literal(value) if isinstance(value, str) else str(value),
)
_WHOLE_NUMBERS: Final = frozenset({"int2", "int4", "int8"})
_ROWS_A_PIECE: Final = 100_000
_HISTOGRAM: Final = """
SELECT histogram_bounds::text::text[] FROM pg_stats
WHERE schemaname = %s AND tablename = %s AND attname = %s ORDER BY inherited DESC LIMIT 1
"""
_WITHOUT_LIMITS: Final = """
SELECT set_config(name, '0', true) FROM pg_settings
WHERE name IN ('statement_timeout', 'idle_in_transaction_session_timeout', 'transaction_timeout')
"""
_REWRITTEN: Final = """
SELECT c.oid::regclass::text FROM pg_class c
WHERE (c.oid = ANY(%(oids)s) OR (c.relispartition AND pg_partition_root(c.oid) = ANY(%(oids)s)))
  AND c.relfilenode <> 0 AND c.relfilenode IS DISTINCT FROM pg_relation_filenode(c.oid)
ORDER BY 1
"""
"""The tables whose rows lie elsewhere now than in the view of the catalog that a transaction has."""

BYPASSING: Final = "Run ALTER ROLE ... BYPASSRLS; for the user, or leave the tables out by table.exclude.list."
_AGAIN_S: Final = 1.0
_SNAPSHOT: Final = """
SELECT txid_snapshot_xmax(txid_current_snapshot()),
       (extract(epoch FROM transaction_timestamp()) * 1000000)::bigint,
       pg_is_in_recovery()
"""


@dataclass(frozen=True, slots=True)
class SnapshotTable:
    """A table to read: its schemas, and the statement that selects all its columns.

    ``is_whole`` is whether that statement is the connector's own, of all rows.
    """

    captured: CapturedTable
    schema: TableSchema
    statement: str
    is_whole: bool = True


@dataclass(frozen=True, slots=True)
class PieceWork:
    """A piece, the statement that reads it, and, if it has an order, which of its key's columns are whole numbers.

    A row ends with the columns of the key; ``width`` is the number of those before.
    """

    piece: Piece
    statement: str
    width: int
    numbers: tuple[bool, ...] = ()


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
    begin_reading(session, exported)
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


def begin_reading(session: psycopg.Connection[Any], exported: str | None = None) -> None:
    """Begin a transaction that reads rows, in a view that was exported or a new one.

    The server's limits of time do not end it, and rows that a policy hides from the user are an error.
    """
    session.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
    if exported is not None:
        session.execute(f"SET TRANSACTION SNAPSHOT {literal(exported)}".encode())
    session.execute(_WITHOUT_LIMITS)
    session.execute("SET LOCAL row_security = off")


def selected_columns(table: Table, schema: TableSchema, also: Sequence[str] = ()) -> str:
    """Return what a statement selects: the columns in their order, null for those that no record has."""
    needed = {column.place for column in (*schema.columns, *schema.key_columns)}
    columns = (
        quoted(column.name) if place in needed or column.name in also else f"NULL AS {quoted(column.name)}"
        for place, column in enumerate(table.columns)
    )
    return ", ".join(columns) or "NULL"


def statement_of(table: Table, schema: TableSchema, override: str | None) -> str:
    """Return the statement that selects a table's columns, null for those that no record has."""
    source = f"({override.strip().rstrip(';')}) AS rows_of_table" if override else named(table.id)
    return f"SELECT {selected_columns(table, schema)} FROM {source}"  # noqa: S608 - names are quoted


def copied_rows(session: psycopg.Connection[Any], statement: str) -> Iterator[list[bytes | None]]:
    """Yield the rows that a statement selects, each as the texts of its columns."""
    from psycopg.pq import ExecStatus  # noqa: PLC0415 - psycopg is loaded only where it is used

    connection = session.pgconn
    result = connection.exec_(f"COPY ({statement}) TO STDOUT".encode())
    if result.status != ExecStatus.COPY_OUT:
        raise ConnectError(f"The rows cannot be read by {statement}: {connection.get_error_message().strip()}")
    get = connection.get_copy_data
    while True:
        size, data = get(1)
        if size == 0:
            # Waiting in libpq would keep all other threads from running.
            select.select([connection.socket], [], [])
            connection.consume_input()
            continue
        if size < 0:
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
        self._identity = identity

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
        return snapshot_offset(self._point, self._identity, is_complete=is_complete)

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


def snapshot_offset(point: SnapshotPoint, identity: ServerIdentity | None, *, is_complete: bool) -> Offset:
    """Return the offset while a snapshot runs, or of its end."""
    return {
        "last_snapshot_record": is_complete,
        "lsn": point.lsn,
        "txId": point.xid,
        "ts_usec": point.at_us,
        "snapshot": "INITIAL",
        "snapshot_completed": is_complete,
        **identity_of(identity),
    }


class InitialRecorder:
    """Makes the records of the first snapshot. With ``resumes`` their offsets tell what is left to read after them."""

    def __init__(self, reader: RowReader, tables: Mapping[str, SnapshotTable], *, resumes: bool) -> None:
        self._reader = reader
        self._tables = tables
        self._resumes = resumes

    def record(self, row: MarkedRow, offset: Offset) -> SourceRecord:
        """Return the record of a row."""
        return self._reader.record(self._tables[row.table].schema, row.raw, row.marker, offset)

    def after(self, progress: Progress) -> Offset:
        """Return the offset after what is sent."""
        state = progress.state() if self._resumes else None
        running = self._reader.offset(is_complete=progress.is_read)
        return running if state is None else {**running, **state.to_offset()}


def planned_snapshot(
    config: PostgresConfig,
    session: psycopg.Connection[Any],
    wanted: Sequence[tuple[SnapshotTable, Collection]],
    *,
    unordered_first: bool = False,
) -> PlannedSnapshot:
    """Return what is read of some tables, or of ranges of their keys, in the transaction of a session.

    With ``unordered_first`` the tables whose progress cannot be kept come first.
    """
    most = config.snapshot_max_threads * config.snapshot_max_threads_multiplier
    works = works_of(session, wanted, most)
    if unordered_first:
        works.sort(key=lambda work: work.piece.collection is not None)
    exported = exported_view(session)
    return PlannedSnapshot(
        {str(table.captured.id): _expected_rows(table, collection) for table, collection in wanted},
        [work.piece for work in works],
        lambda: CopyReader(session_in_view(config, exported), works),
        config.snapshot_max_threads,
        config.max_batch_size,
    )


def works_of(
    session: psycopg.Connection[Any], wanted: Sequence[tuple[SnapshotTable, Collection]], most: int
) -> list[PieceWork]:
    """Return the pieces of some tables, or of ranges of their keys: at most so many of each.

    The tables are held as they are until the transaction of the session ends.
    """
    _hold(session, [table for table, _ in wanted])
    return [work for table, collection in wanted for work in _works(session, table, collection, most)]


def _hold(session: psycopg.Connection[Any], tables: Sequence[SnapshotTable]) -> None:
    """Have no table altered or emptied until the view is closed; one that was since it began has no rows in it."""
    import psycopg  # noqa: PLC0415 - psycopg is loaded only where it is used

    for table in tables:
        try:
            session.execute(f"{table.statement} LIMIT 0".encode())
        except psycopg.Error as error:
            raise _unreadable(table, error) from error
    oids = [table.captured.oid for table in tables]
    if found := session.execute(_REWRITTEN, {"oids": oids}).fetchall():
        raise _changed(f"{', '.join(name for (name,) in found)} was rewritten or emptied")


def _unreadable(table: SnapshotTable, error: psycopg.Error) -> ConnectError:
    import psycopg  # noqa: PLC0415 - as above

    told = f"The rows cannot be read by {table.statement}"
    if table.is_whole and isinstance(error, (psycopg.errors.UndefinedTable, psycopg.errors.UndefinedColumn)):
        return _changed(str(error).splitlines()[0])
    if "row-level security" in str(error):
        return ConnectError(
            f"{told}: {str(error).splitlines()[0]}. Rows that a policy hides from the connector's user would be "
            f"missing, though their changes are sent. {BYPASSING}"
        )
    return retriable_if_lost(error, told)


def _changed(told: str) -> RetriableError:
    return RetriableError(f"The snapshot begins anew, since tables were changed as it began: {told}.", _AGAIN_S)


def exported_view(session: psycopg.Connection[Any]) -> str:
    """Return the name by which other sessions see the tables as this one does, while its transaction is open."""
    row = session.execute("SELECT pg_export_snapshot()").fetchone()
    return str(row[0]) if row is not None else ""


def session_in_view(config: PostgresConfig, exported: str) -> psycopg.Connection[Any]:
    """Open a session that sees the tables as the one does that has exported its view."""
    session = open_session(config)
    try:
        begin_reading(session, exported)
    except BaseException:
        session.close()
        raise
    return session


def _expected_rows(table: SnapshotTable, collection: Collection) -> int:
    """Return how many rows of a table there are, as the planner estimates; 0 if that is not known."""
    is_whole = table.is_whole and not collection.condition and collection.after is None
    return max(0, table.captured.rows) if is_whole else 0


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
            override = overrides.get(str(each.id))
            tables.append(SnapshotTable(each, schema, statement_of(table, schema, override), override is None))
    return tables


def ordered(tables: Sequence[CapturedTable], order: str) -> list[CapturedTable]:
    """Return tables in the order of ``snapshot.tables.order.by.row.count``."""
    if order == "disabled":
        return list(tables)
    return sorted(tables, key=lambda table: table.rows, reverse=order == "descending")


def _works(session: psycopg.Connection[Any], each: SnapshotTable, wanted: Collection, most: int) -> list[PieceWork]:
    """Return the pieces of a table or a range of its keys: at most so many, none if it has no rows."""
    table = each.schema.table
    name = str(table.id)
    if not table.key_columns or not each.is_whole:
        condition = wanted.condition if each.is_whole and wanted.condition.strip() else ""
        statement = f"{each.statement} WHERE ({condition})" if condition else each.statement
        return [PieceWork(Piece(name, None, wanted.condition), statement, len(table.columns))]
    numbers = tuple(is_whole_number(table, column) for column in table.key_columns)
    selected = ", ".join([selected_columns(table, each.schema, table.key_columns), *map(quoted, table.key_columns)])
    queries = ChunkQueries(_LITERALS, named(table.id), selected, table.key_columns, wanted.condition)
    until = wanted.until or _last_key(session, queries, numbers)
    if until is None:
        return []
    between = [] if wanted.until else _bounds(session, each, most, numbers)
    bounds = [wanted.after, *between, until]
    return [
        PieceWork(
            Piece(name, replace(wanted, after=after, until=end)),
            queries.rest(after, end).text,
            len(table.columns),
            numbers,
        )
        for after, end in pairwise(bounds)
    ]


def is_whole_number(table: Table, name: str) -> bool:
    """Return whether values of a column are whole numbers, which offsets then hold as such."""
    column = table.column(name)
    return column is not None and column.native.type.name in _WHOLE_NUMBERS


def key_of(raw: Sequence[bytes | None], numbers: Sequence[bool]) -> Key:
    """Return a key from the texts of its columns."""
    texts = [(value or b"").decode() for value in raw]
    return tuple(int(text) if is_number else text for text, is_number in zip(texts, numbers, strict=True))


def _last_key(session: psycopg.Connection[Any], queries: ChunkQueries, numbers: Sequence[bool]) -> Key | None:
    """Return the greatest key of a table, ``None`` if it has no rows."""
    found = [key_of(raw, numbers) for raw in copied_rows(session, queries.last_key().text)]
    return found[0] if found else None


def _bounds(session: psycopg.Connection[Any], table: SnapshotTable, most: int, numbers: Sequence[bool]) -> list[Key]:
    """Return keys that divide a large table evenly, as far as the planner's statistics tell."""
    wanted = min(most, table.captured.rows // _ROWS_A_PIECE)
    key, table_id = table.schema.table.key_columns, table.schema.table.id
    if wanted < 2 or len(key) > 1:
        return []
    row = session.execute(_HISTOGRAM, (table_id.schema, table_id.table, key[0])).fetchone()
    known = row[0] if row is not None and row[0] else []
    chosen = dict.fromkeys(known[len(known) * number // wanted] for number in range(1, wanted)) if known else {}
    return [key_of([text.encode()], numbers) for text in chosen]


class CopyReader:
    """Reads pieces through a session of its own."""

    def __init__(self, session: psycopg.Connection[Any], works: Sequence[PieceWork]) -> None:
        self._session = session
        self._works = works

    def read(self, piece: int) -> Iterator[tuple[Sequence[Any], Key | None]]:
        """Yield the rows of a piece."""
        work = self._works[piece]
        rows = copied_rows(self._session, work.statement)
        if not work.numbers:
            yield from ((raw, None) for raw in rows)
            return
        width, numbers = work.width, work.numbers
        for raw in rows:
            yield raw[:width], key_of(raw[width:], numbers)

    def cancel(self) -> None:
        """Cancel the statement that runs, if one does."""
        import psycopg  # noqa: PLC0415 - psycopg is loaded only where it is used

        with suppress(psycopg.Error):
            self._session.cancel()

    def close(self) -> None:
        """Close the session."""
        self._session.close()
