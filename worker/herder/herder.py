"""The herder: one thread with one inbox that decides what this worker runs.

Requests and notices come into the inbox and are handled one after the other. What to do is decided by
functions of the state (:mod:`worker.herder.reconcile`, :mod:`worker.herder.draining`) and done by the supervisor's
thread; the herder itself never waits for a plugin, a process or a socket.
"""

from __future__ import annotations

import itertools
import logging
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, replace
from queue import SimpleQueue
from typing import Any, Final, TypeVar

from connect.errors import AlreadyExistsError, ConfigError, ConnectError, NotFoundError
from worker.herder.draining import Drainable, draining
from worker.herder.reconcile import Action, Running, Start, Stop, Tell, desired_units, reconcile
from worker.herder.views import connector_status
from worker.membership.membership import Membership
from worker.stores.config import ConfigStore, ConnectorEntry, TargetState
from worker.stores.status import State, Status, StatusStore
from worker.supervisor.lifecycle import Phase
from worker.supervisor.messages import Drain, RunTask, ValidateConfig
from worker.supervisor.supervisor import Changed, Measured, Notice, Published, Supervisor, ValidationDone
from worker.unit import Unit

__all__ = ["Herder", "InvalidConnectorError", "Outcome"]

logger = logging.getLogger(__name__)
T = TypeVar("T")

_STATES: Final[Mapping[Phase, State]] = {
    Phase.RUNNING: State.RUNNING,
    Phase.DRAINED: State.RUNNING,
    Phase.PAUSED: State.PAUSED,
    Phase.FAILED: State.FAILED,
}


class InvalidConnectorError(ConnectError):
    """A connector's configuration is refused; ``infos`` has everything that was found (REST: 400)."""

    def __init__(self, message: str, infos: Mapping[str, Any]) -> None:
        super().__init__(message)
        self.infos = infos


@dataclass(frozen=True, slots=True)
class Outcome:
    """How the connectors with ``run.until=drained`` ended: those that failed."""

    failed: tuple[str, ...]


