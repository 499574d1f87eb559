"""The RabbitMQ sources: messages of queues become records, and are acknowledged once Kafka has them.

====================================  =================================================================================
kill -9 of the task or worker here    then
====================================  =================================================================================
before Kafka's acknowledgement        RabbitMQ sees the connection end, and delivers what is not acknowledged again:
                                      nothing is lost. What Kafka has all the same by then comes twice
after Kafka's acknowledgement,        the message comes twice, with the header rabbitmq.redeliver true
before RabbitMQ has that of the task
the server is killed                  the same, for durable queues and persistent messages; what RabbitMQ itself loses
                                      of others was not delivered, or is in Kafka
====================================  =================================================================================

A task that is stopped in good order acknowledges what Kafka has, and doubles nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Final

from connect.data import SourceBatch, SourceRecord
from connect.errors import ConnectError, MissingError, RetriableError
from connect.kits.deliveries import Inbox
from connect.measurement import Measurement
from connect.source import SourceConnector, SourceTask
from connectors.rabbitmq.consumers import Delivery, Lane, QueueConsumer
from connectors.rabbitmq.records import RecordMaker
from connectors.rabbitmq.session import Session
from connectors.rabbitmq.source_config import ConsumerMode, RabbitMQSourceConfig

if TYPE_CHECKING:
    from pika.connection import Connection

__all__ = ["RabbitMQSourceConnector", "RabbitMQSourceTask"]

_log = logging.getLogger(__name__)
_LOOK_SECONDS: Final = 1.0
_GATHER_SECONDS: Final = 0.005


class _Consumption:
    """A session with its consumers and its inbox. It is made anew when the connection is lost."""

    def __init__(self, config: RabbitMQSourceConfig, wake: Callable[[], None]) -> None:
        self._config = config
        self._problems: dict[str, ConnectError] = {}
        self.inbox: Inbox[Delivery] = Inbox(
            config.prefetch * len(config.rabbitmq_queue),
            config.rabbitmq_inbox_max_bytes,
            config.patience_seconds,
            wake,
        )
        self.session = Session(config, self._opened, wake)
        self.session.start()

    @property
    def problem(self) -> ConnectError | None:
        """Why one of the queues cannot be consumed now."""
        return next(iter(list(self._problems.values())), None)

    def close(self) -> None:
        """Acknowledge what was asked for before, and end."""
        self.inbox.close()
        self.session.close()

    def _opened(self, connection: Connection) -> None:
        for queue in self._config.rabbitmq_queue:
            QueueConsumer(queue, self._config, self.session, self.inbox, self._report).open(connection)

    def _report(self, queue: str, problem: ConnectError | None) -> None:
        if problem is None:
            self._problems.pop(queue, None)
        else:
            self._problems[queue] = problem


class RabbitMQSourceTask(SourceTask[RabbitMQSourceConfig]):
    """Consumes its queues."""

    def start(self) -> None:
        self._makers = {queue: RecordMaker(self.config, queue) for queue in self.config.rabbitmq_queue}
        self._under_way: dict[tuple[str, int], tuple[Lane, int]] = {}
        self._settled: set[Lane] = set()
        self._left: list[Delivery] = []
        self._messages = self._redelivered = 0
        self._consumption: _Consumption | None = None

    def poll(self) -> SourceBatch | None:
        self._acknowledge()
        consumption = self._consuming()
        deliveries = [each for each in self._next(consumption) if each.lane.is_open]
        if deliveries:
            if len(deliveries) < self.config.rabbitmq_batch_size and not self._left:
                # Few messages at a time cost several times as much each.
                self.context.poll_when_readable([], _GATHER_SECONDS)
            return self._batch(deliveries)
        if isinstance(problem := consumption.problem, RetriableError):
            # A new one each time: one that is raised again and again keeps where it has been.
            kind = MissingError if isinstance(problem, MissingError) else RetriableError
            raise kind(str(problem), self.config.recovery_seconds)
        self.context.poll_when_readable([], _LOOK_SECONDS)
        return None

    def commit_record(self, record: SourceRecord) -> None:
        """Note that Kafka has a message."""
        key = (record.source_partition["queue"], record.source_offset["delivery"])
        if (found := self._under_way.pop(key, None)) is not None:
            lane, tag = found
            lane.unsettled.settle(tag)
            self._settled.add(lane)

    def commit(self) -> None:
        """Acknowledge what Kafka has."""
        self._acknowledge()

    def stop(self) -> None:
        """Acknowledge everything that Kafka has, also after what it has not, and close the connection."""
        consumption, self._consumption = getattr(self, "_consumption", None), None
        if consumption is None:
            return
        for lane in {lane for lane, _ in self._under_way.values()} | self._settled:
            for tag in lane.unsettled.take():
                consumption.session.call(partial(lane.acknowledge, tag))
            for tag in lane.unsettled.take_all():
                consumption.session.call(partial(lane.acknowledge_one, tag))
        consumption.close()

    def measurements(self) -> Iterable[Measurement]:
        yield Measurement("rabbitmq_messages_total", self._messages, "Messages taken from queues.")
        yield Measurement("rabbitmq_redelivered_total", self._redelivered, "Messages that were delivered before.")
        yield Measurement(
            "rabbitmq_unacknowledged_messages", len(self._under_way), "Messages that Kafka has not acknowledged yet."
        )
        if self._consumption is not None:
            inbox = self._consumption.inbox
            yield Measurement("rabbitmq_inbox_messages", inbox.items, "Messages that wait for being published.")
            yield Measurement("rabbitmq_inbox_bytes", inbox.bytes, "Bytes of the messages that wait, roughly.")

    def _consuming(self) -> _Consumption:
        """Return the running consumption; raise why there is none."""
        if self._consumption is None:
            self._consumption = _Consumption(self.config, self.context.wake)
        if (failure := self._consumption.session.failure) is not None:
            self._consumption.close()
            self._consumption = None
            self._left.clear()
            self._settled.clear()
            self._under_way.clear()
            if isinstance(failure, RetriableError):
                raise RetriableError(str(failure), self.config.recovery_seconds) from failure
            raise failure
        return self._consumption

    def _next(self, consumption: _Consumption) -> Sequence[Delivery]:
        """Return deliveries of one queue; those of the next queues are left for the next poll."""
        if not self._left:
            self._left = consumption.inbox.take(self.config.rabbitmq_batch_size)
            if len(self._makers) > 1:
                self._left.sort(key=lambda each: each.lane.queue)
        if not self._left:
            return ()
        _, found = next(groupby(self._left, lambda each: each.lane.queue))
        first = list(found)
        del self._left[: len(first)]
        if self._left:
            self.context.wake()
        return first

    def _batch(self, deliveries: Sequence[Delivery]) -> SourceBatch:
        queue = deliveries[0].lane.queue
        batch = self._makers[queue].batch(deliveries)
        self._messages += len(deliveries)
        for delivery, offset in zip(deliveries, batch.source_offsets, strict=True):
            delivery.lane.unsettled.add(delivery.tag)
            self._under_way[queue, offset["delivery"]] = (delivery.lane, delivery.tag)
            self._redelivered += delivery.is_redelivered
        return batch

    def _acknowledge(self) -> None:
        """Acknowledge what Kafka has, in the order of delivery."""
        lanes, self._settled = self._settled, set()
        if self._consumption is None:
            return
        for lane in lanes:
            if tags := lane.unsettled.take():
                self._consumption.session.call(partial(lane.acknowledge, tags[-1]))


class RabbitMQSourceConnector(SourceConnector[RabbitMQSourceConfig]):
    """Publishes the messages of RabbitMQ's queues, and acknowledges each once Kafka has it."""

    task_class = RabbitMQSourceTask
    watches = False

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str | None]]:
        """Divide the queues among the tasks, or give all of them to each; each worker adds its own rules for hosts."""
        own = self.config.props_for_tasks()
        queues = self.config.rabbitmq_queue
        if self.config.rabbitmq_queue_consumer_mode is ConsumerMode.SHARED:
            return [own] * max_tasks
        shares = [queues[number::max_tasks] for number in range(min(max_tasks, len(queues)))]
        return [{**own, "rabbitmq.queue": ",".join(share)} for share in shares]
