"""The loop of a bulk sink task: find the ends of the partitions, plan ranges, load them, commit.

==========================================  ========================================================================
kill -9 here                                then
==========================================  ========================================================================
before or during ``load``                   the ranges are planned again, from what the target says it has
after a failed ``load``, before the commit  the same; part of it may be durable, which the target knows or loads again
after ``load``, before the commit           the target is ahead of Kafka's offsets: its word counts, nothing is doubled;
                                            the group's offsets follow at the next start
after the commit                            loading continues after them
==========================================  ========================================================================

A target that keeps no offsets (``committed`` returns none) is loaded at least once. The group ``connect-NAME`` has no
members: its offsets only follow, for people and tools that watch them."""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from confluent_kafka import Consumer, KafkaError, KafkaException

from connect.bulk import BulkSinkTask, FailuresOf, Progress
from connect.data import TopicPartition
from connect.errors import ConnectError, RetriableError
from connect.internals.crash import crash_point
from connect.internals.kafka.auth.rights import CONSUMER, explained, is_denial, on_group, on_topics
from connect.internals.kafka.settings.client import PropertyValue
from connect.offset_set import OffsetSet
from worker.config.connector import SinkConnectorConfig
from worker.metrics.snapshot import PUT
from worker.runtime.assembly import Assembly
from worker.runtime.beginnings import FirstLook
from worker.runtime.bulk.bad_records import BadRecords
from worker.runtime.bulk.loads import Loads
from worker.runtime.bulk.partitions import MADE_AGAIN, MadeAgainError, Partitions
from worker.runtime.bulk.plan import Plan
from worker.runtime.bulk.rotation import RecordWindows, Rotation
from worker.runtime.bulk.sizes import OffsetSizes
from worker.runtime.clients import Clients, Publisher
from worker.runtime.control import Control
from worker.runtime.metrics import ActiveTopics, TaskMetrics
from worker.runtime.sink.topic_choice import TopicChoice
from worker.runtime.waits import Waits

__all__ = ["BulkLoop", "BulkTaskRuntimeContext"]

logger = logging.getLogger(__name__)
_RETRY_SECONDS: Final = 5.0
_TIMES_AS_LONG: Final = 10
_LAST_WAITS: Final = (1.0, 2.0, 4.0, 8.0, 16.0)


class BulkTaskRuntimeContext:
    """Gives a bulk sink task its part of the runtime; see :class:`connect.bulk.BulkSinkTaskContext`."""

    def __init__(self, control: Control, assembly: Assembly, clients: Clients, loads: Loads, bad: BadRecords) -> None:
        self._control = control
        self._loads = loads
        self._bad = bad
        self.connector_name = assembly.config.name
        self.consumer_properties: Mapping[str, str] = clients.sink_consumer_java_properties()
        self.consumer_settings: Mapping[str, PropertyValue] = clients.sink_consumer_settings()
        self.producer_settings: Mapping[str, PropertyValue] = clients.publisher_settings()
        self.connector_properties: Mapping[str, str] = assembly.effective_props()
        self._publisher = Publisher(clients)

    def wait(self, seconds: float) -> bool:
        """Wait, unless the task is stopped or paused first."""
        return self._control.wait(seconds)

    def stopping(self) -> bool:
        """Return whether the task is to stop."""
        return self._control.is_stopping()

    def progress(self, progress: Progress) -> None:
        """Take in the progress of the load."""
        self._loads.tell(progress)

    def publish(self, topic: str, key: bytes | None, value: bytes | None) -> None:
        """Publish a record in addition to the data."""
        self._publisher.publish(topic, key, value)

    def flush_published(self) -> None:
        """Wait until Kafka has acknowledged the published records."""
        self._publisher.flush()

    def leave_out(self, bad: Mapping[TopicPartition, OffsetSet], failures: FailuresOf) -> None:
        """Give up records of a load before it is committed."""
        self._bad.leave_out(bad, failures)


