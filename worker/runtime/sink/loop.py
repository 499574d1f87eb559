"""The loop of a sink task: consume, convert and transform, put, and commit what the task says is durable.

==========================================  ========================================================================
kill -9 here                                then
==========================================  ========================================================================
before or during ``put``                    the records are consumed again
after ``put``, before ``flush``             the records are consumed again: doubled in a target that has them already,
                                            unless the task keeps its offsets beside its data
after ``flush``, before the commit          the same (invariant I2: offsets follow the data, never lead it)
after the commit                            consuming continues after them
==========================================  ========================================================================
"""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from confluent_kafka import Consumer, KafkaException
from confluent_kafka import TopicPartition as ClientPartition

from connect.data import SinkBatch, TopicPartition
from connect.errors import ConnectError, RetriableError
from connect.internals.chain.raw_records import first_offsets, next_offsets
from connect.internals.chain.sink_context import SinkContext, durable_offsets
from connect.internals.chain.tolerance import StopRequested, Tolerance
from connect.internals.consumption.messages import Message, by_topic
from connect.internals.kafka.auth.rights import CONSUMER, explained, on_group, on_topics
from connect.sink import SinkTask
from worker.config.connector import SinkConnectorConfig
from worker.formatting import counted
from worker.messages import messages
from worker.metrics.snapshot import PUT
from worker.runtime.assembly import Assembly
from worker.runtime.beginnings import Beginnings
from worker.runtime.clients import Clients
from worker.runtime.control import Control
from worker.runtime.metrics import ActiveTopics, TaskMetrics
from worker.runtime.sink.progress import (
    DRAIN,
    EndOffsets,
    PartitionProgress,
    Pending,
    SinkProgress,
    first_offset,
    lag,
    tell_of_deleted,
    with_offsets,
    without,
)
from worker.runtime.sink.subscription import Subscription
from worker.runtime.sink.topic_choice import TopicChoice
from worker.runtime.sink.topic_ids import TopicIds
from worker.runtime.waits import Waits
from worker.runtime.watch import CHAIN

__all__ = ["SinkLoop"]

logger = logging.getLogger(__name__)
_LEAST_POLL: Final = 0.25
_MOST_POLL: Final = 0.5
_QUIET_POLL: Final = 2.0
_QUIET: Final = 30.0
"""After this many seconds without records, a sink waits for a thirtieth of that time, up to ``_QUIET_POLL``."""
_QUIET_CHECK: Final = 10.0
_QUIET_CHECK_AGAIN: Final = 60.0
"""After these many seconds without records a sink looks whether its topics are still the same, then again."""
_PAUSED_POLL: Final = 0.5
_RETRY: Final = 1.0
_NOT_DURABLE: Final = "The sink could not make its records durable; they will be put again"
_NOT_DURABLE_AT_END: Final = "The sink ends and could not make its last records durable; its next run gets them again"


