"""Source offsets on a topic, written in transactions by a driver and by the processes of its slots."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from confluent_kafka import Producer

from connect.bulk_source import Claim, ReachedOffsets, TransactionOrders
from connect.data import Offset
from connect.internals.delivery.stored_offsets import offset_key, offset_value, parse_offset, parse_offset_key
from equipment.brokers.topics import read_topic

__all__ = ["ClaimedOffsets"]


class ClaimedOffsets:
    """The offsets of one connector; the :class:`connect.bulk_source.BulkTransactions` of one of its drivers."""

    def __init__(self, bootstrap: str, connector: str, topic: str) -> None:
        self._bootstrap, self._connector, self._topic = bootstrap, connector, topic
        self._common: Mapping[str, str | int | bool] = {"bootstrap.servers": bootstrap}
        self._producer = Producer(self._settings(0))
        self._producer.init_transactions(30)

    def claim(self, slots: int) -> Claim:
        """Write a claim, and fence the slots."""
        key = offset_key("", {"claims": self._connector})
        places: list[int] = []
        self._producer.begin_transaction()
        self._producer.produce(self._topic, b"{}", key, on_delivery=lambda _, message: places.append(message.offset()))
        self._producer.commit_transaction(30)
        for slot in range(1, slots + 1):
            Producer(self._settings(slot)).init_transactions(30)
        return Claim(key, self._topic, 0, places[0] + 1)

    def orders(self, claim: Claim, slot: int) -> TransactionOrders:
        """The orders for a slot."""
        consumer = {**self._common, "group.id": self._connector}
        return TransactionOrders(self._connector, claim, self._settings(slot), consumer, 60.0)

    def commit(self, offsets: ReachedOffsets) -> None:
        """Commit offsets together."""
        self._producer.begin_transaction()
        for partition, offset in offsets:
            self._producer.produce(self._topic, offset_value(offset), offset_key(self._connector, partition))
        self._producer.commit_transaction(30)

    def stored(self) -> dict[str, dict[str, Any]]:
        """The committed offsets, by source partition as JSON."""
        found: dict[str, dict[str, Any]] = {}
        for message in read_topic(self._bootstrap, self._topic):
            connector, partition = parse_offset_key(message.key())
            offset, key = parse_offset(message.value()), _key(partition)
            if connector == self._connector and offset is None:
                found.pop(key, None)
            elif connector == self._connector and offset is not None:
                found[key] = offset
        return found

    def offset(self, partition: Offset) -> Offset | None:
        """The offset of a source partition."""
        return self.stored().get(_key(partition))

    def offsets(self, partitions: Sequence[Offset]) -> Sequence[Offset | None]:
        """The offsets of source partitions."""
        stored = self.stored()
        return [stored.get(_key(partition)) for partition in partitions]

    def _settings(self, slot: int) -> dict[str, str | int | bool]:
        return {**self._common, "transactional.id": f"{self._connector}-{slot}", "partitioner": "murmur2_random"}


def _key(partition: Offset) -> str:
    return json.dumps(dict(partition), sort_keys=True)
