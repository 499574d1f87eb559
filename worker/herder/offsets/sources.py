"""Source offsets in both places: the worker's store, and topics that a connector's tasks write themselves (KIP-618).

The offsets of a connector with its own ``offsets.storage.topic`` are in that topic, and the worker has a copy. Offsets
missing in the topic are looked up in the copy. Used only in the herder's thread.

==================================================  ====================================================================
kill -9 here, while offsets are altered             then
==================================================  ====================================================================
after offsets were deleted from the worker's copy   the own topic still has them: nothing has changed. In the other
                                                    order, deleted offsets would come back from the copy
after the own topic has all changes                 they count; the copy is outdated, and is used only if the connector
                                                    goes back to the worker's topic
==================================================  ====================================================================
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any, Final, TypeVar

import orjson

from connect.errors import ConnectError
from worker.herder.inquiries import Inquiries
from worker.herder.requests import Steps
from worker.messages import messages
from worker.messages.messages import OffsetPairs
from worker.stores.offset.service import OffsetService

__all__ = ["OffsetLayers", "layered", "may_have_own_topic", "reached"]

logger = logging.getLogger(__name__)
T = TypeVar("T")
_OWN_TOPIC: Final = "offsets.storage.topic"
_OTHER_CLUSTER: Final = "producer.override.bootstrap.servers"


class OffsetLayers:
    """Reads and writes the offsets of sources."""

    def __init__(self, worker_props: Mapping[str, str], store: OffsetService, inquiries: Inquiries) -> None:
        self._worker_props = dict(worker_props)
        self._store = store
        self._inquiries = inquiries

    def read(self, name: str, config: Mapping[str, str]) -> Steps[OffsetPairs]:
        """Return every source partition of a connector, with its offset."""
        if not may_have_own_topic(config):
            return (yield from reached(self._store.of_connector(name)))
        inquiry = messages.ReadDedicatedOffsets(dict(config), self._worker_props)
        own = yield from self._inquiries.ask(inquiry, messages.DedicatedOffsets)
        return layered(own.offsets, (yield from reached(self._store.of_connector(name))))

    def write(
        self, name: str, config: Mapping[str, str], offsets: OffsetPairs, allowed: messages.SourceOffsetsAllowed
    ) -> Steps[None]:
        """Set offsets of a connector with no running task; ``None`` deletes one."""
        forgotten: OffsetPairs = [pair for pair in offsets if pair[1] is None]
        if not offsets:
            return
        if not (allowed.own_topic or allowed.transactional):
            yield from reached(self._store.alter(name, offsets))
            return
        if allowed.own_topic and forgotten:
            yield from reached(self._store.alter(name, forgotten))
        inquiry = messages.WriteSourceOffsets(dict(config), self._worker_props, offsets)
        yield from self._inquiries.ask(inquiry, messages.SourceOffsetsWritten)
        if allowed.own_topic:
            self._copy(name, [pair for pair in offsets if pair[1] is not None])

    def _copy(self, name: str, kept: OffsetPairs) -> None:
        if kept:
            self._store.alter(name, kept).add_done_callback(lambda done: _report(name, done))


def reached(future: Future[T]) -> Steps[T]:
    """Return what the store answers. If the steps are closed before, it is not asked any more."""
    try:
        found: T = yield future
    except Exception as error:
        raise ConnectError(f"The source offsets could not be reached: {error}") from error
    finally:
        future.cancel()
    return found


def may_have_own_topic(config: Mapping[str, str]) -> bool:
    """Return whether to look for offsets in a topic of the connector's own; only its process can resolve references."""
    return bool(config.get(_OWN_TOPIC)) or _OTHER_CLUSTER in config


def layered(own: OffsetPairs, copied: OffsetPairs) -> OffsetPairs:
    """Combine the offsets of the connector's own topic with those that only the worker's copy has."""
    known = {_key(partition) for partition, _ in own}
    return [*own, *(pair for pair in copied if _key(pair[0]) not in known)]


def _key(partition: Mapping[str, Any]) -> bytes:
    return orjson.dumps(partition, option=orjson.OPT_SORT_KEYS)


def _report(name: str, copied: Future[None]) -> None:
    if (error := copied.exception()) is not None:
        logger.warning(
            "Offsets of connector %s were written to its own topic, but not to the worker's copy: %s", name, error
        )
