"""Listing and replaying what is in dead letter queues. Used by the herder's thread alone.

A child process does it, some records at a time, and its answer comes back into the herder's inbox.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from worker.errors import BadRequestError, ConflictError
from worker.herder.connectors import Connectors
from worker.herder.errant_requests import Replay, listed_document, read_replay, replayed_document, task_not_stopped
from worker.herder.inquiries import Inquiries
from worker.herder.leadership import Leadership
from worker.herder.request import Request
from worker.herder.stopped import StoppedConnectors
from worker.herder.turns import LEAD_LOST, broken_off
from worker.stores.config import ConnectorEntry, TargetState
from worker.supervisor import messages
from worker.supervisor.messages import Report

__all__ = ["ErrantRecords"]

Document: TypeAlias = dict[str, Any]
# An inquiry has 90 s; a task that fails is given each record by itself.
_AT_ONCE: Final = {"topic": 500, "task": 200}


class ErrantRecords:
    """Answers requests about the dead letter queues of connectors."""

    def __init__(
        self,
        worker_props: Mapping[str, str],
        connectors: Connectors,
        leadership: Leadership,
        inquiries: Inquiries,
        stopped: StoppedConnectors,
    ) -> None:
        self._worker_props = dict(worker_props)
        self._connectors = connectors
        self._leadership = leadership
        self._inquiries = inquiries
        self._stopped = stopped
        self._replaying: dict[str, Request[Document]] = {}
        leadership.when_lost(self._end)

    def list(self, request: Request[Document], name: str, after: tuple[int, int] | None, limit: int) -> None:
        """Answer with what is in the queue of a connector."""
        entry = self._connectors.entry(name)

        def answered(report: Report) -> None:
            assert isinstance(report, messages.ErrantsListed)
            request.set_result(listed_document(report))

        request.enter(f"reading the dead letter queue of connector {name}")
        inquiry = messages.ListErrants(dict(entry.config), self._worker_props, after, limit)
        self._inquiries.answer(inquiry, request, answered)

    def replay(self, request: Request[Document], name: str, body: Mapping[str, Any]) -> None:
        """Deliver records of a sink's queue again; into a task only while the connector is stopped."""
        entry = self._connectors.entry(name)
        replay = read_replay(body)
        if self._connectors.is_source(name):
            raise BadRequestError(
                f"Connector {name} is a source: its queue keeps what was read, not what belongs on a topic. Repair the "
                f"cause, and set its offsets back with PATCH /connectors/{name}/offsets to read the records again."
            )
        if replay.dry_run:
            self._replay(request, name, entry, replay)
        else:
            self._leadership.as_leader(request, lambda: self._begin(request, name, replay))

    def _begin(self, request: Request[Document], name: str, replay: Replay) -> None:
        entry = self._connectors.entry(name)
        if replay.to == "task" and entry.target is not TargetState.STOPPED:
            raise task_not_stopped(name)
        if name in self._replaying:
            raise ConflictError(f"Records of connector {name} are being replayed; ask again in a moment")
        self._replaying[name] = request
        request.add_done_callback(lambda _: self._replaying.pop(name))
        if replay.to == "task":
            self._stopped.hold(
                request, name, task_not_stopped, lambda entry: self._replay(request, name, entry, replay)
            )
        else:
            self._replay(request, name, entry, replay)

    def _end(self) -> None:
        """Break off what the next leader may be asked for again."""
        for name, request in list(self._replaying.items()):
            request.break_off(broken_off(request, name, LEAD_LOST))

    def _replay(self, request: Request[Document], name: str, entry: ConnectorEntry, replay: Replay) -> None:
        def answered(report: Report) -> None:
            assert isinstance(report, messages.ErrantReplayed)
            request.set_result(replayed_document(replay, report))

        request.enter(f"replaying records of the dead letter queue of connector {name}")
        inquiry = messages.ReplayErrants(
            dict(entry.config),
            self._worker_props,
            replay.to,
            replay.selection,
            replay.until,
            _AT_ONCE[replay.to],
            replay.dry_run,
        )
        self._inquiries.answer(inquiry, request, answered)
