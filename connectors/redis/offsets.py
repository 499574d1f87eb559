"""The offsets that the sinks keep in Redis, in the keys and the form of the Java connectors.

A key holds, as JSON, the topic, the partition and the next offset. Java refuses other fields, so that the id of the
topic, by which a topic that was created anew is told from the one before, has a key of its own beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson

from connect.data import TopicPartition
from connect.errors import ConnectError
from connectors.redis.failures import told
from connectors.redis.server import Client

__all__ = ["OffsetKeys", "StoredOffsets", "decoded", "encoded"]

_ID: Final = ".topic.id"


@dataclass(frozen=True, slots=True)
class OffsetKeys:
    """The keys of offsets.

    ``collection`` returns the key of a topic's collection if both have to lie in one slot of a cluster, so that one
    transaction has both.
    """

    prefix: str
    collection: Callable[[str], bytes] | None = None

    def offset(self, partition: TopicPartition) -> bytes:
        """Return the key of a partition's offset."""
        name = f"{self.prefix}{partition.topic}.{partition.partition}".encode()
        return name if self.collection is None else name + b"." + _tagged(self.collection(partition.topic))

    def topic_id(self, partition: TopicPartition) -> bytes:
        """Return the key of the id of a partition's topic."""
        return self.offset(partition) + _ID.encode()


def _tagged(key: bytes) -> bytes:
    """Return a text whose slot is that of a key."""
    before, brace, rest = key.partition(b"{")
    inner, closing, _ = rest.partition(b"}")
    if brace and closing and inner:
        return b"{" + inner + b"}"
    if b"}" in before + rest:
        raise ConnectError(
            f"The key {key.decode(errors='replace')} has a brace of its own, so that no other key can be made that "
            "lies in its slot: choose another redis.key, or set redis.multiexec=false."
        )
    return b"{" + key + b"}"


def encoded(partition: TopicPartition, offset: int) -> bytes:
    """Return the value of a key."""
    return orjson.dumps({"topic": partition.topic, "partition": partition.partition, "offset": offset})


def decoded(key: bytes, value: bytes | None) -> int | None:
    """Return the offset in the value of a key; ``None`` if there is no value."""
    if value is None:
        return None
    try:
        found: Any = orjson.loads(value)["offset"]
    except (ValueError, TypeError, KeyError):
        found = None
    if not isinstance(found, int) or isinstance(found, bool) or found < 0:
        shown = key.decode(errors="replace")
        raise ConnectError(f"The key {shown} holds no offset of this connector: delete it, or choose another database.")
    return found


class StoredOffsets:
    """Reads and writes offsets outside of transactions."""

    def __init__(self, keys: OffsetKeys) -> None:
        self.keys = keys

    def read(self, client: Client, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int | None]:
        """Return the next offset of each partition, or ``None``."""
        wanted = list(partitions)
        return {
            partition: decoded(self.keys.offset(partition), value)
            for partition, value in zip(wanted, self._values(client, map(self.keys.offset, wanted)), strict=True)
        }

    def topic_ids(self, client: Client, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, str | None]:
        """Return the id of the topic that each stored offset is of, or ``None`` if it is not stored."""
        wanted = list(partitions)
        found = self._values(client, map(self.keys.topic_id, wanted))
        return {
            partition: None if value is None else value.decode(errors="replace")
            for partition, value in zip(wanted, found, strict=True)
        }

    def write(self, client: Client, offsets: Mapping[TopicPartition, int], ids: Mapping[str, str]) -> None:
        """Store offsets, and the ids of their topics where they are known."""
        with told("store offsets in Redis"):
            pipe = client.pipeline(transaction=False)
            for partition, offset in offsets.items():
                pipe.set(self.keys.offset(partition), encoded(partition, offset))
                if partition.topic in ids:
                    pipe.set(self.keys.topic_id(partition), ids[partition.topic])
            pipe.execute()

    def alter(self, client: Client, offsets: Mapping[TopicPartition, int | None]) -> None:
        """Set offsets that a user wants; ``None`` deletes one."""
        with told("alter the offsets in Redis"):
            pipe = client.pipeline(transaction=False)
            for partition, offset in offsets.items():
                # Without an id, as it is the user who says that the offset is of today's topic.
                pipe.delete(self.keys.topic_id(partition))
                if offset is None:
                    pipe.delete(self.keys.offset(partition))
                else:
                    pipe.set(self.keys.offset(partition), encoded(partition, offset))
            pipe.execute()

    @staticmethod
    def _values(client: Client, keys: Iterable[bytes]) -> list[bytes | None]:
        wanted = list(keys)
        if not wanted:
            return []
        with told("read offsets from Redis"):
            pipe = client.pipeline(transaction=False)
            for key in wanted:
                pipe.get(key)
            return list(pipe.execute())
