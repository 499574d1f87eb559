"""Changes of the schema as records, on the topic that is called as ``topic.prefix``, as Debezium sends them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from connect.data import Headers, Offset, Schema, SourceRecord
from connect.kits.cdc.tables import Column, Table
from connectors.cdc.mysql.binlog.log import Stated
from connectors.cdc.mysql.catalog import Catalog
from connectors.cdc.mysql.column_types import ColumnType
from connectors.cdc.mysql.history import SchemaHistory, TableChange
from connectors.cdc.mysql.jdbc_types import jdbc_type
from connectors.cdc.mysql.session import Server
from connectors.cdc.mysql.statements import Statement
from connectors.cdc.mysql.texts import quoted

__all__ = ["SchemaChangeRecords", "snapshot_statements"]

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
        history: SchemaHistory | None,
        catalog: Callable[[], Catalog],
    ) -> None:
        self._topic = topic
        self._partition = partition
        self._headers = headers
        self._is_wanted = is_wanted
        self._history = history
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
        self, stated: Stated, statement: Statement, source: Mapping[str, Any], offset: Offset, position: Offset
    ) -> list[SourceRecord]:
        """Return the records of a statement in the log; ``position`` is that of its transaction."""
        if not self._is_wanted and self._history is None:
            return []
        if statement.kind == "DROP":
            dropped = [
                self.records(
                    table.catalog,
                    f"DROP TABLE {quoted(table.catalog)}.{quoted(table.table)}",
                    [TableChange("DROP", table)],
                    {**source, "table": table.table},
                    offset,
                    position,
                )
                for table in statement.tables
            ]
            found = [record for records in dropped for record in records]
        else:
            catalog = self._catalog()
            changes = [
                TableChange(statement.kind, table, catalog.table(table), catalog.charset(table))
                for table in statement.tables
            ]
            found = self.records(statement.database, stated.query.sql, changes, source, offset, position)
        self.flush()
        return found

    def flush(self) -> None:
        """Wait until what was written to the schema history is acknowledged."""
        if self._history is not None:
            self._history.flush()

    def records(
        self,
        database: str,
        ddl: str,
        changes: Sequence[TableChange],
        source: Mapping[str, Any],
        offset: Offset,
        position: Offset,
    ) -> list[SourceRecord]:
        """Return the record of a statement, if it is wanted, and write it to the schema history, if there is one."""
        if self._history is not None:
            self._history.write(position, database, ddl, changes)
        return [self._record(database, ddl, changes, source, offset)] if self._is_wanted else []

    @property
    def is_needed(self) -> bool:
        """Whether anything is done about changes of the schema."""
        return self._is_wanted or self._history is not None

    def _record(
        self, database: str, ddl: str, changes: Iterable[TableChange], source: Mapping[str, Any], offset: Offset
    ) -> SourceRecord:
        value = {
            "source": dict(source),
            "ts_ms": time.time_ns() // 1_000_000,
            "databaseName": database,
            "schemaName": None,
            "ddl": ddl,
            "tableChanges": [_change(change) for change in changes],
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


def _change(change: TableChange) -> dict[str, Any]:
    described = None
    if change.table is not None:
        described = {
            "defaultCharsetName": change.charset,
            "primaryKeyColumnNames": list(change.table.key_columns),
            "columns": [_column(place, column) for place, column in enumerate(change.table.columns, 1)],
            "comment": change.table.comment,
        }
    return {"type": change.kind, "id": change.quoted_id, "table": described}


def _column(place: int, column: Column) -> dict[str, Any]:
    kind: ColumnType = column.native
    is_choice = kind.kind in ("enum", "set")
    return {
        "name": column.name,
        "jdbcType": jdbc_type(kind),
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
            yield database, table.id.table, f"DROP TABLE IF EXISTS {name}", [TableChange("DROP", table.id)]
        charset, collation = charsets[database]
        yield database, None, f"DROP DATABASE IF EXISTS {quoted(database)}", []
        yield database, None, f"CREATE DATABASE {quoted(database)} CHARSET {charset} COLLATE {collation}", []
        yield database, None, f"USE {quoted(database)}", []
        for table, statement, own in known:
            yield database, table.id.table, statement, [TableChange("CREATE", table.id, table, own)]
