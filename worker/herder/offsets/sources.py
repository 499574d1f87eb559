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
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any, Final, Protocol, TypeVar

import orjson

from connect.errors import ConnectError
from worker.herder.inbox import Request
from worker.herder.inquiries import Inquiries
from worker.supervisor.messages import messages
from worker.supervisor.messages.messages import OffsetPairs, Report

__all__ = ["OffsetLayers", "SourceOffsets", "layered", "may_have_own_topic"]

logger = logging.getLogger(__name__)
T = TypeVar("T")
_OWN_TOPIC: Final = "offsets.storage.topic"
_OTHER_CLUSTER: Final = "producer.override.bootstrap.servers"


class SourceOffsets(Protocol):
    """The worker's store of source offsets; both methods return immediately."""

    def of_connector(self, connector: str) -> Future[OffsetPairs]:
        """Return every source partition of a connector, with its offset."""

    def alter(self, connector: str, offsets: OffsetPairs) -> Future[None]:
        """Store these offsets; ``None`` deletes one."""


class OffsetLayers:
    """Reads and writes the offsets of sources. ``post`` runs an action in the herder's thread.

    A failure fails the request; otherwise the last argument is called with the result, in the herder's thread.
    """

    def __init__(
        self,
        worker_props: Mapping[str, str],
        store: SourceOffsets,
        inquiries: Inquiries,
        post: Callable[[Callable[[], None]], None],
    ) -> None:
        self._worker_props = dict(worker_props)
        self._store = store
        self._inquiries = inquiries
        self._post = post

    def read(
        self, request: Request[Any], name: str, config: Mapping[str, str], go_on: Callable[[OffsetPairs], None]
    ) -> None:
        """Read every source partition of a connector, with its offset."""

        def own_read(report: Report) -> None:
            assert isinstance(report, messages.DedicatedOffsets)
            kept = self._store.of_connector(name)
            self._then(request, kept, lambda pairs: go_on(layered(report.offsets, pairs)))

        if may_have_own_topic(config):
            self._inquiries.answer(messages.ReadDedicatedOffsets(dict(config), self._worker_props), request, own_read)
        else:
            self._then(request, self._store.of_connector(name), go_on)

    def write(
        self,
        request: Request[Any],
        name: str,
        config: Mapping[str, str],
        offsets: OffsetPairs,
        allowed: messages.SourceOffsetsAllowed,
        go_on: Callable[[], None],
    ) -> None:
        """Set offsets of a connector with no running task; ``None`` deletes one."""
        forgotten: OffsetPairs = [pair for pair in offsets if pair[1] is None]

        def write_own(_: None = None) -> None:
            inquiry = messages.WriteSourceOffsets(dict(config), self._worker_props, offsets)
            self._inquiries.answer(inquiry, request, written)

        def written(_: Report) -> None:
            if allowed.own_topic:
                self._copy(name, [pair for pair in offsets if pair[1] is not None])
            go_on()

        if not offsets:
            go_on()
        elif not (allowed.own_topic or allowed.transactional):
            self._then(request, self._store.alter(name, offsets), lambda _: go_on())
        elif allowed.own_topic and forgotten:
            self._then(request, self._store.alter(name, forgotten), write_own)
        else:
            write_own()

    def _copy(self, name: str, kept: OffsetPairs) -> None:
        if kept:
            self._store.alter(name, kept).add_done_callback(lambda done: _report(name, done))

    def _then(self, request: Request[Any], future: Future[T], go_on: Callable[[T], None]) -> None:
        def arrived() -> None:
            if request.done():
                return
            if (error := future.exception()) is not None:
                request.set_exception(ConnectError(f"The source offsets could not be reached: {error}"))
            else:
                go_on(future.result())

        # Nothing more is begun for a cancelled request.
        request.add_done_callback(lambda _: future.cancel())
        future.add_done_callback(lambda _: self._post(arrived))


def may_have_own_topic(config: Mapping[str, str]) -> bool:
    """Whether to look for offsets in a topic of the connector's own; only its process can resolve references."""
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
