"""Change events: the records that a change of a row becomes.

A change may become several records: the event and a tombstone, or, for a changed key, the deletion under the old key
and the creation under the new. All but the last carry the offset *before* the change: a kill between them repeats the
change as a whole, and loses no part of it (invariant I1).
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Collection, Mapping
from typing import Any, Final

from connect.data import Header, Headers, Offset, Schema, SourceRecord
from connect.kits.cdc.semantic_types import enumeration
from connect.kits.cdc.table_schemas import TableSchema

__all__ = ["SNAPSHOT_MARKERS", "ChangeEvents", "Operation", "context_headers", "source_schema"]

_Row = dict[str, Any]
SNAPSHOT_MARKERS: Final = (
    "true",
    "first",
    "first_in_data_collection",
    "last_in_data_collection",
    "last",
    "false",
    "incremental",
)
_STRING: Final = Schema.string()


class Operation:
    """The values of ``op``."""

    CREATE: Final = "c"
    UPDATE: Final = "u"
    DELETE: Final = "d"
    READ: Final = "r"
    TRUNCATE: Final = "t"
    MESSAGE: Final = "m"


def source_schema(name: str, fields: Mapping[str, Schema]) -> Schema:
    """Return the schema of a database's ``source`` block: the common fields, and then its own."""
    common = {
        "version": _STRING,
        "connector": _STRING,
        "name": _STRING,
        "ts_ms": Schema.int64(),
        "snapshot": enumeration(SNAPSHOT_MARKERS).replace(optional=True, default="false"),
        "db": _STRING,
        "sequence": Schema.string(optional=True),
        "ts_us": Schema.int64(optional=True),
        "ts_ns": Schema.int64(optional=True),
    }
    return Schema.struct({**common, **fields}, name=name, version=1)


def context_headers(logical_name: str, connector: str, task_id: str = "0") -> Headers:
    """Return the headers that tell the connector, its task and this run of it."""
    values = {
        "connectorLogicalName": logical_name,
        "taskId": task_id,
        "connectorName": connector,
        "runId": str(uuid.uuid4()),
    }
    return Headers(Header(f"__debezium.context.{name}", value, _STRING) for name, value in values.items())


class ChangeEvents:
    """Makes the records of changes.

    ``before`` and ``after`` are rows as :class:`~connect.kits.cdc.table_schemas.TableSchema` makes them; ``source`` and
    ``transaction`` are the blocks of the event, ``previous`` and ``offset`` its offsets before and after the change.
    """

    def __init__(
        self,
        partition: Offset,
        headers: Headers,
        *,
        skipped: Collection[str] = (),
        makes_tombstones: bool = True,
        skips_unchanged: bool = False,
    ) -> None:
        self._partition = partition
        self._headers = headers
        self.skipped = frozenset(skipped)
        """The operations that are left out, by ``skipped.operations``."""

        self._makes_tombstones = makes_tombstones
        self._skips_unchanged = skips_unchanged

    def is_skipped(self, operation: str) -> bool:
        """Return whether the operation is left out, by ``skipped.operations``."""
        return operation in self.skipped

    def created(
        self,
        out: list[SourceRecord],
        schema: TableSchema,
        key: _Row | None,
        after: _Row,
        source: _Row,
        transaction: _Row | None,
        offset: Offset,
        operation: str = Operation.CREATE,
    ) -> None:
        """Add the record of a row that was inserted, or read by a snapshot."""
        out.append(self._event(schema, key, None, after, source, transaction, operation, offset, self._headers))

    def updated(
        self,
        out: list[SourceRecord],
        schema: TableSchema,
        key: _Row | None,
        before: _Row | None,
        after: _Row,
        source: _Row,
        transaction: _Row | None,
        offset: Offset,
    ) -> None:
        """Add the record of an updated row whose key stayed."""
        if self._skips_unchanged and before is not None and before == after:
            return
        out.append(
            self._event(schema, key, before, after, source, transaction, Operation.UPDATE, offset, self._headers)
        )

    def rekeyed(
        self,
        out: list[SourceRecord],
        schema: TableSchema,
        old_key: _Row,
        key: _Row,
        before: _Row,
        after: _Row,
        source: _Row,
        transactions: tuple[_Row | None, _Row | None],
        previous: Offset,
        offset: Offset,
    ) -> None:
        """Add the records of a row whose key changed: a deletion, its tombstone, and a creation."""
        gone = self._with_key("__debezium.newkey", key, schema)
        out.append(
            self._event(schema, old_key, before, None, source, transactions[0], Operation.DELETE, previous, gone)
        )
        if self._makes_tombstones:
            out.append(self._tombstone(schema, old_key, previous, gone))
        come = self._with_key("__debezium.oldkey", old_key, schema)
        out.append(self._event(schema, key, None, after, source, transactions[1], Operation.CREATE, offset, come))

    def deleted(
        self,
        out: list[SourceRecord],
        schema: TableSchema,
        key: _Row | None,
        before: _Row | None,
        source: _Row,
        transaction: _Row | None,
        previous: Offset,
        offset: Offset,
    ) -> None:
        """Add the records of a deleted row."""
        is_last = key is None or not self._makes_tombstones
        end = offset if is_last else previous
        out.append(self._event(schema, key, before, None, source, transaction, Operation.DELETE, end, self._headers))
        if not is_last:
            out.append(self._tombstone(schema, key, offset, self._headers))

    def truncated(
        self, out: list[SourceRecord], schema: TableSchema, source: _Row, transaction: _Row | None, offset: Offset
    ) -> None:
        """Add the record of a truncated table."""
        event = self._event(schema, None, None, None, source, transaction, Operation.TRUNCATE, offset, self._headers)
        event.key_schema = None
        out.append(event)

    def _event(
        self,
        schema: TableSchema,
        key: _Row | None,
        before: _Row | None,
        after: _Row | None,
        source: _Row,
        transaction: _Row | None,
        operation: str,
        offset: Offset,
        headers: Headers,
    ) -> SourceRecord:
        now = time.time_ns()
        value = {
            "before": before,
            "after": after,
            "source": source,
            "transaction": transaction,
            "op": operation,
            "ts_ms": now // 1_000_000,
            "ts_us": now // 1000,
            "ts_ns": now,
        }
        return SourceRecord(
            schema.topic,
            value,
            schema.envelope_schema,
            key,
            schema.key_schema,
            None,
            None,
            headers,
            self._partition,
            offset,
        )

    def _tombstone(self, schema: TableSchema, key: _Row | None, offset: Offset, headers: Headers) -> SourceRecord:
        return SourceRecord(
            schema.topic, None, None, key, schema.key_schema, None, None, headers, self._partition, offset
        )

    def _with_key(self, name: str, key: _Row, schema: TableSchema) -> Headers:
        return Headers((Header(name, key, schema.key_schema), *self._headers))
