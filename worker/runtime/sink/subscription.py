"""A sink task as a member of its group: assignment and revocation of topic partitions, and consuming."""

from __future__ import annotations

import contextvars
import logging
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final, Protocol

import confluent_kafka
from confluent_kafka import Consumer, KafkaError, KafkaException

from connect.data import TopicPartition
from connect.errors import ConnectError
from connect.internals.consumption.messages import Fetching, Message
from connect.internals.kafka.auth.rights import CONSUMER, explained, is_denial, on_group, on_topic
from worker.kafka.clients.shared_admin import SharedAdmin
from worker.runtime.sink.coverage import Coverage, group_assignment
from worker.runtime.sink.topic_choice import TopicChoice, topic_found

__all__ = ["RebalanceListener", "Subscription"]

logger = logging.getLogger(__name__)
_LOOK_AGAIN_SECONDS: Final = 10.0
_MISSING_AGAIN_SECONDS: Final = 5.0
_LEAVE_SECONDS: Final = 1.0
_FEW: Final = 3
_error: Final[Callable[[Message], KafkaError | None]] = confluent_kafka.Message.error


class RebalanceListener(Protocol):
    """A listener for assignments, called by :meth:`Subscription.consume` and when leaving the group."""

    def assigned(self, partitions: Collection[TopicPartition]) -> list[confluent_kafka.TopicPartition]:
        """Take new partitions. Return where each begins; without an offset, the client asks for that of the group."""

    def revoked(self, partitions: Collection[TopicPartition]) -> None:
        """Give up partitions, after a last commit of their offsets."""

    def lost(self, partitions: Collection[TopicPartition]) -> None:
        """Drop partitions that were lost: another task may own them, so nothing may be committed (invariant I6)."""

    def held(self) -> Collection[TopicPartition]:
        """Return the partitions that must not be consumed now."""

    def at_end(self, partition: TopicPartition, offset: int) -> None:
        """Note that a partition was consumed up to its end."""


