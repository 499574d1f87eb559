"""Which units live in which host: a function of what each may share and of where each is."""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from worker.unit import Unit

__all__ = ["ROOM", "Group", "HostSeen", "Isolation", "group_of", "placed"]

ROOM: Final = 50
"""The most units that a shared host has."""


class Isolation(enum.Enum):
    """With whom a unit may share a process; the values are those of ``task.isolation``."""

    PROCESS = "process"
    CONNECTOR = "connector"
    SHARED = "shared"


@dataclass(frozen=True, slots=True, order=True)
class Group:
    """Units that may share a host: those of the same group. A ``member`` stands for itself or its connector."""

    kind: str
    member: str = ""

    @property
    def is_shared(self) -> bool:
        """Whether a host of this group has several units."""
        return self.kind != Isolation.PROCESS.value

    @property
    def room(self) -> int | None:
        """The most units in a host of this group; ``None`` is no limit."""
        return {Isolation.PROCESS.value: 1, Isolation.SHARED.value: ROOM}.get(self.kind)


@dataclass(frozen=True, slots=True)
class HostSeen:
    """A host that there is: its number, whom it is for, and who lives there. Nobody moves into a condemned one."""

    number: int
    group: Group
    units: frozenset[Unit]
    condemned: bool = False


def group_of(unit: Unit, isolation: Isolation, *, alone: bool) -> Group:
    """The group of a unit. One that is to be ``alone``, whatever it may share, has its own."""
    if alone or isolation is Isolation.PROCESS:
        return Group(Isolation.PROCESS.value, str(unit))
    if isolation is Isolation.CONNECTOR:
        return Group(isolation.value, unit.connector)
    return Group(isolation.value)


def placed(groups: Mapping[Unit, Group], hosts: Collection[HostSeen], unused: int) -> dict[Unit, int]:
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
        while there and group.room is not None and filled[there[0]] >= group.room:
            there.pop(0)
        if not there:
            there.append(unused)
            unused += 1
        places[unit] = there[0]
        filled[there[0]] += 1
    return places
