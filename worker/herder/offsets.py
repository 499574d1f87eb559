"""Reading and altering the offsets of connectors (KIP-875). Used by the herder's thread alone.

Nothing here waits: a connector's opinion and a consumer group's offsets are asked of a child process, source offsets
of the thread that owns them, and each answer comes back into the herder's inbox.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, Protocol, TypeAlias, TypeVar

from connect.errors import ConnectError
from worker.herder.inquiries import Inquiries
from worker.herder.offset_requests import (
    done_message,
    not_stopped,
    sink_document,
    sink_offsets,
    source_document,
    source_offsets,
)
from worker.herder.request import Request
from worker.herder.stopped import StoppedConnectors
from worker.stores.config import ConnectorEntry, TargetState
from worker.supervisor import messages
from worker.supervisor.messages import OffsetPairs, Report

__all__ = ["ConnectorOffsets", "Document", "SourceOffsets"]

T = TypeVar("T")
Document: TypeAlias = dict[str, Any]
GivenOffsets: TypeAlias = Sequence[Mapping[str, Any]]


class SourceOffsets(Protocol):
    """Where source offsets are kept; both methods return at once."""

    def of_connector(self, connector: str) -> Future[OffsetPairs]:
        """Every source partition of a connector, with its offset."""

    def alter(self, connector: str, offsets: OffsetPairs) -> Future[None]:
        """Keep these offsets; ``None`` forgets one."""


class ConnectorOffsets:
    """Answers requests for offsets. ``post`` has something done in the herder's thread."""

    def __init__(
        self,
        worker_props: Mapping[str, str],
        source_offsets: SourceOffsets,
        inquiries: Inquiries,
        stopped: StoppedConnectors,
        post: Callable[[Callable[[], None]], None],
    ) -> None:
        self._worker_props = dict(worker_props)
        self._source_offsets = source_offsets
        self._inquiries = inquiries
        self._stopped = stopped
        self._post = post

    def read(self, request: Request[Document], name: str, entry: ConnectorEntry, *, is_source: bool) -> None:
        """Answer with the offsets of a connector, whatever state it is in."""
        if is_source:
            request.enter(f"reading the offsets of connector {name}")
            found = self._source_offsets.of_connector(name)
            self._then(found, request, lambda pairs: request.set_result(source_document(pairs)))
            return

        def answered(report: Report) -> None:
            assert isinstance(report, messages.SinkOffsets)
            request.set_result(sink_document(report.offsets))

        request.enter(f"reading the consumer group offsets of connector {name}")
        self._ask(messages.ReadSinkOffsets(dict(entry.config), self._worker_props), request, answered)

    def alter(
        self,
        request: Request[Document],
        name: str,
        entry: ConnectorEntry,
        given: GivenOffsets | None,
        *,
        is_source: bool,
    ) -> None:
        """Alter offsets of a stopped connector, or reset all of them where none are ``given``."""
        if entry.target is not TargetState.STOPPED:
            raise not_stopped(name)
        begin: Callable[[], None]
        if is_source:
            pairs = None if given is None else source_offsets(given)
            begin = lambda: self._alter_source(request, name, entry, pairs)  # noqa: E731
        else:
            sink = None if given is None else sink_offsets(given)
            begin = lambda: self._alter_sink(request, name, entry, sink)  # noqa: E731
        self._stopped.hold(request, name, begin)

    def _alter_sink(
        self,
        request: Request[Document],
        name: str,
        entry: ConnectorEntry,
        offsets: list[tuple[str, int, int | None]] | None,
    ) -> None:
        request.enter(f"modifying the consumer group offsets of connector {name}")
        inquiry = messages.AlterSinkOffsets(dict(entry.config), self._worker_props, offsets)
        self._ask(inquiry, request, lambda report: _done(request, report, reset=offsets is None))

    def _alter_source(
        self, request: Request[Document], name: str, entry: ConnectorEntry, offsets: OffsetPairs | None
    ) -> None:
        request.enter(f"modifying the offsets of connector {name}")
        if offsets is not None:
            self._alter_source_pairs(request, name, entry, offsets, reset=False)
            return

        def reset(found: OffsetPairs) -> None:
            forgotten: OffsetPairs = [(partition, None) for partition, _ in found]
            self._alter_source_pairs(request, name, entry, forgotten, reset=True)

        self._then(self._source_offsets.of_connector(name), request, reset)

    def _alter_source_pairs(
        self, request: Request[Document], name: str, entry: ConnectorEntry, offsets: OffsetPairs, *, reset: bool
    ) -> None:
        def agreed(report: Report) -> None:
            kept = self._source_offsets.alter(name, offsets)
            self._then(kept, request, lambda _: _done(request, report, reset=reset))

        inquiry = messages.AlterSourceOffsets(dict(entry.config), self._worker_props, offsets)
        self._ask(inquiry, request, agreed)

    def _ask(self, inquiry: messages.Inquiry, request: Request[Document], go_on: Callable[[Report], None]) -> None:
        def answered(outcome: Report | ConnectError) -> None:
            if isinstance(outcome, ConnectError):
                request.set_exception(outcome)
            else:
                go_on(outcome)

        self._inquiries.put(inquiry, answered)

    def _then(self, future: Future[T], request: Request[Document], go_on: Callable[[T], None]) -> None:
        def arrived() -> None:
            if (error := future.exception()) is not None:
                request.set_exception(ConnectError(f"The source offsets could not be reached: {error}"))
            else:
                go_on(future.result())

        future.add_done_callback(lambda _: self._post(arrived))


def _done(request: Request[Document], report: Report, *, reset: bool) -> None:
    assert isinstance(report, messages.OffsetsAltered)
    request.set_result({"message": done_message(managed=report.managed, reset=reset)})
