"""Decides which shared hosts to close because the other hosts have room for their units. Callers pass the time.

A host is closed only if the others keep some room, and have had it for a while: stopping ten connectors and starting
ten others moves no unit.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from worker.supervisor.hosts.placement import ROOM, Group, Place, alike

__all__ = ["Vacancies"]

_WAIT: Final = 300.0
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
        return min((since + _WAIT for since in self._since.values()), default=None)

    def _look_at(self, group: Group, hosts: list[Place], now: float) -> None:
        closing = self._closing.pop(group, None)
        for host in hosts:
            if host.number == closing and _fits(host, hosts, ROOM):
                self._closing[group] = host.number
                return
        if not _fits(hosts[0], hosts, _COMFORTABLE):
            self._since.pop(group, None)
        elif now - self._since.setdefault(group, now) >= _WAIT:
            del self._since[group]
            self._closing[group] = hosts[0].number


def _fits(leaving: Place, hosts: list[Place], most: int) -> bool:
    """Return whether the other hosts have room for the units of this one, with at most ``most`` of a kind in each."""
    return all(
        alike(leaving, is_task=is_task)
        <= sum(max(0, most - alike(host, is_task=is_task)) for host in hosts if host is not leaving)
        for is_task in (True, False)
    )
