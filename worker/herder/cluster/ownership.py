"""Confirms that a process is still the one that should run its task (KIP-618). Used only in the herder's thread.

An exactly-once source task asks this after fencing its predecessors, and sends no records until it gets a yes. Crash
point: the processes of a worker that is killed before it answers end with it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from worker.herder.inbox import Inbox
from worker.herder.requests import Requests, Steps
from worker.herder.units import Units
from worker.stores.config.store import ConfigStore
from worker.supervisor.notices import OwnershipAsked
from worker.unit import Unit

__all__ = ["Ownership"]

logger = logging.getLogger(__name__)


class Ownership:
    """Answers from the newest configurations, and turns outdated processes away.

    Only source tasks ask; a task that asks although ``is_sink`` takes its connector for a sink fails.
    """

    def __init__(self, configs: ConfigStore, units: Units, inbox: Inbox, is_sink: Callable[[str], bool]) -> None:
        self._configs = configs
        self._units = units
        self._requests = Requests(inbox)
        self._is_sink = is_sink

    def asked(self, asked: OwnershipAsked) -> None:
        """Read the newest configurations and answer."""
        self._requests.start(lambda _: self._answer(asked))

    def _answer(self, asked: OwnershipAsked) -> Steps[None]:
        unit = asked.unit
        try:
            yield self._configs.read_to_end()
        except Exception as error:
            logger.warning(
                "%s is restarted because the worker could not find out whether it may start: %s", unit, error
            )
            self._units.turn_away(unit)
            return
        if not self._units.is_current(unit):
            logger.info("%s is not started: it has a new configuration, or was assigned to another worker", unit)
            self._units.turn_away(unit)
        elif self._configs.pending_fencing(unit.connector) and self._is_sink(unit.connector):
            self._units.fail(unit, _not_a_sink(unit))
        elif self._configs.pending_fencing(unit.connector):
            logger.info("%s is not started yet: its former tasks must be fenced again", unit)
            self._units.turn_away(unit)
        else:
            asked.confirm()


def _not_a_sink(unit: Unit) -> str:
    return (
        f"{unit} is the task of a source, but connector {unit.connector} is known as a sink, for which nobody fences "
        "former tasks. Correct the type in the plugins.toml that lists its connector.class, if one does, and PUT the "
        "connector's configuration once more, unchanged."
    )
