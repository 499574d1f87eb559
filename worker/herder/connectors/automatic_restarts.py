"""Restarts units whose provider values have expired (KIP-297). The herder's thread alone.

Each process of a connector or task reports for how long the values of its config providers hold. After that it is
restarted and looks them up anew; Apache Kafka Connect does so with connectors only, whose tasks keep the old
values (KAFKA-17627). Crash point: a worker that is killed takes these times with it. Wherever its connectors and tasks
start again, they look everything up, and a new time begins.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Final

from worker.herder.inbox import Inbox, Later
from worker.supervisor.lifecycle import Phase
from worker.supervisor.notices import Changed, Expires
from worker.unit import Unit

__all__ = ["Reloads"]

logger = logging.getLogger(__name__)
# With a ttl of 0 a unit would do nothing but start.
_SHORTEST: Final = 1.0
_OVER: Final = (Phase.GONE, Phase.DRAINED)


class Reloads:
    """Restarts units whose values have expired. ``restart`` does nothing to one that does not run."""

    def __init__(self, restart: Callable[[Iterable[Unit]], None], inbox: Inbox) -> None:
        self._restart = restart
        self._inbox = inbox
        self._due: dict[Unit, tuple[float, Later]] = {}

    def expires(self, notice: Expires) -> None:
        """Plan the restart of a unit that has reported how long its values hold; the shortest time counts."""
        unit, seconds = notice.unit, max(notice.seconds, _SHORTEST)
        if unit in self._due and self._due[unit][0] <= seconds:
            return
        self._forget(unit)
        self._due[unit] = (seconds, self._inbox.after(seconds, lambda: self._reload(unit)))
        logger.info("%s is restarted in %.1f s, when its config expires", unit, seconds, extra={"context": str(unit)})

    def changed(self, change: Changed) -> None:
        """Cancel the restart of a unit that has ended, or needs no values any more."""
        if change.phase in _OVER:
            self._forget(change.unit)

    def _reload(self, unit: Unit) -> None:
        self._forget(unit)
        logger.info("%s is restarted: its config has expired", unit, extra={"context": str(unit)})
        self._restart([unit])

    def _forget(self, unit: Unit) -> None:
        if unit in self._due:
            self._due.pop(unit)[1].cancel()
