"""Resets the consumer groups of sinks and reports the lag of connectors. Used only in the herder's thread.

Nothing here blocks: a child process asks the broker, and its answer arrives in the herder's inbox.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, TypeAlias

from worker.herder.cluster.leadership import Leadership
from worker.herder.connectors.connectors import Connectors
from worker.herder.connectors.stopped_connectors import StoppedConnectors
from worker.herder.inbox import Request
from worker.herder.inquiries import Inquiries
from worker.herder.offsets.lag import lag_document, source_lag_document
from worker.herder.offsets.request_bodies import Reset, not_stopped, read_reset, refuse_source
from worker.metrics.measurements import Measurements, Values
from worker.stores.config.store import ConnectorEntry, TargetState
from worker.stores.status.store import StatusStore
from worker.supervisor.messages import messages
from worker.supervisor.messages.messages import Report
from worker.unit import Unit

__all__ = ["ConsumerOffsets"]

Document: TypeAlias = dict[str, Any]


class ConsumerOffsets:
    """Answers requests to reset offsets and requests for the lag."""

    def __init__(
        self,
        worker_props: Mapping[str, str],
        connectors: Connectors,
        leadership: Leadership,
        inquiries: Inquiries,
        stopped: StoppedConnectors,
        statuses: StatusStore,
        measurements: Measurements,
    ) -> None:
        self._worker_props = dict(worker_props)
        self._connectors = connectors
        self._leadership = leadership
        self._inquiries = inquiries
        self._stopped = stopped
        self._statuses = statuses
        self._measurements = measurements

    def reset(self, request: Request[list[Document]], name: str, body: Mapping[str, Any], *, dry_run: bool) -> None:
        """Reset the group of a stopped sink. A dry run only returns the new offsets, also while the sink runs."""
        entry = self._connectors.entry(name)
        if self._connectors.is_source(name):
            raise refuse_source(name)
        reset = read_reset(body, time.time())
        if dry_run:
            self._move(request, name, entry, reset, dry_run=True)
        else:
            self._leadership.as_leader(request, lambda: self._move_stopped(request, name, reset))

    def lag(self, request: Request[Document], name: str) -> None:
        """Complete the request with a connector's lag, as far as it is known."""
        entry = self._connectors.entry(name)
        number, is_source = len(entry.task_configs), self._connectors.is_source(name)

        def gathered() -> None:
            if is_source:
                request.set_result(source_lag_document(name, self._measured(name, number)))
                return
            request.enter(f"asking where the topics of connector {name} end")
            self._inquiries.answer(messages.ReadSinkLag(dict(entry.config), self._worker_props), request, answered)

        def answered(report: Report) -> None:
            assert isinstance(report, messages.SinkLag)
            request.set_result(lag_document(name, report.partitions, self._measured(name, number)))

        request.enter(f"asking the other workers about their tasks of connector {name}")
        self._measurements.gather(name, gathered)

    def _measured(self, name: str, number: int) -> dict[int, Values]:
        """The measurements of each task, as far as they are known."""
        statuses = self._statuses.statuses()
        units = [Unit(name, task) for task in range(number)]
        known = {unit.task: self._measurements.of(unit, statuses[unit]) for unit in units if unit in statuses}
        return {unit.task: known.get(unit.task) or {} for unit in units}

    def _move_stopped(self, request: Request[list[Document]], name: str, reset: Reset) -> None:
        entry = self._connectors.entry(name)
        if entry.target is not TargetState.STOPPED:
            raise not_stopped(name)
        self._stopped.hold(
            request, name, not_stopped, lambda entry: self._move(request, name, entry, reset, dry_run=False)
        )

    def _move(
        self, request: Request[list[Document]], name: str, entry: ConnectorEntry, reset: Reset, *, dry_run: bool
    ) -> None:
        def answered(report: Report) -> None:
            assert isinstance(report, messages.SinkOffsetsReset)
            request.set_result(
                [
                    {"topic": topic, "partition": partition, "before": before, "after": after}
                    for topic, partition, before, after in report.offsets
                ]
            )

        request.enter(f"resetting the consumer group offsets of connector {name}")
        inquiry = messages.ResetSinkOffsets(
            dict(entry.config), self._worker_props, reset.to, reset.number, reset.topics, dry_run
        )
        self._inquiries.answer(inquiry, request, answered)
