"""Reads the partitions of a task from the source, and notices records that were deleted before they were read."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from confluent_kafka import OFFSET_END, Consumer, KafkaError, KafkaException
from confluent_kafka import Message as ClientMessage
from confluent_kafka import TopicPartition as Place

from connect.data import TopicPartition
from connect.errors import RetriableError
from connect.internals.consumption.messages import Fetching
from connectors.mirror.source.batches import Message, by_partition
from connectors.mirror.source.gaps import Gap, Reason
from connectors.mirror.source.measurements import Position

__all__ = ["Read", "SourceReader", "Throttle"]

logger = logging.getLogger(__name__)


class Throttle:
    """A token bucket that fills with ``rate`` bytes a second and holds one second's worth. For one thread.

    What was read is taken out in full, so the bucket may be overdrawn; reading pauses until it is level again.
    """

    def __init__(self, rate: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = rate
        self._clock = clock
        self._left = float(rate)
        self._looked = clock()

    def take(self, amount: int) -> None:
        """Note that so many bytes were read."""
        self._fill()
        self._left -= amount

    def wait(self) -> float:
        """Return how many seconds to wait before reading on, 0 if nothing is owed."""
        self._fill()
        return max(0.0, -self._left / self._rate)

    def _fill(self) -> None:
        now = self._clock()
        self._left = min(float(self._rate), self._left + (now - self._looked) * self._rate)
        self._looked = now


Read = tuple[TopicPartition, list[Message]]

# Taken as a function, because `map` calls it on many messages in half the time of a loop.
_error: Final[Callable[[Any], KafkaError | None]] = ClientMessage.error

_MOMENT_SECONDS: Final = 0.02
_TIMEOUT_SECONDS: Final = 10.0


class SourceReader:
    """Reads partitions from given positions. For the task's thread.

    The consumer must have ``auto.offset.reset=none``, so that it reports when its next record is gone. The reader then
    passes the gap to ``meet`` and continues with the oldest record there is, unless ``meet`` raises an error. Any other
    error of the client is logged and tried again, as by MirrorMaker.
    """

    def __init__(self, consumer: Consumer, meet: Callable[[Gap], None]) -> None:
        self._consumer = consumer
        self._meet = meet
        self._next: dict[TopicPartition, int] = {}
        self._only: TopicPartition | None = None
        self._fetching = Fetching(consumer, _MOMENT_SECONDS)
        self._reported: dict[str | None, str] = {}
        self.anew: set[TopicPartition] = set()
        """Partitions whose topic was found to be recreated. They are not read; the caller takes them out."""

    def assign(self, positions: Mapping[TopicPartition, int]) -> None:
        """Read these partitions, each from this offset on, or from ``OFFSET_BEGINNING`` or ``OFFSET_END``."""
        self._next = dict(positions)
        self._see_only()
        self._consumer.assign([Place(topic, partition, at) for (topic, partition), at in positions.items()])

    def join(self, positions: Mapping[TopicPartition, int]) -> None:
        """Read these partitions as well."""
        self._next |= positions
        self._see_only()
        self._consumer.incremental_assign([Place(*partition, at) for partition, at in positions.items()])

    def poll(self, most: int, seconds: float) -> list[Read]:
        """Return the next records by partition; raise what ``meet`` raises at a gap."""
        try:
            return self._read(most, seconds)
        except KafkaException as error:
            raise RetriableError(f"The source cluster cannot be read at the moment: {error.args[0].str()}") from error

    def _read(self, most: int, seconds: float) -> list[Read]:
        found: list[Message] = self._fetching.fetch(most, seconds)
        if any(map(_error, found)):
            for message in found:
                if (error := message.error()) is not None:
                    self._hear(message, error)
            found = [message for message in found if message.error() is None]
        elif found:
            self._reported.clear()
        read = [(partition, list(messages)) for partition, messages in by_partition(found, self._only)]
        for partition, messages in read:
            self._next[partition] = messages[-1].offset() + 1
        return read

    def ends(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """Return where partitions end. Raises ``RetriableError`` if the source cluster does not tell."""
        asked = [Place(*partition, OFFSET_END) for partition in partitions]
        try:
            found = self._consumer.offsets_for_times(asked, timeout=_TIMEOUT_SECONDS) if asked else []
        except KafkaException as error:
            raise RetriableError(f"The source cluster cannot be read at the moment: {error.args[0].str()}") from error
        for each in found:
            if each.error is not None:
                raise RetriableError(f"The end of {each.topic}-{each.partition} is unknown: {each.error.str()}")
        return {TopicPartition(each.topic, each.partition): each.offset for each in found}

    def lag(self) -> int | None:
        """Return how many records are left to read, as far as the client knows without asking, else ``None``."""
        places = self.places()
        return sum(max(0, place.end - place.next) for place in places.values()) if places else None

    def places(self) -> dict[TopicPartition, Position]:
        """Return the positions that the client knows without asking."""
        found: dict[TopicPartition, Position] = {}
        for partition, at in self._next.items():
            if at >= 0:
                _, end = self._consumer.get_watermark_offsets(Place(*partition), cached=True)
                if end >= 0:
                    found[partition] = Position(at, end)
        return found

    def close(self) -> None:
        """Close the consumer."""
        self._consumer.close()

    def _hear(self, message: Message, error: KafkaError) -> None:
        if error.code() == KafkaError._AUTO_OFFSET_RESET:
            self._pass_gap(TopicPartition(message.topic(), message.partition()))
        elif self._reported.get(message.topic()) != error.str():
            # Logged once, not each time the client tries again.
            self._reported[message.topic()] = error.str()
            logger.warning("The source cluster cannot be read at the moment and is tried again: %s", error.str())

    def _pass_gap(self, partition: TopicPartition) -> None:
        place = Place(*partition)
        try:
            begin, end = self._consumer.get_watermark_offsets(place, timeout=_TIMEOUT_SECONDS)
        except KafkaException as error:
            # Not raised, so that the other records that were fetched are kept.
            logger.warning(
                "The source cluster did not report where %s begins and is asked again: %s", _name(partition), error
            )
            self._seek(partition, self._next[partition])
            return
        expected = self._next[partition]
        if begin <= expected <= end:
            self._seek(partition, expected)
            return
        if expected > end:
            self._meet(Gap(partition, Reason.LOST, expected, None, begin))
            self._leave(partition)
            self.anew.add(partition)
        else:
            self._meet(Gap(partition, Reason.EXPIRED, expected, begin - 1, begin))
            self._seek(partition, begin)

    def _leave(self, partition: TopicPartition) -> None:
        del self._next[partition]
        self._see_only()
        self._consumer.incremental_unassign([Place(*partition)])

    def _see_only(self) -> None:
        self._only = next(iter(self._next)) if len(self._next) == 1 else None

    def _seek(self, partition: TopicPartition, offset: int) -> None:
        self._next[partition] = offset
        # librdkafka cannot seek in a partition whose offset was lost.
        self._consumer.incremental_unassign([Place(*partition)])
        self._consumer.incremental_assign([Place(*partition, offset)])


def _name(partition: TopicPartition) -> str:
    return f"{partition.topic}-{partition.partition}"
