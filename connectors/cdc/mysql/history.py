"""The schema history topic, as Debezium keeps it: written so that Debezium can take the connector over; never read.

The log itself, or the catalog, tells the columns of rows here. Debezium needs this topic to know them.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from connect.errors import RetriableError
from connect.kits.cdc.tables import Table, TableId
from connectors.cdc.mysql.column_types import ColumnType
from connectors.cdc.mysql.jdbc_types import jdbc_type

if TYPE_CHECKING:
    from confluent_kafka import Producer

__all__ = ["SchemaHistory", "TableChange"]

_FLUSH_SECONDS: Final = 30.0


@dataclass(frozen=True, slots=True)
class TableChange:
    """What a statement did to a table."""

    kind: str
    """``CREATE``, ``ALTER`` or ``DROP``."""
    id: TableId
    table: Table | None = None
    """What it looks like now."""
    charset: str | None = None

    @property
    def quoted_id(self) -> str:
        """The id as Debezium writes it."""
        return f'"{self.id.catalog}"."{self.id.table}"'


class SchemaHistory:
    """Writes to the topic. Used by the task's thread alone.

    Crash point: an entry is written before the record of the same statement, so a kill between them writes it twice,
    which Debezium takes as well.
    """

    def __init__(self, topic: str, server: str, settings: Mapping[str, str]) -> None:
        self._topic = topic
        self._server = server
        self._settings = settings
        self._producer: Producer | None = None

    def write(self, position: Mapping[str, Any], database: str, ddl: str, changes: Iterable[TableChange]) -> None:
        """Write an entry, to be acknowledged by :meth:`flush`."""
        entry = {
            "source": {"server": self._server},
            "position": dict(position),
            "ts_ms": time.time_ns() // 1_000_000,
            "databaseName": database,
            "ddl": ddl,
            "tableChanges": [_change(change) for change in changes],
        }
        producer = self._producer or self._open()
        producer.produce(self._topic, json.dumps(entry, separators=(",", ":")).encode(), partition=0)
        producer.poll(0)

    def flush(self) -> None:
        """Wait until all entries are acknowledged. Raises :class:`~connect.errors.RetriableError` if they are not."""
        if self._producer is not None and self._producer.flush(_FLUSH_SECONDS):
            self.close()
            raise RetriableError(
                f"The schema history topic {self._topic} takes no records: see that the brokers of "
                "schema.history.internal.kafka.bootstrap.servers can be reached, or remove the keys that begin with "
                "schema.history.internal, which are needed only to go back to Debezium."
            )

    def close(self) -> None:
        """Close the client; entries that are not acknowledged are given up."""
        if self._producer is not None:
            self._producer.purge()
            self._producer = None

    def _open(self) -> Producer:
        from connect.internals.kafka.clients import librdkafka  # noqa: PLC0415 - loaded where it is used
        from connect.internals.kafka.settings.client import ClientKind  # noqa: PLC0415 - as above
        from connect.internals.kafka.settings.properties import (  # noqa: PLC0415 - as above
            JAVA_DEFAULTS,
            layered,
            librdkafka_properties,
        )

        kind = ClientKind.PRODUCER
        own = {"acks": "all", "enable.idempotence": "true"}
        properties = librdkafka_properties(layered(kind, {}, JAVA_DEFAULTS[kind], dict(self._settings), own), kind)
        self._producer = librdkafka.producer(properties)
        return self._producer


def _change(change: TableChange) -> dict[str, Any]:
    described: dict[str, Any] = {"type": change.kind, "id": change.quoted_id}
    if change.table is not None:
        described["table"] = {
            "defaultCharsetName": change.charset,
            "primaryKeyColumnNames": list(change.table.key_columns),
            "columns": [_column(place, column) for place, column in enumerate(change.table.columns, 1)],
            "attributes": [],
        }
        described["comment"] = change.table.comment
    return described


def _column(place: int, column: Any) -> dict[str, Any]:
    kind: ColumnType = column.native
    sized = {"length": column.length, "scale": column.scale}
    default = {} if column.default is None else {"defaultValueExpression": str(column.default)}
    return {
        "name": column.name,
        "jdbcType": jdbc_type(kind),
        "typeName": column.type_name,
        "typeExpression": column.type_name,
        "charsetName": kind.charset,
        **{name: size for name, size in sized.items() if size is not None},
        "position": place,
        "optional": column.optional,
        "autoIncremented": column.is_auto_incremented,
        "generated": column.is_generated,
        "comment": column.comment,
        "hasDefaultValue": column.optional or column.default is not None,
        **default,
        "enumValues": [f"'{value}'" for value in kind.values],
    }
