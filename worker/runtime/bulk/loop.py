"""The loop of a bulk sink task: look where the partitions end, plan ranges, have them loaded, commit.

==========================================  ========================================================================
kill -9 here                                then
==========================================  ========================================================================
before or during ``load``                   the ranges are planned again, from what the target says it has
after ``load``, before the commit           the target is ahead of Kafka's offsets: its word counts, nothing is doubled
after the commit                            loading continues after them
==========================================  ========================================================================

A target that keeps no offsets (``committed`` gives none) is loaded at least once. The group ``connect-NAME`` has no
members: its offsets only follow, for people and tools that watch them."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import confluent_kafka
from confluent_kafka import Consumer, KafkaException

from connect.bulk import BulkSinkTask, OffsetRange
from connect.chain.tolerance import Tolerance
from connect.crash import crash_point
from connect.data import TopicPartition
from connect.errors import ConnectError, RetriableError
from worker.config.connector import SinkConnectorConfig
from worker.kafka.topics.admin import topic_ids
from worker.runtime.assembly import Assembly
from worker.runtime.bulk.plan import plan_ranges
from worker.runtime.clients import Clients
from worker.runtime.control import Control
from worker.runtime.metrics import ActiveTopics, TaskMetrics
from worker.runtime.sink.topic_choice import TopicChoice
from worker.supervisor.messages import messages

__all__ = ["BulkLoop", "BulkTaskRuntimeContext"]

logger = logging.getLogger(__name__)
_TIMEOUT: Final = 30.0
_RETRY: Final = 5.0
_PATIENCE: Final = 10
_REFRESH_TOPICS: Final = 10.0
_MADE_AGAIN: Final = (
    "{} was deleted and made again, or its brokers have lost records: its offsets do not mean what they did. Give the "
    "connector another name to load it from its beginning, or set its offsets."
)


class BulkTaskRuntimeContext:
    """Gives a bulk sink task its part of the runtime; see :class:`connect.bulk.BulkSinkTaskContext`."""

    def __init__(self, control: Control, assembly: Assembly, clients: Clients) -> None:
        self._control = control
        self.connector_name = assembly.config.name
        self.consumer_properties: Mapping[str, str] = clients.sink_consumer_java_properties()
        self.connector_properties: Mapping[str, str] = assembly.effective_props()

    def wait(self, seconds: float) -> bool:
        """Wait, unless the task is stopped or paused first."""
        return self._control.wait(seconds)

    def stopping(self) -> bool:
        """Whether the task is to stop."""
        return self._control.is_stopping()


class BulkLoop:
    """Runs one bulk sink task until it is told to stop. Everything happens in the thread that calls :meth:`run`."""

    def __init__(
        self,
        assembly: Assembly,
        control: Control,
        clients: Clients,
        task: BulkSinkTask[Any],
        tolerance: Tolerance,
    ) -> None:
        config = assembly.config
        assert isinstance(config, SinkConnectorConfig)
        self._choice = TopicChoice(config)
        self._offset_reset = clients.offset_reset
        self._control = control
        self._task = task
        self._consumer: Consumer = clients.sink_consumer()
        self._admin = clients.admin
        self._metrics = TaskMetrics(control.send, tolerance.counts)
        self._active = ActiveTopics(control.send, enabled=assembly.worker.topic_tracking_enable)
        self._positions: dict[TopicPartition, int] = {}
        self._uncommitted: dict[TopicPartition, int] = {}
        self._gone: set[TopicPartition] = set()
        self._topic_ids: dict[str, str] = {}
        self._partitions: tuple[TopicPartition, ...] = ()
        self._refresh_due = 0.0
        self._waiting_since: float | None = None
        self._drain_ends: dict[TopicPartition, int] | None = None

    def run(self) -> None:
        """Load ranges until the worker says stop."""
        # Until it is known where the target is, this is a sink of unknown lag.
        self._report({})
        self._positions = self._loaded()
        while not self._control.stopping:
            if not self._control.poll():
                self._pause()
                continue
            ends = self._ends()
            ranges = self._plan(ends)
            if ranges:
                # A load takes its time, and until it is done this is what there is to show.
                self._report(ends)
                self._load(ranges)
            elif self._drained():
                self._report(ends)
                self._await_stop()
                return
            else:
                self._control.wait(self._task.config.poll_interval_ms / 1000)
            if self._metrics.due():
                self._report(ends)

    def close(self) -> None:
        """Release the client."""
        self._consumer.close()

    def _ends(self) -> dict[TopicPartition, int]:
        """The end of every partition now; those that were never seen get their first position."""
        # Nobody else has the client tell what it has to say: its log, its errors.
        self._consumer.poll(0)
        try:
            if time.monotonic() >= self._refresh_due or (self._control.draining and self._drain_ends is None):
                self._find_partitions()
            marks = {tp: self._watermarks(tp) for tp in self._partitions}
            self._enter({tp: low_high for tp, low_high in marks.items() if tp not in self._positions})
        except KafkaException as error:
            logger.warning("The ends of the topics cannot be looked up yet; trying again: %s", error)
            self._refresh_due = 0.0
            return {}
        for tp, (low, high) in marks.items():
            self._check_position(tp, low, high)
        ends = {tp: high for tp, (_, high) in marks.items()}
        if self._control.draining and self._drain_ends is None:
            self._drain_ends = ends
        return ends

    def _find_partitions(self) -> None:
        names = self._choice.present(self._consumer)
        found: set[TopicPartition] = set()
        for name in names:
            partitions = self._consumer.list_topics(name, timeout=_TIMEOUT).topics[name].partitions
            found |= {TopicPartition(name, partition) for partition in partitions}
        for gone in sorted(set(self._partitions) - found):
            logger.warning("%s no longer exists; those of its records that were not loaded are lost.", gone)
            self._gone.add(gone)
        if back := found & self._gone:
            raise ConnectError(_MADE_AGAIN.format(min(back)))
        self._check_topics(names)
        self._partitions = tuple(sorted(found))
        # A topic that is not there yet is usually about to be created by a source.
        is_complete = bool(names) and (self._choice.is_pattern or len(names) == len(self._choice.names))
        soon = min(_REFRESH_TOPICS, self._task.config.poll_interval_ms / 1000)
        self._refresh_due = time.monotonic() + (_REFRESH_TOPICS if is_complete else soon)

    def _check_topics(self, names: Sequence[str]) -> None:
        """Refuse topics that were deleted and made again under the same names."""
        for name, topic_id in topic_ids(self._admin, names).items():
            if self._topic_ids.setdefault(name, topic_id) != topic_id:
                raise ConnectError(_MADE_AGAIN.format(name))

    def _enter(self, marks: Mapping[TopicPartition, tuple[int, int]]) -> None:
        if not marks:
            return
        client = [confluent_kafka.TopicPartition(*tp) for tp in marks]
        for committed in self._consumer.committed(client, timeout=_TIMEOUT):
            if committed.error is not None:
                raise KafkaException(committed.error)
            tp = TopicPartition(committed.topic, committed.partition)
            self._positions[tp] = committed.offset if committed.offset >= 0 else self._reset(tp, *marks[tp])

    def _reset(self, tp: TopicPartition, low: int, high: int) -> int:
        """The offsets to begin at without a commit, as ``auto.offset.reset`` says."""
        if self._offset_reset == "none":
            raise ConnectError(
                f"There is no offset for {tp} and consumer.override.auto.offset.reset is none: set the connector's "
                "offsets, or choose earliest or latest."
            )
        return high if self._offset_reset == "latest" else low

    def _check_position(self, tp: TopicPartition, low: int, high: int) -> None:
        """See that the records from the position on are there; those that are not are never passed in silence (I4)."""
        position = self._positions[tp]
        if position > high:
            raise ConnectError(f"{_MADE_AGAIN.format(tp)} It ends at {high}, but is loaded up to {position}.")
        if position < low:
            if self._offset_reset == "none":
                raise ConnectError(
                    f"The records {position} to {low - 1} of {tp} were deleted before they were loaded. Set the "
                    "connector's offsets, or let consumer.override.auto.offset.reset be earliest to go on without them."
                )
            logger.error(
                "The records %d to %d of %s were deleted before they were loaded, and are left out. Is the retention "
                "of the topic long enough?",
                position,
                low - 1,
                tp,
            )
            self._positions[tp] = low

    def _watermarks(self, tp: TopicPartition) -> tuple[int, int]:
        low, high = self._consumer.get_watermark_offsets(confluent_kafka.TopicPartition(*tp), timeout=_TIMEOUT)
        return low, high

    def _plan(self, ends: Mapping[TopicPartition, int]) -> tuple[OffsetRange, ...]:
        config = self._task.config
        waiting = any(end > self._positions.get(tp, 0) for tp, end in ends.items())
        if not waiting:
            self._waiting_since = None
            return ()
        now = time.monotonic()
        self._waiting_since = self._waiting_since or now
        overdue = self._control.draining or now - self._waiting_since >= config.rotate_interval_ms / 1000
        ranges = plan_ranges(self._positions, ends, flush_size=config.flush_size, overdue=overdue)
        if ranges:
            self._waiting_since = None
        return tuple(replace(item, topic_id=self._topic_ids.get(item.topic)) for item in ranges)

    def _load(self, ranges: tuple[OffsetRange, ...]) -> None:
        try:
            # An engine may work on it for long: that alone is no reason to report it.
            with self._control.watch.call("load", _PATIENCE):
                self._task.load(ranges)
        except RetriableError as error:
            logger.warning("The load will be tried again: %s", error)
            self._control.wait(error.retry_after or _RETRY)
            # It may have become durable all the same.
            self._positions |= self._loaded()
            return
        crash_point("before-offset-commit")
        ends = {item.topic_partition: item.end for item in ranges}
        self._positions |= ends
        self._uncommitted |= ends
        self._active.see(item.topic for item in ranges)
        self._metrics.count("sink-record-send-total", sum(map(len, ranges)))
        self._commit()

    def _loaded(self) -> dict[TopicPartition, int]:
        """The offsets kept in the target."""
        with self._control.watch.call("committed"):
            return dict(self._task.committed())

    def _commit(self) -> None:
        """Have the group's offsets follow; those that could not be committed go with the next."""
        client = [confluent_kafka.TopicPartition(*tp, offset) for tp, offset in self._uncommitted.items()]
        try:
            self._consumer.commit(offsets=client, asynchronous=False)
        except KafkaException as error:
            # Until then a target without offsets may load twice.
            logger.warning("Offsets were not committed; the next commit will include them: %s", error)
        else:
            self._uncommitted = {}

    def _drained(self) -> bool:
        if self._drain_ends is None:
            return False
        return all(self._positions[tp] >= end for tp, end in self._drain_ends.items())

    def _await_stop(self) -> None:
        self._control.send(messages.Drained())
        while not self._control.stopping:
            self._control.wait_for_command()

    def _pause(self) -> None:
        if self._control.stopping:
            return
        self._control.send(messages.Paused())
        while self._control.paused and not self._control.stopping:
            self._control.wait_for_command()
        if not self._control.stopping:
            self._control.send(messages.Resumed())

    def _report(self, ends: Mapping[TopicPartition, int]) -> None:
        self._active.forget()
        is_known = bool(ends) and self._positions.keys() >= ends.keys()
        behind = sum(max(0, end - self._positions[tp]) for tp, end in ends.items()) if is_known else None
        self._metrics.gauge("sink-record-lag", behind)
        self._metrics.gauge("partition-count", len(ends))
        self._metrics.report()
