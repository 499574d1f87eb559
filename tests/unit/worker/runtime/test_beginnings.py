"""Where a sink begins if the brokers answer late: not past what came after its start."""

from __future__ import annotations

from collections.abc import Collection
from multiprocessing.connection import Connection
from typing import NamedTuple

import confluent_kafka
import pytest
from confluent_kafka import KafkaError, KafkaException

from connect.data import TopicPartition
from connect.internals.chain.tolerance import StopRequested
from worker.messages import messages
from worker.messages.messages import encode
from worker.runtime.beginnings import BEGINNING, Answers, Beginnings
from worker.runtime.control import Control

OLD, ADDED = TopicPartition("t", 0), TopicPartition("t", 1)
TIMED_OUT = KafkaError(KafkaError._TIMED_OUT)


class Answer(NamedTuple):
    """An answer of the brokers, as the client gives it."""

    topic: str
    partition: int
    offset: int
    error: KafkaError | None


class Brokers:
    """Brokers of which each question fails once for each of the errors that are planned for it."""

    def __init__(self, **errors: list[KafkaError]) -> None:
        self._errors = errors
        self.committed: dict[TopicPartition, int] = {}

    def offsets_for_times(self, asked: list[confluent_kafka.TopicPartition], timeout: float) -> list[Answer]:
        self._fail("offsets")
        errors = self._errors.get("partition")
        error = errors.pop() if errors else None
        return [Answer(at.topic, at.partition, 0 if at.offset == BEGINNING else 7, error) for at in asked]

    def present(self) -> dict[str, tuple[int, ...]]:
        self._fail("topics")
        return {"t": (0,)}

    def group(self, partitions: Collection[TopicPartition]) -> Answers:
        if errors := self._errors.get("group"):
            errors.pop()
            return {}
        return {tp: confluent_kafka.TopicPartition(*tp, self.committed.get(tp, -1001)) for tp in partitions}

    def _fail(self, question: str) -> None:
        if errors := self._errors.get(question):
            raise KafkaException(errors.pop())


@pytest.mark.parametrize("question", ["topics", "group", "offsets", "partition"])
def test_a_late_answer_is_waited_for(control: Control, question: str) -> None:
    brokers = Brokers(**{question: [TIMED_OUT]})
    beginnings = Beginnings(brokers, "latest", brokers.present, control)  # type: ignore[arg-type]
    beginnings.look()
    _, begun = beginnings.of([OLD, ADDED], (), brokers.group)
    assert begun == beginnings.owed() == {OLD: 7, ADDED: 0}


def test_offsets_that_the_group_has_after_all_count(control: Control) -> None:
    brokers = Brokers(group=[TIMED_OUT])
    brokers.committed = {OLD: 3}
    beginnings = Beginnings(brokers, "latest", brokers.present, control)  # type: ignore[arg-type]
    answers, begun = beginnings.of([OLD], (), brokers.group)
    assert (answers[OLD].offset, begun) == (3, {})


def test_the_stop_of_the_task_ends_the_wait(worker: Connection, control: Control) -> None:
    brokers = Brokers(offsets=[TIMED_OUT] * 60)
    beginnings = Beginnings(brokers, "latest", brokers.present, control)  # type: ignore[arg-type]
    worker.send_bytes(encode(messages.Stop()))
    with pytest.raises(StopRequested):
        beginnings.of([OLD], (), brokers.group)


def test_what_may_not_be_seen_is_not_waited_for(control: Control) -> None:
    brokers = Brokers(partition=[KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)])
    beginnings = Beginnings(brokers, "latest", brokers.present, control)  # type: ignore[arg-type]
    assert beginnings.of([OLD], (), brokers.group)[1] == {}


def test_topics_that_may_not_be_listed_are_not_waited_for(control: Control) -> None:
    brokers = Brokers(topics=[KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)] * 2)
    beginnings = Beginnings(brokers, "latest", brokers.present, control)  # type: ignore[arg-type]
    beginnings.look()
    assert beginnings.of([OLD], (), brokers.group)[1] == {OLD: 7}


def test_where_the_task_wants_to_start_is_not_asked(control: Control) -> None:
    brokers = Brokers(offsets=[TIMED_OUT])
    beginnings = Beginnings(brokers, "latest", brokers.present, control)  # type: ignore[arg-type]
    assert beginnings.of([OLD], {OLD}, brokers.group)[1] == {}
    assert beginnings.owed() == {}
