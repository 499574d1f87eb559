"""Reads the partitions of a task from the source, and notices what is gone before it was read."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from confluent_kafka import Consumer, KafkaError, KafkaException
from confluent_kafka import Message as ClientMessage
from confluent_kafka import TopicPartition as Place

from connect.data import TopicPartition
from connect.errors import RetriableError
from connectors.mirror.source.batches import Message, by_partition
from connectors.mirror.source.gaps import Gap, Reason
from connectors.mirror.source.measurements import Position

__all__ = ["Read", "SourceReader", "Throttle"]

logger = logging.getLogger(__name__)


class Throttle:
    """A bucket that fills with ``rate`` bytes a second and holds as many. For one thread.

    What was read is taken out whole, so that the bucket may be overdrawn; until it is level nothing more is to be read.
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
        """How many seconds to wait before anything is read; 0 if nothing is owed."""
        self._fill()
        return max(0.0, -self._left / self._rate)

    def _fill(self) -> None:
        now = self._clock()
        self._left = min(float(self._rate), self._left + (now - self._looked) * self._rate)
        self._looked = now


Read = tuple[TopicPartition, list[Message]]

# As a function, so that `map` asks it of many messages in half the time of a loop.
_error: Final[Callable[[Any], KafkaError | None]] = ClientMessage.error

_MOMENT: Final = 0.02
_MANY: Final = 100
_TIMEOUT: Final = 10.0


class SourceReader:
    """Reads from the positions that it is given; for the task's thread.

    The consumer is to be made with ``auto.offset.reset=none``: it then says so when its next record is gone. The reader
    tells ``meet`` of the gap, and goes on with the oldest record that there is, unless that raises an error. Whatever
    else the client complains of is logged and tried again, as by MirrorMaker.
    """

    def __init__(self, consumer: Consumer, meet: Callable[[Gap], None]) -> None:
        self._consumer = consumer
        self._meet = meet
        self._next: dict[TopicPartition, int] = {}
        self._only: TopicPartition | None = None
        self._many_come = False
        self._told: dict[str | None, str] = {}
        self.anew: set[TopicPartition] = set()
        """The partitions that turned out to be of a topic that was made anew, which are not read; take them out."""

    def assign(self, positions: Mapping[TopicPartition, int]) -> None:
        """Read these partitions, each from this offset on, or from ``OFFSET_BEGINNING`` or ``OFFSET_END``."""
        self._next = dict(positions)
        self._see_only()
        self._consumer.assign([Place(topic, partition, at) for (topic, partition), at in positions.items()])

    def join(self, positions: Mapping[TopicPartition, int]) -> None:
        """Read these besides."""
        self._next |= positions
        self._see_only()
        self._consumer.incremental_assign([Place(*partition, at) for partition, at in positions.items()])

    def poll(self, most: int, seconds: float) -> list[Read]:
        """The next records by partition; raises what ``meet`` does at a gap."""
        try:
            return self._read(most, seconds)
        except KafkaException as error:
            raise RetriableError(f"The source cannot be read at the moment: {error.args[0].str()}") from error

    def _read(self, most: int, seconds: float) -> list[Read]:
        found = self._fetched(most, seconds)
        if any(map(_error, found)):
            for message in found:
                if (error := message.error()) is not None:
                    self._hear(message, error)
            found = [message for message in found if message.error() is None]
        elif found:
            self._told.clear()
        read = [(partition, list(messages)) for partition, messages in by_partition(found, self._only)]
        for partition, messages in read:
            self._next[partition] = messages[-1].offset() + 1
        return read

    def lag(self) -> int | None:
        """How many records are left to read at most, as far as the client knows without asking; else ``None``."""
        places = self.places()
        return sum(max(0, place.end - place.next) for place in places.values()) if places else None

    def places(self) -> dict[TopicPartition, Position]:
        """Where the partitions stand of which the client knows it without asking."""
        found: dict[TopicPartition, Position] = {}
        for partition, at in self._next.items():
            if at >= 0:
                _, end = self._consumer.get_watermark_offsets(Place(*partition), cached=True)
                if end >= 0:
                    found[partition] = Position(at, end)
        return found

    def close(self) -> None:
        """Leave the source."""
        self._consumer.close()

    def _fetched(self, most: int, seconds: float) -> list[Message]:
        """Wait for the first record, and while many come a moment for more, but not for as many as asked for."""
        if self._many_come:
            found: list[Message] = self._consumer.consume(most, timeout=min(seconds, _MOMENT))
            self._many_come = len(found) >= _MANY
            if found or seconds <= _MOMENT:
                return found
        first = self._consumer.poll(seconds)
        if first is None:
            return []
        rest: list[Message] = self._consumer.consume(most - 1, timeout=0) if most > 1 else []
        self._many_come = len(rest) >= _MANY
        return [first, *rest]

    def _hear(self, message: Message, error: KafkaError) -> None:
        if error.code() == KafkaError._AUTO_OFFSET_RESET:
            self._pass_gap(TopicPartition(message.topic(), message.partition()))
        elif self._told.get(message.topic()) != error.str():
            # Once, and not each time that the client tries again.
            self._told[message.topic()] = error.str()
            logger.warning("The source cannot be read at the moment: %s", error.str())

    def _pass_gap(self, partition: TopicPartition) -> None:
        place = Place(*partition)
        try:
            begin, end = self._consumer.get_watermark_offsets(place, timeout=_TIMEOUT)
        except KafkaException as error:
            # What else was fetched is to be kept, so that this is no error.
            logger.warning("The source does not tell where %s begins, and is asked again: %s", _name(partition), error)
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
        # A partition whose offset was lost cannot be sought in.
        self._consumer.incremental_unassign([Place(*partition)])
        self._consumer.incremental_assign([Place(*partition, offset)])


def _name(partition: TopicPartition) -> str:
    return f"{partition.topic}-{partition.partition}"
