"""The partitions of a bulk sink's topics and their offsets, looked up for all of them at once.

Whatever the number of partitions, looking up their ends takes one request to each broker that leads any of them, and
looking up which ones exist takes a single request.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping
from typing import Final

import confluent_kafka
from confluent_kafka import Consumer, KafkaException
from confluent_kafka.admin import AdminClient

from connect.data import TopicPartition
from connect.errors import ConnectError
from worker.kafka.topics.admin import topic_ids
from worker.runtime.beginnings import BEGINNING, END
from worker.runtime.sink.topic_choice import TopicChoice
from worker.runtime.sink.topic_ids import is_of_former, marked

__all__ = ["MADE_AGAIN", "MadeAgainError", "Partitions"]

logger = logging.getLogger(__name__)
_TIMEOUT_SECONDS: Final = 30.0
_REFRESH_SECONDS: Final = 10.0
MADE_AGAIN: Final = (
    "{} was deleted and made again, or its brokers have lost records: its offsets do not mean what they did. Give the "
    "connector another name to load it from its beginning, or set its offsets."
)


class MadeAgainError(ConnectError):
    """A topic was deleted and created again: the offsets of the former one mean nothing for it."""

    def __init__(self, topic: str) -> None:
        super().__init__(MADE_AGAIN.format(topic))
        self.topic = topic

    def __reduce__(self) -> tuple[type[MadeAgainError], tuple[str]]:
        return type(self), (self.topic,)


class Partitions:
    """Looks up partitions. Every method raises ``KafkaException`` while the brokers do not answer."""

    def __init__(self, consumer: Consumer, admin: AdminClient, choice: TopicChoice, poll_seconds: float) -> None:
        self._consumer = consumer
        self._admin = admin
        self._choice = choice
        self._soon = min(_REFRESH_SECONDS, poll_seconds)
        self._known: tuple[TopicPartition, ...] = ()
        self._gone: set[TopicPartition] = set()
        self._due = 0.0
        self.missing: str | None = None
        """The topics that do not exist, in a sentence for users."""
        self.topic_ids: dict[str, str] = {}
        """The id of each topic, if the brokers have ids: it distinguishes a topic from a later one of the same name."""

    def all(self, *, anew: bool = False) -> tuple[TopicPartition, ...]:
        """Return the existing partitions, looked up every ten seconds, or now if ``anew``.

        Raises :class:`MadeAgainError` for a topic that was deleted and created again.
        """
        if anew or time.monotonic() >= self._due:
            self._find()
        return self._known

    def check(self, topics: Iterable[str]) -> None:
        """Raise :class:`MadeAgainError` if one of the topics is another one of its name by now."""
        for name, topic_id in topic_ids(self._admin, sorted(set(topics))).items():
            if self.topic_ids.setdefault(name, topic_id) != topic_id:
                raise MadeAgainError(name)

    def begin_anew(self, topic: str) -> None:
        """Forget the former topic of this name."""
        self.topic_ids.pop(topic, None)
        self._gone = {tp for tp in self._gone if tp.topic != topic}
        self.forget()

    def forget(self) -> None:
        """Look up the partitions on the next call, since something has changed."""
        self._due = 0.0

    def ends(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the end offset of each, by the connector's isolation level."""
        return self._offsets(dict.fromkeys(partitions, END))

    def beginnings(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the first existing offset of each."""
        return self._offsets(dict.fromkeys(partitions, BEGINNING))

    def at(self, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]:
        """Return the offset of the first record of each from a time (ms since 1970) on; ``None`` where there is
        none.
        """
        found = self._offsets(times)
        return {tp: offset if offset >= 0 else None for tp, offset in found.items()}

    def committed(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int | None]:
        """Return the offset of the group in each; ``None`` where it has none, or one of a former topic of the same
        name.
        """
        asked = [confluent_kafka.TopicPartition(*tp) for tp in partitions]
        if not asked:
            return {}
        answers = self._consumer.committed(asked, timeout=_TIMEOUT_SECONDS)
        offsets = _checked(answers)
        former = {TopicPartition(at.topic, at.partition) for at in answers if is_of_former(at, self.topic_ids)}
        return {tp: offset if offset >= 0 and tp not in former else None for tp, offset in offsets.items()}

    def commit(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Commit offsets of the group."""
        self._consumer.commit(offsets=marked(offsets, self.topic_ids), asynchronous=False)

    def _offsets(self, asked: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Look up all at once. Kafka's request takes a time, or a special value for the end or the beginning."""
        client = [confluent_kafka.TopicPartition(*tp, which) for tp, which in asked.items()]
        return _checked(self._consumer.offsets_for_times(client, timeout=_TIMEOUT_SECONDS)) if client else {}

    def _find(self) -> None:
        present = self._choice.partitions(self._consumer)
        found = {TopicPartition(name, number) for name, numbers in present.items() for number in numbers}
        for gone in sorted(set(self._known) - found):
            logger.warning("%s no longer exists; those of its records that were not loaded are lost.", gone)
            self._gone.add(gone)
        if back := found & self._gone:
            raise MadeAgainError(min(back).topic)
        self.check(present)
        self._known = tuple(sorted(found))
        self.missing = self._choice.missing(present)
        # A missing topic is usually about to be created by a source.
        self._due = time.monotonic() + (_REFRESH_SECONDS if self.missing is None else self._soon)


def _checked(answers: Iterable[confluent_kafka.TopicPartition]) -> dict[TopicPartition, int]:
    found: dict[TopicPartition, int] = {}
    for answer in answers:
        if answer.error is not None:
            raise KafkaException(answer.error)
        found[TopicPartition(answer.topic, answer.partition)] = answer.offset
    return found
