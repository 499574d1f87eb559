"""Delays repeated starts of a unit whose process the worker ends before it runs. Used only in the herder's thread.

This is neither a failure, for which there is ``restart.policy``, nor a user's restart, which is immediate. It happens
when a starting process turns out to be outdated. Without a delay, a lasting cause would restart the unit in a tight
loop.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from worker.herder.inbox import Action, Inbox
from worker.messages.messages import RunConnector, RunTask
from worker.unit import Unit

__all__ = ["StartBackoff"]

_FIRST_WAIT: Final = 0.5
_LONGEST_WAIT: Final = 60.0
_MOST_DOUBLINGS: Final = 16


@dataclass(frozen=True, slots=True)
class _Tried:
    command: RunConnector | RunTask
    times: int
    waits: bool


class StartBackoff:
    """Counts the ended starts of each unit until it runs; calls ``reconcile`` once a unit may start again."""

    def __init__(self, inbox: Inbox, reconcile: Action) -> None:
        self._inbox = inbox
        self._reconcile = reconcile
        self._tried: dict[Unit, _Tried] = {}

    def add(self, unit: Unit, command: RunConnector | RunTask) -> None:
        """Record a start that the worker ended. The second start follows at once, because something has changed."""
        before = self._tried.get(unit)
        times = before.times + 1 if before is not None and before.command == command else 1
        tried = self._tried[unit] = _Tried(command, times, times > 1)
        if tried.waits:
            seconds = min(_FIRST_WAIT * 2.0 ** min(times - 2, _MOST_DOUBLINGS), _LONGEST_WAIT)
            self._inbox.after(seconds, lambda: self._waited(unit, tried))

    def hold_back(self, unit: Unit, command: RunConnector | RunTask) -> bool:
        """Return whether it is too early to start the unit again with this command."""
        tried = self._tried.get(unit)
        return tried is not None and tried.waits and tried.command == command

    def forget(self, unit: Unit) -> None:
        """Forget a unit that runs or was removed."""
        self._tried.pop(unit, None)

    def _waited(self, unit: Unit, tried: _Tried) -> None:
        if self._tried.get(unit) is tried:
            self._tried[unit] = _Tried(tried.command, tried.times, waits=False)
            self._reconcile()
