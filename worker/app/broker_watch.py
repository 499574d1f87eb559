"""Notices that the brokers of a standalone worker do not answer, which a distributed one knows from its group.

Its tasks go on meanwhile: their clients connect again by themselves, so only what the worker says of itself changes.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from connect.internals.kafka.settings.client import ClientKind
from worker.app.brokers import Absence, unreachable
from worker.formatting import local_time
from worker.herder.cluster.standing import Trouble
from worker.kafka.clients.roles import internal_properties

__all__ = ["BrokerWatch", "look_at_brokers"]

logger = logging.getLogger(__name__)

_SECONDS: Final = 10.0
_SECONDS_OF_DOUBT: Final = 2.0
"""How long after an attempt without an answer the next one is made."""


def look_at_brokers(props: Mapping[str, str]) -> Callable[[], Absence | None]:
    """Return a function that checks whether a broker answers at ``bootstrap.servers``."""
    properties = internal_properties(props, ClientKind.ADMIN, "broker-watch").properties
    servers = str(properties["metadata.broker.list"]).split(",")
    plaintext = str(properties.get("security.protocol", "plaintext")).lower() == "plaintext"
    return partial(unreachable, servers, plaintext=plaintext)


class BrokerWatch:
    """Checks in its own thread every ten seconds. ``troubles`` may be called by any thread."""

    def __init__(self, look: Callable[[], Absence | None], now: Callable[[], float] = time.time) -> None:
        self._look = look
        self._now = now
        self._missed_at: float | None = None
        self._trouble: Trouble | None = None
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="broker-watch", daemon=True)

    def start(self) -> None:
        """Start checking."""
        self._thread.start()

    def close(self) -> None:
        """Stop checking; a check under way ends by itself."""
        self._over.set()

    def troubles(self) -> list[Trouble]:
        """Return what is wrong with the brokers."""
        trouble = self._trouble
        return [] if trouble is None else [trouble]

    def check(self) -> bool:
        """Check once, and return whether a broker answers. One attempt without an answer is no trouble yet."""
        now = self._now()
        absence = self._look()
        if absence is None:
            if self._trouble is not None:
                logger.info("The brokers answer again")
            self._missed_at = self._trouble = None
        elif self._missed_at is None:
            self._missed_at = now
        elif self._trouble is None:
            self._trouble = Trouble(
                self._missed_at,
                f"No broker of bootstrap.servers answers since {local_time(self._missed_at)}: {absence.fault}. The "
                "connectors and tasks of this worker live on and wait for the brokers; nothing is read or written "
                f"until they answer. {absence.remedy}",
                works_on=True,
            )
            logger.warning("%s", self._trouble.message)
        return absence is None

    def _watch(self) -> None:
        wait = _SECONDS
        while not self._over.wait(wait):
            is_fine = self.check() or self._trouble is not None
            wait = _SECONDS if is_fine else _SECONDS_OF_DOUBT
