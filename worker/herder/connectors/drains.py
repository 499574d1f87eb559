"""Connectors with ``run.until=drained``: tells their sinks to drain, and stops drained connectors."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from worker.herder.cluster.leadership import Leadership
from worker.herder.connectors.change_queue import ChangeQueue
from worker.herder.inbox import Inbox, Later
from worker.herder.requests import Request, Requests, Steps
from worker.stores.config.store import ConfigStore, ConnectorEntry, TargetState
from worker.stores.status.store import State, Status, StatusStore
from worker.supervisor.lifecycle import Phase
from worker.unit import Unit

__all__ = ["Drainable", "Draining", "Drains", "Outcome", "draining"]

logger = logging.getLogger(__name__)
_LOOK_AGAIN_SECONDS: Final = 0.5


@dataclass(frozen=True, slots=True)
class Drainable:
    """The phases of a connector with ``run.until=drained`` and of its tasks.

    ``tasks`` is ``None`` until the connector has published its task configs. A stopped connector was drained before.
    """

    is_source: bool
    stopped: bool
    connector: Phase | None
    tasks: tuple[Phase | None, ...] | None

    @property
    def failed(self) -> bool:
        """Whether the connector or one of its tasks has failed, so that it cannot drain."""
        return self.connector is Phase.FAILED or Phase.FAILED in (self.tasks or ())

    @property
    def drained(self) -> bool:
        """Whether all records are delivered."""
        return self.stopped or (self.tasks is not None and all(phase is Phase.DRAINED for phase in self.tasks))

    @property
    def done(self) -> bool:
        """Whether there is nothing left to wait for."""
        return self.drained or self.failed


@dataclass(frozen=True, slots=True)
class Draining:
    """A decision: the sinks to drain, the connectors to stop, and whether all are done."""

    sinks: frozenset[str]
    stop: frozenset[str]
    finished: bool


def draining(connectors: Mapping[str, Drainable]) -> Draining:
    """Decide for all connectors with ``run.until=drained``."""
    sources_done = all(connector.done for connector in connectors.values() if connector.is_source)
    sinks = frozenset(name for name, connector in connectors.items() if sources_done and not connector.is_source)
    stop = frozenset(name for name, connector in connectors.items() if connector.drained and not connector.stopped)
    finished = bool(connectors) and all(connector.stopped or connector.failed for connector in connectors.values())
    return Draining(sinks, stop, finished)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of connectors with ``run.until=drained``: the failed ones."""

    failed: tuple[str, ...]


