"""Publishes messages on a channel with confirmations, and tells what has become of each.

The methods without an underscore are the task's; the others run in the session's thread.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, Any

from connect.errors import ConnectError
from connectors.rabbitmq.messages import Message
from connectors.rabbitmq.session import Session, channel_failure
from connectors.rabbitmq.sink_config import RabbitMQSinkConfig

if TYPE_CHECKING:
    from pika.channel import Channel
    from pika.connection import Connection

__all__ = ["Fate", "Outcome", "Publisher"]


class Fate(Enum):
    """What has become of a message."""

    CONFIRMED = auto()
    RETURNED = auto()
    """No queue takes it."""
    REFUSED = auto()
    """RabbitMQ did not accept it now, such as since a queue is full."""
    UNSENDABLE = auto()
    """RabbitMQ would close the connection over it."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """A message and its fate. ``reason`` is RabbitMQ's word for it."""

    message: Message
    fate: Fate
    reason: str = ""


class Publisher:
    """One session with one channel. It ends for good when either is lost."""

    def __init__(self, config: RabbitMQSinkConfig) -> None:
        self._config = config
        self._outcomes: queue.SimpleQueue[Outcome | None] = queue.SimpleQueue()
        self._waiting: list[Message] = []
        self._unconfirmed: dict[int, Message] = {}
        self._returned: dict[int, str] = {}
        self._looked_at = 0
        self._tag = 0
        self._frame_bytes = 0
        self._channel: Channel | None = None
        self._end: BaseException | None = None
        self._blocked: str | None = None
        self._is_ready = threading.Event()
        self._session = Session(config, self._opened, self._ended)
        self._session.start()

    @property
    def failure(self) -> ConnectError | None:
        """Why the session has ended, if it has."""
        return self._session.failure

    def is_ready(self, seconds: float) -> bool:
        """Wait for the channel; return whether it is open, or will not be any more."""
        return self._is_ready.wait(seconds)

    @property
    def channel_end(self) -> BaseException | None:
        """What RabbitMQ said when it closed the channel, if it did."""
        return self._end

    @property
    def blocked(self) -> str | None:
        """Why RabbitMQ takes no messages from anybody now, if so: it is short of memory or disk."""
        return self._blocked

    def publish(self, messages: Sequence[Message]) -> None:
        """Publish messages in their order, once the channel is open."""
        self._session.call(lambda: self._publish(messages))

    def outcome(self, seconds: float) -> Outcome | None:
        """Return the next outcome; ``None`` if there is none in time, or the session has ended."""
        try:
            return self._outcomes.get(timeout=seconds) if seconds > 0 else self._outcomes.get_nowait()
        except queue.Empty:
            return None

    def close(self) -> None:
        """Close the connection."""
        self._session.close()

    def _ended(self) -> None:
        self._is_ready.set()
        self._outcomes.put(None)

    def _opened(self, connection: Connection) -> None:
        connection.add_on_connection_blocked_callback(self._is_blocked)
        connection.add_on_connection_unblocked_callback(self._is_unblocked)
        connection.channel(on_open_callback=self._channel_opened)

    def _is_blocked(self, _connection: object, frame: Any) -> None:
        self._blocked = str(frame.method.reason)

    def _is_unblocked(self, _connection: object, _frame: object) -> None:
        self._blocked = None

    def _channel_opened(self, channel: Channel) -> None:
        channel.add_on_close_callback(self._closed)
        channel.add_on_return_callback(self._on_return)
        channel.confirm_delivery(self._on_confirmation, callback=lambda _: self._ready(channel))

    def _ready(self, channel: Channel) -> None:
        self._channel = channel
        # As negotiated; 0 is without limit.
        self._frame_bytes = int(channel.connection.params.frame_max)
        waiting, self._waiting = self._waiting, []
        self._publish(waiting)
        self._is_ready.set()

    def _publish(self, messages: Sequence[Message]) -> None:
        channel = self._channel
        if channel is None:
            self._waiting += messages
            return
        for message in messages:
            if not channel.is_open:
                return
            if (reason := self._unsendable(message)) is not None:
                self._outcomes.put(Outcome(message, Fate.UNSENDABLE, reason))
                continue
            self._tag += 1
            self._unconfirmed[self._tag] = message
            channel.basic_publish(
                message.exchange,
                message.routing_key,
                message.body,
                message.properties,
                mandatory=self._config.rabbitmq_mandatory,
            )

    def _unsendable(self, message: Message) -> str | None:
        """Return what is wrong with a message whose properties are larger than a frame may be here."""
        if message.is_plain or not self._frame_bytes or message.head_bytes <= self._frame_bytes:
            return None
        return (
            f"its headers and properties have {message.head_bytes} bytes as a frame, and RabbitMQ takes "
            f"{self._frame_bytes} at most (frame_max)"
        )

    def _on_confirmation(self, frame: Any) -> None:
        """Settle the messages up to the tag, or the one with it."""
        tag, is_ack = frame.method.delivery_tag, frame.method.NAME == "Basic.Ack"
        for each in self._tags_to(tag) if frame.method.multiple else (tag,):
            message = self._unconfirmed.pop(each, None)
            reason = self._returned.pop(each, None)
            if message is None:
                continue
            if not is_ack:
                self._outcomes.put(Outcome(message, Fate.REFUSED, "it did not accept it"))
            elif reason is not None:
                self._outcomes.put(Outcome(message, Fate.RETURNED, reason))
            else:
                self._outcomes.put(Outcome(message, Fate.CONFIRMED))

    def _tags_to(self, last: int) -> list[int]:
        found = []
        for tag in self._unconfirmed:
            if tag > last:
                break
            found.append(tag)
        return found

    def _on_return(self, _channel: Channel, method: Any, _properties: object, body: bytes) -> None:
        """Find the message that comes back: returns have no tag, come in the order of publishing, and before the
        confirmation."""
        first = next(iter(self._unconfirmed), self._tag + 1)
        for tag in range(max(self._looked_at + 1, first), self._tag + 1):
            message = self._unconfirmed.get(tag)
            if message is None or (message.exchange, message.routing_key) != (method.exchange, method.routing_key):
                continue
            if message.body == body:
                self._looked_at = tag
                self._returned[tag] = f"{method.reply_text} (code {method.reply_code})"
                return

    def _closed(self, _channel: Channel, error: BaseException) -> None:
        if not hasattr(error, "reply_code"):
            # The connection is lost, which tells more.
            return
        self._end = error
        exchange = self._config.rabbitmq_exchange
        self._session.fail(
            channel_failure(error, f"the exchange {exchange}" if exchange else "publishing", self._config)
        )
