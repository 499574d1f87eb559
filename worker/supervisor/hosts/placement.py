"""Which units live in which host: a function of what each may share and of where each is."""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from worker.unit import Unit

__all__ = ["FEW", "ROOM", "Crowd", "Group", "Isolation", "Place", "group_of", "place_for", "placed"]

ROOM: Final = 50
"""The most units that a host has which units of several connectors share."""

FEW: Final = 16
"""As many tasks, and as many connectors, each have a process of their own."""


class Isolation(enum.Enum):
    """With whom a unit may share a process; the values are those of ``task.isolation``."""

    PROCESS = "process"
    CONNECTOR = "connector"
    SHARED = "shared"
    AUTO = "auto"


@dataclass(frozen=True, slots=True, order=True)
class Group:
    """Units of one group may share a host. A group of one unit, or of a connector, has that as its ``member``.

    ``home`` is where their plugins are: modules of one name that are in several places cannot share a process.
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

    def has_room(self, units: int) -> bool:
        """Whether a host of this group takes one more than so many units."""
        if self.is_crowd:
            return units < ROOM
        return self.is_shared or units == 0


class Place(Protocol):
    """What placement sees of a host. Nobody moves into a condemned one."""

    @property
    def number(self) -> int:
        """The number of the host; no other has had it."""

    @property
    def group(self) -> Group:
        """Whom it is for."""

    @property
    def units(self) -> Collection[Unit]:
        """Who lives there."""

    @property
    def condemned(self) -> bool:
        """Whether all are to leave it."""


def group_of(unit: Unit, isolation: Isolation, *, alone: bool, home: str = "") -> Group:
    """The group of a unit. One that is to be ``alone``, whatever it may share, has its own."""
    if alone or isolation is Isolation.PROCESS:
        return Group(Isolation.PROCESS.value, str(unit))
    if isolation is Isolation.CONNECTOR:
        return Group(isolation.value, unit.connector, home)
    return Group(isolation.value, home=home)


def place_for(group: Group, hosts: Iterable[Place]) -> int | None:
    """The number of the host for one more unit of a group, the fullest that has room; ``None`` is a new one."""
    there = [
        (-len(host.units), host.number)
        for host in hosts
        if host.group == group and not host.condemned and group.has_room(len(host.units))
    ]
    return min(there)[1] if there else None


def placed(groups: Mapping[Unit, Group], hosts: Collection[Place], unused: int) -> dict[Unit, int]:
    """The number of the host of each unit.

    A unit stays where it is, if that is a host of its group which is not condemned. Others go to the fullest host of
    their group that has room, or else to a new one; ``unused`` and all numbers after it are free for those.
    """
    open_hosts = [host for host in hosts if not host.condemned]
    places = {unit: host.number for host in open_hosts for unit in host.units if groups.get(unit) == host.group}
    filled = Counter(places.values())
    numbers: dict[Group, list[int]] = {}
    for host in sorted(open_hosts, key=lambda host: (-filled[host.number], host.number)):
        numbers.setdefault(host.group, []).append(host.number)
    for unit in sorted(groups.keys() - places.keys()):
        group = groups[unit]
        there = numbers.setdefault(group, [])
        while there and not group.has_room(filled[there[0]]):
            there.pop(0)
        if not there:
            there.append(unused)
            unused += 1
        places[unit] = there[0]
        filled[there[0]] += 1
    return places


class Crowd:
    """The units that may live alone or together, as is best, and those of them that live alone since they are few."""

    def __init__(self) -> None:
        self._units: dict[bool, set[Unit]] = {True: set(), False: set()}
        self._alone: set[Unit] = set()

    def comes(self, unit: Unit) -> bool:
        """Take note that a unit is about to begin; whether others are to move for that."""
        there = self._units[unit.is_task]
        there.add(unit)
        if not self.is_many(unit):
            self._alone.add(unit)
            return False
        # What a connector does is not measured, and it is seldom much.
        leaving = frozenset() if unit.is_task else self._alone & there
        self._alone -= {unit, *leaving}
        return bool(leaving - {unit})

    def goes(self, unit: Unit) -> None:
        """Take note that a unit is to run no more, or not as is best for all."""
        self._units[unit.is_task].discard(unit)
        self._alone.discard(unit)

    def is_many(self, unit: Unit) -> bool:
        """Whether there are too many of a unit's kind for a process each."""
        return len(self._units[unit.is_task]) > FEW

    def is_alone(self, unit: Unit) -> bool:
        """Whether a unit lives alone since there are few, or were when it began."""
        return unit in self._alone

    def joins(self, unit: Unit) -> None:
        """Take note that a unit is to live with others from now on."""
        self._alone.discard(unit)
