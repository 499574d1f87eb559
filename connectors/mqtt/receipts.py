"""What a task owes the server: acknowledgements of what Kafka has, and which messages it has had before.

A connection that is lost takes with it the acknowledgements that were on their way. The server then sends their
messages again, with the flag DUP and the packet id that they had. The task has kept that id and a hash of the message,
and acknowledges it once more in place of publishing it twice.

That would lose a message if its id had been given to another one with the same content meanwhile, of which the task has
heard nothing yet. Servers either count ids up to 65,535, and a message of that age is long forgotten here, or give the
smallest that is free. Which it is, the task finds out before it trusts an id: it has the server answer something
after the first acknowledgements, by which they have arrived and their ids are free, and looks at the next new message.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from connect.kits.deliveries import Unsettled

__all__ = ["Receipts", "Received", "Settled"]

_MOST_REMEMBERED: Final = 10_000


@dataclass(frozen=True, slots=True)
class Received:
    """A message, and the numbers of the server's session and of the connection in which its packet id counts."""

    topic: str
    payload: bytes
    qos: int
    is_retained: bool
    is_duplicate: bool
    packet_id: int
    properties: Any
    session: int
    connection: int
    at: int

    @property
    def fingerprint(self) -> int:
        """A number that another content hardly has."""
        return hash((self.topic, self.payload))


@dataclass(frozen=True, slots=True)
class Settled:
    """A message that Kafka has, and the connection on which it was acknowledged to the server, if any."""

    fingerprint: int
    connection: int | None


@dataclass(slots=True)
class Receipts:
    """The messages of QoS 1 under way to Kafka, and the last that are there. Used by the task alone."""

    _unsettled: Unsettled[int] = field(default_factory=Unsettled)
    _under_way: dict[int, Received] = field(default_factory=dict)
    _numbers: dict[int, int] = field(default_factory=dict)
    """The numbers of those under way by packet id."""
    _settled: dict[int, Settled] = field(default_factory=dict)
    """What Kafka has by packet id, the oldest first."""
    _again: list[Received] = field(default_factory=list)
    _session: int = 0
    _connection: int = 0
    """The last one on which something new came."""
    _largest_id: int = 0
    _counts_up: bool | None = None
    """Whether the server counts packet ids up; ``None`` until it is known."""
    _asked_on: int | None = None
    """The connection on which the server was asked."""
    _has_answered: bool = False

    def __len__(self) -> int:
        return len(self._under_way)

    def take(self, received: Received, number: int) -> bool:
        """Note a message under this number; return ``False`` if the task has had it."""
        if received.session != self._session:
            self._begin(received.session)
        if received.is_duplicate and self._has_had(received):
            return False
        self._observe(received)
        self._settled.pop(received.packet_id, None)
        self._numbers[received.packet_id] = number
        self._under_way[number] = received
        self._unsettled.add(number)
        return True

    def settle(self, number: int) -> None:
        """Note that Kafka has a message, or that it is given up."""
        self._unsettled.settle(number)

    def due(self, connection: int, *, at_end: bool = False) -> list[Received]:
        """Remove and return what to acknowledge on a connection, in the order of receipt, as MQTT demands.

        What came on an earlier one the server sends again, and it is acknowledged then. ``at_end`` does not wait for
        what is before.
        """
        due = [each for each in self._again if each.connection == connection]
        self._again.clear()
        for number in self._unsettled.take() + (self._unsettled.take_all() if at_end else []):
            received = self._under_way.pop(number)
            if received.session != self._session:
                # The server has forgotten that session, and with it the message.
                continue
            if self._numbers.get(received.packet_id) == number:
                del self._numbers[received.packet_id]
            is_due = received.connection == connection
            self._remember(received.packet_id, Settled(received.fingerprint, connection if is_due else None))
            if is_due:
                due.append(received)
        return due

    def asks(self, connection: int) -> bool:
        """Return whether to have the server answer something now, to learn how it gives ids; once a connection."""
        if self._counts_up is not None or self._asked_on == connection or not self._settled:
            return False
        self._asked_on, self._has_answered = connection, False
        return True

    def answered(self, connection: int) -> None:
        """Note the answer: what was acknowledged before the question has arrived."""
        self._has_answered = self._asked_on == connection

    def _begin(self, session: int) -> None:
        self._session, self._largest_id, self._counts_up = session, 0, None
        self._asked_on, self._has_answered = None, False
        self._numbers.clear()
        self._settled.clear()

    def _has_had(self, received: Received) -> bool:
        number = self._numbers.get(received.packet_id)
        if number is not None:
            before = self._under_way[number]
            if (before.topic, before.payload) != (received.topic, received.payload):
                return False
            # It is acknowledged on the connection on which it came last.
            self._under_way[number] = received
            return True
        settled = self._settled.get(received.packet_id)
        if settled is None or settled.fingerprint != received.fingerprint:
            return False
        if settled.connection is not None and not self._counts_up:
            return False
        self._again.append(received)
        self._remember(received.packet_id, Settled(settled.fingerprint, received.connection))
        return True

    def _observe(self, received: Received) -> None:
        """Learn from the id of a message that is published."""
        packet_id = received.packet_id
        if not received.is_duplicate and received.connection != self._connection:
            # What the server sends again it sends before anything new.
            self._connection = received.connection
            self._settled = {key: each for key, each in self._settled.items() if each.connection == received.connection}
        if received.is_duplicate:
            # It may have an id that was free: what comes next says nothing about the others.
            self._asked_on, self._has_answered = None, False
        elif (settled := self._settled.get(packet_id)) is not None and settled.connection is not None:
            self._counts_up = False
        elif self._counts_up is None and self._has_answered:
            self._counts_up = packet_id > self._largest_id
        self._largest_id = max(self._largest_id, packet_id)

    def _remember(self, packet_id: int, settled: Settled) -> None:
        self._settled.pop(packet_id, None)
        self._settled[packet_id] = settled
        if len(self._settled) > _MOST_REMEMBERED:
            del self._settled[next(iter(self._settled))]
