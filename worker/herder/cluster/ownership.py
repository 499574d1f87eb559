"""Confirms that a process is still the one that is to run its task (KIP-618). The herder's thread alone.

A process of an exactly-once source asks when it has fenced the ones before it, and sends nothing before it is told
that it is so. Crash point: a worker that is killed before it answers takes the process with it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import Future

from worker.herder.inbox import Inbox
from worker.herder.units import Units
from worker.stores.config.store import ConfigStore
from worker.supervisor.notices import OwnershipAsked
from worker.unit import Unit

__all__ = ["Ownership"]

logger = logging.getLogger(__name__)


class Ownership:
    """Answers by the newest configurations there are, and turns a process away that is not the one.

    Only the task of a source asks; one whose connector ``is_sink`` takes for a sink fails.
    """

    def __init__(self, configs: ConfigStore, units: Units, inbox: Inbox, is_sink: Callable[[str], bool]) -> None:
        self._configs = configs
        self._units = units
        self._inbox = inbox
        self._is_sink = is_sink

    def asked(self, asked: OwnershipAsked) -> None:
        """Read the newest configurations, and answer."""
        read = self._configs.read_to_end()
        read.add_done_callback(lambda done: self._inbox.post(lambda: self._answer(asked, done)))

    def _answer(self, asked: OwnershipAsked, read: Future[None]) -> None:
        unit = asked.unit
        if (error := read.exception()) is not None:
            logger.warning("%s is started again, because it is not known whether it may start: %s", unit, error)
            self._units.turn_away(unit)
        elif not self._units.is_current(unit):
            logger.info("%s is not started: it has a new configuration, or runs elsewhere by now", unit)
            self._units.turn_away(unit)
        elif self._configs.pending_fencing(unit.connector) and self._is_sink(unit.connector):
            self._units.fail(unit, _not_a_sink(unit))
        elif self._configs.pending_fencing(unit.connector):
            logger.info("%s is not started yet: its former tasks are to be fenced again", unit)
            self._units.turn_away(unit)
        else:
            asked.confirm()


def _not_a_sink(unit: Unit) -> str:
    return (
        f"{unit} is the task of a source, but connector {unit.connector} is known as a sink, for which nobody fences "
        "former tasks. Correct the type in the plugins.toml that lists its connector.class, if one does, and PUT the "
        "connector's configuration once more, unchanged."
    )