class Subscription:
    """A consumer in its group. Everything happens in the thread that calls :meth:`consume`."""

    def __init__(
        self,
        consumer: Consumer,
        group: str,
        choice: TopicChoice,
        listener: RebalanceListener,
        admin: SharedAdmin,
        *,
        is_cooperative: bool,
    ) -> None:
        self._consumer = consumer
        self._fetching = Fetching(consumer)
        self._group = group
        self._choice = choice
        self._listener = listener
        self._admin = admin
        self._coverage = Coverage(lambda: group_assignment(admin, group))
        self._is_cooperative = is_cooperative
        self._topics: tuple[str, ...] = ()
        self._look_due = 0.0
        self._assignment: set[TopicPartition] = set()
        self._paused: set[TopicPartition] = set()
        self._joined = False
        self._rebalanced = False
        self._failure: Exception | None = None
        self._missing_due: float | None = None
        self.missing: str | None = None
        """The topics that do not exist, in a sentence for users."""

    def consume(self, most: int, seconds: float) -> list[Message]:
        """Return the next records, and handle rebalances and errors of the client."""
        due = (
            self._look_due if self._choice.is_pattern else self._missing_due,
            self._coverage.due if self._joined else None,
        )
        if any(at is not None and time.monotonic() >= at for at in due):
            self.look()
        if not self._choice.is_pattern and not self._topics:
            self._subscribe(self._choice.names)
        self._hold()
        self._rebalanced = False
        found = self._fetching.fetch(most, seconds)
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure
        if any(map(_error, found)):
            for message in found:
                if message.error() is not None:
                    self._hear(message, message.error())
            found = [message for message in found if message.error() is None]
        if self._rebalanced:
            # Records of a partition that was revoked meanwhile are delivered by its new owner.
            found = [m for m in found if TopicPartition(m.topic(), m.partition()) in self._assignment]
        return found

    def leave(self) -> None:
        """Leave the group and close the consumer.

        A member that is still joining can leave only after that, which may take until the session of another member has
        ended. That is not waited for: the process ends, and the group removes it after its session. In a shared process
        it leaves as soon as it can.
        """
        if self._assignment:
            self._consumer.close()
            return
        closing = threading.Thread(target=self._consumer.close, name="leave", daemon=True)
        # In a context without a unit: in a shared process, this unit counts as ended without this thread.
        contextvars.Context().run(closing.start)
        closing.join(_LEAVE_SECONDS)

    @property
    def only_partition(self) -> int | None:
        """The number of the partition, if the task has only one, to which all consumed records belong."""
        return next(iter(self._assignment)).partition if len(self._assignment) == 1 else None

    def look(self) -> None:
        """Look which topics exist, and subscribe to those that match a pattern. Join anew if some were left out."""
        self._look_due = time.monotonic() + _LOOK_AGAIN_SECONDS
        try:
            present = self.present()
        except KafkaException as error:
            logger.warning("The topics cannot be listed yet; trying again: %s", error)
            self._missing_due = None if self._missing_due is None else self._look_due
            self._coverage.due = None if self._coverage.due is None else self._look_due
            return
        before, self.missing = self.missing, self._choice.missing(present)
        self._missing_due = None if self.missing is None else time.monotonic() + _MISSING_AGAIN_SECONDS
        if before is not None and self.missing is None:
            self._coverage.divided()
        topics = tuple(present)
        if self._choice.is_pattern and topics != self._topics:
            self._subscribe(topics)
        elif self._joined and self._coverage.due is not None:
            self._cover(present)

    def present(self) -> dict[str, tuple[int, ...]]:
        """Return the partitions of each topic that exists. Raises ``KafkaException`` if the broker does not answer."""
        try:
            return self._choice.partitions(self._consumer)
        except KafkaException as error:
            if not is_denial(error.args[0].code()):
                raise
            # The consumer is also refused a missing topic that it may not create.
            return self._choice.partitions(self._admin.client())

    def settled(self) -> bool:
        """Return whether the assignment is known, even if it is empty."""
        is_known = self._joined or (self._choice.is_pattern and not self._topics)
        return is_known and self._coverage.due is None

    def seek(self, partition: TopicPartition, offset: int) -> bool:
        """Continue a partition at ``offset``. ``False`` if that is not possible yet, just after its assignment."""
        try:
            self._consumer.seek(confluent_kafka.TopicPartition(*partition, offset))
        except KafkaException as error:
            if error.args[0].code() == KafkaError._STATE:
                return False
            raise
        return True

    def _subscribe(self, topics: Sequence[str]) -> None:
        self._topics = tuple(topics)
        if topics:
            callbacks = {"on_assign": self._on_assign, "on_revoke": self._on_revoke, "on_lost": self._on_lost}
            self._consumer.subscribe(list(topics), **callbacks)
            self._coverage.divided()
        else:
            self._consumer.unsubscribe()
            self._coverage.due = None

    def _is_missing(self, topic: str | None) -> bool:
        """Return whether a topic does not exist, as far as this user may know."""
        try:
            return topic is not None and topic_found(self._admin.client(), topic) is None
        except KafkaException as error:
            logger.debug("Topic %s cannot be looked up: %s", topic, error)
            return False

    def _cover(self, present: Mapping[str, Sequence[int]]) -> None:
        """Join the group anew if no member has some of the partitions."""
        if left := self._coverage.left_over(present, self._assignment):
            named = ", ".join(map(str, sorted(left)[:_FEW])) + (" and more" if len(left) > _FEW else "")
            logger.warning(
                "No task of group %s was given %s, since the topic was missing when the group last divided its "
                "partitions. The task joins the group anew, so that it divides them again.",
                self._group,
                named,
            )
            self._joined = False
            self._consumer.unsubscribe()
            self._subscribe(self._topics)

    def _hold(self) -> None:
        """Pause the partitions that must not be consumed, and resume those that may be again."""
        held = self._assignment.intersection(self._listener.held())
        if newly := held - self._paused:
            self._consumer.pause(_client_partitions(newly))
        if no_longer := self._paused - held:
            self._consumer.resume(_client_partitions(no_longer))
        self._paused = held

    def _hear(self, message: Message, error: KafkaError) -> None:
        """Handle an error of the client, which retries by itself: only one that it cannot recover from is raised."""
        if error.code() == KafkaError._PARTITION_EOF:
            self._listener.at_end(TopicPartition(message.topic(), message.partition()), message.offset())
        elif error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART or (
            error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED and self._is_missing(message.topic())
        ):
            self._missing_due = 0.0
        elif is_denial(error.code()):
            rights = (on_group(self._group, "Read"), on_topic(message.topic() or "", "Read"))
            raise ConnectError(f"The sink may not consume: {explained(error, CONSUMER, *rights)}")
        elif error.code() == KafkaError._AUTO_OFFSET_RESET:
            raise ConnectError(
                f"The sink cannot continue in {message.topic()}-{message.partition()}: {error.str()}. Its offset is "
                "gone, or the topic was deleted and created again, and consumer.override.auto.offset.reset is none: "
                "stop the connector and set or reset its offsets, or choose earliest or latest."
            )
        elif error.fatal() or error.code() == KafkaError._AUTHENTICATION:
            raise KafkaException(error)
        else:
            logger.warning("The consumer reports: %s", error.str())

    # -- called by the client from within consume ---------------------------------------------------------------------

    def _on_assign(self, consumer: Consumer, partitions: list[confluent_kafka.TopicPartition]) -> None:
        added = [TopicPartition(partition.topic, partition.partition) for partition in partitions]
        self._joined = True
        self._coverage.divided()
        self._assignment |= set(added)
        self._attempt(lambda: self._assign(consumer, added))

    def _assign(self, consumer: Consumer, added: list[TopicPartition]) -> None:
        client = self._listener.assigned(added) if added else []
        if self._is_cooperative:
            consumer.incremental_assign(client)
        else:
            consumer.assign(client)
        # The client keeps a partition paused that was revoked and assigned again, and it may have to be held.
        self._paused |= set(added)
        self._hold()
        if held := self._paused.intersection(added):
            consumer.pause(_client_partitions(held))

    def _on_revoke(self, _consumer: Consumer, partitions: list[confluent_kafka.TopicPartition]) -> None:
        self._take_away(partitions, self._listener.revoked)

    def _on_lost(self, _consumer: Consumer, partitions: list[confluent_kafka.TopicPartition]) -> None:
        self._take_away(partitions, self._listener.lost)

    def _take_away(
        self,
        partitions: list[confluent_kafka.TopicPartition],
        tell: Callable[[Collection[TopicPartition]], None],
    ) -> None:
        gone = [TopicPartition(partition.topic, partition.partition) for partition in partitions]
        self._attempt(lambda: tell(gone))
        self._rebalanced = True
        self._assignment -= set(gone)
        self._paused -= set(gone)
        # Until the rebalance is complete it is unknown whether the task has any.
        self._joined = self._joined and bool(self._assignment)

    def _attempt(self, call: Callable[[], None]) -> None:
        """Keep an error until the client returns, since it cannot be raised through the client."""
        try:
            call()
        except Exception as error:
            self._failure = self._failure or error


def _client_partitions(partitions: Collection[TopicPartition]) -> list[confluent_kafka.TopicPartition]:
    return [confluent_kafka.TopicPartition(*partition) for partition in sorted(partitions)]