class BulkLoop:
    """Runs one bulk sink task until it is told to stop. Everything happens in the thread that calls :meth:`run`."""

    def __init__(
        self,
        assembly: Assembly,
        control: Control,
        clients: Clients,
        task: BulkSinkTask[Any],
        loads: Loads,
        metrics: TaskMetrics,
        waits: Waits,
    ) -> None:
        config = assembly.config
        assert isinstance(config, SinkConnectorConfig)
        self._offset_reset = clients.offset_reset
        self._control = control
        self._task = task
        self._poll_seconds = task.config.poll_interval_ms / 1000
        self._group, self._topics = clients.sink_group, tuple(config.topics)
        self._consumer: Consumer = clients.sink_consumer()
        self._partitions = Partitions(
            self._consumer, clients.admin, TopicChoice(config, assembly.internal_topics), self._poll_seconds
        )
        self._sizes = OffsetSizes(self._consumer)
        self._windows = RecordWindows(task.config.rotate_record_interval_ms, self._partitions.at)
        self._rotation = Rotation(task.config)
        self._loads = loads
        self._metrics = metrics
        self._waits = waits
        self._active = ActiveTopics(control.send, enabled=assembly.worker.topic_tracking_enable)
        self._positions: dict[TopicPartition, int] = {}
        self._uncommitted: dict[TopicPartition, int] = {}
        self._found: dict[TopicPartition, int] = {}
        """The target's offsets at the start, for partitions that have not been seen yet."""
        self._drain_ends: dict[TopicPartition, int] | None = None
        self._first_look = FirstLook()

    def run(self) -> None:
        """Load ranges until the worker sends a stop."""
        # Until the target's offsets are known, the sink's lag is unknown.
        self._report({})
        self._found = self._loaded()
        self._positions = dict(self._found)
        while not self._control.stopping:
            if not self._control.poll():
                self._control.rest()
                continue
            ends = self._ends()
            is_missing = self._heed_missing()
            load = self._next_load(ends)
            if load is not None:
                # A load takes time, and this is what is shown until it is done.
                self._report(ends)
                self._load(load)
            elif not is_missing and self._drained():
                self._report(ends)
                self._commit_last()
                self._control.await_stop()
                return
            else:
                self._control.wait(self._poll_seconds)
            if self._metrics.due():
                self._report(ends)

    def close(self) -> None:
        """Release the client."""
        self._consumer.close()

    def _ends(self) -> dict[TopicPartition, int]:
        """Return the current end of every partition; new partitions get their first position."""
        # No other code polls the client, which delivers its log lines and errors only then.
        self._consumer.poll(0)
        begins_to_drain = self._control.draining and self._drain_ends is None
        try:
            ends = self._partitions.ends(self._partitions.all(anew=begins_to_drain))
            self._enter({tp: end for tp, end in ends.items() if tp not in self._positions})
            for tp in [tp for tp, end in ends.items() if self._positions[tp] > end]:
                self._partitions.check([tp.topic])
        except KafkaException as error:
            self._try_again(error)
            return {}
        except MadeAgainError as error:
            self._begin_anew(error)
            return {}
        for tp, end in ends.items():
            if self._positions[tp] > end:
                loaded = self._positions[tp]
                raise ConnectError(f"{MADE_AGAIN.format(tp)} It ends at {end}, but is loaded up to {loaded}.")
        self._follow_found(ends)
        if begins_to_drain:
            self._drain_ends = ends
        return ends

    def _heed_missing(self) -> bool:
        """Show which topics the sink waits for. Return whether there are any."""
        if (reason := self._partitions.missing) is None:
            self._waits.over()
            return False
        self._waits.on(reason, ends=self._control.draining)
        return True

    def _follow_found(self, partitions: Iterable[TopicPartition]) -> None:
        """Let the group's offsets follow those found in the target, after a kill between the two."""
        found = {tp: self._found.pop(tp) for tp in partitions if tp in self._found}
        if found:
            self._uncommitted |= found
            self._commit()

    def _begin_anew(self, error: MadeAgainError) -> None:
        """Begin a topic that was created again as ``auto.offset.reset`` says, or fail if the task cannot."""
        topic = error.topic
        if self._offset_reset == "none" or not self._task.begin_anew(topic):
            raise error
        reached = {tp.partition: at for tp, at in self._positions.items() if tp.topic == topic}
        logger.warning(
            "Topic %s was deleted and created again: its offsets do not mean what they did (reached, by partition: "
            "%s). Nothing more is committed for the former topic, and its records that were not loaded are lost. The "
            "sink begins the new topic as auto.offset.reset says: %s.",
            topic,
            reached or "none",
            self._offset_reset,
        )
        self._partitions.begin_anew(topic)
        for offsets in (self._positions, self._uncommitted, self._found):
            for tp in [tp for tp in offsets if tp.topic == topic]:
                del offsets[tp]
        self._drain_ends = None

    def _try_again(self, error: KafkaException) -> None:
        if is_denial(error.args[0].code()):
            raise ConnectError(f"The sink may not consume: {self._explained(error.args[0])}") from error
        logger.warning("The ends of the topics cannot be looked up yet; trying again: %s", error)
        self._partitions.forget()

    def _enter(self, ends: Mapping[TopicPartition, int]) -> None:
        """Give new partitions their first position: the group's, or the one by ``auto.offset.reset``."""
        committed = self._partitions.committed(ends)
        unknown = [tp for tp, offset in committed.items() if offset is None]
        if unknown and self._offset_reset == "none":
            raise ConnectError(
                f"There is no offset for {unknown[0]} and consumer.override.auto.offset.reset is none: set the "
                "connector's offsets, or choose earliest or latest."
            )
        self._first_look.note(self._partitions.all())
        first = self._first_offsets(unknown, ends)
        self._positions |= {tp: first[tp] if offset is None else offset for tp, offset in committed.items()}

    def _first_offsets(
        self, unknown: Collection[TopicPartition], ends: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, int]:
        """Return where partitions without an offset begin; the group has to know an end before the first record."""
        is_latest = self._offset_reset == "latest"
        at_end = {tp: ends[tp] for tp in unknown if is_latest and not self._first_look.is_new(tp)}
        found = self._partitions.beginnings(tp for tp in unknown if tp not in at_end) | at_end
        if is_latest and found:
            self._uncommitted |= found
            self._commit()
        return found

    def _next_load(self, ends: Mapping[TopicPartition, int]) -> Plan | None:
        """Return the load that is due, whose records all exist."""
        waiting = {tp: self._positions[tp] for tp, end in ends.items() if end > self._positions[tp]}
        try:
            cuts = self._windows.cuts({tp: (first, ends[tp]) for tp, first in waiting.items()})
            sizes = self._sizes.of(waiting)
            load = self._rotation.next_load(self._positions, ends, sizes, cuts, draining=self._control.draining)
            if load is None:
                return None
            self._partitions.check(item.topic for item in load.ranges)
            self._pass_deleted([item.topic_partition for item in load.ranges])
        except KafkaException as error:
            self._try_again(error)
            return None
        except MadeAgainError as error:
            self._begin_anew(error)
            return None
        kept = [replace(item, first=max(item.first, self._positions[item.topic_partition])) for item in load.ranges]
        ids = self._partitions.topic_ids
        ranges = tuple(replace(item, topic_id=ids.get(item.topic)) for item in kept if item.end > item.first)
        return replace(load, ranges=ranges) if ranges else None

    def _pass_deleted(self, partitions: list[TopicPartition]) -> None:
        """Check that the records from the positions on exist; deleted ones are never skipped silently (I4)."""
        for tp, low in self._partitions.beginnings(partitions).items():
            position = self._positions[tp]
            if position >= low:
                continue
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

    def _load(self, load: Plan) -> None:
        try:
            # An engine may take long for a load; that alone is no reason to report a hang.
            begun = time.monotonic()
            with self._loads.under_way(load), self._control.watch.call("load", _TIMES_AS_LONG):
                self._task.load(load.ranges)
            self._metrics.timings.took(PUT, time.monotonic() - begun)
        except RetriableError as error:
            seconds = error.retry_after or _RETRY_SECONDS
            logger.warning("The load will be tried again in %g s: %s", seconds, error)
            self._loads.retried_in(seconds)
            self._control.wait(seconds)
            self._follow(load)
            return
        except Exception:
            self._follow_after_failure(load)
            raise
        crash_point("before-offset-commit")
        ends = {item.topic_partition: item.end for item in load.ranges}
        self._positions |= ends
        self._uncommitted |= ends
        self._active.see(item.topic for item in load.ranges)
        self._metrics.count("sink-record-send-total", load.records)
        self._commit()

    def _loaded(self) -> dict[TopicPartition, int]:
        """Return the offsets that the target keeps."""
        with self._control.watch.call("committed"):
            return dict(self._task.committed())

    def _follow(self, load: Plan) -> None:
        """Continue after what has become durable of a failed load, and let the group's offsets follow."""
        durable = self._loaded()
        self._positions |= durable
        firsts = {item.topic_partition: item.first for item in load.ranges}
        moved = {tp: durable[tp] for tp, first in firsts.items() if durable.get(tp, 0) > first}
        if moved:
            self._uncommitted |= moved
            self._commit()

    def _follow_after_failure(self, load: Plan) -> None:
        try:
            self._follow(load)
        except Exception as error:
            logger.warning("The durable part of the load could not be committed: %s", error)

    def _commit_last(self) -> None:
        """Commit again what a failed commit has left, because no load follows whose commit would include it."""
        for seconds in _LAST_WAITS:
            if not self._uncommitted or not self._control.wait_unless_stopped(seconds):
                return
            self._commit()

    def _commit(self) -> None:
        """Let the group's offsets follow; those that cannot be committed go with the next commit."""
        begun, timings = time.monotonic(), self._metrics.timings
        timings.count("offset-commit-seq-no")
        try:
            self._partitions.check(tp.topic for tp in self._uncommitted)
            self._partitions.commit(self._uncommitted)
        except MadeAgainError as error:
            self._begin_anew(error)
            timings.not_committed()
        except KafkaException as error:
            # Until that commit, a target without offsets may load the records twice.
            reason = self._explained(error.args[0])
            logger.warning("Offsets were not committed; the next commit will include them: %s", reason)
            timings.not_committed()
        else:
            self._uncommitted = {}
            timings.count("offset-commit-completion-total")
            timings.committed(time.monotonic() - begun)

    def _explained(self, error: KafkaError) -> str:
        rights = on_topics(self._topics, "Read")
        return explained(error, CONSUMER, on_group(self._group, "Read"), *rights)

    def _drained(self) -> bool:
        if self._drain_ends is None:
            return False
        return all(self._positions[tp] >= end for tp, end in self._drain_ends.items())

    def _report(self, ends: Mapping[TopicPartition, int]) -> None:
        is_known = bool(ends) and self._positions.keys() >= ends.keys()
        behind = sum(max(0, end - self._positions[tp]) for tp, end in ends.items()) if is_known else None
        self._metrics.gauge("sink-record-lag", behind)
        self._metrics.gauge("partition-count", len(ends))
        self._metrics.report()