class SinkLoop:
    """Runs one sink task until it is told to stop. Everything, rebalances too, happens in the thread of :meth:`run`."""

    def __init__(
        self,
        assembly: Assembly,
        control: Control,
        clients: Clients,
        task: SinkTask[Any],
        context: SinkContext,
        tolerance: Tolerance,
        waits: Waits,
    ) -> None:
        config = assembly.config
        assert isinstance(config, SinkConnectorConfig)
        choice = TopicChoice(config, assembly.internal_topics)
        self._control = control
        self._task = task
        self._context = context
        self._tolerance = tolerance
        self._waits = waits
        self._chain = assembly.sink_chain(tolerance)
        context.encode = self._chain.encode
        self._consumer: Consumer = clients.sink_consumer()
        self._group = clients.sink_group
        self._make_way = clients.make_way
        self._subscription = Subscription(
            self._consumer, self._group, choice, self, clients.sink_admin, is_cooperative=clients.sink_is_cooperative
        )
        self._batch_size = clients.max_poll_records
        self._only_topic = choice.only_topic
        self._interval = assembly.worker.offset_flush_interval_ms / 1000
        self._commit_due = time.monotonic() + self._interval
        self._progress = SinkProgress()
        self._pending: list[Pending] = []
        self._retry_due = 0.0
        self._put_due: float | None = None
        self._retries = 0
        self._skipped_before = 0
        self._found_at = time.monotonic()
        self._quiet_check_due = self._found_at + _QUIET_CHECK
        self._was_missing = False
        self._is_done = False
        self._has_failed_to_flush = False
        self._topic_ids = TopicIds(self._consumer, clients.sink_admin.client)
        context.look_up_ids = self._topic_ids.of
        self._offset_reset = clients.offset_reset
        self._beginnings = Beginnings(self._consumer, self._offset_reset, self._subscription.present, control)
        self._stale: set[TopicPartition] = set()
        """Partitions of topics that were created again, until they continue where the new topic's records begin."""
        self._ends: EndOffsets | None = None
        self._metrics = TaskMetrics(control.send, tolerance.counts, control.cpu, tell=tolerance.tell)
        self._timings = self._metrics.timings
        self._active = ActiveTopics(control.send, enabled=assembly.worker.topic_tracking_enable)

    def run(self) -> None:
        """Move records until the worker sends a stop. Raises an error that is not tolerated, after a last commit."""
        try:
            self._move()
        except StopRequested:
            logger.info("Stopping with records under way; they will be consumed again.")
        except BaseException:
            self._finish_after_failure()
            self._metrics.report()
            raise
        self._finish()

    def close(self) -> None:
        """Leave the group and release the clients and plugins."""
        self._subscription.leave()
        self._topic_ids.rest()
        self._chain.close()

    def _move(self) -> None:
        # Report before the first call, which may hang: the lag is unknown until a report.
        self._report()
        self._make_way()
        self._beginnings.look()
        while not self._control.is_stopping():
            if self._control.paused:
                self._pause()
                continue
            if self._control.draining and self._is_drained() and self._drain():
                return
            # As a commit has asked: what is consumed next must not be from where the task was.
            self._rewind()
            self._take(self._subscription.consume(self._batch_size, self._patience()))
            self._heed_missing()
            self._deliver()
            self._check_while_quiet()
            if self._stale:
                self._begin_anew()
            self._rewind()
            if self._context.commit_requested or time.monotonic() >= self._commit_due:
                self._commit(closing=False)
            if self._metrics.due():
                self._report()

    def _finish(self) -> None:
        try:
            self._commit(closing=True)
        finally:
            self._drop(list(self._progress))

    def _finish_after_failure(self) -> None:
        """Commit what the task says is durable, in spite of the failure; the rest is consumed again."""
        try:
            self._finish()
        except Exception as error:
            logger.warning("The partitions could not be closed after the failure: %s", error)

    # -- consuming and delivering ----------------------------------------------------------------------------------

    def _patience(self) -> float:
        due = self._retry_due if self._pending else self._put_due
        # The client cannot be interrupted: a task learns of a stop after as long as it has already been waiting.
        now = time.monotonic()
        quiet = now - self._found_at
        longest = min(max(_LEAST_POLL, quiet), _MOST_POLL) if quiet < _QUIET else min(quiet / _QUIET, _QUIET_POLL)
        until = self._metrics.next_report if due is None else min(due, self._metrics.next_report)
        return min(longest, max(0.0, until - now))

    def _take(self, found: Sequence[Message]) -> None:
        if not found:
            return
        found = without(self._of_present_topics(found), self._context.rewinds)
        self._found_at = time.monotonic()
        self._quiet_check_due = self._found_at + _QUIET_CHECK
        if not found:
            return
        self._timings.size("batch-size", len(found))
        born = max(0, found[0].timestamp()[1]) / 1000
        for consumed in by_topic(found, self._only_topic, self._subscription.only_partition):
            if any(partition.entered is None for partition in self._progress.values()):
                tell_of_deleted(self._consumer, self._progress.enter(first_offsets(consumed)))
            self._active.see((consumed.topic,))
            self._metrics.count("sink-record-read-total", len(consumed))
            offsets = next_offsets(consumed)
            with self._control.watch.call(CHAIN):
                self._pending += [Pending(part, consumed, {}) for part in self._chain.process(consumed)]
            self._pending.append(Pending(None, consumed, offsets, born))

    def _of_present_topics(self, found: Sequence[Message]) -> Sequence[Message]:
        """Leave out records behind an offset of a former topic of the same name (D10).

        A fetch is interrupted when its topic is deleted, so this is checked after a pause, and seldom; what escapes it
        is noticed by the next commit, and its records come again. Only a task that keeps offsets beside its data has
        each batch checked, since it must not write a record twice.
        """
        if self._topic_ids.due(after_pause=time.monotonic() - self._found_at >= _LEAST_POLL):
            self._renew_if_former({message.topic() for message in found})
        return without(found, self._stale)

    def _check_while_quiet(self) -> None:
        """Look for topics that were deleted, of which the client says nothing, or made anew with as many records."""
        now = time.monotonic()
        if self._pending or now < self._quiet_check_due:
            return
        self._quiet_check_due = now + _QUIET_CHECK_AGAIN
        doubtful = self._topic_ids.doubtful(self._context.assignment)
        self._renew_if_former({partition.topic for partition in doubtful})
        if doubtful or self._topic_ids.without_offsets(self._context.assignment):
            self._subscription.look()

    def _renew_if_former(self, topics: Collection[str]) -> None:
        if topics:
            self._renew(self._topic_ids.renewed(topics, self._context.assignment))

    def _renew(self, partitions: Collection[TopicPartition]) -> None:
        """Begin partitions anew, since their topic is another one of the same name now.

        What was put is made durable, if it is not; no offset of it is committed. The task's partitions are closed and
        opened, since it may hold something of them. A task that then asks for offsets which it keeps fails: they belong
        to the former topic, too.
        """
        renewed = sorted(set(partitions) & self._context.assignment)
        if not renewed:
            return
        for topic in sorted({partition.topic for partition in renewed}):
            reached = {tp.partition: at for tp, at in self._progress.positions().items() if tp.topic == topic}
            logger.warning(
                "Topic %s was deleted and created again: its offsets do not mean what they did (reached, by partition: "
                "%s). Nothing is committed for the former topic, and its records that were not consumed are lost. The "
                "sink begins the new topic as auto.offset.reset says: %s.",
                topic,
                reached or "none",
                self._offset_reset,
            )
        if self._offset_reset == "none":
            raise ConnectError(
                f"Topic {renewed[0].topic} was deleted and created again, and consumer.override.auto.offset.reset is "
                "none: stop the connector and reset its offsets, or choose earliest or latest."
            )
        if delivered := self._progress.delivered(renewed):
            self._make_durable(delivered)
        self._drop(renewed)
        kept = self._open(renewed)
        self._progress.update({partition: PartitionProgress() for partition in renewed})
        if kept:
            self._refuse_kept(kept)
        self._stale |= set(renewed)
        self._ends = None

    def _refuse_kept(self, kept: Mapping[TopicPartition, int]) -> None:
        """Fail, since the target's offsets are those of a former topic; the group's say so to the next run."""
        with suppress(KafkaException):
            self._consumer.commit(offsets=self._topic_ids.marked_formerly(kept), asynchronous=False)
        raise ConnectError(
            f"Topic {min(kept).topic} was deleted and created again, and the sink keeps offsets of the former topic in "
            "its target: it would leave out records of the new one. To write the new topic from its beginning, stop "
            "the connector and reset its offsets, or give the connector another name."
        )

    def _make_durable(self, delivered: Mapping[TopicPartition, int]) -> None:
        try:
            with self._control.watch.call("pre_commit"):
                self._task.pre_commit(delivered)
        except RetriableError as error:
            logger.warning("Records of a topic that was deleted could not be made durable and are lost: %s", error)
        except BaseException:
            self._has_failed_to_flush = True
            raise

    def _begin_anew(self) -> None:
        """Continue partitions whose topic was created again at its beginning, or at its end."""
        for partition in sorted(self._stale):
            try:
                offset = first_offset(self._consumer, partition, self._offset_reset)
            except KafkaException as error:
                logger.debug("The offsets of %s cannot be looked up yet: %s", partition, error)
                continue
            if self._subscription.seek(partition, offset):
                self._progress[partition].rewind(offset)
                self._beginnings.owe({partition: offset})
                self._stale.discard(partition)
        self._commit_offsets({})

    def _deliver(self) -> None:
        """Put the consumed records. While a batch waits to be put again, nothing is consumed."""
        now = time.monotonic()
        self._heed_timeout()
        if self._pending and now < self._retry_due:
            return
        if not self._pending and self._put_due is not None and now >= self._put_due:
            self._put_nothing()
        while self._pending:
            pending = self._pending[0]
            self._context.consumed = pending.consumed
            if pending.batch is not None and not self._put(pending.batch):
                return
            self._progress.deliver(pending.offsets)
            if pending.born:
                self._timings.late(time.time() - pending.born)
            del self._pending[0]
            # Before the next part of what was consumed: it may have records of the same partitions.
            self._rewind()

    def _put(self, batch: SinkBatch) -> bool:
        self._put_due = None
        if not self._retries:
            self._skipped_before = self._tolerance.counts.total_records_skipped
        begun = time.monotonic()
        try:
            with self._control.watch.call("put"):
                self._task.put(batch)
        except RetriableError as error:
            self._retries += 1
            logger.warning("The sink asks for the same records again later: %s", error)
            asked = self._context.asked_timeout()
            self._retry_due = self._put_due = time.monotonic() + (error.retry_after or asked or _RETRY)
            return False
        self._tell_of_given_up()
        self._timings.took(PUT, time.monotonic() - begun)
        self._metrics.count("sink-record-send-total", len(batch))
        self._heed_timeout()
        return True

    def _tell_of_given_up(self) -> None:
        """Log which records the sink has given up after retries, so that its last line is not that it retries."""
        counts = self._tolerance.counts
        if self._retries and (skipped := counts.total_records_skipped - self._skipped_before):
            logger.warning(
                "The sink has stopped retrying: %s skipped, as errors.tolerance=all allows. The last one: %s",
                f"{counted(skipped, 'record')} {'is' if skipped == 1 else 'are'}",
                counts.last_reason or "the reason is unknown",
            )
        self._retries = 0

    def _put_nothing(self) -> None:
        """Put an empty batch of one of the task's topics, since the timeout that the task requested has passed."""
        self._context.consumed = None
        topic = min(self._context.assignment, default=None)
        if topic is not None:
            self._put(SinkBatch.empty(topic.topic))

    def _heed_timeout(self) -> None:
        if (seconds := self._context.asked_timeout()) is not None:
            self._put_due = time.monotonic() + seconds

    def _rewind(self) -> None:
        """Rewind to the offsets that the task requested. A partition that was only just assigned is rewound later."""
        if not self._context.rewinds:
            return
        rewinds, self._context.rewinds = self._context.rewinds, {}
        known = {partition: offset for partition, offset in rewinds.items() if partition in self._progress}
        self._forget(known)
        for partition, offset in known.items():
            self._progress[partition].rewind(offset)
            if not self._subscription.seek(partition, offset):
                self._context.rewinds.setdefault(partition, offset)

    def _forget(self, partitions: Collection[TopicPartition]) -> None:
        """Drop the consumed records of these partitions that were not put yet."""
        remaining = [pending.without(partitions) for pending in self._pending]
        self._pending = [pending for pending in remaining if pending.batch is not None or pending.offsets]

    # -- committing ----------------------------------------------------------------------------------------------

    def _commit(self, *, closing: bool, partitions: Collection[TopicPartition] | None = None) -> bool:
        """Commit what the task says is durable (invariant I2). Return whether offsets and reports are stored.

        If the task raises a ``RetriableError`` while it runs, it is rewound to the last commit; if it closes, the next
        owner of its partitions consumes their records again. Any other error fails the task.
        """
        if partitions is None:
            self._commit_due = time.monotonic() + self._interval
            self._context.commit_requested = False
        current = self._progress.delivered(partitions)
        # A task that has failed may have dropped what it held: that it has nothing left to flush proves nothing.
        if not current or self._has_failed_to_flush:
            return not current and self._commit_offsets({})
        begun = time.monotonic()
        self._timings.count("offset-commit-seq-no")
        try:
            with self._control.watch.call("pre_commit"):
                wanted = self._task.pre_commit(current)
        except RetriableError as error:
            # Any other error fails the task: it would come again at each commit, while nothing is written.
            self._timings.not_committed()
            what = _NOT_DURABLE_AT_END if closing else _NOT_DURABLE
            logger.warning("%s: %s", what, error, exc_info=True)
            if not closing:
                self._context.rewinds = {**self._progress.resumptions(), **self._context.rewinds}
                self._pending.clear()
                self._rewind()
            return False
        except BaseException:
            self._has_failed_to_flush = True
            raise
        checked = self._progress.committable(durable_offsets(self._task, wanted), current)
        kept = self._reports_are_kept()
        # The offsets of a new topic may be just those that the former one had.
        doubtful = self._progress if self._topic_ids.is_check_owed else checked
        renewed = self._topic_ids.renewed({tp.topic for tp in doubtful}, self._progress)
        kept = kept and self._commit_offsets({tp: at for tp, at in checked.items() if tp not in renewed})
        if renewed and not closing:
            self._renew(renewed)
        if kept:
            self._timings.count("offset-commit-completion-total")
            self._timings.committed(time.monotonic() - begun)
            if checked:
                self._metrics.report_soon()
        else:
            self._timings.not_committed()
        return kept

    def _reports_are_kept(self) -> bool:
        """Make reports and published records durable before offsets pass them (I4). Return whether they are."""
        try:
            self._tolerance.flush()
            self._context.flush_published()
        except ConnectError as error:
            if not isinstance(error, RetriableError):
                raise
            logger.warning("Offsets were not committed: %s", error)
            return False
        return True

    def _commit_offsets(self, wanted: Mapping[TopicPartition, int]) -> bool:
        offsets = {**self._beginnings.owed(), **wanted}
        if not offsets:
            return True
        try:
            self._consumer.commit(offsets=self._topic_ids.marked(offsets), asynchronous=False)
        except KafkaException as error:
            # Nothing is lost: the offsets go with the next commit, or the records are consumed again.
            rights = (on_group(self._group, "Read"), *on_topics((tp.topic for tp in offsets), "Read"))
            reason = explained(error.args[0], CONSUMER, *rights)
            logger.warning("Offsets were not committed; the next commit will include them: %s", reason)
            return False
        for partition, offset in offsets.items():
            self._progress[partition].committed = offset
        self._beginnings.drop(offsets)
        return True

    # -- called by the subscription ---------------------------------------------------------------------------------

    def assigned(self, partitions: Collection[TopicPartition]) -> list[ClientPartition]:
        """Open partitions. Return where they begin: where the task wants to, else at the offset of the group."""
        starts = dict(self._open(partitions))
        answers, begun = self._beginnings.of(partitions, starts, self._topic_ids.offsets)
        self._progress.expect({tp: at.offset for tp, at in answers.items() if at.offset >= 0 and tp not in starts})
        for partition, offset in begun.items():
            self._progress[partition].entered = offset
        self._topic_ids.learn(begun)
        self._commit_offsets({})
        return self._topic_ids.assigned(partitions, starts | begun, answers)

    def _open(self, partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, int]:
        """Open partitions. Return where the task wants to start in them."""
        self._progress.update({partition: PartitionProgress() for partition in partitions})
        self._context.assignment |= set(partitions)
        with self._control.watch.call("open"):
            self._task.open(partitions)
        rewinds = self._context.rewinds
        starts = {partition: rewinds.pop(partition) for partition in partitions if partition in rewinds}
        for partition, offset in starts.items():
            self._progress[partition].rewind(offset)
        return starts

    def revoked(self, partitions: Collection[TopicPartition]) -> None:
        """Commit and close partitions."""
        try:
            self._commit(closing=True, partitions=partitions)
        finally:
            self._drop(partitions)

    def lost(self, partitions: Collection[TopicPartition]) -> None:
        """Close partitions, without a commit."""
        self._drop(partitions)

    def held(self) -> Collection[TopicPartition]:
        """Return the partitions that the consumer must not fetch.

        All of them while a batch waits to be put again, or the task is paused or drained; else those that it paused.
        """
        everything = self._pending or self._control.paused or self._is_done
        return self._context.assignment if everything else self._context.paused | self._stale

    def at_end(self, partition: TopicPartition, offset: int) -> None:
        """Remember where a partition ends."""
        if partition in self._progress:
            self._progress[partition].at_end = offset

    def _drop(self, partitions: Collection[TopicPartition]) -> None:
        gone = sorted(self._progress.keys() & set(partitions))
        if not gone:
            return
        self._forget(gone)
        self._context.assignment -= set(gone)
        self._context.paused -= set(gone)
        self._topic_ids.dropped(gone)
        self._stale -= set(gone)
        self._beginnings.drop(gone)
        for partition in gone:
            del self._progress[partition]
            self._context.rewinds.pop(partition, None)
        with self._control.watch.call("close"):
            self._task.close(gone)

    # -- pausing, draining, reporting --------------------------------------------------------------------------------

    def _pause(self) -> None:
        """Stay in the group, but fetch nothing."""
        self._commit(closing=False)
        self._control.send(messages.Paused())
        while self._control.paused and not self._control.stopping:
            self._take(self._subscription.consume(self._batch_size, 0))
            self._control.wait_for_command(_PAUSED_POLL)
            if self._metrics.due():
                self._report()
        if not self._control.stopping:
            self._control.send(messages.Resumed())

    def _is_drained(self) -> bool:
        if self._ends is None:
            self._subscription.look()
            self._ends = EndOffsets(self._consumer)
        if self._subscription.missing is not None or not self._subscription.settled() or self._pending:
            return False
        self._renew_if_former({tp.topic for tp in self._topic_ids.unchecked(self._context.assignment)})
        if self._stale:
            return False
        return self._ends.reached(self._context.assignment, self._progress.positions())

    def _heed_missing(self) -> None:
        """Show which topics the sink waits for."""
        if (reason := self._subscription.missing) is not None:
            self._waits.on(reason, ends=self._control.draining)
            self._was_missing = True
            return
        self._waits.over()
        if self._was_missing:
            self._was_missing = False
            self._topic_ids.doubt(self._context.assignment)
            self._quiet_check_due = 0.0

    def _drain(self) -> bool:
        """Commit everything, report it and wait for the stop. ``False`` if the commit failed."""
        if not self._commit(closing=False):
            return not self._control.wait_unless_stopped(_RETRY)
        self._is_done = True
        self._report()
        self._control.send(messages.Drained())
        while not self._control.stopping:
            self._subscription.consume(self._batch_size, 0)
            self._control.wait_for_command(_PAUSED_POLL)
        return True

    def _report(self) -> None:
        if time.monotonic() - self._found_at >= _QUIET:
            self._topic_ids.rest()
        assigned = self._context.assignment
        # Records that the task still holds, or that wait for its commit, count as lag.
        positions = self._progress.resumptions() | self._progress.positions()
        for note in (self._timings.size, self._timings.gauge):
            note("sink-record-active-count", self._progress.under_way())
        behind = lag(self._consumer, assigned, positions) if self._subscription.settled() else None
        self._metrics.gauge("sink-record-lag", behind)
        self._metrics.gauge("partition-count", len(assigned))
        uncommitted = self._progress.uncommitted(lambda partitions: with_offsets(self._consumer, partitions)) or None
        self._metrics.gauge("sink-uncommitted-partition-count", uncommitted)
        self._metrics.replace((DRAIN,), self._ends.gauges(assigned, self._progress) if self._ends else {})
        self._metrics.report()
