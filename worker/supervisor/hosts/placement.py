"""Decides which unit runs in which host, from what each may share and where each runs now.

With ``task.isolation=auto``, units that start while a worker has few of them run alone. When there are many, those that
rest move together, a task once it has rested for a minute, and new ones start in shared hosts. When there are few again
nobody moves out, so that a single unit that comes and goes moves no others. A shared host for whose units the others
have room is closed.
"""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from worker.unit import Unit

__all__ = [
    "FEW",
    "ROOM",
    "Crowd",
    "Group",
    "Isolation",
    "Place",
    "Vacancies",
    "alike",
    "group_of",
    "place_for",
    "placed",
]

ROOM: Final = 50
"""The maximum number of tasks, and of connectors, in a host that several connectors share. Most connectors soon
rest."""

FEW: Final = 16
"""Up to this many tasks, and as many connectors, have a process each."""


class Isolation(enum.Enum):
    """The units with which a unit may share a process: the values of ``task.isolation``."""

    PROCESS = "process"
    CONNECTOR = "connector"
    SHARED = "shared"
    AUTO = "auto"


@dataclass(frozen=True, slots=True, order=True)
class Group:
    """Units that may share a host. ``member`` is the unit or connector of a group that has only one.

    ``home`` is where their plugins are installed: a process cannot load modules of one name from several places.
    """

    kind: str
    member: str = ""
    home: str = ""

    @property
    def is_shared(self) -> bool:
        """Whether a host of this group may have several units."""
        return self.kind != Isolation.PROCESS.value

    @property
    def is_crowd(self) -> bool:
        """Whether a host of this group may have units of several connectors."""
        return self.kind in (Isolation.SHARED.value, Isolation.AUTO.value)

    def has_room(self, alike: int) -> bool:
        """Return whether a host of this group with this many units of a kind has room for another of that kind."""
        if self.is_crowd:
            return alike < ROOM
        return self.is_shared or alike == 0


class Place(Protocol):
    """A host as placement sees it."""

    @property
    def number(self) -> int:
        """The number of the host, which is never used again."""

    @property
    def group(self) -> Group:
        """The group that the host is for."""

    @property
    def units(self) -> Collection[Unit]:
        """The units that run there."""

    @property
    def condemned(self) -> bool:
        """Whether all units have to leave; nobody moves in."""


def group_of(unit: Unit, isolation: Isolation, *, alone: bool, home: str = "") -> Group:
    """Return the group of a unit: its own if it has to run ``alone``, whatever it may share."""
    if alone or isolation is Isolation.PROCESS:
        return Group(Isolation.PROCESS.value, str(unit))
    if isolation is Isolation.CONNECTOR:
        return Group(isolation.value, unit.connector, home)
    return Group(isolation.value, home=home)


def place_for(unit: Unit, group: Group, hosts: Iterable[Place]) -> int | None:
    """Return the number of the host for another unit of a group: the fullest that has room; ``None`` is a new host."""
    there = [
        (-len(host.units), host.number)
        for host in hosts
        if host.group == group and not host.condemned and group.has_room(alike(host, is_task=unit.is_task))
    ]
    return min(there)[1] if there else None


def alike(host: Place, *, is_task: bool) -> int:
    """Return the number of units in a host of the same kind, task or connector."""
    return sum(unit.is_task is is_task for unit in host.units)


def placed(groups: Mapping[Unit, Group], hosts: Collection[Place], unused: int) -> dict[Unit, int]:
    """Return the number of the host of each unit.

    A unit stays in a host of its group that is not condemned. Others go to the fullest host of their group that has
    room, or to a new one, whose number is ``unused`` or a greater one.
    """
    open_hosts = [host for host in hosts if not host.condemned]
    places = {unit: host.number for host in open_hosts for unit in host.units if groups.get(unit) == host.group}
    filled = Counter(places.values())
    of_kind = Counter((number, unit.is_task) for unit, number in places.items())
    numbers: dict[tuple[Group, bool], list[int]] = {}
    for host in sorted(open_hosts, key=lambda host: (-filled[host.number], host.number)):
        for is_task in (True, False):
            numbers.setdefault((host.group, is_task), []).append(host.number)
    for unit in sorted(groups.keys() - places.keys()):
        group = groups[unit]
        there = numbers.setdefault((group, unit.is_task), [])
        while there and not group.has_room(of_kind[there[0], unit.is_task]):
            there.pop(0)
        if not there:
            for is_task in (True, False):
                numbers.setdefault((group, is_task), []).append(unused)
            unused += 1
        places[unit] = there[0]
        of_kind[there[0], unit.is_task] += 1
    return places


