"""The offsets that the sinks keep in Redis, each in a key of the connector.

The Java connectors name their keys after the topic and the partition alone, so that two of them that write one topic to
one database take each other's offsets for their own. Their keys are continued: the first connector that finds one, and
none of its own, renames it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson

from connect.data import TopicPartition
from connect.errors import ConnectError
from connectors.redis.failures import told
from connectors.redis.server import Client

__all__ = ["OffsetKeys", "StoredOffset", "StoredOffsets", "decoded", "encoded"]

_PREFIX: Final = "sluice.sink.offset."


@dataclass(frozen=True, slots=True)
class StoredOffset:
    """The next offset of a partition, and the id of its topic if that was known when it was written."""

    offset: int
    topic_id: str | None = None


@dataclass(frozen=True, slots=True)
class OffsetKeys:
    """The keys of a connector's offsets.

    ``collection`` returns the key of a topic's collection if both have to lie in one slot of a cluster, so that one
    transaction has both.
    """

    connector: str
    java_prefix: str
    collection: Callable[[str], bytes] | None = None

    def key(self, partition: TopicPartition) -> bytes:
        """Return the key of a partition's offset."""
        name = f"{_PREFIX}{self.connector}:{partition.topic}.{partition.partition}".encode()
        return name if self.collection is None else name + b"." + _tagged(self.collection(partition.topic))

    def java_key(self, partition: TopicPartition) -> bytes:
        """Return the key in which the Java connector keeps a partition's offset."""
        return f"{self.java_prefix}{partition.topic}.{partition.partition}".encode()


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


def encoded(partition: TopicPartition, offset: int, ids: Mapping[str, str]) -> bytes:
    """Return the value of a key; ``ids`` are those of the topics."""
    value: dict[str, Any] = {"topic": partition.topic, "partition": partition.partition, "offset": offset}
    if partition.topic in ids:
        value["topic_id"] = ids[partition.topic]
    return orjson.dumps(value)


def decoded(key: bytes, value: bytes | None) -> StoredOffset | None:
    """Return the offset in the value of a key; ``None`` if there is no value."""
    if value is None:
        return None
    try:
        found: Any = orjson.loads(value)
        offset, topic_id = found["offset"], found.get("topic_id")
    except (ValueError, TypeError, KeyError, AttributeError):
        offset = topic_id = None
    if not isinstance(offset, int) or isinstance(offset, bool) or offset < 0:
        shown = key.decode(errors="replace")
        raise ConnectError(f"The key {shown} holds no offset of this connector: delete it, or choose another database.")
    return StoredOffset(offset, topic_id if isinstance(topic_id, str) else None)


class StoredOffsets:
    """Reads and writes offsets outside of transactions."""

    def __init__(self, keys: OffsetKeys) -> None:
        self.keys = keys

    def read(self, client: Client, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, StoredOffset | None]:
        """Return the next offset of each partition, or ``None``."""
        wanted = list(partitions)
        keys = [self.keys.key(partition) for partition in wanted]
        values = _values(client, keys)
        return {tp: decoded(key, value) for tp, key, value in zip(wanted, keys, values, strict=True)}

    def take_over(self, client: Client, partitions: Sequence[TopicPartition]) -> list[TopicPartition]:
        """Make the offsets of the Java connector those of this one; return the partitions that it had any of."""
        keys = [self.keys.java_key(partition) for partition in partitions]
        found = {
            tp: decoded(key, value) for tp, key, value in zip(partitions, keys, _values(client, keys), strict=True)
        }
        offsets = {partition: stored.offset for partition, stored in found.items() if stored is not None}
        if offsets:
            # The own key first: a kill between the two leaves both, and the own one counts.
            self.write(client, offsets, {})
            with told("take over offsets in Redis"):
                pipe = client.pipeline(transaction=False)
                for partition in offsets:
                    pipe.delete(self.keys.java_key(partition))
                pipe.execute()
        return list(offsets)

    def write(self, client: Client, offsets: Mapping[TopicPartition, int | None], ids: Mapping[str, str]) -> None:
        """Store offsets and the ids of their topics; ``None`` deletes one."""
        with told("store offsets in Redis"):
            pipe = client.pipeline(transaction=False)
            for partition, offset in offsets.items():
                if offset is None:
                    pipe.delete(self.keys.key(partition))
                else:
                    pipe.set(self.keys.key(partition), encoded(partition, offset, ids))
            pipe.execute()

    def exchange(
        self, client: Client, offsets: Mapping[TopicPartition, int], ids: Mapping[str, str]
    ) -> dict[TopicPartition, StoredOffset | None]:
        """Store offsets and the ids of their topics, and return what was there before."""
        keys = [self.keys.key(partition) for partition in offsets]
        with told("store offsets in Redis"):
            pipe = client.pipeline(transaction=False)
            for key, (partition, offset) in zip(keys, offsets.items(), strict=True):
                pipe.execute_command("GETSET", key, encoded(partition, offset, ids))
            values = pipe.execute()
        return {tp: decoded(key, value) for tp, key, value in zip(offsets, keys, values, strict=True)}


def _values(client: Client, keys: Sequence[bytes]) -> list[bytes | None]:
    if not keys:
        return []
    with told("read offsets from Redis"):
        pipe = client.pipeline(transaction=False)
        for key in keys:
            pipe.get(key)
        return list(pipe.execute())
