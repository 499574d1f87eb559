"""The context of a sink task, wherever the task runs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, Protocol

from connect.data import SinkRecord, TopicPartition
from connect.errors import ConnectError
from connect.internals.chain.raw_records import ConsumedBatch, RawRecord
from connect.internals.chain.tolerance import Failure, Stage, Tolerance
from connect.internals.plugins import class_name
from connect.sink import ErrantRecordReporter, SinkTask

__all__ = ["Publishing", "SinkContext", "durable_offsets"]


class Publishing(Protocol):
    """Sends additional records of a task."""

    def publish(self, topic: str, key: bytes | None, value: bytes | None) -> None:
        """Send a record to a topic."""

    def flush(self) -> None:
        """Wait until Kafka has acknowledged all of them."""


class SinkContext:
    """Implements :class:`connect.sink.SinkTaskContext` by recording the task's requests.

    Whoever runs the task carries out ``rewinds``, ``paused`` and ``commit_requested`` when it gets to it. The given
    ``wait`` waits the seconds it is passed, or returns ``False`` if the task must stop or pause.
    """

    def __init__(
        self,
        tolerance: Tolerance,
        task_class: str,
        publisher: Publishing,
        wait: Callable[[float], bool],
        *,
        reports: bool,
    ) -> None:
        self._wait = wait
        self._tolerance = tolerance
        self._task_class = task_class
        self._publisher = publisher
        self.errant_record_reporter: ErrantRecordReporter | None = self if reports else None
        self.assignment: set[TopicPartition] = set()
        self.rewinds: dict[TopicPartition, int] = {}
        self.paused: set[TopicPartition] = set()
        self.commit_requested = False
        self._put_after: float | None = None
        self.consumed: ConsumedBatch | None = None
        self.encode: Callable[[SinkRecord], RawRecord] | None = None
        self.look_up_ids: Callable[[Collection[str]], Mapping[str, str]] | None = None

    def offset(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Continue consuming from these offsets."""
        self.rewinds.update(offsets)

    def topic_ids(self, topics: Collection[str]) -> Mapping[str, str]:
        """Return the ids of topics, without those that have none."""
        return self.look_up_ids(topics) if self.look_up_ids is not None else {}

    def timeout(self, seconds: float) -> None:
        """Call ``put`` again within ``seconds``."""
        self._put_after = seconds

    def asked_timeout(self) -> float | None:
        """Return the timeout that the task last asked for, and forget it."""
        seconds, self._put_after = self._put_after, None
        return seconds

    def pause(self, *partitions: TopicPartition) -> None:
        """Stop consuming these partitions."""
        self._check(partitions)
        self.paused |= set(partitions)

    def resume(self, *partitions: TopicPartition) -> None:
        """Consume these partitions again."""
        self._check(partitions)
        self.paused -= set(partitions)

    def request_commit(self) -> None:
        """Commit offsets soon."""
        self.commit_requested = True

    def publish(self, topic: str, key: bytes | None, value: bytes | None) -> None:
        """Send an additional record."""
        self._publisher.publish(topic, key, value)

    def flush_published(self) -> None:
        """Wait until Kafka has acknowledged the published records."""
        self._publisher.flush()

    def wait(self, seconds: float) -> bool:
        """Wait, unless the task must stop or pause first."""
        return self._wait(seconds)

    def report(self, record: SinkRecord, error: Exception) -> None:
        """Give up on a record that cannot be written.

        It is reported as consumed, or as encoded again if that is gone.
        """
        raw = self.consumed.find(record.origin, record.original_offset) if self.consumed else None
        if raw is None and self.encode is not None:
            raw = self.encode(record)
        self._tolerance.give_up(Failure(Stage.TASK_PUT, self._task_class, error, record=record, raw=raw))

    def flush(self) -> None:
        """Wait until every report is durable."""
        self._tolerance.flush()

    def _check(self, partitions: Collection[TopicPartition]) -> None:
        if strange := set(partitions) - self.assignment:
            raise ConnectError(
                f"Partition {min(strange)} is not assigned to the task; pause and resume only partitions in its "
                "assignment."
            )


def durable_offsets(task: SinkTask[Any], answer: object) -> Mapping[TopicPartition, int]:
    """Return what ``pre_commit`` of a task returned: the offsets to commit, none where that was ``None``.

    Raises ``ConnectError`` if it is not a mapping of partitions to offsets.
    """
    if answer is None:
        return {}
    if not isinstance(answer, Mapping):
        fault = f"a value of type {type(answer).__name__}"
    elif strange := [f"{key!r}: {value!r}" for key, value in answer.items() if not _is_offset(key, value)]:
        fault = f"{strange[0]} among them"
    else:
        return answer
    raise ConnectError(
        f"pre_commit of {class_name(task)} returned {fault}; it must return the offsets to commit, as a mapping of "
        "TopicPartition to int like its argument."
    )


def _is_offset(key: object, value: object) -> bool:
    return isinstance(key, tuple) and len(key) == 2 and isinstance(value, int)
