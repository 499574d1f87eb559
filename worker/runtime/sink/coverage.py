"""Whether the members of a sink's group have all partitions of its topics between them.

A client that divides the partitions of its group gives out none of a topic that is missing just then, as one that is
deleted and created again. When the topic is there again with as many partitions as before, librdkafka sees no change,
and divides nothing anew: no member would ever consume it. So each member looks after each division, and joins the
group anew if partitions are left over.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final

from confluent_kafka import ConsumerGroupState, KafkaException

from connect.data import TopicPartition
from worker.kafka.clients.shared_admin import SharedAdmin

__all__ = ["Coverage", "group_assignment"]

logger = logging.getLogger(__name__)
_TIMEOUT_SECONDS: Final = 5.0
_ASK_AGAIN_SECONDS: Final = 1.0
_PATIENCE_SECONDS: Final = 3.0
"""Seconds for which partitions may be left over: the client itself may be about to divide them."""
_MOST_PATIENCE_SECONDS: Final = 300.0
"""The same after many attempts in vain, each of which waits twice as long as the one before."""


class Coverage:
    """What is known of the latest division of a group's partitions. ``ask`` returns those that its members have.

    ``ask`` returns ``None`` while the group divides them, and raises ``KafkaException`` if the brokers do not say.
    """

    def __init__(
        self, ask: Callable[[], Collection[TopicPartition] | None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._ask = ask
        self._clock = clock
        self._patience = _PATIENCE_SECONDS
        self._left_since: float | None = None
        self.due: float | None = None
        """When to look next; ``None`` if the latest division is known to be complete."""

    def divided(self) -> None:
        """Note that the group has divided its partitions, or is about to."""
        self._left_since = None
        self.due = self._clock()

    def left_over(self, present: Mapping[str, Sequence[int]], own: Collection[TopicPartition]) -> set[TopicPartition]:
        """Return the partitions that no member has had for a while: join the group anew. Empty while that is unknown.

        ``present`` are the partitions of the topics that exist, ``own`` those that this member has.
        """
        left = {TopicPartition(topic, number) for topic, numbers in present.items() for number in numbers} - set(own)
        now = self._clock()
        if left:
            try:
                members = self._ask()
            except KafkaException as error:
                logger.debug("The members of the group are unknown: %s", error)
                self.due = None
                return set()
            if members is None:
                self._left_since = None
                self.due = now + _ASK_AGAIN_SECONDS
                return set()
            left -= set(members)
        if not left:
            self._patience, self.due = _PATIENCE_SECONDS, None
            return set()
        self._left_since = now if self._left_since is None else self._left_since
        if now < self._left_since + self._patience:
            self.due = min(now + _ASK_AGAIN_SECONDS, self._left_since + self._patience)
            return set()
        self._patience = min(2 * self._patience, _MOST_PATIENCE_SECONDS)
        self.divided()
        return left


def group_assignment(admin: SharedAdmin, group: str) -> set[TopicPartition] | None:
    """Return the partitions that the members of a group have; ``None`` while it divides them.

    Raises ``KafkaException`` if the brokers do not say.
    """
    found = admin.describe_group(group, _TIMEOUT_SECONDS)
    if found.state is not ConsumerGroupState.STABLE:
        return None
    return {
        TopicPartition(at.topic, at.partition) for member in found.members for at in member.assignment.topic_partitions
    }
