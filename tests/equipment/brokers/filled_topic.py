"""A topic that a test fills step by step, for a bulk sink to load."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

from connect.bulk import OffsetRange
from connect.data import TopicPartition
from equipment.brokers.topics import create_topic, ordered_producer

__all__ = ["FilledTopic"]

_PARTITIONS: Final = 2


class _Task(Protocol):
    def committed(self) -> Mapping[TopicPartition, int]: ...

    def load(self, ranges: Sequence[OffsetRange]) -> None: ...


class FilledTopic:
    """A topic of two partitions, with their end offsets."""

    def __init__(self, bootstrap: str, name: str, topic_id: str | None = None, **settings: str) -> None:
        self.name = name
        self.ends: Counter[TopicPartition] = Counter()
        self._id = topic_id
        self._producer = ordered_producer(bootstrap)
        create_topic(bootstrap, name, _PARTITIONS, **settings)

    def produce(self, values: Sequence[Any], keys: Sequence[Any] = (), **more: Sequence[Any]) -> None:
        """Produce values to the partitions in turn or, if keys have an ``id``, to the partition that it gives.

        Values and keys are written as JSON, unless they are bytes or ``None``. ``more`` are the other arguments of the
        producer, one for each value.
        """
        for index, value in enumerate(values):
            key = keys[index] if keys else None
            place = (key.get("payload", key)["id"] if isinstance(key, dict) else index) % _PARTITIONS
            others = {name: given[index] for name, given in more.items()}
            self._producer.produce(self.name, _written(value), _written(key), partition=place, **others)
            self.ends[TopicPartition(self.name, place)] += 1
        assert self._producer.flush(30) == 0

    def ranges(self, first: Mapping[TopicPartition, int] = {}) -> list[OffsetRange]:
        """The ranges of all records, or of those after these offsets."""
        ranges = [OffsetRange(*tp, first.get(tp, 0), end, self._id) for tp, end in self.ends.items()]
        return [item for item in ranges if len(item)]

    def drain(self, task: _Task) -> None:
        """Have a task load all records that it has not loaded yet."""
        task.load(self.ranges(task.committed()))
        assert task.committed() == dict(self.ends)


def _written(value: Any) -> bytes | None:
    return value if value is None or isinstance(value, bytes) else json.dumps(value).encode()
