"""A host: the process that runs one or several units.

A unit that runs alone is the main thread of its process, and its child is the process itself. The units of a shared
host share its pipe: each message carries the number of the seat of its unit.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import Final

from worker.messages import messages
from worker.messages.hangs import Hanging
from worker.messages.messages import Addressed, Command, Report
from worker.processes.stacks import hang_places
from worker.supervisor.hosts.placement import Group
from worker.supervisor.pipe import WorkerEnd
from worker.supervisor.process import Child, Stillborn
from worker.unit import Unit

__all__ = ["Host"]

_CRASHED: Final = re.compile(r"^Current thread (0x[0-9a-f]+)", re.MULTILINE)


class Host:
    """A process and the units that run in it. Used by the supervisor's thread alone."""

    def __init__(self, number: int, group: Group, child: Child) -> None:
        self.number = number
        self.group = group
        self.child = child
        self.condemned = False
        """Whether all units have to leave."""
        self.culprit: Unit | None = None
        """The unit that has ended the process, or because of which it was killed."""
        self.is_killed = False
        self.how: str | None = None
        """How a shared host has ended, as the end of a sentence; ``None`` while it runs."""
        self.reason: str | None = None
        """Why a shared host ends, if it has said so."""
        self._seats: dict[Unit, _Seat | None] = {}
        self._taken = 0
        if group.is_shared:
            child.send(messages.RunUnits())

    @property
    def units(self) -> Collection[Unit]:
        """The units that run here."""
        return self._seats.keys()

    def take(self, unit: Unit) -> Child:
        """Add a unit, and return its child, which waits for its first command."""
        if not self.group.is_shared:
            self._seats[unit] = None
            return self.child
        if self.child.pipe.is_cut():
            # The process is about to end; its end is noticed later.
            self.condemned = True
            return Stillborn(ConnectionResetError("the process ends"))
        self._taken += 1
        seat = self._seats[unit] = _Seat(self._taken, unit, self)
        return seat

    def leave(self, unit: Unit) -> None:
        """Remove a unit."""
        self._seats.pop(unit, None)

    def hear(self) -> Iterator[Report]:
        """Yield the reports of a shared host itself, keep those of its units for them, and note its end."""
        seats = {seat.number: seat for seat in self._seats.values() if seat is not None}
        for report in self.child.receive():
            if not isinstance(report, Addressed):
                yield report
            elif (seat := seats.get(report.seat)) is not None:
                seat.said.append(report.message)
        if self.how is not None:
            return
        if self.child.gone():
            how = self.child.join()
            self.how = how if self.reason is None else f"has ended: {self.reason.rstrip('.')}"
            if not self.child.was_let_go:
                self.culprit = self.culprit or self._crashed() or self._only_unit()
        elif self.child.pipe.closed and not self.is_killed:
            # The process is about to end, or one of its plugins has closed a descriptor that it did not open.
            self.kill(None)

    def heard_units(self) -> list[Unit]:
        """Return the units that have reported; all units, once the host has ended."""
        return [unit for unit, seat in self._seats.items() if seat and (seat.said or self.how is not None)]

    def hanging(self, silence: Hanging) -> Iterator[tuple[Unit, Hanging]]:
        """Yield the units of which one may be what lets no Python run in this process, each with its own report."""
        places = hang_places(silence.trace)
        for unit, seat in self._seats.items():
            if seat is not None and seat.thread in places:
                method, line = places[seat.thread]
                yield unit, replace(silence, method=method, line=line)

    def kill(self, culprit: Unit | None) -> None:
        """Kill the process, because of this unit if it is known."""
        self.condemned = self.is_killed = True
        self.culprit = self.culprit or culprit
        self.child.kill()

    def _crashed(self) -> Unit | None:
        """Return the unit in whose thread the interpreter crashed, if the thread belonged to a unit."""
        found = _CRASHED.search(self.child.crash or "")
        if found is None:
            return None
        thread = int(found[1], 16)
        return next((unit for unit, seat in self._seats.items() if seat and seat.thread == thread), None)

    def _only_unit(self) -> Unit | None:
        return next(iter(self._seats)) if len(self._seats) == 1 else None


class _Seat:
    """The child of a unit in a shared host. It ends with a message, or with the host."""

    shares = True
    was_let_go = False
    output: int | None = None
    sentinel: int | None = None

    def __init__(self, number: int, unit: Unit, host: Host) -> None:
        self.number = number
        self.pid = host.child.pid
        self.thread: int | None = None
        self.said: deque[Report] = deque()
        """The reports of the unit that are not received yet."""
        self.crash: str | None = None
        self._unit = unit
        self._host = host
        self._has_ended = False

    @property
    def pipe(self) -> WorkerEnd:
        """The pipe of the host."""
        return self._host.child.pipe

    def send(self, command: Command) -> None:
        """Send the unit a command."""
        if not self.gone():
            self._host.child.send(Addressed(self.number, command))

    def receive(self) -> Iterator[Report]:
        while self.said:
            match self.said.popleft():
                case messages.Lives(thread):
                    self.thread = thread
                case messages.Ended():
                    self._has_ended = True
                case report:
                    yield report

    def gone(self) -> bool:
        return self._has_ended or self._host.how is not None

    def kill(self) -> None:
        """Kill the host, since a thread cannot be killed."""
        if self._unit in self._host.units:
            self._host.kill(self._unit)

    def join(self) -> str:
        # A hundred units of a host would each show its stacks: only the one that is to blame does.
        self.crash = self._host.child.crash if self._host.culprit == self._unit else None
        return self._host.how or "ended without having said why"
