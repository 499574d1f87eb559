"""The ids of a sink's topics: they tell a topic from a former one of the same name, whose offsets mean nothing for it.

Each offset is committed with the id of its topic as metadata. So one that belongs to a former topic is recognised
later, even if it was committed just after the topic was deleted and created again, or by a task that has ended since.
A partition begins at the offset that was read together with its metadata: the brokers delete both with the topic, so a
later look at the metadata alone would find none, and the former offset would count as one of the new topic.
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
        self._unchecked: dict[TopicPartition, confluent_kafka.TopicPartition | None] = {}
        """Each with the offset of the group at which it began, and its metadata; ``None`` if that must be looked up."""
        self._with_offsets: set[TopicPartition] = set()
        self._not_before: dict[str, float] = {}
        self._reported: set[str] = set()
        self._check_due = 0.0
        self._is_strict = False
        self.is_check_owed = False
        """Whether records were put after a pause without a check: the next commit makes up for it."""

    def offsets(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, confluent_kafka.TopicPartition]:
        """Return the offsets of the group, with their metadata; a negative one where it has none.

        None at all if the brokers do not answer in time.
        """
        asked = [confluent_kafka.TopicPartition(*partition) for partition in partitions]
        try:
            answers = self._consumer.committed(asked, timeout=_TIMEOUT_SECONDS) if asked else []
        except KafkaException as error:
            logger.debug("The group's offsets cannot be looked up: %s", error)
            return {}
        return {TopicPartition(at.topic, at.partition): at for at in answers if at.error is None}

    def assigned(
        self,
        partitions: Collection[TopicPartition],
        starts: Mapping[TopicPartition, int],
        answers: Mapping[TopicPartition, confluent_kafka.TopicPartition],
    ) -> list[confluent_kafka.TopicPartition]:
        """Return where each of these partitions begins, all of which are unchecked from now on.

        That is where ``starts`` says, or else where the group continues by ``answers``, its offsets. Those in which it
        has no offset, and all if the brokers do not answer, are without one: the client asks then, or begins as
        ``auto.offset.reset`` says.
        """
        found = {partition: at for partition, at in answers.items() if at.offset >= 0}
        self._unchecked |= {partition: found.get(partition) for partition in partitions}
        own = {tp: confluent_kafka.TopicPartition(*tp, offset) for tp, offset in starts.items()}
        return [own.get(tp) or found.get(tp) or confluent_kafka.TopicPartition(*tp) for tp in partitions]

    def learn(self, partitions: Iterable[TopicPartition]) -> None:
        """Learn the ids of the topics of these partitions, with which offsets are committed from now on."""
        self._ids = self._ask(sorted({partition.topic for partition in partitions} - self._ids.keys())) | self._ids

    def doubt(self, partitions: Collection[TopicPartition]) -> None:
        """Note that the topics of these partitions may have been deleted meanwhile."""
        self._unchecked = dict.fromkeys(partitions) | self._unchecked

    def dropped(self, partitions: Collection[TopicPartition]) -> None:
        """Forget partitions that were taken away."""
        self._settle(partitions)
        self._with_offsets -= set(partitions)

    def unchecked(self, assignment: Collection[TopicPartition]) -> set[TopicPartition]:
        """Return the partitions of which it is not known whether their offsets are those of a former topic."""
        return self._unchecked.keys() & set(assignment)

    def doubtful(self, assignment: Collection[TopicPartition]) -> set[TopicPartition]:
        """Return the partitions whose topic may have been deleted: the brokers delete a group's offsets with it.

        Besides them, those that are unchecked. One request to the group's coordinator, for which no client is opened.
        """
        answers = self.offsets(assignment)
        if not answers:
            return self.unchecked(assignment)
        present = {partition for partition, at in answers.items() if at.offset >= 0}
        gone = self._with_offsets.intersection(assignment) - present
        self._with_offsets |= present
        return gone | self.unchecked(assignment)

    def without_offsets(self, assignment: Collection[TopicPartition]) -> set[TopicPartition]:
        """Return the partitions of which the group has had no offset: nothing says whether their topic was deleted."""
        return set(assignment) - self._with_offsets

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
        self._settle(stale)
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
        open_ = {partition: at for partition, at in self._unchecked.items() if partition.topic in ids}
        found = {partition: at for partition, at in open_.items() if at is not None}
        found |= self.offsets(open_.keys() - found.keys())
        self._settle(found)
        return {partition for partition, at in found.items() if is_of_former(at, ids)}

    def _settle(self, partitions: Iterable[TopicPartition]) -> None:
        for partition in partitions:
            self._unchecked.pop(partition, None)


def marked(offsets: Mapping[TopicPartition, int], ids: Mapping[str, str]) -> list[confluent_kafka.TopicPartition]:
    """Return offsets to commit, each with the id of its topic if that is known."""
    marks = {topic: _MARK + known for topic, known in ids.items()}
    return [confluent_kafka.TopicPartition(*tp, offset, marks.get(tp.topic, "")) for tp, offset in offsets.items()]


def is_of_former(committed: confluent_kafka.TopicPartition, ids: Mapping[str, str]) -> bool:
    """Return whether an offset was committed with the id of another topic than the one that now has its name."""
    mark, known = committed.metadata or "", ids.get(committed.topic)
    return known is not None and mark.startswith(_MARK) and mark != _MARK + known
