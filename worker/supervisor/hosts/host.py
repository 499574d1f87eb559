"""A host: the process that a unit lives in, alone or with others, and what the worker holds of it.

A unit that lives alone is the process's own work, and its child is the process itself. Each unit of a shared host
has a pipe of its own to it; the host's pipe carries the ends of these pipes down, and lines of the log up.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import replace
from multiprocessing.connection import Connection, Pipe
from typing import Final

from worker.supervisor.hosts.placement import Group
from worker.supervisor.messages import messages
from worker.supervisor.messages.hangs import Hanging
from worker.supervisor.messages.messages import Report
from worker.supervisor.process import Child, Piped, Stillborn
from worker.supervisor.stacks import hang_places
from worker.unit import Unit

__all__ = ["Host"]

_CRASHED: Final = re.compile(r"^Current thread (0x[0-9a-f]+)", re.MULTILINE)


class Host:
    """A process, and the units that live in it. Used by the supervisor's thread alone."""

    def __init__(self, number: int, group: Group, child: Child) -> None:
        self.number = number
        self.group = group
        self.child = child
        self.condemned = False
        """Whether all are to leave it."""
        self.culprit: Unit | None = None
        """The unit that has ended it, or is the reason why it was killed."""
        self.is_killed = False
        self.how: str | None = None
        """How a shared host ended, as the end of a sentence."""
        self._seats: dict[Unit, _Seat | None] = {}
        if group.is_shared:
            child.send(messages.RunUnits())

    @property
    def units(self) -> Collection[Unit]:
        """Who lives here."""
        return self._seats.keys()

    def take(self, unit: Unit) -> Child:
        """Let a unit live here; return the child that stands for it, which waits for its first command."""
        if not self.group.is_shared:
            self._seats[unit] = None
            return self.child
        try:
            ours, theirs = Pipe()
        except OSError as error:
            return Stillborn(error)
        try:
            self.child.pipe.pass_descriptor(theirs.fileno())
        except OSError as error:
            # It is about to end, or hangs: its end is heard later. Nobody else is to come here.
            self.condemned = True
            ours.close()
            return Stillborn(error)
        finally:
            theirs.close()
        seat = self._seats[unit] = _Seat(ours, unit, self)
        return seat

    def leave(self, unit: Unit) -> None:
        """Take note that a unit lives here no more."""
        self._seats.pop(unit, None)

    def hear(self) -> Iterator[Report]:
        """Yield what a shared host itself has to say, and note its end."""
        yield from self.child.receive()
        if self.how is None and self.child.gone():
            self.how = self.child.join()
            self.culprit = self.culprit or self._crashed() or self._only_unit()

    def hanging(self, silence: Hanging) -> Iterator[tuple[Unit, Hanging]]:
        """The units that may be the one which lets no Python run in this process, and what to tell of each."""
        places = hang_places(silence.trace)
        for unit, seat in self._seats.items():
            if seat is not None and seat.thread in places:
                method, line = places[seat.thread]
                yield unit, replace(silence, method=method, line=line)

    def kill(self, culprit: Unit | None) -> None:
        """End the process at once, because of this unit if that is known."""
        self.condemned = self.is_killed = True
        self.culprit = self.culprit or culprit
        self.child.kill()

    def _crashed(self) -> Unit | None:
        """The unit in whose thread the interpreter crashed."""
        found = _CRASHED.search(self.child.crash or "")
        thread = int(found[1], 16) if found is not None else None
        return next((unit for unit, seat in self._seats.items() if seat and seat.thread == thread), None)

    def _only_unit(self) -> Unit | None:
        return next(iter(self._seats)) if len(self._seats) == 1 else None


class _Seat(Piped):
    """The child that stands for a unit in a shared host. Its end is a message, or the end of the host."""

    shares = True

    def __init__(self, connection: Connection, unit: Unit, host: Host) -> None:
        super().__init__(connection)
        self.pid = host.child.pid
        self.thread: int | None = None
        self._unit = unit
        self._host = host
        self._has_ended = False

    def receive(self) -> Iterator[Report]:
        for report in self.pipe.receive() if self._host.how is None else self.pipe.drain():
            match report:
                case messages.Lives(thread):
                    self.thread = thread
                case messages.Ended():
                    self._has_ended = True
                case _:
                    yield report

    def gone(self) -> bool:
        return self._has_ended or self._host.how is not None

    def kill(self) -> None:
        """End the host at once, since a thread cannot be ended."""
        if self._unit in self._host.units:
            self._host.kill(self._unit)

    def join(self) -> str:
        self.pipe.close()
        self.crash = self._host.child.crash
        return self._host.how or "ended without having said why"
