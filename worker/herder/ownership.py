"""Whether a process is still the one that is to run its task (KIP-618). The herder's thread alone.

A process of an exactly-once source asks when it has fenced the ones before it, and sends nothing before it is told
that it is so. Crash point: a worker that is killed before it answers takes the process with it.
"""

from __future__ import annotations

import logging
from concurrent.futures import Future

from worker.herder.inbox import Inbox
from worker.herder.units import Units
from worker.stores.config import ConfigStore
from worker.supervisor.supervisor import OwnershipAsked

__all__ = ["Ownership"]

logger = logging.getLogger(__name__)


class Ownership:
    """Answers by the newest configurations there are, and stops a process that is not the one."""

    def __init__(self, configs: ConfigStore, units: Units, inbox: Inbox) -> None:
        self._configs = configs
        self._units = units
        self._inbox = inbox

    def asked(self, asked: OwnershipAsked) -> None:
        """Look, and answer."""
        read = self._configs.read_to_end()
        read.add_done_callback(lambda done: self._inbox.post(lambda: self._answer(asked, done)))

    def _answer(self, asked: OwnershipAsked, read: Future[None]) -> None:
        unit = asked.unit
        if (error := read.exception()) is not None:
            logger.warning("Whether %s may start is not known, so it is started again: %s", unit, error)
            self._units.stop(unit)
        elif self._configs.pending_fencing(unit.connector) or not self._units.is_current(unit):
            logger.info("%s is not started as it was: it is configured anew or runs elsewhere", unit)
            self._units.stop(unit)
        else:
            asked.confirm()
