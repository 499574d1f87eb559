"""Looks up offsets of partitions: the first, the last, and those at a given time, in one request for all partitions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeAlias

from confluent_kafka import IsolationLevel, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin import OffsetSpec as _OffsetSpec  # type: ignore[attr-defined]

from connect.errors import ConnectError
from connect.internals.kafka.auth.rights import ADMIN, explained, on_topics

__all__ = ["LogOffsets", "Place"]

Place: TypeAlias = tuple[str, int]
"""A topic and one of its partitions."""

_TIMEOUT_SECONDS: Final = 30.0
_EARLIEST: Final = _OffsetSpec.earliest()  # type: ignore[no-untyped-call]
_LATEST: Final = _OffsetSpec.latest()  # type: ignore[no-untyped-call]


class LogOffsets:
    """Queries the brokers for offsets.

    Methods raise :class:`~connect.errors.ConnectError` if the broker does not answer.
    """

    def __init__(self, admin: AdminClient) -> None:
        self._admin = admin

    def partitions(self, topics: Iterable[str]) -> list[Place]:
        """Return the partitions of these topics, in order; a missing topic has none."""
        try:
            present = self._admin.list_topics(timeout=_TIMEOUT_SECONDS).topics
        except KafkaException as error:
            raise _refused("the topics", error, topics) from error
        return [(topic, partition) for topic in sorted(topics) if topic in present for partition in _of(present[topic])]

    def earliest(self, places: Iterable[Place]) -> dict[Place, int]:
        """Return the offset of the first record of each partition, or of the next one if it is empty."""
        return self._ask(places, _EARLIEST)

    def latest(self, places: Iterable[Place]) -> dict[Place, int]:
        """Return the offset after the last record of each partition; records of open transactions come after it."""
        return self._ask(places, _LATEST)

    def at(self, places: Iterable[Place], timestamp: int) -> dict[Place, int | None]:
        """Return the first offset at or after ``timestamp`` (ms since 1970) in each partition, or ``None``."""
        found = self._ask(places, _OffsetSpec.for_timestamp(timestamp))
        return {place: offset if offset >= 0 else None for place, offset in found.items()}

    def _ask(self, places: Iterable[Place], spec: Any) -> dict[Place, int]:
        asked = {TopicPartition(*place): spec for place in places}
        if not asked:
            return {}
        answers: Mapping[TopicPartition, Any] = self._admin.list_offsets(
            asked, isolation_level=IsolationLevel.READ_COMMITTED, request_timeout=_TIMEOUT_SECONDS
        )
        found: dict[Place, int] = {}
        for item, answer in answers.items():
            try:
                found[item.topic, item.partition] = answer.result().offset
            except KafkaException as error:
                raise _refused(f"the offsets of {item.topic}-{item.partition}", error, [item.topic]) from error
        return found


def _of(topic: Any) -> list[int]:
    return sorted(topic.partitions)


def _refused(what: str, error: KafkaException, topics: Iterable[str]) -> ConnectError:
    rights = on_topics(topics, "Describe")
    return ConnectError(f"The broker did not answer a request for {what}: {explained(error.args[0], ADMIN, *rights)}.")