class Crowd:
    """The units with ``task.isolation=auto``, and those of them that run alone because there are few.

    Tasks and connectors are counted separately.
    """

    def __init__(self) -> None:
        self._units: dict[bool, set[Unit]] = {True: set(), False: set()}
        self._alone: set[Unit] = set()

    def comes(self, unit: Unit) -> bool:
        """Add a unit that is about to start. Return whether other units have to move."""
        there = self._units[unit.is_task]
        there.add(unit)
        if not self.is_many(unit):
            self._alone.add(unit)
            return False
        # The CPU time of connectors is not measured; it is seldom much.
        leaving = frozenset() if unit.is_task else self._alone & there
        self._alone -= {unit, *leaving}
        return bool(leaving - {unit})

    def goes(self, unit: Unit) -> None:
        """Remove a unit that ends, or whose isolation is no longer ``auto``."""
        self._units[unit.is_task].discard(unit)
        self._alone.discard(unit)

    def is_many(self, unit: Unit) -> bool:
        """Return whether there are too many units of this kind for a process each."""
        return len(self._units[unit.is_task]) > FEW

    def is_alone(self, unit: Unit) -> bool:
        """Return whether a unit runs alone because there are few units, or were when it started."""
        return unit in self._alone

    def joins(self, unit: Unit) -> None:
        """Let a unit share a host from now on."""
        self._alone.discard(unit)


_WAIT_SECONDS: Final = 300.0
_COMFORTABLE: Final = ROOM * 4 // 5


class Vacancies:
    """Tracks since when there has been one host too many, and which one is closing."""

    def __init__(self) -> None:
        self._since: dict[Group, float] = {}
        self._closing: dict[Group, int] = {}

    def is_closing(self, number: int) -> bool:
        """Return whether the units of a host have to leave."""
        return number in self._closing.values()

    def look(self, hosts: Iterable[Place], now: float) -> bool:
        """Look at the shared hosts. Return whether other hosts than before are closing."""
        before = dict(self._closing)
        groups: dict[Group, list[Place]] = {}
        for host in hosts:
            if host.group.is_crowd and host.units and not host.condemned:
                groups.setdefault(host.group, []).append(host)
        self._since = {group: since for group, since in self._since.items() if group in groups}
        self._closing = {group: number for group, number in self._closing.items() if group in groups}
        for group, there in groups.items():
            self._look_at(group, sorted(there, key=lambda host: (len(host.units), -host.number)), now)
        return self._closing != before

    def next_look(self) -> float | None:
        """Return when :meth:`look` may decide otherwise though no unit has come or gone."""
        return min((since + _WAIT_SECONDS for since in self._since.values()), default=None)

    def _look_at(self, group: Group, hosts: list[Place], now: float) -> None:
        closing = self._closing.pop(group, None)
        for host in hosts:
            if host.number == closing and _fits(host, hosts, ROOM):
                self._closing[group] = host.number
                return
        if not _fits(hosts[0], hosts, _COMFORTABLE):
            self._since.pop(group, None)
        elif now - self._since.setdefault(group, now) >= _WAIT_SECONDS:
            del self._since[group]
            self._closing[group] = hosts[0].number


def _fits(leaving: Place, hosts: list[Place], most: int) -> bool:
    """Return whether the other hosts have room for the units of this one, with at most ``most`` of a kind in each."""
    return all(
        alike(leaving, is_task=is_task)
        <= sum(max(0, most - alike(host, is_task=is_task)) for host in hosts if host is not leaving)
        for is_task in (True, False)
    )