class Drains:
    """Watches connectors with ``run.until=drained``, tells their sinks to drain, and stops drained connectors.

    In a standalone worker (``together``), sinks wait for its sources after :meth:`all_created` was called. In a
    cluster, where connectors are independent of each other, a sink drains from its start. Failed units that will be
    restarted soon (``will_restart``) are waited for.
    """

    def __init__(
        self,
        configs: ConfigStore,
        statuses: StatusStore,
        leadership: Leadership,
        changes: ChangeQueue,
        inbox: Inbox,
        is_source: Callable[[str], bool],
        will_restart: Callable[[Unit], bool],
        *,
        together: bool,
    ) -> None:
        self._configs = configs
        self._statuses = statuses
        self._leadership = leadership
        self._changes = changes
        self._inbox = inbox
        self._requests = Requests(inbox)
        self._is_source = is_source
        self._will_restart = will_restart
        self._together = together
        self._all_created = False
        self._later: Later | None = None

    def all_created(self) -> None:
        """Let sinks drain: every source they might wait for has been created."""
        self._all_created = True

    def sinks(self) -> frozenset[str]:
        """Return the sinks that should deliver the records there are and stop."""
        bounded = self._bounded()
        if not self._together:
            return frozenset(name for name in bounded if not self._is_source(name))
        return draining(self._drainable(bounded)).sinks if self._all_created else frozenset()

    def stop_drained(self) -> None:
        """As the leader, stop the connectors that are drained."""
        if not self._leadership.is_ready:
            return
        bounded = self._bounded()
        self._look_later(bounded)
        self._remove_leftovers(bounded)
        for name in filter(self._changes.is_free, draining(self._drainable(bounded)).stop):
            self._stop(name)
        for name, entry in self._configs.connectors().items():
            if entry.target is TargetState.STOPPED and entry.task_configs and self._changes.is_free(name):
                # The connector published task configs while it was being stopped, or Kafka Connect left it so.
                self._clear(name, entry.drained)

    def outcome(self) -> Outcome | None:
        """Return the outcome of a standalone worker whose connectors all drain, once they have."""
        bounded = self._bounded()
        ends = {name: entry for name, entry in bounded.items() if not entry.config.get("schedule")}
        finished = draining(self._drainable(ends)).finished and len(ends) == len(self._configs.connectors())
        if not (self._together and self._all_created and finished):
            return None
        statuses = self._statuses.statuses()
        failed = {unit.connector for unit, status in statuses.items() if status.state is State.FAILED}
        return Outcome(tuple(sorted(failed)))

    def _look_later(self, bounded: Mapping[str, ConnectorEntry]) -> None:
        """Check again in a moment while any connector runs: tasks of other workers may have drained."""
        runs = any(entry.target is not TargetState.STOPPED for entry in bounded.values())
        if runs and self._later is None and not self._together:
            self._later = self._inbox.after(_LOOK_AGAIN_SECONDS, self._look)

    def _look(self) -> None:
        self._later = None
        self.stop_drained()

    def _remove_leftovers(self, bounded: Mapping[str, ConnectorEntry]) -> None:
        """Remove the statuses of drained tasks that a connector no longer has, so that they run if they return."""
        for unit, status in self._statuses.statuses().items():
            entry = bounded.get(unit.connector)
            if entry is None or not (unit.is_task and status.drained) or not self._changes.is_free(unit.connector):
                continue
            if entry.target is not TargetState.STOPPED and unit.task >= len(entry.task_configs):
                self._statuses.remove(unit)

    def _stop(self, name: str) -> None:
        logger.info("Connector %s is drained and stops", name)
        self._clear(name, time.time_ns() // 1_000_000)

    def _clear(self, name: str, drained: int | None) -> None:
        self._requests.start(lambda request: self._clear_in_turn(request, name, drained))

    def _clear_in_turn(self, request: Request[None], name: str, drained: int | None) -> Steps[None]:
        try:
            yield from self._changes.turn(name, request)
            yield from stop_connector(self._configs, name, drained)
        except Exception as error:
            logger.warning(
                "Connector %s is drained but could not be stopped; the worker will try again: %s", name, error
            )

    def _bounded(self) -> dict[str, ConnectorEntry]:
        entries = self._configs.connectors().items()
        return {name: entry for name, entry in entries if entry.config.get("run.until") == "drained"}

    def _drainable(self, bounded: Mapping[str, ConnectorEntry]) -> dict[str, Drainable]:
        statuses = self._statuses.statuses()
        return {name: self._standing(name, entry, statuses) for name, entry in bounded.items()}

    def _standing(self, name: str, entry: ConnectorEntry, statuses: Mapping[Unit, Status]) -> Drainable:
        connector = self._phase(Unit(name), statuses)
        units = [Unit(name, task) for task in range(len(entry.task_configs))]
        tasks: tuple[Phase | None, ...] | None = tuple(self._phase(unit, statuses) for unit in units)
        if entry.applied != entry.config or (not units and connector is not Phase.DRAINED):
            tasks = None
        stopped = entry.target is TargetState.STOPPED
        return Drainable(is_source=self._is_source(name), stopped=stopped, connector=connector, tasks=tasks)

    def _phase(self, unit: Unit, statuses: Mapping[Unit, Status]) -> Phase | None:
        status = statuses.get(unit)
        if status is None:
            return None
        if status.drained:
            return Phase.DRAINED
        return Phase.FAILED if status.state is State.FAILED and not self._will_restart(unit) else Phase.RUNNING


def stop_connector(configs: ConfigStore, name: str, drained: int | None = None) -> Steps[None]:
    """Remove a connector's tasks and then stop it: in this order, so that a stopped connector never has tasks."""
    yield configs.put_task_configs(name, ())
    yield configs.put_target_state(name, TargetState.STOPPED, drained)
