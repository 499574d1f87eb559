"""The ids of a sink's topics: they tell a topic from a former one of the same name, whose offsets mean nothing for it.

Each offset is committed with the id of its topic as metadata. So one that belongs to a former topic is recognised
later, even if it was committed just after the topic was deleted and created again, or by a task that has ended since.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final

import confluent_kafka
from confluent_kafka import Consumer, KafkaException
from confluent_kafka.admin import AdminClient

from connect.data import TopicPartition
from worker.kafka.topics.admin import topic_ids

__all__ = ["TopicIds", "is_of_former", "marked"]

logger = logging.getLogger(__name__)
_TIMEOUT_SECONDS: Final = 5.0
_PATIENCE_SECONDS: Final = 30.0
_AGAIN_SECONDS: Final = 60.0
_RARELY_SECONDS: Final = 10.0
"""Seconds between checks of records after a pause, in the long run. They only avoid doubled records: none is lost
without them, since each commit is checked."""
_SAVED_SECONDS: Final = 30.0
"""Up to the checks of so many seconds may be made at once, after a time without."""
_MARK: Final = "topic-id="


class TopicIds:
    """Finds the partitions whose offsets are those of a former topic. One request for all topics that are asked about.

    Without ids (before Kafka 2.8, or without the right to describe a topic) it finds none.
    """

    def __init__(self, consumer: Consumer, admin: Callable[[], AdminClient]) -> None:
        self._consumer = consumer
        self._make_admin = admin
        self._admin: AdminClient | None = None
        self._ids: dict[str, str] = {}
        self._former: dict[str, str] = {}
        self._unchecked: set[TopicPartition] = set()
        self._with_offsets: set[TopicPartition] = set()
        self._not_before: dict[str, float] = {}
        self._reported: set[str] = set()
        self._check_due = 0.0
        self._is_strict = False
        self.is_check_owed = False
        """Whether records were put after a pause without a check: the next commit makes up for it."""

    def assigned(self, partitions: Collection[TopicPartition]) -> None:
        """Note that the consumer begins these partitions at the offsets of the group."""
        self._unchecked |= set(partitions)

    def dropped(self, partitions: Collection[TopicPartition]) -> None:
        """Forget partitions that were taken away."""
        self._unchecked -= set(partitions)
        self._with_offsets -= set(partitions)

    def unchecked(self, assignment: Collection[TopicPartition]) -> set[TopicPartition]:
        """Return the partitions of which it is not known whether their offsets are those of a former topic."""
        return self._unchecked.intersection(assignment)

    def doubtful(self, assignment: Collection[TopicPartition]) -> set[TopicPartition]:
        """Return the partitions whose topic may have been deleted: the brokers delete a group's offsets with it.

        Besides them, those that are unchecked. One request to the group's coordinator, for which no client is opened.
        """
        asked = [confluent_kafka.TopicPartition(*partition) for partition in assignment]
        try:
            answers = self._consumer.committed(asked, timeout=_TIMEOUT_SECONDS) if asked else []
        except KafkaException as error:
            logger.debug("The group's offsets cannot be looked up: %s", error)
            return self.unchecked(assignment)
        present = {TopicPartition(at.topic, at.partition) for at in answers if at.offset >= 0}
        gone = self._with_offsets.intersection(assignment) - present
        self._with_offsets |= present
        return gone | self.unchecked(assignment)

    def of(self, topics: Iterable[str]) -> dict[str, str]:
        """Return the ids of topics for a task that keeps offsets; from then on, all of its records are checked.

        Topics without an id are left out. Raises ``ConnectError`` if the brokers do not answer.
        """
        self._is_strict = True
        found = topic_ids(self._client(), sorted(set(topics)), _PATIENCE_SECONDS, needs_answer=True)
        self._ids = found | self._ids
        return found

    def due(self, *, after_pause: bool) -> bool:
        """Return whether consumed records should be checked before they are put."""
        if self._unchecked or self._is_strict:
            return True
        if not after_pause:
            return False
        now = time.monotonic()
        if now < self._check_due:
            self.is_check_owed = True
            return False
        self._check_due = max(self._check_due, now - _SAVED_SECONDS) + _RARELY_SECONDS
        return True

    def rest(self) -> None:
        """Close the client until it is needed again."""
        self._admin = None

    def renewed(self, topics: Iterable[str], assignment: Collection[TopicPartition]) -> set[TopicPartition]:
        """Return the partitions of these topics whose offsets are those of a former topic.

        Each is returned once; from then on, the topic that exists now is the one that counts.
        """
        now = time.monotonic()
        self.is_check_owed = False
        asked = [topic for topic in sorted(set(topics)) if now >= self._not_before.get(topic, 0.0)]
        found = self._ask(asked)
        for topic in asked:
            if topic not in found and topic not in self._ids:
                self._miss(topic)
        again = {topic for topic, known in found.items() if self._ids.get(topic, known) != known}
        stale = {partition for partition in assignment if partition.topic in again}
        self._former |= {topic: self._ids[topic] for topic in again}
        self._ids |= found
        self._unchecked -= stale
        return stale | self._marked_otherwise(found)

    def marked(self, offsets: Mapping[TopicPartition, int]) -> list[confluent_kafka.TopicPartition]:
        """Return offsets to commit, each with the id of its topic."""
        self._with_offsets |= offsets.keys()
        return marked(offsets, self._ids)

    def marked_formerly(self, offsets: Mapping[TopicPartition, int]) -> list[confluent_kafka.TopicPartition]:
        """Return offsets to commit of topics that were created again, each with the id of the former topic.

        A partition whose committed offset has it already may go without.
        """
        return marked({tp: at for tp, at in offsets.items() if tp.topic in self._former}, self._former)

    def _ask(self, topics: list[str]) -> dict[str, str]:
        if not topics:
            return {}
        try:
            return topic_ids(self._client(), topics, _TIMEOUT_SECONDS)
        except KafkaException as error:
            logger.debug("The ids of topics are unknown: %s", error)
            return {}

    def _client(self) -> AdminClient:
        if self._admin is None:
            self._admin = self._make_admin()
        return self._admin

    def _miss(self, topic: str) -> None:
        self._not_before[topic] = time.monotonic() + _AGAIN_SECONDS
        if topic not in self._reported:
            self._reported.add(topic)
            logger.info(
                "The brokers do not tell the id of topic %s: it does not exist, the consumer's user lacks the right "
                "Describe on it, or they are older than Kafka 2.8. If it is deleted and created again, the sink "
                "notices only if it then has fewer records.",
                topic,
            )

    def _marked_otherwise(self, ids: Mapping[str, str]) -> set[TopicPartition]:
        """Return the partitions among the unchecked ones whose committed offset has the id of another topic."""
        asked = {partition for partition in self._unchecked if partition.topic in ids}
        if not asked:
            return set()
        try:
            answers = self._consumer.committed(
                [confluent_kafka.TopicPartition(*tp) for tp in asked], timeout=_TIMEOUT_SECONDS
            )
        except KafkaException as error:
            logger.debug("The group's offsets cannot be looked up: %s", error)
            return set()
        self._unchecked -= asked
        return {TopicPartition(at.topic, at.partition) for at in answers if is_of_former(at, ids)}


def marked(offsets: Mapping[TopicPartition, int], ids: Mapping[str, str]) -> list[confluent_kafka.TopicPartition]:
    """Return offsets to commit, each with the id of its topic if that is known."""
    marks = {topic: _MARK + known for topic, known in ids.items()}
    return [confluent_kafka.TopicPartition(*tp, offset, marks.get(tp.topic, "")) for tp, offset in offsets.items()]


def is_of_former(committed: confluent_kafka.TopicPartition, ids: Mapping[str, str]) -> bool:
    """Return whether an offset was committed with the id of another topic than the one that now has its name."""
    mark, known = committed.metadata or "", ids.get(committed.topic)
    return known is not None and mark.startswith(_MARK) and mark != _MARK + known
