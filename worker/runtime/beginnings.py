"""Where a sink without offsets begins: ``auto.offset.reset=latest`` leaves out what existed at its start, and no more.

A client by itself goes to the end whenever it finds no offset: after a restart before the first commit, and in each
partition or topic that was added, which it notices minutes late. The records until then would be lost silently (I4).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final, TypeAlias

import confluent_kafka
from confluent_kafka import Consumer, KafkaError, KafkaException

from connect.data import TopicPartition
from connect.errors import ConnectError
from connect.internals.chain.tolerance import StopRequested
from connect.internals.kafka.auth.rights import is_denial
from worker.runtime.control import Control

__all__ = ["BEGINNING", "END", "Beginnings", "FirstLook"]

logger = logging.getLogger(__name__)
_TIMEOUT_SECONDS: Final = 10.0
_AGAIN_SECONDS: Final = 1.0
_PATIENCE_SECONDS: Final = 60.0
_NO_ANSWER: Final = KafkaError(KafkaError._TIMED_OUT, "the group's coordinator does not answer")
END: Final = -1
BEGINNING: Final = -2

Answers: TypeAlias = dict[TopicPartition, confluent_kafka.TopicPartition]
Offsets: TypeAlias = Callable[[Collection[TopicPartition]], Answers]


class FirstLook:
    """The partitions that existed when a sink was started."""

    def __init__(self) -> None:
        self._counts: dict[str, int] | None = None

    def note(self, present: Iterable[TopicPartition]) -> None:
        """Note which partitions exist; only the first call counts."""
        if self._counts is None:
            self._counts = {topic: number + 1 for topic, number in sorted(present)}

    def is_new(self, partition: TopicPartition) -> bool:
        """Return whether a partition was added since; ``False`` if nothing was noted."""
        return self._counts is not None and partition.partition >= self._counts.get(partition.topic, 0)


class Beginnings:
    """The first offsets of a sink's partitions in which its group has none.

    With ``latest`` they are looked up here and owed to the group, which has to know them before the first record. With
    any other ``reset`` there are none, and the client begins by itself: at the first record, wherever the sink stops.
    """

    def __init__(
        self,
        consumer: Consumer,
        reset: str,
        present: Callable[[], Mapping[str, Sequence[int]]],
        control: Control,
    ) -> None:
        self._consumer = consumer
        self._is_latest = reset == "latest"
        self._present = present
        self._control = control
        self._first_look = FirstLook()
        self._owed: dict[TopicPartition, int] = {}

    def look(self) -> None:
        """Note which partitions exist, before the task joins its group; wait until the brokers list them."""
        is_told = False
        while self._is_latest:
            try:
                present = self._present()
            except KafkaException as error:
                if is_denial(error.args[0].code()):
                    # The client is refused, too, and says so.
                    return
                if not is_told:
                    logger.warning(
                        "The topics cannot be listed yet; the sink waits, as it begins at their end: %s", error
                    )
                    is_told = True
                self._wait()
            else:
                self._first_look.note(TopicPartition(topic, n) for topic, numbers in present.items() for n in numbers)
                return

    def of(
        self, partitions: Collection[TopicPartition], starts: Collection[TopicPartition], offsets: Offsets
    ) -> tuple[Answers, dict[TopicPartition, int]]:
        """Return the group's offsets in these partitions, and where those begin in which it has none.

        Those in ``starts`` begin where the task wants to. With ``latest`` the answers are waited for: a client without
        them goes to the end, past records that came after the sink's start. Raises ``ConnectError`` after a minute. A
        partition that does not exist, or that the user may not see, is left to the client: nothing can be consumed
        from it.
        """
        answers = offsets(partitions)
        if not self._is_latest:
            return answers, {}
        deadline = time.monotonic() + _PATIENCE_SECONDS
        begun, failures = self._ask([tp for tp in partitions if tp not in starts], answers)
        while failures and time.monotonic() < deadline:
            logger.info("The brokers do not tell yet where the sink begins: %s", _first(failures))
            self._wait()
            answers |= offsets(failures)
            more, failures = self._ask(failures, answers)
            begun |= more
        if any(not _is_gone(error) for error in failures.values()):
            raise ConnectError(
                f"Within {_PATIENCE_SECONDS:g} s the brokers did not tell where the sink begins: {_first(failures)}. "
                "Restart the task when they answer; so it leaves out no records that came meanwhile."
            )
        self.owe(begun)
        return answers, begun

    def _wait(self) -> None:
        if not self._control.wait_unless_stopped(_AGAIN_SECONDS):
            raise StopRequested

    def _ask(
        self, partitions: Collection[TopicPartition], answers: Answers
    ) -> tuple[dict[TopicPartition, int], dict[TopicPartition, KafkaError]]:
        """Return where partitions begin that are without an offset of the group, and why others are not known yet."""
        failures = {tp: _NO_ANSWER for tp in partitions if tp not in answers}
        asked = [tp for tp in partitions if tp in answers and answers[tp].offset < 0]
        client = [
            confluent_kafka.TopicPartition(*tp, BEGINNING if self._first_look.is_new(tp) else END) for tp in asked
        ]
        try:
            found = self._consumer.offsets_for_times(client, timeout=_TIMEOUT_SECONDS) if client else []
        except KafkaException as error:
            return {}, failures | dict.fromkeys(asked, error.args[0])
        told = {TopicPartition(at.topic, at.partition): at for at in found}
        failures |= {tp: at.error for tp, at in told.items() if at.error is not None and not is_denial(at.error.code())}
        return {tp: at.offset for tp, at in told.items() if at.error is None}, failures

    def owe(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Owe the group offsets at which partitions begin."""
        if self._is_latest:
            self._owed |= offsets

    def drop(self, partitions: Iterable[TopicPartition]) -> None:
        """Owe nothing for partitions that were taken away."""
        for partition in partitions:
            self._owed.pop(partition, None)

    def owed(self) -> dict[TopicPartition, int]:
        """Return the offsets that the group does not have yet."""
        return dict(self._owed)


def _is_gone(error: KafkaError) -> bool:
    return error.code() in {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION}


def _first(failures: Mapping[TopicPartition, KafkaError]) -> str:
    partition = min(failures)
    return f"{partition}: {failures[partition].str()}"
