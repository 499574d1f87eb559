"""Change events in Debezium's envelope."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from bson import encode
from bson.raw_bson import RawBSONDocument

from connect.data import NO_HEADERS, Headers, Offset, Schema, SourceRecord
from connect.kits.cdc.envelope import context_headers, source_schema
from connect.kits.cdc.semantic_types import JSON
from connect.kits.cdc.tables import TableId
from connect.kits.cdc.transactions import BLOCK_SCHEMA, TransactionMetadata, without_transaction
from connect.kits.mongodb.json_forms import json_format
from connectors.cdc.mongodb.config import MongoDbConfig
from connectors.cdc.mongodb.fields import FieldRules

__all__ = ["DocumentEvents"]

_VERSION: Final = "3.6.1.Final"
"""The version of Debezium whose events these are."""
_JSON: Final = JSON.as_optional()
_OPERATIONS: Final = {"insert": "c", "update": "u", "replace": "u", "delete": "d"}
_TEXT: Final = Schema.string(optional=True)
_NUMBER: Final = Schema.int64(optional=True)
_SOURCE: Final = source_schema(
    "io.debezium.connector.mongo.Source",
    {"collection": Schema.string(), "ord": Schema.int32(), "lsid": _TEXT, "txnNumber": _NUMBER, "wallTime": _NUMBER},
)
_TRUNCATED: Final = Schema.struct(
    {"field": Schema.string(), "size": Schema.int32()},
    name="io.debezium.connector.mongodb.changestream.truncatedarray",
    version=1,
)
_DESCRIPTION: Final = Schema.struct(
    {
        "removedFields": Schema.array(Schema.string(), optional=True),
        "updatedFields": _JSON,
        "truncatedArrays": Schema.array(_TRUNCATED, optional=True),
    },
    optional=True,
    name="io.debezium.connector.mongodb.changestream.updatedescription",
    version=1,
)
_MOST_COLLECTIONS: Final = 10_000


class _Schemas(NamedTuple):
    topic: str
    key: Schema
    envelope: Schema
    is_captured: bool
    fields: FieldRules | None


class DocumentEvents:
    """Makes the records of changes and of documents that a snapshot reads."""

    def __init__(self, config: MongoDbConfig, partition: Offset, stored: Offset) -> None:
        self._config = config
        self._naming = config.naming()
        self._partition = partition
        self._skipped = config.skipped()
        self._headers: Headers = NO_HEADERS
        if config.extended_headers_enabled:
            self._headers = context_headers(config.topic_prefix, "mongodb")
        self._strict = json_format("DefaultJson", (",", ": "))
        self._relaxed = json_format("RelaxedJson")
        self._known: dict[tuple[str, str], _Schemas] = {}
        self._rules = config.field_rules
        self._transactions: TransactionMetadata | None = None
        self._transaction: str | None = None
        if config.provide_transaction_metadata:
            self._transactions = TransactionMetadata(self._naming.transaction_topic(), partition)
            self._transaction = self._transactions.restore(stored)

    def changed(self, data: bytes, previous: Offset, offset: Offset) -> list[SourceRecord]:
        """Return the records of a change: none if it is not captured, and a tombstone after a deletion.

        The event of a deletion has the offset before it: a kill between it and its tombstone repeats both.
        """
        event = RawBSONDocument(data)
        operation = _OPERATIONS.get(event["operationType"])
        if operation is None or operation in self._skipped:
            return []
        database, collection = event["ns"]["db"], event["ns"]["coll"]
        schemas = self._schemas(database, collection)
        if not schemas.is_captured:
            return []
        key = self.key(event["documentKey"]["_id"])
        source = self._source(event, database, collection)
        limits, block = self._block(source, previous)
        offset = self.with_transaction(offset)
        fields = schemas.fields
        value = {
            "before": self._text(event.get("fullDocumentBeforeChange"), fields),
            "after": None if operation == "d" else self._text(event.get("fullDocument"), fields),
            "updateDescription": self._description(event.get("updateDescription"), fields),
            "source": source,
            "op": operation,
            "ts_ms": time.time_ns() // 1_000_000,
            "transaction": block,
        }
        if operation != "d" or not self._config.tombstones_on_delete:
            return [*limits, self._record(schemas, key, value, offset)]
        tombstone = self._record(schemas, key, None, offset)
        return [*limits, self._record(schemas, key, value, previous), tombstone]

    def with_transaction(self, offset: Offset) -> Offset:
        """Return an offset with the transaction at hand."""
        if self._transactions is None or self._transaction is None:
            return offset
        return {**offset, **self._transactions.state(self._transaction)}

    def end_transaction(self, offset: Offset) -> list[SourceRecord]:
        """Return the end of the transaction at hand, if there is one, once the stream is after it."""
        ended, self._transaction = self._transaction, None
        if self._transactions is None or ended is None:
            return []
        return [self._transactions.end(ended, time.time_ns() // 1_000_000, without_transaction(offset))]

    def _block(self, source: Mapping[str, Any], previous: Offset) -> tuple[list[SourceRecord], dict[str, Any] | None]:
        """Return the beginnings and ends of transactions before an event, and its place in its own."""
        if self._transactions is None:
            return [], None
        is_in_one = source["lsid"] is not None and source["txnNumber"] is not None
        identifier = f"{source['lsid']}:{source['txnNumber']}" if is_in_one else None
        limits = [] if identifier == self._transaction else self.end_transaction(previous)
        if identifier is None:
            return limits, None
        if self._transaction is None:
            begins = without_transaction(previous)
            limits.append(self._transactions.begin(identifier, time.time_ns() // 1_000_000, begins))
            self._transaction = identifier
        return limits, self._transactions.event(identifier, f"{source['db']}.{source['collection']}")

    def read(self, data: bytes, database: str, collection: str, marker: str, offset: Offset) -> SourceRecord:
        """Return the record of a document that a snapshot has read; ``marker`` is its place, or ``incremental``."""
        now = time.time_ns()
        schemas = self._schemas(database, collection)
        source = {
            **self._common(database, now // 1_000_000, marker),
            "ts_us": now // 1000,
            "ts_ns": now,
            "collection": collection,
            "ord": -1,
            "lsid": None,
            "txnNumber": None,
            "wallTime": None,
        }
        value = {
            "before": None,
            "after": self._text_of(data, schemas.fields),
            "updateDescription": None,
            "source": source,
            "op": "r",
            "ts_ms": now // 1_000_000,
            "transaction": None,
        }
        key = self.key(RawBSONDocument(data)["_id"])
        return self._record(schemas, key, value, offset)

    def _record(
        self, schemas: _Schemas, key: dict[str, str], value: dict[str, Any] | None, offset: Offset
    ) -> SourceRecord:
        schema = None if value is None else schemas.envelope
        return SourceRecord(
            schemas.topic, value, schema, key, schemas.key, None, None, self._headers, self._partition, offset
        )

    def _schemas(self, database: str, collection: str) -> _Schemas:
        found = self._known.get((database, collection))
        if found is None:
            found = self._made_schemas(database, collection)
            if len(self._known) < _MOST_COLLECTIONS:
                self._known[database, collection] = found
        return found

    def _made_schemas(self, database: str, collection: str) -> _Schemas:
        table = TableId(database, "", collection)
        name = self._naming.schema_name(table)
        envelope = Schema.struct(
            {
                "before": _JSON,
                "after": _JSON,
                "updateDescription": _DESCRIPTION,
                "source": _SOURCE,
                "op": _TEXT,
                "ts_ms": _NUMBER,
                "transaction": BLOCK_SCHEMA,
            },
            name=f"{name}.Envelope",
            version=1,
        )
        key = Schema.struct({"id": Schema.string()}, name=f"{name}.Key")
        is_captured = self._config.captures(database, collection)
        fields = FieldRules(self._rules, database, collection)
        return _Schemas(self._naming.topic(table), key, envelope, is_captured, None if fields.is_empty else fields)

    def key(self, identity: Any) -> dict[str, str]:
        """Return the key of a document with this ``_id``."""
        return {"id": self._strict.text(self._strict.decoded(encode({"v": identity}))["v"])}

    def _text(self, document: Any, fields: FieldRules | None = None) -> str | None:
        return None if document is None else self._text_of(document.raw, fields)

    def _text_of(self, data: bytes, fields: FieldRules | None) -> str:
        document = self._strict.decoded(data)
        return self._strict.text(document if fields is None else fields.document(document))

    def _description(self, description: Any, fields: FieldRules | None) -> dict[str, Any] | None:
        if description is None:
            return None
        removed = list(description.get("removedFields") or ())
        truncated = [(each["field"], each["newSize"]) for each in description.get("truncatedArrays") or ()]
        # Of BSON documents Java's driver writes the relaxed form, and of others the strict one.
        updated = description.get("updatedFields")
        changes = None if updated is None else self._relaxed.decoded(updated.raw)
        if fields is not None:
            removed = fields.names(removed)
            truncated = [(name, size) for field, size in truncated if (name := fields.name(field)) is not None]
            changes = None if changes is None else fields.changes(changes)
        return {
            "removedFields": removed or None,
            "updatedFields": None if changes is None else self._relaxed.text(changes),
            "truncatedArrays": [{"field": field, "size": size} for field, size in truncated] or None,
        }

    def _common(self, database: str, ts_ms: int, snapshot: str) -> dict[str, Any]:
        return {
            "version": _VERSION,
            "connector": "mongodb",
            "name": self._config.topic_prefix,
            "ts_ms": ts_ms,
            "snapshot": snapshot,
            "db": database,
            "sequence": None,
        }

    def _source(self, event: Mapping[str, Any], database: str, collection: str) -> dict[str, Any]:
        cluster_time = event["clusterTime"]
        wall = event.get("wallTime")
        wall_time = None if wall is None else _milliseconds(wall)
        ts_ms = cluster_time.time * 1000 if wall_time is None else wall_time
        lsid = event.get("lsid")
        number = event.get("txnNumber")
        return {
            **self._common(database, ts_ms, "false"),
            "ts_us": ts_ms * 1000,
            "ts_ns": ts_ms * 1_000_000,
            "collection": collection,
            "ord": cluster_time.inc,
            "lsid": self._text(lsid),
            "txnNumber": None if number is None else int(number),
            "wallTime": wall_time,
        }


def _milliseconds(moment: Any) -> int:
    encoded = encode({"t": moment})
    return int.from_bytes(encoded[7:15], "little", signed=True)
