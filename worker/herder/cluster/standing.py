"""What keeps this worker from its work, and which of the stored statuses still hold meanwhile.

A status is an observation of the worker that ran the unit. A worker that has lost its cluster has stopped its own units
and hears nothing of the others, so it shows no unit as running: each such unit is ``UNASSIGNED``, that is, no worker is
known to run it. Nothing of this is stored: the statuses are shown again as they are once the worker has joined.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from worker.formatting import counted, local_time, utc_text
from worker.stores.status.store import State, Status
from worker.unit import Unit

__all__ = ["LIVE", "Standing", "Trouble"]

logger = logging.getLogger(__name__)

LIVE: Final = frozenset((State.RUNNING, State.PAUSED, State.RESTARTING))
"""The states of units that some worker runs."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """What keeps a worker from its work, and when that began (seconds since 1970); ``message`` names the time too.

    If it ``works_on``, its tasks are not stopped but wait.
    """

    since: float
    message: str
    works_on: bool = False

    def document(self) -> dict[str, Any]:
        """Return it as the REST API shows it."""
        return {"since": utc_text(self.since), "message": self.message}


class Standing:
    """This worker's place in its cluster. Written by the herder's thread; any thread may read the properties.

    ``brokers`` is ``bootstrap.servers``.
    """

    def __init__(self, brokers: str, now: Callable[[], float] = time.time) -> None:
        self._brokers = brokers
        self._now = now
        self._loss: Trouble | None = None
        self._strange: Trouble | None = None
        self._seen: tuple[Mapping[Unit, Status], Mapping[Unit, Status]] | None = None

    @property
    def loss(self) -> Trouble | None:
        """How this worker has lost its cluster, until it has joined again."""
        return self._loss

    @property
    def troubles(self) -> list[Trouble]:
        """Everything that keeps this worker out of its cluster, the cause first."""
        return [trouble for trouble in (self._strange, self._loss) if trouble is not None]

    def lost(self, reason: str, ran: Iterable[Unit]) -> None:
        """Note that this worker has lost its cluster, and has to stop what it ran."""
        if self._loss is not None:
            return
        units = list(ran)
        tasks = sum(unit.is_task for unit in units)
        since = self._now()
        stopped = f"{counted(len(units) - tasks, 'connector')} and {counted(tasks, 'task')}"
        self._loss = Trouble(
            since,
            f"This worker has lost its cluster since {local_time(since)}: {reason}. It tries to join again through "
            f"{self._brokers}. Its {stopped} are stopped, and what it shows of other workers is from before.",
        )

    def strange(self, reason: str) -> None:
        """Note that this worker's group seems to be another cluster's; logged when it is news."""
        if self._strange is not None and self._strange.message.endswith(reason):
            return
        since = self._now()
        self._strange = Trouble(since, f"This worker cannot work in its group since {local_time(since)}: {reason}")
        logger.error("%s", self._strange.message)

    def joined(self) -> None:
        """Note that this worker is a member of its cluster."""
        self._loss = self._strange = None

    def shown(self, statuses: Mapping[Unit, Status]) -> Mapping[Unit, Status]:
        """Return the statuses that may be shown now: the same mapping unless this worker has lost its cluster."""
        if self._loss is None:
            self._seen = None
            return statuses
        if self._seen is None or self._seen[0] is not statuses:
            self._seen = statuses, {unit: _of_nobody(status) for unit, status in statuses.items()}
        return self._seen[1]


def _of_nobody(status: Status) -> Status:
    return replace(status, state=State.UNASSIGNED, hanging=None) if status.state in LIVE else status
