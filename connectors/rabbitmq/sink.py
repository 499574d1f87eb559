"""The RabbitMQ sink: records become messages, whose offsets are committed once RabbitMQ has confirmed them.

=======================================  ==============================================================================
kill -9 of the task or worker here       then
=======================================  ==============================================================================
before RabbitMQ's confirmation           the offset is not committed, and the record is sent again: nothing is lost.
                                         If RabbitMQ has the message all the same, it comes twice
after the confirmation, before the       what was confirmed since the last commit is sent again, and comes twice
commit of offsets
the server is killed, or the connection  what is not confirmed is sent again in its order, before all that follows; of
is lost                                  that, what RabbitMQ had already comes twice
=======================================  ==============================================================================

What RabbitMQ has confirmed it keeps if the message is persistent and its queue durable.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from connect.data import SinkBatch, SinkRecord, TopicPartition
from connect.errors import DataError, RetriableError
from connect.kits.deliveries import Position, Unconfirmed, give_up, position_of
from connect.sink import SinkConnector, SinkTask
from connectors.rabbitmq.messages import Message, MessageMaker
from connectors.rabbitmq.publisher import Fate, Outcome, Publisher
from connectors.rabbitmq.sink_config import RabbitMQSinkConfig

__all__ = ["RabbitMQSinkConnector", "RabbitMQSinkTask"]

_SLICE_SECONDS: Final = 0.05
_LONGEST_PUT_SECONDS: Final = 20.0
_COMMIT_SECONDS: Final = 2.0
_AGAIN_SECONDS: Final = 0.5
"""After how long a message is sent again that RabbitMQ did not accept."""
_ROOMY: Final = 0.75
"""Up to which part of the window is waited for: messages cost less in portions."""
_PRECONDITION_FAILED: Final = 406


class RabbitMQSinkTask(SinkTask[RabbitMQSinkConfig]):
    """Publishes the records of each batch in order. What is sent and not confirmed it keeps, to send it again."""

    def start(self) -> None:
        self._maker = MessageMaker(self.config)
        self._publisher: Publisher | None = None
        self._unconfirmed: Unconfirmed[Message] = Unconfirmed()
        self._is_careful = False
        """Whether messages are sent one by one, to find the one for which RabbitMQ closes the channel."""
        self._progress_at = 0.0
        self._refused: list[tuple[float, Position]] = []

    def put(self, records: SinkBatch) -> None:
        deadline = time.monotonic() + _LONGEST_PUT_SECONDS
        refused: list[tuple[SinkRecord, DataError]] = []
        chunk: list[Message] = []
        self._settle(0)
        try:
            for record in records:
                position = position_of(record)
                if position in self._unconfirmed.taken:
                    continue
                try:
                    message = self._maker.message(record)
                except DataError as error:
                    refused.append((record, error))
                    continue
                if not self._has_room(1.0):
                    self._send(chunk)
                    chunk = []
                    self._wait_for_room(deadline)
                self._unconfirmed.add(position, message, message.size)
                chunk.append(message)
        finally:
            self._send(chunk)
        # Last, so that a record that fails the task does not prevent the others from being sent.
        for record, refusal in refused:
            give_up(self.context, record, refusal)
            self._unconfirmed.taken.add(position_of(record))
        self._unconfirmed.taken.clear()

    def pre_commit(self, offsets: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
        """Return the offsets up to what is not confirmed; wait a little for that."""
        deadline = time.monotonic() + _COMMIT_SECONDS
        try:
            while self._unconfirmed and time.monotonic() < deadline:
                self._settle(_SLICE_SECONDS)
        except RetriableError:
            # What is not confirmed is sent again with the next put; what is may be committed.
            pass
        return self._unconfirmed.durable(offsets)

    def close(self, partitions: Collection[TopicPartition]) -> None:
        """Forget what is not confirmed: it is consumed again, here or elsewhere."""
        self._unconfirmed.close(partitions)

    def stop(self) -> None:
        if (publisher := getattr(self, "_publisher", None)) is not None:
            publisher.close()

    def _has_room(self, part: float) -> bool:
        """Return whether less than this part of what may be unconfirmed is."""
        config = self.config
        unconfirmed = self._unconfirmed
        return len(unconfirmed) < config.window * part and unconfirmed.bytes < config.rabbitmq_publish_max_bytes * part

    def _wait_for_room(self, deadline: float) -> None:
        while not self._has_room(_ROOMY):
            if not self.context.wait(0):
                raise RetriableError("The task stops or pauses.", 0.01)
            if time.monotonic() > deadline:
                blocked = self._publisher.blocked if self._publisher is not None else None
                why = f"RabbitMQ takes no messages now ({blocked})" if blocked else "RabbitMQ takes its time"
                raise RetriableError(f"{why}; the remaining records are sent with the next put.", 0.01)
            self._settle(_SLICE_SECONDS)

    def _settle(self, seconds: float) -> None:
        """Take outcomes, waiting for the first one; raise ``RetriableError`` if the connection is lost."""
        publisher = self._connected()
        self._send_refused()
        outcome = publisher.outcome(seconds)
        while outcome is not None:
            self._take(outcome)
            outcome = publisher.outcome(0)
        if publisher.failure is not None:
            self._lost(publisher)
        elif self._is_overdue(publisher):
            publisher.close()
            self._publisher = None
            raise RetriableError(
                f"RabbitMQ has confirmed nothing for {self.config.confirm_seconds:g} s "
                "(rabbitmq.publish.ack.timeout); what is not confirmed is sent again.",
                self.config.recovery_seconds,
            )

    def _is_overdue(self, publisher: Publisher) -> bool:
        now = time.monotonic()
        if len(self._unconfirmed) <= len(self._refused) or publisher.blocked is not None:
            self._progress_at = now
        return now - self._progress_at > self.config.confirm_seconds

    def _send_refused(self) -> None:
        """Send again what RabbitMQ did not accept a while ago."""
        now = time.monotonic()
        while self._refused and self._refused[0][0] <= now:
            _, position = self._refused.pop(0)
            if (message := self._unconfirmed.messages.get(position)) is not None:
                self._send([message])

    def _connected(self) -> Publisher:
        """Return the publisher, which is connected; a new one is first given what is not confirmed."""
        if self._publisher is not None:
            return self._publisher
        publisher = self._publisher = Publisher(self.config)
        self._refused.clear()
        while not publisher.is_ready(_SLICE_SECONDS):
            if not self.context.wait(0):
                self._publisher = None
                publisher.close()
                raise RetriableError("The task stops or pauses.", 0.01)
        if publisher.failure is not None:
            self._lost(publisher)
        self._progress_at = time.monotonic()
        if self._is_careful:
            self._send_carefully(publisher)
        else:
            publisher.publish(list(self._unconfirmed.messages.values()))
        return publisher

    def _send_carefully(self, publisher: Publisher) -> None:
        """Send what is not confirmed one after the other, each after the confirmation of the one before."""
        for position, message in list(self._unconfirmed.messages.items()):
            publisher.publish([message])
            deadline = time.monotonic() + self.config.confirm_seconds
            while position in self._unconfirmed.messages:
                if (outcome := publisher.outcome(_SLICE_SECONDS)) is not None:
                    self._take(outcome)
                elif publisher.failure is not None:
                    self._blame(publisher, position)
                elif time.monotonic() > deadline or not self.context.wait(0):
                    self._publisher = None
                    publisher.close()
                    raise RetriableError("RabbitMQ does not confirm a message in time.", self.config.recovery_seconds)
        self._is_careful = False

    def _blame(self, publisher: Publisher, position: Position) -> None:
        """Give up the one message that was under way when RabbitMQ closed the channel for what is in it."""
        self._publisher = None
        publisher.close()
        if getattr(publisher.channel_end, "reply_code", None) == _PRECONDITION_FAILED:
            record = self._unconfirmed.messages[position].record
            self._unconfirmed.forget(position)
            give_up(self.context, record, DataError(f"RabbitMQ does not take it: {publisher.channel_end}."))
        failure = publisher.failure
        if failure is not None and not isinstance(failure, RetriableError):
            raise failure
        raise RetriableError(str(failure), 0.01)

    def _send(self, messages: Sequence[Message]) -> None:
        if self._publisher is not None and messages:
            self._publisher.publish(messages)

    def _lost(self, publisher: Publisher) -> None:
        """Raise why the connection is lost; the next one begins with what is not confirmed."""
        self._publisher = None
        publisher.close()
        failure = publisher.failure
        assert failure is not None
        if getattr(publisher.channel_end, "reply_code", None) == _PRECONDITION_FAILED and self._unconfirmed:
            self._is_careful = True
            raise RetriableError(f"{failure} The messages are sent again one by one, to find which it was.", 0.01)
        if isinstance(failure, RetriableError):
            raise RetriableError(str(failure), self.config.recovery_seconds) from failure
        raise failure

    def _take(self, outcome: Outcome) -> None:
        message = outcome.message
        position = position_of(message.record)
        if self._unconfirmed.messages.get(position) is not message:
            return
        self._progress_at = time.monotonic()
        if outcome.fate is Fate.REFUSED and not 0 <= self.config.rabbitmq_publish_max_retries <= message.tries:
            message.tries += 1
            self._refused.append((time.monotonic() + _AGAIN_SECONDS, position))
            return
        self._unconfirmed.forget(position)
        if outcome.fate is Fate.CONFIRMED:
            return
        if outcome.fate is Fate.RETURNED:
            where = f"exchange {message.exchange or '(default)'}, routing key {message.routing_key}"
            reason = f"No queue takes it ({where}): {outcome.reason}. Bind a queue, or set rabbitmq.mandatory=false."
        elif outcome.fate is Fate.UNSENDABLE:
            reason = f"RabbitMQ cannot take it: {outcome.reason}."
        else:
            reason = f"RabbitMQ did not accept it in {message.tries + 1} attempts: its queue may be full."
        give_up(self.context, message.record, DataError(reason))


class RabbitMQSinkConnector(SinkConnector[RabbitMQSinkConfig]):
    """Publishes records to an exchange of RabbitMQ, or to queues."""

    task_class = RabbitMQSinkTask
    watches = False

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str | None]]:
        """Return the connector's own configuration for each task; each worker adds its own rules for hosts."""
        return [self.config.props_for_tasks()] * max_tasks

    @classmethod
    def alter_offsets(cls, config: RabbitMQSinkConfig, offsets: Mapping[TopicPartition, int | None]) -> bool:  # noqa: ARG003
        """Accept any offsets: the sink keeps none of its own."""
        return True
