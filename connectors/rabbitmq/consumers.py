"""Consumers of queues, each on a channel of its own, so that one queue that is missing does not stop the others.

All of this runs in the session's thread. A channel that RabbitMQ closes, and a consumer that it cancels because its
queue is deleted or moves to another node, comes back after a while; what was delivered on it is the server's again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from connect.errors import ConnectError, RetriableError
from connect.kits.deliveries import Inbox, Unsettled
from connectors.rabbitmq.checks import PROBE, probe_failure
from connectors.rabbitmq.session import Session, channel_failure
from connectors.rabbitmq.source_config import RabbitMQSourceConfig

if TYPE_CHECKING:
    from pika.channel import Channel
    from pika.connection import Connection

__all__ = ["Delivery", "Lane", "QueueConsumer"]

_OVERHEAD_BYTES: Final = 1000
"""Roughly what a message takes besides its body."""


@dataclass(slots=True, eq=False)
class Lane:
    """A channel while it is open. Its delivery tags mean nothing after it has ended."""

    queue: str
    channel: Channel
    is_open: bool = True
    """Written by the session's thread alone, once."""
    unsettled: Unsettled[int] = field(default_factory=Unsettled)
    """The tags of what the task has taken. Used by the task's thread alone."""

    def acknowledge(self, tag: int) -> None:
        """Acknowledge all deliveries up to one. Called in the session's thread."""
        if self.is_open:
            self.channel.basic_ack(tag, multiple=True)

    def acknowledge_one(self, tag: int) -> None:
        """Acknowledge one delivery. Called in the session's thread."""
        if self.is_open:
            self.channel.basic_ack(tag)


@dataclass(frozen=True, slots=True)
class Delivery:
    """A message as it was delivered."""

    lane: Lane
    consumer_tag: str
    tag: int
    is_redelivered: bool
    exchange: str
    routing_key: str
    properties: Any
    body: bytes


_Reports: TypeAlias = "Callable[[str, ConnectError | None], None]"


class QueueConsumer:
    """Consumes one queue into the inbox. ``report`` is told of problems, and with ``None`` that they are over."""

    def __init__(
        self,
        queue: str,
        config: RabbitMQSourceConfig,
        session: Session,
        inbox: Inbox[Delivery],
        report: _Reports,
    ) -> None:
        self._queue = queue
        self._config = config
        self._session = session
        self._inbox = inbox
        self._report = report
        self._connection: Connection | None = None
        self._lane: Lane | None = None
        self._is_probed = False

    def open(self, connection: Connection) -> None:
        """Begin on a connection that is open."""
        self._connection = connection
        connection.channel(on_open_callback=self._opened)

    def _opened(self, channel: Channel) -> None:
        channel.add_on_close_callback(self._closed)
        channel.add_on_cancel_callback(self._cancelled)
        lane = self._lane = Lane(self._queue, channel)
        channel.basic_qos(prefetch_count=self._config.prefetch, callback=lambda _: self._consume(lane))

    def _consume(self, lane: Lane) -> None:
        if not lane.is_open:
            return
        lane.channel.basic_consume(
            self._queue,
            lambda _, method, properties, body: self._delivered(lane, method, properties, body),
            arguments=None if self._is_probed else dict(PROBE),
            callback=lambda _: self._report(self._queue, None),
        )

    def _delivered(self, lane: Lane, method: Any, properties: Any, body: bytes) -> None:
        delivery = Delivery(
            lane,
            method.consumer_tag,
            method.delivery_tag,
            method.redelivered,
            method.exchange,
            method.routing_key,
            properties,
            body,
        )
        self._inbox.put(delivery, len(body) + _OVERHEAD_BYTES)

    def _cancelled(self, _frame: object) -> None:
        text = f"RabbitMQ has cancelled the consumer of the queue {self._queue}: it was deleted, or it is moving."
        self._report(self._queue, RetriableError(text, self._config.recovery_seconds))
        if self._lane is not None and self._lane.is_open:
            self._lane.channel.close()

    def _closed(self, _channel: Channel, error: BaseException) -> None:
        if self._lane is not None:
            self._lane.is_open = False
        if self._connection is None or not self._connection.is_open:
            return
        problem = self._problem(error)
        if problem is None:
            self.open(self._connection)
            return
        self._report(self._queue, problem)
        if not isinstance(problem, RetriableError):
            self._session.fail(problem)
            return
        self._is_probed = False
        self._session.later(self._config.recovery_seconds, self._again)

    def _problem(self, error: BaseException) -> ConnectError | None:
        """Return why the queue cannot be consumed now; ``None`` if it can, which the first attempt finds out."""
        if self._is_probed:
            return channel_failure(error, f"the queue {self._queue}", self._config)
        problem = probe_failure(error, self._queue, self._config)
        self._is_probed = problem is None
        return problem

    def _again(self) -> None:
        if self._connection is not None and self._connection.is_open:
            self.open(self._connection)
