"""Transaction metadata: the block in each change event, and the topic of beginnings and ends."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

from connect.data import Offset, Schema, SourceRecord

__all__ = ["BLOCK_SCHEMA", "TransactionMetadata", "without_transaction"]

_ID: Final = "transaction_id"
_ORDER: Final = "transaction_data_collection_order_"

BLOCK_SCHEMA: Final = Schema.struct(
    {"id": Schema.string(), "total_order": Schema.int64(), "data_collection_order": Schema.int64()},
    optional=True,
    name="event.block",
    version=1,
)
_KEY: Final = Schema.struct(
    {"id": Schema.string()}, name="io.debezium.connector.common.TransactionMetadataKey", version=1
)
_COLLECTION: Final = Schema.struct(
    {"data_collection": Schema.string(), "event_count": Schema.int64()}, name="event.collection", version=1
)
_VALUE: Final = Schema.struct(
    {
        "status": Schema.string(),
        "id": Schema.string(),
        "event_count": Schema.int64(optional=True),
        "data_collections": Schema.array(_COLLECTION, optional=True),
        "ts_ms": Schema.int64(),
    },
    name="io.debezium.connector.common.TransactionMetadataValue",
    version=1,
)


class TransactionMetadata:
    """Counts the events of the transaction at hand, all and by table.

    Where events that were sent before a restart are passed over, they are counted again, and nothing is kept in the
    offset. Where the stream goes on in the midst of a transaction, offsets carry :meth:`state`, for :meth:`restore`.
    """

    def __init__(self, topic: str, partition: Offset) -> None:
        self._topic = topic
        self._partition = partition
        self._total = 0
        self._by_collection: Counter[str] = Counter()

    def begin(self, identifier: str, ts_ms: int, offset: Offset) -> SourceRecord:
        """Return the record that begins a transaction."""
        self._total = 0
        self._by_collection = Counter()
        return self._record("BEGIN", identifier, ts_ms, offset, None, None)

    def event(self, identifier: str, collection: str) -> dict[str, Any]:
        """Count an event, and return its block."""
        self._total += 1
        self._by_collection[collection] += 1
        order = self._by_collection[collection]
        return {"id": identifier, "total_order": self._total, "data_collection_order": order}

    def end(self, identifier: str, ts_ms: int, offset: Offset) -> SourceRecord:
        """Return the record that ends the transaction."""
        collections = [{"data_collection": name, "event_count": count} for name, count in self._by_collection.items()]
        return self._record("END", identifier, ts_ms, offset, self._total, collections)

    def state(self, identifier: str) -> dict[str, Any]:
        """Return what an offset has to carry in the midst of a transaction, under Debezium's keys."""
        return {_ID: identifier} | {f"{_ORDER}{name}": count for name, count in self._by_collection.items()}

    def restore(self, offset: Offset) -> str | None:
        """Go on in the transaction that an offset carries; return its id, if it carries one."""
        found = offset.get(_ID)
        if not isinstance(found, str):
            return None
        counts = {key.removeprefix(_ORDER): value for key, value in offset.items() if key.startswith(_ORDER)}
        self._by_collection = Counter({name: int(count) for name, count in counts.items()})
        self._total = self._by_collection.total()
        return found

    def _record(
        self,
        status: str,
        identifier: str,
        ts_ms: int,
        offset: Offset,
        count: int | None,
        collections: list[dict[str, Any]] | None,
    ) -> SourceRecord:
        value = {
            "status": status,
            "id": identifier,
            "event_count": count,
            "data_collections": collections,
            "ts_ms": ts_ms,
        }
        return SourceRecord(
            self._topic,
            value,
            _VALUE,
            {"id": identifier},
            _KEY,
            source_partition=self._partition,
            source_offset=offset,
        )


def without_transaction(offset: Offset) -> dict[str, Any]:
    """Return an offset without the transaction that it carries."""
    return {key: value for key, value in offset.items() if key != _ID and not key.startswith(_ORDER)}
