"""The offsets of a connector that has an offsets topic of its own, beside the worker's (KIP-618)."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from connect.errors import ConnectError
from worker.stores.kafka_offset import ordered_key
from worker.stores.offset import OffsetKey, OffsetStore

__all__ = ["LayeredOffsetStore"]

logger = logging.getLogger(__name__)


class LayeredOffsetStore(OffsetStore):
    """Reads both topics, the connector's ``own`` first; writes to both.

    Crash point: what is forgotten is forgotten in the worker's topic first, for what stays there would come back as
    soon as it is gone from the own one. What is kept is written to the own topic first, which decides; the worker's
    copy is for the day the connector goes back to it, and a copy that fails is reported and not waited for.
    """

    def __init__(self, own: OffsetStore, worker: OffsetStore) -> None:
        self._own = own
        self._worker = worker

    def get(self, keys: Sequence[OffsetKey]) -> list[bytes | None]:
        pairs = zip(self._own.get(keys), self._worker.get(keys), strict=True)
        return [own if own is not None else general for own, general in pairs]

    def put(self, values: Mapping[OffsetKey, bytes | None]) -> None:
        forgotten: dict[OffsetKey, bytes | None] = {key: None for key, value in values.items() if value is None}
        kept = {key: value for key, value in values.items() if value is not None}
        if forgotten:
            self._worker.put(forgotten)
        self._own.put(values)
        if not kept:
            return
        try:
            self._worker.put(kept)
        except ConnectError as error:
            logger.warning("Offsets were written to the connector's own topic but not to the worker's: %s", error)

    def items(self) -> Mapping[OffsetKey, bytes]:
        own = self._own.items()
        known = {ordered_key(key) for key in own}
        return {key: value for key, value in self._worker.items().items() if ordered_key(key) not in known} | dict(own)
