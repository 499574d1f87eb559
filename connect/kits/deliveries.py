"""Messages between a server and a task: received ones, acknowledged in order, and sent ones, kept until confirmed.

The client's thread puts what it receives into an :class:`Inbox`, from which the task takes it. While the inbox is full,
the client's thread waits, and does not read its socket: the server keeps the rest. What Kafka has acknowledged is
given to :class:`Unsettled`, which says how far the server may be told. :class:`Unconfirmed` has what a sink has sent.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Collection, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeAlias, TypeVar

from connect.data import SinkRecord, TopicPartition
from connect.errors import ConnectError, DataError
from connect.sink import SinkTaskContext

__all__ = ["Inbox", "Position", "Unconfirmed", "Unsettled", "give_up", "position_of"]

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)

Position: TypeAlias = tuple[str, int, int]
"""The topic, the partition and the offset of a record."""


def position_of(record: SinkRecord) -> Position:
    """Return where a record is on its topic."""
    return record.original_topic, record.original_partition, record.original_offset


def give_up(context: SinkTaskContext, record: SinkRecord, error: DataError, what: str = "sent") -> None:
    """Report a record that cannot be ``what``, such as sent; without a reporter raise, which fails the task."""
    if (reporter := context.errant_record_reporter) is None:
        place = f"offset {record.original_offset} of {record.original_topic}-{record.original_partition}"
        raise ConnectError(f"The record at {place} cannot be {what}: {error}") from error
    reporter.report(record, error)


@dataclass(slots=True)
class Inbox(Generic[T]):
    """A queue for ``most_items`` and ``most_bytes``. ``arrived`` is called when there is something after nothing was.

    If it is full, :meth:`put` waits up to ``patience_seconds`` and then adds all the same: the thread that puts has
    other duties, such as sending heartbeats. An inbox that nobody empties thus grows by one message in that time.
    """

    most_items: int
    most_bytes: int
    patience_seconds: float
    arrived: Callable[[], None]
    _queue: deque[tuple[T, int]] = field(default_factory=deque)
    _room: threading.Condition = field(default_factory=threading.Condition)
    _bytes: int = 0
    _is_awaited: bool = True
    _is_closed: bool = False

    @property
    def items(self) -> int:
        """How many messages wait."""
        return len(self._queue)

    @property
    def bytes(self) -> int:
        """How many bytes they have."""
        return self._bytes

    def put(self, item: T, size: int) -> None:
        """Add a message. Called by the client's thread."""
        with self._room:
            if not self._has_room():
                self._room.wait_for(self._has_room, self.patience_seconds)
            if self._is_closed:
                return
            was_awaited, self._is_awaited = self._is_awaited, False
            self._queue.append((item, size))
            self._bytes += size
        if was_awaited:
            self.arrived()

    def take(self, most: int) -> list[T]:
        """Remove and return the oldest messages."""
        with self._room:
            taken = [self._queue.popleft() for _ in range(min(most, len(self._queue)))]
            self._bytes -= sum(size for _, size in taken)
            if not taken:
                self._is_awaited = True
            self._room.notify_all()
        return [item for item, _ in taken]

    def close(self) -> None:
        """Forget everything, and take nothing more."""
        with self._room:
            self._is_closed = True
            self._queue.clear()
            self._bytes = 0
            self._room.notify_all()

    def _has_room(self) -> bool:
        return self._is_closed or (len(self._queue) < self.most_items and self._bytes < self.most_bytes)


@dataclass(slots=True)
class Unsettled(Generic[K]):
    """What was delivered and is not acknowledged to the server yet, in the order of delivery. Used by the task."""

    _open: dict[K, bool] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self._open)

    def add(self, key: K) -> None:
        """Note a delivery."""
        self._open[key] = False

    def settle(self, key: K) -> None:
        """Note that Kafka has it, or that it is given up. A key that is not known is ignored."""
        if key in self._open:
            self._open[key] = True

    def take(self) -> list[K]:
        """Remove and return what is settled, as far as nothing before it is open."""
        settled: list[K] = []
        for key, is_settled in self._open.items():
            if not is_settled:
                break
            settled.append(key)
        for key in settled:
            del self._open[key]
        return settled

    def take_all(self) -> list[K]:
        """Remove and return all that is settled, whatever is before it: for the end."""
        settled = [key for key, is_settled in self._open.items() if is_settled]
        for key in settled:
            del self._open[key]
        return settled


@dataclass(slots=True)
class Unconfirmed(Generic[T]):
    """What a sink task has sent and the server has not confirmed, and what of an unfinished batch is done with.

    A batch of which ``put`` has asked to be called again comes whole again: what is in ``taken`` is not sent twice.
    """

    messages: dict[Position, T] = field(default_factory=dict)
    taken: set[Position] = field(default_factory=set)
    bytes: int = 0
    _sizes: dict[Position, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.messages)

    def add(self, position: Position, message: T, size: int) -> None:
        """Note that a message is sent, or is about to be."""
        self.forget(position)
        self.messages[position] = message
        self._sizes[position] = size
        self.bytes += size
        self.taken.add(position)

    def forget(self, position: Position) -> None:
        """Note that a message is confirmed, or given up."""
        if position in self.messages:
            del self.messages[position]
            self.bytes -= self._sizes.pop(position)

    def close(self, partitions: Collection[TopicPartition]) -> None:
        """Forget what is of these partitions: it is consumed again, here or elsewhere."""
        gone = set(partitions)
        for position in [each for each in self.messages if TopicPartition(*each[:2]) in gone]:
            self.forget(position)
        self.taken = {each for each in self.taken if TopicPartition(*each[:2]) not in gone}

    def durable(self, offsets: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Return the offsets before which everything is confirmed, none beyond those given."""
        found = dict(offsets)
        for topic, partition, offset in self.messages:
            key = TopicPartition(topic, partition)
            if key in found:
                found[key] = min(found[key], offset)
        return found
