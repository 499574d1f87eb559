"""Target tables: looked up, created and extended by new columns.

Crash points: a table is created, and columns are added, before the rows that need them, in separate transactions. A
task killed in between finds them when it restarts.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from connect.errors import ConnectError, DataError
from connect.kits.sql.column import Column, TableId
from connect.kits.sql.connection import Database
from connect.kits.sql.writer import Encode, Reached, Target, Writer, run
from connectors.jdbc.sink.config import InsertMode, JdbcSinkConfig
from connectors.jdbc.sink.layout import Layout, LayoutColumn

if TYPE_CHECKING:
    from sqlalchemy import Connection

__all__ = [
    "PreparedTable",
    "Tables",
    "add_columns_statements",
    "check_plain",
    "create_statement",
    "match_columns",
]

_log = logging.getLogger(__name__)
_KEPT: Final = 500
_PLAIN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_$]*")


@dataclass(frozen=True, slots=True)
class PreparedTable:
    """A table to which rows of one layout can be written."""

    target: Target
    layout: Layout
    encoders: tuple[Encode, ...]
    shape: Hashable = None
    """What :meth:`~connect.kits.sql.writer.Writer.shapes` said of it when it was looked up."""


class Tables:
    """The tables of one connection. What is known of them is forgotten when the connection changes."""

    def __init__(self, database: Database, writer: Writer, config: JdbcSinkConfig) -> None:
        self._database = database
        self._writer = writer
        self._config = config
        self._connection: Connection | None = None
        self._prepared: dict[tuple[TableId, Layout], PreparedTable] = {}
        self._reached: dict[TableId, Reached] = {}
        self._seen: dict[TableId, tuple[Column, ...]] = {}
        self._reported: set[tuple[TableId, str]] = set()

    def connection(self) -> Connection:
        """Return the connection, prepared for writing."""
        connection = self._database.connection()
        if connection is not self._connection:
            self._forget()
            self._writer.prepare(connection)
            connection.commit()
            self._connection = connection
        return connection

    def look_again(self, *, is_sure: bool) -> bool:
        """Return whether others changed a table since it was looked up (``is_sure`` if they did): then all are
        forgotten.

        Ends the transaction.
        """
        connection = self.connection()
        connection.rollback()
        dialect = self._database.dialect
        changed = is_sure or any(dialect.columns(connection, table) != columns for table, columns in self._seen.items())
        if changed:
            self._forget()
            self._writer.release_tables(connection)
        connection.commit()
        return changed

    def _forget(self) -> None:
        self._prepared.clear()
        self._reached.clear()
        self._seen.clear()

    def reached(self, table: TableId) -> Reached:
        """Return what a row of the table may concern, as :meth:`~connect.kits.sql.writer.Writer.reached`.

        A table that does not exist yet concerns nothing.
        """
        connection = self.connection()
        if table not in self._reached:
            resolved = self._database.dialect.resolve(connection, table)
            if len(self._reached) >= _KEPT:
                self._reached.clear()
            self._reached[table] = frozenset() if resolved is None else self._writer.reached(connection, resolved)
        return self._reached[table]

    def prepare(self, table: TableId, layout: Layout) -> PreparedTable:
        """Return the table for rows of a layout, created or extended if necessary and allowed.

        Raises :class:`~connect.errors.ConnectError` if it cannot be written to as it is.
        """
        connection = self.connection()
        given = layout
        known = self._prepared.get((table, given))
        if known is not None:
            return known
        if not self._config.quotes_names:
            check_plain((table.name, table.schema, table.catalog, *layout.names))
        columns = self._columns(connection, table, layout)
        resolved = self._database.dialect.resolve(connection, table) or table
        layout, columns = self._without_generated(resolved, layout, columns)
        target = Target(resolved, tuple(columns), layout.key_size)
        encoders = tuple(
            self._writer.encoder(mine.schema, column) for mine, column in zip(layout.columns, columns, strict=True)
        )
        self._tell_of_other_keys(connection, target)
        if len(self._prepared) >= _KEPT:
            self._prepared.clear()
            self._seen.clear()
            self._writer.release_tables(connection)
        self._writer.prepare_table(connection, target)
        (shape,) = self._writer.shapes(connection, [target])
        # A table that was prepared for another layout before is compared with what it was then.
        self._seen.setdefault(resolved, self._database.dialect.columns(connection, resolved))
        connection.commit()
        prepared = self._prepared[table, given] = PreparedTable(target, layout, encoders, shape)
        return prepared

    def _without_generated(
        self, table: TableId, layout: Layout, columns: Sequence[Column]
    ) -> tuple[Layout, Sequence[Column]]:
        """Leave out the columns that the database computes: it would refuse to be given their values."""
        pairs = list(zip(layout.columns, columns, strict=True))
        kept = [
            (mine, column)
            for place, (mine, column) in enumerate(pairs)
            if place < layout.key_size or not column.generated
        ]
        if len(kept) == len(pairs):
            return layout, columns
        left_out = sorted({column.name for _, column in pairs} - {column.name for _, column in kept})
        if new := [name for name in left_out if (table, name) not in self._reported]:
            self._reported |= {(table, name) for name in new}
            _log.warning(
                "Table %s computes the columns %s itself, so the values that records have for them are left out",
                table,
                ", ".join(new),
            )
        if not kept:
            raise ConnectError(
                f"Table {table} computes every column that the records have a field for, so there is nothing to "
                "write. Write to another table, or give the records more fields."
            )
        return Layout(tuple(mine for mine, _ in kept), layout.key_size), [column for _, column in kept]

    def _columns(self, connection: Connection, table: TableId, layout: Layout) -> Sequence[Column]:
        """Return the columns of the table for those of the layout."""
        dialect = self._database.dialect
        resolved = dialect.resolve(connection, table)
        if resolved is None:
            if not self._config.auto_create:
                raise ConnectError(
                    f"Table {table} is missing and auto-creation is disabled. Create it, or set auto.create=true."
                )
            statement = create_statement(self._writer, table, layout)
            self._change(connection, [statement], lambda: dialect.resolve(connection, table) is not None)
            _log.info("Created table %s", table)
            resolved = dialect.resolve(connection, table)
            assert resolved is not None
        self._check_type(connection, resolved)
        found, missing = match_columns(layout, dialect.columns(connection, resolved))
        if not missing:
            return found
        self._check_may_add(connection, resolved, missing)
        statements = add_columns_statements(self._writer, resolved, missing)
        self._change(
            connection, statements, lambda: not match_columns(layout, dialect.columns(connection, resolved))[1]
        )
        _log.info("Added columns to table %s: %s", resolved, ", ".join(column.name for column in missing))
        return match_columns(layout, dialect.columns(connection, resolved))[0]

    def _tell_of_other_keys(self, connection: Connection, target: Target) -> None:
        """Warn of upserts by columns that are not the primary key: MySQL would add rows, others may refuse them."""
        key = self._database.dialect.primary_key(connection, target.table)
        if self._config.insert_mode is InsertMode.UPSERT and set(key) != set(target.key_names):
            _log.warning(
                "Rows of table %s are upserted by (%s), but its primary key is (%s). Make sure that there is a unique "
                "index on the former",
                target.table,
                ", ".join(target.key_names),
                ", ".join(key),
            )

    def _change(self, connection: Connection, statements: Iterable[str], is_done: Callable[[], bool]) -> None:
        """Run DDL; ignore an error if another task has made the same change meanwhile."""
        connection.rollback()
        connection.begin()
        try:
            for statement in statements:
                run(connection, statement)
            connection.commit()
        except Exception:
            connection.rollback()
            if not is_done():
                raise

    def _check_type(self, connection: Connection, table: TableId) -> None:
        types = self._config.table_types
        if table not in self._database.dialect.tables(connection, types=types):
            raise ConnectError(
                f"Table {table} is of a type that is not in table.types={','.join(types)}. Add its type, or write to "
                "another table."
            )

    def _check_may_add(self, connection: Connection, table: TableId, missing: Sequence[LayoutColumn]) -> None:
        names = ", ".join(column.name for column in missing)
        if not self._config.auto_evolve:
            raise ConnectError(
                f"Table {table} is missing the columns {names} and auto-evolution is disabled. Add them, leave the "
                "fields out with fields.whitelist, or set auto.evolve=true."
            )
        if table in self._database.dialect.tables(connection, types=("VIEW",)):
            raise ConnectError(
                f"View {table} is missing the columns {names}, and a view cannot be evolved. Change the view."
            )
        for column in missing:
            if not column.schema.optional and column.schema.default is None:
                raise ConnectError(
                    f"Cannot add column {column.name} to table {table}: its field is not optional and has no default "
                    "for existing rows. Add the column yourself, or make the field optional."
                )


def match_columns(layout: Layout, columns: Sequence[Column]) -> tuple[list[Column], list[LayoutColumn]]:
    """Return the table's columns by the layout's names, and the layout's columns that are missing.

    A name that differs in case matches if it is the only one.
    """
    exact = {column.name: column for column in columns}
    folded: dict[str, list[Column]] = {}
    for column in columns:
        folded.setdefault(column.name.lower(), []).append(column)
    found: list[Column] = []
    missing: list[LayoutColumn] = []
    for mine in layout.columns:
        similar = folded.get(mine.name.lower(), [])
        if mine.name in exact:
            found.append(exact[mine.name])
        elif len(similar) == 1:
            found += similar
        else:
            missing.append(mine)
    return found, missing


def create_statement(writer: Writer, table: TableId, layout: Layout) -> str:
    """Return the statement that creates a table for a layout."""
    _check_name(writer, table.name)
    keys = layout.key_names
    parts = [_definition(writer, column, in_key=column.name in keys) for column in layout.columns]
    if keys:
        parts.append(f"PRIMARY KEY ({writer.quoted(keys)})")
    return f"CREATE TABLE {writer.dialect.quoted(table)} ({', '.join(parts)}){writer.table_options}"


def add_columns_statements(writer: Writer, table: TableId, columns: Sequence[LayoutColumn]) -> list[str]:
    """Return the statements that add columns to a table."""
    name = writer.dialect.quoted(table)
    return [f"ALTER TABLE {name} ADD {_definition(writer, column, in_key=False)}" for column in columns]


def _definition(writer: Writer, column: LayoutColumn, *, in_key: bool) -> str:
    _check_name(writer, column.name)
    schema = column.schema
    parts = [writer.dialect.quote(column.name), writer.column_type(schema, in_key=in_key)]
    if in_key or not schema.optional:
        parts.append("NOT NULL")
    if schema.default is not None:
        parts.append(f"DEFAULT {writer.literal(schema, schema.default)}")
    return " ".join(parts)


def check_plain(names: Iterable[str]) -> None:
    """Refuse names from records that would be more than a name in SQL without quotes."""
    for name in names:
        if name and not _PLAIN.fullmatch(name):
            raise DataError(
                f"{name!r} can be a table or column name only in quotes. Set quote.sql.identifiers=always, or rename "
                "it with a transformation."
            )


def _check_name(writer: Writer, name: str) -> None:
    longest = writer.longest_name
    if longest is not None and len(name.encode(errors="replace")) > longest:
        raise DataError(
            f"The name {name} is longer than {longest} bytes, so the database would cut it. Rename the topic or the "
            "field with a transformation, or change table.name.format."
        )
    if "\0" in name:
        raise DataError(f"The name {name!r} of a table or column contains a NUL character.")
