"""Reads, alters and deletes the offsets of connectors (KIP-875). Used only in the herder's thread.

Nothing here blocks: a child process asks the connector or reads the consumer group's offsets, the store's thread has
the source offsets, and each answer arrives in the herder's inbox.

Crash point: with exactly-once support, the producers of a source's former tasks are fenced before its offsets are
altered, so that a task that is still running somewhere cannot commit over them. A worker killed in between leaves
fenced tasks and unchanged offsets.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, TypeAlias

from connect.errors import ConnectError
from worker.herder.cluster.leadership import Leadership
from worker.herder.connectors.connectors import Connectors
from worker.herder.connectors.stopped_connectors import StoppedConnectors
from worker.herder.inbox import Request
from worker.herder.inquiries import Inquiries
from worker.herder.offsets.request_bodies import (
    done_message,
    not_stopped,
    sink_document,
    sink_offsets,
    source_document,
    source_offsets,
)
from worker.herder.offsets.sources import OffsetLayers
from worker.stores.config.store import ConnectorEntry, TargetState
from worker.supervisor.messages import messages
from worker.supervisor.messages.messages import OffsetPairs, Report

__all__ = ["ConnectorOffsets"]

Document: TypeAlias = dict[str, Any]
GivenOffsets: TypeAlias = Sequence[Mapping[str, Any]]


class ConnectorOffsets:
    """Answers requests for offsets. ``post`` runs an action in the herder's thread.

    ``fence`` fences the producers of a source's former tasks, if needed.
    """

    def __init__(
        self,
        worker_props: Mapping[str, str],
        connectors: Connectors,
        leadership: Leadership,
        layers: OffsetLayers,
        inquiries: Inquiries,
        stopped: StoppedConnectors,
        fence: Callable[[str], Future[None]],
        post: Callable[[Callable[[], None]], None],
    ) -> None:
        self._worker_props = dict(worker_props)
        self._connectors = connectors
        self._leadership = leadership
        self._layers = layers
        self._inquiries = inquiries
        self._stopped = stopped
        self._fence = fence
        self._post = post

    def read(self, request: Request[Document], name: str) -> None:
        """Complete the request with the offsets of a connector in any state."""
        entry = self._connectors.entry(name)
        if self._connectors.is_source(name):
            request.enter(f"reading the offsets of connector {name}")
            self._layers.read(request, name, entry.config, lambda pairs: request.set_result(source_document(pairs)))
            return

        def answered(report: Report) -> None:
            assert isinstance(report, messages.SinkOffsets)
            request.set_result(sink_document(report.offsets))

        request.enter(f"reading the consumer group offsets of connector {name}")
        self._inquiries.answer(messages.ReadSinkOffsets(dict(entry.config), self._worker_props), request, answered)

    def alter(self, request: Request[Document], name: str, given: GivenOffsets | None) -> None:
        """Alter the offsets of a stopped connector, or delete all of them if ``given`` is ``None``."""
        self._leadership.as_leader(request, lambda: self._alter(request, name, given))

    def _alter(self, request: Request[Document], name: str, given: GivenOffsets | None) -> None:
        entry, is_source = self._connectors.entry(name), self._connectors.is_source(name)
        if entry.target is not TargetState.STOPPED:
            raise not_stopped(name)
        begin: Callable[[ConnectorEntry], None]
        if is_source:
            pairs = None if given is None else source_offsets(given)
            begin = lambda entry: self._alter_source(request, name, entry, pairs)  # noqa: E731
        else:
            sink = None if given is None else sink_offsets(given)
            begin = lambda entry: self._alter_sink(request, name, entry, sink)  # noqa: E731
        self._stopped.hold(request, name, not_stopped, begin)

    def _alter_sink(
        self,
        request: Request[Document],
        name: str,
        entry: ConnectorEntry,
        offsets: list[tuple[str, int, int | None]] | None,
    ) -> None:
        request.enter(f"modifying the consumer group offsets of connector {name}")
        inquiry = messages.AlterSinkOffsets(dict(entry.config), self._worker_props, offsets)

        def answered(report: Report) -> None:
            assert isinstance(report, messages.OffsetsAltered)
            request.set_result(_done(managed=report.managed, reset=offsets is None))

        self._inquiries.answer(inquiry, request, answered)

    def _alter_source(
        self, request: Request[Document], name: str, entry: ConnectorEntry, offsets: OffsetPairs | None
    ) -> None:
        request.enter(f"fencing the former tasks of connector {name}")
        fenced = self._fence(name)

        def go_on() -> None:
            if request.done():
                return
            if (error := fenced.exception()) is not None:
                request.set_exception(
                    ConnectError(
                        f"The former tasks of connector {name} could not be fenced, and may still commit offsets: "
                        f"{error}. Nothing was changed; ask again."
                    )
                )
            elif offsets is not None:
                self._ask_and_write(request, name, entry, offsets, reset=False)
            else:
                self._layers.read(request, name, entry.config, reset)

        def reset(found: OffsetPairs) -> None:
            forgotten: OffsetPairs = [(partition, None) for partition, _ in found]
            self._ask_and_write(request, name, entry, forgotten, reset=True)

        fenced.add_done_callback(lambda _: self._post(go_on))

    def _ask_and_write(
        self, request: Request[Document], name: str, entry: ConnectorEntry, offsets: OffsetPairs, *, reset: bool
    ) -> None:
        """Write offsets that the connector accepts."""
        request.enter(f"modifying the offsets of connector {name}")

        def agreed(report: Report) -> None:
            assert isinstance(report, messages.SourceOffsetsAllowed)
            answer = _done(managed=report.managed, reset=reset)
            self._layers.write(request, name, entry.config, offsets, report, lambda: request.set_result(answer))

        inquiry = messages.AlterSourceOffsets(dict(entry.config), self._worker_props, offsets)
        self._inquiries.answer(inquiry, request, agreed)


def _done(*, managed: bool, reset: bool) -> Document:
    return {"message": done_message(managed=managed, reset=reset)}
