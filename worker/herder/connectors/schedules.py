"""Connectors that run by the clock: the leader starts those whose time has come. The herder's thread alone.

Crash point: what a connector waits for is counted from when it came to rest, which the config store keeps. So a leader
that is killed at the time of a run leaves it to the next one, and a run that nobody was there for is made up for once.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from concurrent.futures import Future
from datetime import UTC, datetime
from typing import Final
from zoneinfo import ZoneInfo

from cronsim import CronSim

from connect.errors import ConfigError
from worker.config.restarts import RestartConfig
from worker.herder.cluster.leadership import Leadership
from worker.herder.connectors.change_queue import ChangeQueue
from worker.herder.inbox import Inbox, Later, Request
from worker.stores.config.store import ConfigStore, ConnectorEntry, TargetState

__all__ = ["Schedules", "due", "next_run"]

logger = logging.getLogger(__name__)
_LONGEST_WAIT: Final = 3600.0
_RETRY: Final = 1.0


def next_run(config: Mapping[str, str], after: datetime) -> datetime | None:
    """The first time after ``after`` at which a connector runs, in UTC; ``None`` without a schedule.

    Raises :class:`~connect.errors.ConfigError` for one that cannot be read.
    """
    if not config.get("schedule"):
        return None
    parsed = RestartConfig.parse(config)
    times = CronSim(parsed.schedule, after.astimezone(ZoneInfo(parsed.schedule_timezone)))
    return next(times).astimezone(UTC)


class Schedules:
    """Starts connectors by their ``schedule``, as long as this worker leads."""

    def __init__(self, configs: ConfigStore, leadership: Leadership, changes: ChangeQueue, inbox: Inbox) -> None:
        self._configs = configs
        self._leadership = leadership
        self._changes = changes
        self._inbox = inbox
        self._later: Later | None = None
        self._unreadable: dict[str, str] = {}

    def look(self) -> None:
        """Start what is due, and look again when the next is."""
        if self._later is not None:
            self._later.cancel()
            self._later = None
        if not self._leadership.is_ready:
            return
        self._complain()
        now = datetime.now(UTC)
        waits = []
        for name, entry in self._configs.connectors().items():
            if (at := due(entry)) is None:
                continue
            if at <= now and self._changes.is_free(name):
                self._start(name)
            elif at <= now:
                waits.append(_RETRY)
            else:
                waits.append((at - now).total_seconds())
        if waits:
            # A clock that is set, or a machine that slept, is noticed within the longest wait.
            self._later = self._inbox.after(min(*waits, _LONGEST_WAIT), self.look)

    def _complain(self) -> None:
        """Log each schedule that cannot be read, once."""
        entries = self._configs.connectors().items()
        unreadable = {name: error for name, entry in entries if (error := _next(entry)) and isinstance(error, str)}
        for name, error in sorted(unreadable.items() - self._unreadable.items()):
            logger.warning("Connector %s does not run by its schedule, which cannot be read: %s", name, error)
        self._unreadable = unreadable

    def _start(self, name: str) -> None:
        logger.info("Connector %s is started by its schedule", name)
        started: Request[None] = Request()
        started.add_done_callback(lambda done: self._inbox.post(lambda: self._started(name, done)))
        self._changes.take(
            name, started, lambda: started.follow(self._configs.put_target_state(name, TargetState.STARTED))
        )

    def _started(self, name: str, done: Future[None]) -> None:
        if (error := done.exception()) is not None:
            logger.warning("Connector %s could not be started by its schedule yet: %s", name, error)
            self._inbox.after(_RETRY, self.look)


def due(entry: ConnectorEntry) -> datetime | None:
    """The next time at which a connector that rests is to run.

    ``None`` for one that runs, that a user has stopped, or whose schedule cannot be read: others may have written it.
    """
    at = _next(entry)
    return at if isinstance(at, datetime) else None


def _next(entry: ConnectorEntry) -> datetime | str | None:
    """The time at which it is due, or the reason for which that is not known."""
    if entry.target is not TargetState.STOPPED or entry.drained is None:
        return None
    try:
        return next_run(entry.config, datetime.fromtimestamp(entry.drained / 1000, UTC))
    except (ConfigError, ValueError, OverflowError, OSError) as error:
        return str(error)
