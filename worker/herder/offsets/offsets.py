"""Reads, alters and deletes the offsets of connectors (KIP-875), and reports their lag.

Nothing here blocks: a child process asks the connector or reads the consumer group's offsets, the store's thread has
the source offsets, and each answer arrives in the herder's inbox.

Crash point: with exactly-once support, the producers of a source's former tasks are fenced before its offsets are
altered, so that a task that is still running somewhere cannot commit over them. A worker killed in between leaves
fenced tasks and unchanged offsets.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, TypeAlias

from connect.errors import ConnectError
from worker.herder.cluster.leadership import Leadership
from worker.herder.connectors.connectors import Connectors
from worker.herder.connectors.stopped_connectors import StoppedConnectors
from worker.herder.inquiries import Inquiries
from worker.herder.offsets.lag import lag_document, source_lag_document
from worker.herder.offsets.request_bodies import (
    done_message,
    not_stopped,
    read_reset,
    refuse_source,
    sink_document,
    sink_offsets,
    source_document,
    source_offsets,
)
from worker.herder.offsets.sources import OffsetLayers
from worker.herder.requests import Request, Requests, Steps, asked
from worker.messages import messages
from worker.messages.messages import OffsetPairs
from worker.metrics.measurements import Measurements, Values
from worker.stores.config.store import ConnectorEntry, TargetState
from worker.stores.status.store import StatusStore
from worker.unit import Unit

__all__ = ["Offsets"]

Document: TypeAlias = dict[str, Any]
GivenOffsets: TypeAlias = Sequence[Mapping[str, Any]]


class Offsets:
    """Reads, alters and resets offsets, and reports the lag. Methods may be called from any thread.

    ``fence`` fences the producers of a source's former tasks, if needed.
    """

    def __init__(
        self,
        requests: Requests,
        worker_props: Mapping[str, str],
        connectors: Connectors,
        leadership: Leadership,
        layers: OffsetLayers,
        inquiries: Inquiries,
        stopped: StoppedConnectors,
        fence: Callable[[str], Future[None]],
        statuses: StatusStore,
        measurements: Measurements,
    ) -> None:
        self._requests = requests
        self._worker_props = dict(worker_props)
        self._connectors = connectors
        self._leadership = leadership
        self._layers = layers
        self._inquiries = inquiries
        self._stopped = stopped
        self._fence = fence
        self._statuses = statuses
        self._measurements = measurements

    @asked
    def read(self, request: Request[Document], name: str) -> Steps[Document]:
        """Return the offsets of a connector in any state, in Kafka Connect's form."""
        entry = self._connectors.entry(name)
        if self._connectors.is_source(name):
            request.enter(f"reading the offsets of connector {name}")
            return source_document((yield from self._layers.read(name, entry.config)))
        request.enter(f"reading the consumer group offsets of connector {name}")
        inquiry = messages.ReadSinkOffsets(dict(entry.config), self._worker_props)
        return sink_document((yield from self._inquiries.ask(inquiry, messages.SinkOffsets)).offsets)

    @asked
    def alter(self, request: Request[Document], name: str, given: GivenOffsets | None) -> Steps[Document]:
        """Set offsets of a stopped connector, or delete all if ``given`` is ``None``; return a message for the user."""
        yield from self._leadership.lead(request)
        entry, is_source = self._connectors.entry(name), self._connectors.is_source(name)
        if entry.target is not TargetState.STOPPED:
            raise not_stopped(name)
        if is_source:
            pairs = None if given is None else source_offsets(given)
            entry = yield from self._stopped.hold(request, name, not_stopped)
            return (yield from self._alter_source(request, name, entry, pairs))
        sink = None if given is None else sink_offsets(given)
        entry = yield from self._stopped.hold(request, name, not_stopped)
        return (yield from self._alter_sink(request, name, entry, sink))

    @asked
    def reset(
        self, request: Request[list[Document]], name: str, body: Mapping[str, Any], *, dry_run: bool
    ) -> Steps[list[Document]]:
        """Reset the group of a stopped sink; return each partition's offset before and after.

        A dry run changes nothing and returns the same, also while the sink runs.
        """
        entry = self._connectors.entry(name)
        if self._connectors.is_source(name):
            raise refuse_source(name)
        reset = read_reset(body, time.time())
        if not dry_run:
            yield from self._leadership.lead(request)
            if self._connectors.entry(name).target is not TargetState.STOPPED:
                raise not_stopped(name)
            entry = yield from self._stopped.hold(request, name, not_stopped)
        request.enter(f"resetting the consumer group offsets of connector {name}")
        inquiry = messages.ResetSinkOffsets(
            dict(entry.config), self._worker_props, reset.to, reset.number, reset.topics, dry_run
        )
        report = yield from self._inquiries.ask(inquiry, messages.SinkOffsetsReset)
        return [
            {"topic": topic, "partition": partition, "before": before, "after": after}
            for topic, partition, before, after in report.offsets
        ]

    @asked
    def lag(self, request: Request[Document], name: str) -> Steps[Document]:
        """Return a connector's lag and throughput, in total and by task, after asking the tasks' workers."""
        entry = self._connectors.entry(name)
        number, is_source = len(entry.task_configs), self._connectors.is_source(name)
        request.enter(f"asking the other workers about their tasks of connector {name}")
        yield self._measurements.gather(name)
        if is_source:
            return source_lag_document(name, self._measured(name, number))
        request.enter(f"asking where the topics of connector {name} end")
        inquiry = messages.ReadSinkLag(dict(entry.config), self._worker_props)
        report = yield from self._inquiries.ask(inquiry, messages.SinkLag)
        return lag_document(name, report.partitions, self._measured(name, number))

    def _measured(self, name: str, number: int) -> dict[int, Values]:
        """Return the measurements of each task, as far as they are known."""
        statuses = self._statuses.statuses()
        units = [Unit(name, task) for task in range(number)]
        known = {unit.task: self._measurements.of(unit, statuses[unit]).values for unit in units if unit in statuses}
        return {unit.task: known.get(unit.task) or {} for unit in units}

    def _alter_sink(
        self,
        request: Request[Document],
        name: str,
        entry: ConnectorEntry,
        offsets: list[tuple[str, int, int | None]] | None,
    ) -> Steps[Document]:
        request.enter(f"modifying the consumer group offsets of connector {name}")
        inquiry = messages.AlterSinkOffsets(dict(entry.config), self._worker_props, offsets)
        report = yield from self._inquiries.ask(inquiry, messages.OffsetsAltered)
        return {"message": done_message(managed=report.managed, reset=offsets is None)}

    def _alter_source(
        self, request: Request[Document], name: str, entry: ConnectorEntry, offsets: OffsetPairs | None
    ) -> Steps[Document]:
        """Write offsets that the connector accepts, or forget all that there are."""
        request.enter(f"fencing the former tasks of connector {name}")
        try:
            yield self._fence(name)
        except Exception as error:
            raise ConnectError(
                f"The former tasks of connector {name} could not be fenced, and may still commit offsets: "
                f"{error}. Nothing was changed; ask again."
            ) from error
        reset = offsets is None
        if offsets is None:
            found = yield from self._layers.read(name, entry.config)
            offsets = [(partition, None) for partition, _ in found]
        request.enter(f"modifying the offsets of connector {name}")
        inquiry = messages.AlterSourceOffsets(dict(entry.config), self._worker_props, offsets)
        allowed = yield from self._inquiries.ask(inquiry, messages.SourceOffsetsAllowed)
        yield from self._layers.write(name, entry.config, offsets, allowed)
        return {"message": done_message(managed=allowed.managed, reset=reset)}
