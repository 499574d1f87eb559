"""The captured tables: how the rows of each of their versions are read, and what the records look like."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Final

from connect.errors import ConnectError
from connect.kits.cdc.table_schemas import TableSchema, TableSchemas
from connect.kits.cdc.tables import Column, Table, TableId
from connectors.cdc.mysql.binlog.errors import BinlogError
from connectors.cdc.mysql.binlog.row_code import ColumnPlan, RowReader, compiled_reader
from connectors.cdc.mysql.binlog.table_map import TableMap
from connectors.cdc.mysql.catalog import table_id
from connectors.cdc.mysql.column_types import ColumnType, is_described_by, logged_type, plan
from connectors.cdc.mysql.config import BUILT_IN, TableFilter
from connectors.cdc.mysql.session import Server

__all__ = ["Capture", "Captures", "merged"]

logger = logging.getLogger(__name__)

_MOST_VERSIONS: Final = 2000
_MOST_READERS: Final = 64
"""How many functions are compiled for one version of a table, one for each set of columns that the log leaves out."""


@dataclass(slots=True)
class Capture:
    """A version of a captured table."""

    id: TableId
    schema: TableSchema
    plans: tuple[ColumnPlan, ...]
    is_sent: bool = True
    """Whether its rows are sent; those of a signal table may only be read."""
    _readers: dict[tuple[Any, ...], RowReader] = field(default_factory=dict)

    def rows(self, data: bytes, start: int, end: int, images: tuple[bytes, ...], *, is_partial: bool) -> list[Any]:
        """Read the rows of an event; pairs of rows for an update."""
        key = (*images, is_partial)
        reader = self._readers.get(key)
        if reader is None:
            if len(self._readers) >= _MOST_READERS:
                self._readers.clear()
            reader = self._readers[key] = compiled_reader(self.plans, *images, is_partial=is_partial)
        try:
            return reader(data, start, end)
        except (IndexError, ValueError) as error:
            raise BinlogError(f"The rows of an event of table {self.id} in the log cannot be read: {error}.") from error
        except Exception as error:
            if type(error).__name__ == "error":  # zlib's and struct's
                raise BinlogError(f"The rows of an event of table {self.id} in the log are damaged.") from error
            raise


class Captures:
    """Finds the capture of a table map.

    ``declared`` asks the catalog for a table; ``proven`` returns whether what it answers is true of the log's place,
    for logs that do not name the columns.
    """

    def __init__(
        self,
        schemas: TableSchemas,
        wanted: TableFilter,
        server: Server,
        declared: Callable[[TableId], Table | None],
        proven: Callable[[TableId], None],
        signal_table: str = "",
    ) -> None:
        self._schemas = schemas
        self._wanted = wanted
        self._server = server
        self._declared = declared
        self._proven = proven
        self._signal_table = signal_table
        self._by_map: dict[int, tuple[TableMap, Capture | None]] = {}
        self._schemas_of: dict[TableId, TableSchema] = {}

    def of(self, table: TableMap) -> Capture | None:
        """Return how to read a table's rows; ``None`` if the table is not captured."""
        found = self._by_map.get(id(table))
        if found is not None:
            return found[1]
        if len(self._by_map) >= _MOST_VERSIONS:
            self._by_map.clear()
        capture = self._made(table)
        # The map is kept beside, so that its identity stays its own.
        self._by_map[id(table)] = (table, capture)
        return capture

    def forget(self, table: TableId) -> None:
        """Look a table up again, since a statement has changed it."""
        self._schemas_of.pop(table, None)
        self._by_map = {key: pair for key, pair in self._by_map.items() if pair[1] is None or pair[1].id != table}

    def forget_all(self) -> None:
        """Look all tables up again."""
        self._schemas_of.clear()
        self._by_map.clear()

    def wanted(self, table: TableId) -> bool:
        """Return whether a table is captured."""
        return self._wanted(table)

    def wants_database(self, name: str) -> bool:
        """Return whether tables of a database may be captured."""
        return self._wanted.databases(name) and name.lower() not in BUILT_IN

    def known(self, table: TableId) -> TableSchema | None:
        """Return the schema of the records of a table as the catalog has it now; ``None`` if it is not there."""
        declared = self._declared(table)
        return None if declared is None else self.schema_of(declared)

    def schema_of(self, table: Table) -> TableSchema:
        """Return the schema of the records of a version of a table; one that is equal is the same object."""
        known = self._schemas_of.get(table.id)
        if known is None or known.table != table:
            known = self._schemas_of[table.id] = self._schemas.of(table)
        return known

    def _made(self, logged: TableMap) -> Capture | None:
        name = table_id(logged.database, logged.table)
        is_sent = self._wanted(name)
        if not is_sent and str(name) != self._signal_table:
            return None
        declared = self._declared(name)
        table = merged(name, logged, declared, self._server)
        if table is None:
            raise ConnectError(_unknown(name))
        if not logged.is_full:
            self._proven(name)
        plans = tuple(
            plan(column, kind.native, self._server.charsets)
            for column, kind in zip(logged.columns, table.columns, strict=True)
        )
        return Capture(name, self.schema_of(table), plans, is_sent)


def _unknown(table: TableId) -> str:
    return (
        f"The log does not name the columns of table {table} (binlog_row_metadata=MINIMAL), and the catalog has "
        "another version of the table than the log at this place, so its rows cannot be told. Run SET GLOBAL "
        "binlog_row_metadata = 'FULL' on the server, and set it in its configuration. The rows that were logged before "
        "need a new snapshot: delete the connector's offsets, and start it again."
    )


def merged(name: TableId, logged: TableMap, declared: Table | None, server: Server) -> Table | None:
    """Return the version of a table that a table map describes, with what only the catalog knows if that fits.

    ``None`` if the log has no names and the catalog does not fit.
    """
    if declared is not None and _fits(logged, declared):
        return declared
    if not logged.is_full:
        return None
    known = {column.name: column for column in declared.columns} if declared is not None else {}
    columns = tuple(_column(each, known.get(each.name or ""), server) for each in logged.columns)
    names = {column.name: column for column in columns}
    keys = tuple(columns[place].name for place in logged.primary_key or ())
    if not keys and declared is not None:
        # A table without a primary key goes by a unique one, which only the catalog knows.
        candidates = declared.key_columns
        if all(each in names and not names[each].optional for each in candidates):
            keys = candidates
    return Table(name, columns, keys)


def _fits(logged: TableMap, declared: Table) -> bool:
    if len(logged.columns) != len(declared.columns):
        return False
    for column, known in zip(logged.columns, declared.columns, strict=True):
        kind: ColumnType = known.native
        if column.name is not None and (column.name != known.name or column.is_nullable != known.optional):
            return False
        if not is_described_by(column, kind):
            return False
    if logged.is_full and logged.primary_key:
        return tuple(declared.columns[place].name for place in logged.primary_key) == declared.key_columns
    return True


def _column(logged: Any, known: Column | None, server: Server) -> Column:
    """A column by the log, with the catalog's word on it if it is still the same one."""
    kind = logged_type(logged, server.charsets)
    if known is not None and is_described_by(logged, known.native):
        return replace(known, optional=logged.is_nullable)
    length = kind.length
    if kind.kind in ("enum", "set"):
        length = 1 if kind.kind == "enum" else max(0, 2 * len(kind.values) - 1)
    return Column(logged.name, kind.name, length, kind.scale, logged.is_nullable, enum_values=kind.values, native=kind)