class Herder:
    """Runs connectors. The public methods may be called from any thread; their results come in futures."""

    def __init__(
        self,
        worker_props: Mapping[str, str],
        worker_id: str,
        configs: ConfigStore,
        statuses: StatusStore,
        membership: Membership,
        supervisor: Callable[[Callable[[Notice], None]], Supervisor],
    ) -> None:
        self._worker_props = dict(worker_props)
        self._worker_id = worker_id
        self._configs = configs
        self._statuses = statuses
        self._membership = membership
        self._inbox: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._supervisor = supervisor(lambda notice: self._inbox.put(lambda: self._notice(notice)))
        self._running: dict[Unit, Running] = {}
        self._published: set[str] = set()
        self._types: dict[str, str] = {}
        self._metrics: dict[Unit, dict[str, float]] = {}
        self._validations: dict[int, Callable[[ValidationDone], None]] = {}
        self._requests = itertools.count()
        self._drain: frozenset[str] = frozenset()
        self._closing = False
        self._thread = threading.Thread(target=self._loop, name="herder")
        self.drained: Future[Outcome] = Future()

    # -- from any thread -----------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to work."""
        self._supervisor.start_thread()
        self._thread.start()

    def close(self) -> None:
        """Stop every connector and task of this worker, and end; returns when they are gone."""
        self._inbox.put(self._begin_to_close)
        self._supervisor.close()
        self._inbox.put(None)
        self._thread.join()

    def create_connector(self, name: str, config: Mapping[str, str]) -> Future[None]:
        """Check a configuration and start a connector with it.

        The future fails with :class:`InvalidConnectorError`, or :class:`~connect.errors.AlreadyExistsError`.
        """
        return self._request(lambda future: self._create(future, name, dict(config)))

    def connector_names(self) -> Future[list[str]]:
        """The names of all connectors, in order."""
        return self._ask(lambda: sorted(self._configs.connectors()))

    def connector_status(self, name: str) -> Future[dict[str, Any]]:
        """The status of a connector and its tasks; the future fails with :class:`~connect.errors.NotFoundError`."""
        return self._ask(lambda: self._status(name))

    def totals(self) -> Future[dict[str, float]]:
        """What all tasks have counted and measured, added up."""
        return self._ask(self._totals)

    # -- in the herder's thread --------------------------------------------------------------------------------------

    def _loop(self) -> None:
        while (action := self._inbox.get()) is not None:
            try:
                action()
            except Exception as error:
                # A defect of ours. Going on could run a task twice, so the worker is to end (invariant I6).
                logger.exception("The herder failed; the worker stops")
                if not self.drained.done():
                    self.drained.set_exception(error)

    def _begin_to_close(self) -> None:
        self._closing = True

    def _request(self, begin: Callable[[Future[T]], None]) -> Future[T]:
        future: Future[T] = Future()

        def attempt() -> None:
            try:
                begin(future)
            except Exception as error:
                future.set_exception(error)

        self._inbox.put(attempt)
        return future

    def _ask(self, answer: Callable[[], T]) -> Future[T]:
        return self._request(lambda future: future.set_result(answer()))

    def _create(self, future: Future[None], name: str, config: dict[str, str]) -> None:
        if name in self._configs.connectors():
            raise AlreadyExistsError(f"Connector {name} already exists")
        if not config.get("connector.class"):
            raise ConfigError(
                "connector.class",
                None,
                f"Connector config {sorted(config)} contains no connector type; name one",
            )

        def decide(done: ValidationDone) -> None:
            try:
                self._check(done)
                if name in self._configs.connectors():
                    raise AlreadyExistsError(f"Connector {name} already exists")
            except ConnectError as error:
                future.set_exception(error)
                return
            self._types[name] = done.type
            self._configs.put_connector(name, config, None)
            future.set_result(None)
            self._reconcile()

        request = next(self._requests)
        self._validations[request] = decide
        self._supervisor.validate(request, ValidateConfig(config, self._worker_props))

    def _check(self, done: ValidationDone) -> None:
        if done.infos is None:
            raise ConnectError(f"The connector's configuration could not be checked: {done.error}")
        infos: dict[str, Any] = done.infos
        errors = [text for config in infos["configs"] for text in config["value"]["errors"]]
        if errors:
            listed = "\n".join(errors)
            raise InvalidConnectorError(
                f"Connector configuration is invalid and contains the following {len(errors)} error(s):\n{listed}\n"
                "You can also find the above list of errors at the endpoint "
                "`/connector-plugins/{connectorType}/config/validate`",
                infos,
            )

    def _status(self, name: str) -> dict[str, Any]:
        statuses = self._statuses.statuses()
        if Unit(name) not in statuses:
            raise NotFoundError(f"No status found for connector {name}")
        return connector_status(name, self._types.get(name, "unknown"), statuses, self._metrics)

    def _totals(self) -> dict[str, float]:
        totals: dict[str, float] = {}
        for values in self._metrics.values():
            for key, value in values.items():
                totals[key] = totals.get(key, 0.0) + value
        return totals

    # -- notices of the supervisor -----------------------------------------------------------------------------------

    def _notice(self, notice: Notice) -> None:
        match notice:
            case Measured(unit, values):
                self._metrics[unit] = values
                return
            case ValidationDone(request):
                self._validations.pop(request)(notice)
                return
            case Published(connector, configs):
                self._publish(connector, configs)
            case Changed(unit):
                self._changed(unit, notice)
        self._reconcile()

    def _publish(self, connector: str, configs: tuple[dict[str, str], ...]) -> None:
        entry = self._configs.connectors().get(connector)
        if entry is None or entry.target is TargetState.STOPPED:
            return
        self._published.add(connector)
        if entry.task_configs != configs:
            self._configs.put_task_configs(connector, configs)

    def _changed(self, unit: Unit, change: Changed) -> None:
        if change.phase is Phase.GONE:
            del self._running[unit]
            self._gone(unit)
            return
        self._running[unit] = replace(self._running[unit], phase=change.phase, version=change.version)
        if change.phase is Phase.FAILED:
            logger.error("%s failed:\n%s", unit, change.trace, extra={"context": str(unit)})
        if (state := _STATES.get(change.phase)) is not None:
            self._put_status(unit, state, change.trace)

    def _gone(self, unit: Unit) -> None:
        """What is said of a unit that has ended as it was asked to."""
        entry = self._configs.connectors().get(unit.connector)
        if entry is None or (unit.is_task and unit.task >= len(entry.task_configs)):
            self._statuses.remove(unit)
        elif not unit.is_task and entry.target is not TargetState.STARTED:
            state = State.STOPPED if entry.target is TargetState.STOPPED else State.PAUSED
            self._put_status(unit, state, None)
        else:
            self._put_status(unit, State.UNASSIGNED, None)

    def _put_status(self, unit: Unit, state: State, trace: str | None) -> None:
        running = self._running.get(unit)
        version = running.version if running is not None else None
        self._statuses.put(unit, Status(state, self._worker_id, self._membership.generation, trace, version))

    # -- deciding and acting -----------------------------------------------------------------------------------------

    def _reconcile(self) -> None:
        if self._closing:
            return
        self._see_to_draining()
        connectors = self._configs.connectors()
        desired = desired_units(connectors, self._worker_props, self._drain)
        assigned = self._membership.assigned(desired)
        wanted = {unit: item for unit, item in desired.items() if unit in assigned}
        for action in reconcile(wanted, self._running):
            self._act(action)

    def _act(self, action: Action) -> None:
        match action:
            case Start(unit, desired):
                self._running[unit] = Running(desired.command, paused=desired.paused)
                command = desired.command
                if isinstance(command, RunTask):
                    command = replace(command, paused=desired.paused)
                self._put_status(unit, State.UNASSIGNED, None)
                self._supervisor.start(unit, command)
            case Stop(unit):
                self._running[unit] = replace(self._running[unit], phase=Phase.STOPPING)
                self._supervisor.stop(unit)
            case Tell(unit, command):
                running = self._running[unit]
                if isinstance(command, Drain):
                    self._running[unit] = replace(running, drain=True)
                else:
                    self._running[unit] = replace(running, paused=not running.paused)
                self._supervisor.command(unit, command)

    def _see_to_draining(self) -> None:
        entries = self._configs.connectors()
        bounded = {name: entry for name, entry in entries.items() if entry.config.get("run.until") == "drained"}
        decision = draining({name: self._drainable(name, entry) for name, entry in bounded.items()})
        self._drain = decision.sinks
        for name in decision.stop:
            self._configs.put_task_configs(name, ())
            self._configs.put_target_state(name, TargetState.STOPPED)
        only_bounded = len(bounded) == len(entries)
        if decision.finished and only_bounded and not self.drained.done():
            failed = sorted({unit.connector for unit, item in self._running.items() if item.phase is Phase.FAILED})
            self.drained.set_result(Outcome(tuple(failed)))

    def _drainable(self, name: str, entry: ConnectorEntry) -> Drainable:
        connector = self._running.get(Unit(name))
        tasks = None
        if name in self._published:
            units = [Unit(name, task) for task in range(len(entry.task_configs))]
            tasks = tuple(self._running[unit].phase if unit in self._running else None for unit in units)
        return Drainable(
            is_source=self._types.get(name) == "source",
            stopped=entry.target is TargetState.STOPPED,
            connector=connector.phase if connector is not None else None,
            tasks=tasks,
        )
