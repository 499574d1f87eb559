"""Changes of the schema as records, on the topic that is called as ``topic.prefix``, as Debezium sends them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from connect.data import Headers, Offset, Schema, SourceRecord
from connect.kits.cdc.tables import Column, Table, TableId
from connectors.cdc.mysql.binlog.log import Stated
from connectors.cdc.mysql.catalog import Catalog
from connectors.cdc.mysql.column_types import ColumnType
from connectors.cdc.mysql.session import Server
from connectors.cdc.mysql.statements import Statement
from connectors.cdc.mysql.texts import quoted

__all__ = ["SchemaChangeRecords", "TableChange", "snapshot_statements"]

TableChange = tuple[str, TableId, Table | None, str | None]
"""What happened (``CREATE``, ``ALTER`` or ``DROP``), to which table, what it looks like now, and its character set."""

_NULLABLE: Final = Schema.string(optional=True)
_COLUMN: Final = Schema.struct(
    {
        "name": Schema.string(),
        "jdbcType": Schema.int32(),
        "nativeType": Schema.int32(optional=True),
        "typeName": Schema.string(),
        "typeExpression": _NULLABLE,
        "charsetName": _NULLABLE,
        "length": Schema.int32(optional=True),
        "scale": Schema.int32(optional=True),
        "position": Schema.int32(),
        "optional": Schema.boolean(optional=True),
        "autoIncremented": Schema.boolean(optional=True),
        "generated": Schema.boolean(optional=True),
        "comment": _NULLABLE,
        "defaultValueExpression": _NULLABLE,
        "enumValues": Schema.array(Schema.string(), optional=True),
    },
    name="io.debezium.connector.schema.Column",
    version=1,
)
_TABLE: Final = Schema.struct(
    {
        "defaultCharsetName": _NULLABLE,
        "primaryKeyColumnNames": Schema.array(Schema.string(), optional=True),
        "columns": Schema.array(_COLUMN),
        "comment": _NULLABLE,
    },
    optional=True,
    name="io.debezium.connector.schema.Table",
    version=1,
)
_CHANGE: Final = Schema.struct(
    {"type": Schema.string(), "id": Schema.string(), "table": _TABLE},
    name="io.debezium.connector.schema.Change",
    version=1,
)
_JDBC_TYPES: Final[Mapping[str, int]] = {
    "tinyint": 5,
    "smallint": 5,
    "mediumint": 4,
    "int": 4,
    "bigint": -5,
    "float": 6,
    "double": 8,
    "decimal": 3,
    "bit": -7,
    "char": 1,
    "enum": 1,
    "set": 1,
    "binary": -2,
    "varbinary": -3,
    "date": 91,
    "time": 92,
    "datetime": 93,
    "timestamp": 2014,
    "year": 4,
}
_VARCHAR, _BLOB, _OTHER = 12, 2004, 1111


class SchemaChangeRecords:
    """Makes the records of schema changes."""

    def __init__(
        self,
        topic: str,
        partition: Offset,
        headers: Headers,
        source_schema: Schema,
        connector: str,
        *,
        is_wanted: bool,
        catalog: Callable[[], Catalog],
    ) -> None:
        self._topic = topic
        self._partition = partition
        self._headers = headers
        self._is_wanted = is_wanted
        self._catalog = catalog
        prefix = f"io.debezium.connector.{connector}"
        self._key = Schema.struct({"databaseName": Schema.string()}, name=f"{prefix}.SchemaChangeKey", version=1)
        self._value = Schema.struct(
            {
                "source": source_schema,
                "ts_ms": Schema.int64(),
                "databaseName": _NULLABLE,
                "schemaName": _NULLABLE,
                "ddl": _NULLABLE,
                "tableChanges": Schema.array(_CHANGE),
            },
            name=f"{prefix}.SchemaChangeValue",
            version=1,
        )

    def changed(
        self, stated: Stated, statement: Statement, source: Mapping[str, Any], offset: Offset
    ) -> list[SourceRecord]:
        """Return the records of a statement in the log."""
        if not self._is_wanted:
            return []
        if statement.kind == "DROP":
            return [
                self.record(
                    table.catalog,
                    f"DROP TABLE {quoted(table.catalog)}.{quoted(table.table)}",
                    [("DROP", table, None, None)],
                    {**source, "table": table.table},
                    offset,
                )
                for table in statement.tables
            ]
        catalog = self._catalog()
        changes: list[TableChange] = [
            (statement.kind, table, catalog.table(table), catalog.charset(table)) for table in statement.tables
        ]
        return [self.record(statement.database, stated.query.sql, changes, source, offset)]

    def record(
        self, database: str, ddl: str, changes: Iterable[TableChange], source: Mapping[str, Any], offset: Offset
    ) -> SourceRecord:
        """Return the record of a statement."""
        value = {
            "source": dict(source),
            "ts_ms": time.time_ns() // 1_000_000,
            "databaseName": database,
            "schemaName": None,
            "ddl": ddl,
            "tableChanges": [_change(*change) for change in changes],
        }
        return SourceRecord(
            self._topic,
            value,
            self._value,
            {"databaseName": database},
            self._key,
            None,
            None,
            self._headers,
            self._partition,
            offset,
        )


def _change(kind: str, table: TableId, now: Table | None, charset: str | None) -> dict[str, Any]:
    described = None
    if now is not None:
        described = {
            "defaultCharsetName": charset,
            "primaryKeyColumnNames": list(now.key_columns),
            "columns": [_column(place, column) for place, column in enumerate(now.columns, 1)],
            "comment": now.comment,
        }
    return {"type": kind, "id": f'"{table.catalog}"."{table.table}"', "table": described}


def _column(place: int, column: Column) -> dict[str, Any]:
    kind: ColumnType = column.native
    is_choice = kind.kind in ("enum", "set")
    return {
        "name": column.name,
        "jdbcType": _jdbc_type(kind),
        "nativeType": None,
        "typeName": column.type_name,
        "typeExpression": column.type_name,
        "charsetName": kind.charset,
        "length": column.length,
        "scale": column.scale,
        "position": place,
        "optional": column.optional,
        "autoIncremented": column.is_auto_incremented,
        "generated": column.is_generated,
        "comment": column.comment,
        "defaultValueExpression": None if column.default is None else str(column.default),
        "enumValues": [f"'{value}'" for value in kind.values] if is_choice else None,
    }


def _jdbc_type(kind: ColumnType) -> int:
    if kind.kind.endswith("text") or kind.kind == "varchar":
        return _VARCHAR
    if kind.kind.endswith("blob"):
        return _BLOB
    return _JDBC_TYPES.get(kind.kind, _OTHER)


def snapshot_statements(
    server: Server,
    tables: Mapping[str, Iterable[tuple[Table, str, str | None]]],
    charsets: Mapping[str, tuple[str, str]],
) -> Iterator[tuple[str, str | None, str, list[TableChange]]]:
    """Yield what a snapshot says of the schema: database, table, statement, and changes of tables.

    ``tables`` has the tables of each database with the statements that create them and their character sets,
    ``charsets`` each database's character set and collation.
    """
    charset, collation = server.variables["character_set_server"], server.variables["collation_server"]
    yield "", None, f"SET character_set_server={charset}, collation_server={collation}", []
    for database, members in sorted(tables.items()):
        known = list(members)
        for table, _, _ in known:
            name = f"{quoted(database)}.{quoted(table.id.table)}"
            yield database, table.id.table, f"DROP TABLE IF EXISTS {name}", [("DROP", table.id, None, None)]
        charset, collation = charsets[database]
        yield database, None, f"DROP DATABASE IF EXISTS {quoted(database)}", []
        yield database, None, f"CREATE DATABASE {quoted(database)} CHARSET {charset} COLLATE {collation}", []
        yield database, None, f"USE {quoted(database)}", []
        for table, statement, own in known:
            yield database, table.id.table, statement, [("CREATE", table.id, table, own)]
