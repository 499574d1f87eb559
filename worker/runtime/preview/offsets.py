"""Stored source offsets for a preview: read once, before the tasks start, and never written."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import closing
from typing import Any

from connect.data import Offset
from connect.internals.kafka.clients import librdkafka
from connect.internals.kafka.settings.client import ClientKind, ClientProperties
from worker.kafka.clients import roles
from worker.kafka.topics.admin import describe
from worker.messages.messages import OffsetPairs, PreviewConnector
from worker.runtime.assembly import Assembly
from worker.stores.offset.kafka import TopicOffsetStore, ordered_key
from worker.stores.offset.store import offset_key, parse_offset, parse_offset_key

__all__ = ["FixedOffsets", "stored_offsets"]


class FixedOffsets:
    """The offsets of a connector as of the start; see :class:`connect.source.OffsetStorageReader`."""

    def __init__(self, connector: str, pairs: Iterable[tuple[Offset, Offset | None]]) -> None:
        self._connector = connector
        self._offsets = {self._key(partition): offset for partition, offset in pairs}

    def offset(self, partition: Offset) -> Offset | None:
        """Return the offset of one source partition."""
        return self._offsets.get(self._key(partition))

    def offsets(self, partitions: Sequence[Offset]) -> list[Offset | None]:
        """Return the offset of each source partition, ``None`` where there is none."""
        return [self.offset(partition) for partition in partitions]

    def __len__(self) -> int:
        return len(self._offsets)

    def _key(self, partition: Offset) -> bytes:
        return ordered_key(offset_key(self._connector, partition))


def stored_offsets(inquiry: PreviewConnector, assembly: Assembly) -> FixedOffsets:
    """Return the offsets from which the connector's tasks would continue; none for a preview from the beginning."""
    name = assembly.config.name
    if inquiry.from_beginning:
        return FixedOffsets(name, ())
    pairs: list[tuple[Any, Any]] = []
    own = assembly.dedicated_offsets_topic
    if inquiry.offsets is not None:
        pairs += inquiry.offsets
    elif assembly.distributed is not None and not (own and assembly.supports_exactly_once):
        pairs += _in_topic(name, assembly.distributed.offset_storage_topic, *_of_the_worker(assembly))
    if own is not None:
        # Offsets in the connector's own topic take precedence over the worker's, as they do when the task runs.
        pairs += _in_topic(name, own, *_of_the_connector(assembly))
    return FixedOffsets(name, pairs)


def _of_the_worker(assembly: Assembly) -> tuple[ClientProperties, ...]:
    worker = assembly.worker_props
    isolation = {"isolation.level": "read_committed"} if assembly.supports_exactly_once else {}
    return (
        roles.internal_properties(worker, ClientKind.ADMIN, "preview-admin"),
        roles.internal_properties(worker, ClientKind.CONSUMER, "preview-offsets", isolation),
        roles.internal_properties(worker, ClientKind.PRODUCER, "preview-offsets"),
    )


def _of_the_connector(assembly: Assembly) -> tuple[ClientProperties, ...]:
    worker, props = assembly.worker_props, assembly.props
    return (
        roles.admin_properties(worker, props),
        roles.source_offsets_consumer_properties(worker, props, None, exactly_once=assembly.supports_exactly_once),
        roles.source_producer_properties(worker, props, 0),
    )


def _in_topic(
    connector: str, topic: str, admin: ClientProperties, consumer: ClientProperties, producer: ClientProperties
) -> OffsetPairs:
    """Return the connector's offsets in a topic, which is not created if it is missing."""
    if describe(librdkafka.admin(admin), topic) is None:
        return []
    with closing(TopicOffsetStore(topic, consumer, producer)) as store:
        store.start()
        found = [(*parse_offset_key(key), parse_offset(value)) for key, value in store.items().items()]
    return [(partition, offset) for name, partition, offset in found if name == connector]
