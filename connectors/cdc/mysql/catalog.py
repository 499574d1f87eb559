"""Tables as the server's catalog describes them now."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from connect.kits.cdc.tables import Column, Table, TableId
from connectors.cdc.mysql.column_types import ColumnType, declared_type
from connectors.cdc.mysql.config import BUILT_IN
from connectors.cdc.mysql.session import Session
from connectors.cdc.mysql.texts import default_value, quoted

__all__ = ["Catalog", "table_id"]

_COLUMNS: Final = """
SELECT TABLE_SCHEMA, TABLE_NAME, COLUMN_NAME, COLUMN_DEFAULT, IS_NULLABLE, COLUMN_TYPE, CHARACTER_SET_NAME,
       EXTRA, COLUMN_COMMENT, GENERATION_EXPRESSION
FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s ORDER BY ORDINAL_POSITION
"""
_KEY: Final = """
SELECT COLUMN_NAME, INDEX_NAME, NON_UNIQUE, NULLABLE, SEQ_IN_INDEX FROM information_schema.STATISTICS
WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s AND NON_UNIQUE = 0 ORDER BY INDEX_NAME, SEQ_IN_INDEX
"""
_TABLES: Final = """
SELECT TABLE_SCHEMA, TABLE_NAME, TABLE_ROWS, TABLE_TYPE FROM information_schema.TABLES
WHERE TABLE_SCHEMA = %s AND TABLE_TYPE IN ('BASE TABLE', 'SYSTEM VERSIONED') ORDER BY TABLE_NAME
"""
_TABLE_ROWS: Final = "SELECT TABLE_ROWS FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s"
_DATABASES: Final = "SELECT SCHEMA_NAME AS name FROM information_schema.SCHEMATA ORDER BY SCHEMA_NAME"


def table_id(database: str, table: str) -> TableId:
    """Return the id of a table: MySQL has databases in place of schemas."""
    return TableId(database, "", table)


class Catalog:
    """Asks the server for its tables."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def tables(self) -> list[tuple[TableId, int]]:
        """Return the tables that are not the server's own, each with a rough number of its rows."""
        return [
            (table_id(str(row["table_schema"]), str(row["table_name"])), int(row["table_rows"] or 0))
            for row in self._tables()
        ]

    def expected_rows(self, table: TableId) -> int:
        """Return a rough number of a table's rows, 0 if it is not known."""
        found = self._session.rows(_TABLE_ROWS, (table.catalog, table.table))
        return int(found[0]["table_rows"] or 0) if found else 0

    def versioned_tables(self) -> list[TableId]:
        """Return MariaDB's tables that keep their history, whose rows the log has otherwise than the tables."""
        if not self._session.server.is_mariadb:
            return []
        return [
            table_id(str(row["table_schema"]), str(row["table_name"]))
            for row in self._tables()
            if row["table_type"] == "SYSTEM VERSIONED"
        ]

    def _tables(self) -> Iterator[Mapping[str, Any]]:
        """Yield what the server says of all tables but its own.

        One database after the other: asked for all at once, MariaDB opens those that describe tables as well.
        """
        for database in self._session.rows(_DATABASES):
            if str(database["name"]).lower() not in BUILT_IN:
                yield from self._session.rows(_TABLES, (str(database["name"]),))

    def table(self, table: TableId) -> Table | None:
        """Return a table as it is now, or ``None`` if there is none."""
        where = (table.catalog, table.table)
        rows = self._session.rows(_COLUMNS, where)
        if not rows:
            return None
        columns = tuple(self._column(row) for row in rows)
        return Table(table, columns, _key(self._session.rows(_KEY, where)))

    def _column(self, row: Mapping[str, Any]) -> Column:
        is_mariadb = self._session.server.is_mariadb
        charset = row["character_set_name"]
        kind = declared_type(str(row["column_type"]), str(charset).lower() if charset else None)
        extra = str(row["extra"] or "").lower()
        default = None if row["column_default"] is None else str(row["column_default"])
        is_expression = "default_generated" in extra or _is_now(default, kind)
        column = Column(
            str(row["column_name"]),
            kind.name,
            _length(kind),
            kind.scale,
            str(row["is_nullable"]).upper() == "YES",
            None,
            bool(row["generation_expression"]),
            "auto_increment" in extra,
            kind.values,
            str(row["column_comment"]) or None,
            kind,
        )
        if is_expression or column.is_generated:
            return column
        return replace(column, default=default_value(default, column, is_mariadb=is_mariadb))

    def charset(self, table: TableId) -> str | None:
        """Return the character set of a table's new columns."""
        rows = self._session.rows(
            "SELECT TABLE_COLLATION AS collation FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s AND "
            "TABLE_NAME = %s",
            (table.catalog, table.table),
        )
        collation = rows[0]["collation"] if rows else None
        return str(collation).split("_", 1)[0] if collation else None

    def database_charsets(self) -> dict[str, tuple[str, str]]:
        """Return the character set and the collation of each database."""
        rows = self._session.rows(
            "SELECT SCHEMA_NAME AS name, DEFAULT_CHARACTER_SET_NAME AS charset, DEFAULT_COLLATION_NAME AS collation "
            "FROM information_schema.SCHEMATA"
        )
        return {str(row["name"]): (str(row["charset"]), str(row["collation"])) for row in rows}

    def definition(self, table: TableId) -> str | None:
        """Return the statement that would create a table as it is now."""
        rows = self._session.rows(f"SHOW CREATE TABLE {quoted(table.catalog)}.{quoted(table.table)}")
        return str(rows[0]["create table"]) if rows and "create table" in rows[0] else None


def _is_now(default: str | None, kind: ColumnType) -> bool:
    return kind.kind in ("timestamp", "datetime") and (default or "").lower().startswith("current_timestamp")


def _length(kind: ColumnType) -> int | None:
    if kind.kind in ("enum", "set"):
        return 1 if kind.kind == "enum" else max(0, 2 * len(kind.values) - 1)
    return kind.length


def _key(rows: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """The columns of the primary key, in its order; without one, those of the first unique key that has no nulls."""
    keys: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        keys.setdefault(str(row["index_name"]), []).append(row)
    if "PRIMARY" in keys:
        return tuple(str(row["column_name"]) for row in keys["PRIMARY"])
    for name in sorted(keys):
        if all(row["column_name"] is not None and str(row["nullable"]).upper() != "YES" for row in keys[name]):
            return tuple(str(row["column_name"]) for row in keys[name])
    return ()
