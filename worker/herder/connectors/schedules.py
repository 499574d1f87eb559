"""Starts connectors by their ``schedule``, as the leader. Used only in the herder's thread.

Crash point: the next run is computed from the time at which a connector was stopped, which the config store keeps. So
if the leader is killed at the time of a run, the next leader starts it, and missed runs are made up for once.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final
from zoneinfo import ZoneInfo

from cronsim import CronSim

from connect.errors import ConfigError
from worker.config.restarts import RestartConfig
from worker.herder.cluster.leadership import Leadership
from worker.herder.connectors.change_queue import ChangeQueue
from worker.herder.inbox import Inbox, Later
from worker.herder.requests import Request, Requests, Steps
from worker.stores.config.store import ConfigStore, ConnectorEntry, TargetState

__all__ = ["Schedules", "due", "next_run"]

logger = logging.getLogger(__name__)
_LONGEST_WAIT_SECONDS: Final = 3600.0
_RETRY_SECONDS: Final = 1.0


def next_run(config: Mapping[str, str], after: datetime) -> datetime | None:
    """Return the first time after ``after`` at which a connector should run, in UTC; ``None`` without a schedule.

    Raises :class:`~connect.errors.ConfigError` if the schedule is invalid.
    """
    if not config.get("schedule"):
        return None
    parsed = RestartConfig.parse(config)
    times = CronSim(parsed.schedule, after.astimezone(ZoneInfo(parsed.schedule_timezone)))
    return next(times).astimezone(UTC)


class Schedules:
    """Starts connectors by their ``schedule`` while this worker leads."""

    def __init__(self, configs: ConfigStore, leadership: Leadership, changes: ChangeQueue, inbox: Inbox) -> None:
        self._configs = configs
        self._leadership = leadership
        self._changes = changes
        self._inbox = inbox
        self._requests = Requests(inbox)
        self._later: Later | None = None
        self._unreadable: dict[str, str] = {}

    def look(self) -> None:
        """Start the connectors that are due, and check again when the next one is."""
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
                waits.append(_RETRY_SECONDS)
            else:
                waits.append((at - now).total_seconds())
        if waits:
            # A clock that is set, or a machine that slept, is noticed within the longest wait.
            self._later = self._inbox.after(min(*waits, _LONGEST_WAIT_SECONDS), self.look)

    def _complain(self) -> None:
        """Log each invalid schedule once."""
        entries = self._configs.connectors().items()
        unreadable = {name: error for name, entry in entries if (error := _next(entry)) and isinstance(error, str)}
        for name, error in sorted(unreadable.items() - self._unreadable.items()):
            logger.warning("Connector %s will not be started by its schedule, which is invalid: %s", name, error)
        self._unreadable = unreadable

    def _start(self, name: str) -> None:
        logger.info("Connector %s is started by its schedule", name)
        self._requests.start(lambda request: self._start_in_turn(request, name))

    def _start_in_turn(self, request: Request[None], name: str) -> Steps[None]:
        try:
            yield from self._changes.turn(name, request)
            yield self._configs.put_target_state(name, TargetState.STARTED)
        except Exception as error:
            logger.warning("Connector %s is due but could not be started; the worker will try again: %s", name, error)
            self._inbox.after(_RETRY_SECONDS, self.look)


def due(entry: ConnectorEntry) -> datetime | None:
    """Return the next time at which a stopped connector should run.

    ``None`` if it runs, if a user has stopped it, or if its schedule, which others may have written, is invalid.
    """
    at = _next(entry)
    return at if isinstance(at, datetime) else None


def _next(entry: ConnectorEntry) -> datetime | str | None:
    """Return the time at which a connector is due, or why that is unknown."""
    if entry.target is not TargetState.STOPPED or entry.drained is None:
        return None
    try:
        return next_run(entry.config, datetime.fromtimestamp(entry.drained / 1000, UTC))
    except (ConfigError, ValueError, OverflowError, OSError) as error:
        return str(error)
