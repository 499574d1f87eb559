"""What runs on this worker: it is made to be what should run, and its states are kept. The herder's thread alone."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from worker.herder.draining import Drainable, draining
from worker.herder.reconcile import Action, Running, Start, Stop, Tell, desired_units, reconcile
from worker.membership.membership import Membership
from worker.stores.config import ConfigStore, ConnectorEntry, TargetState
from worker.stores.status import State, Status, StatusStore
from worker.supervisor.lifecycle import Phase
from worker.supervisor.messages import Drain, RunTask
from worker.supervisor.supervisor import Changed, Published, Supervisor
from worker.unit import Unit

__all__ = ["Outcome", "Units"]

logger = logging.getLogger(__name__)

_STATES: Final[Mapping[Phase, State]] = {
    Phase.RUNNING: State.RUNNING,
    Phase.DRAINED: State.RUNNING,
    Phase.PAUSED: State.PAUSED,
    Phase.FAILED: State.FAILED,
}
_AT_REST: Final[Mapping[TargetState, State]] = {
    TargetState.PAUSED: State.PAUSED,
    TargetState.STOPPED: State.STOPPED,
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """How the connectors with ``run.until=drained`` ended: those that failed."""

    failed: tuple[str, ...]


class Units:
    """The connectors and tasks of this worker. ``is_source`` tells the kind of a connector."""

    def __init__(
        self,
        worker_props: Mapping[str, str],
        worker_id: str,
        configs: ConfigStore,
        statuses: StatusStore,
        membership: Membership,
        supervisor: Supervisor,
        is_source: Callable[[str], bool],
    ) -> None:
        self._worker_props = dict(worker_props)
        self._worker_id = worker_id
        self._configs = configs
        self._statuses = statuses
        self._membership = membership
        self._supervisor = supervisor
        self._is_source = is_source
        self._running: dict[Unit, Running] = {}
        self._published: set[str] = set()
        self._restarting: set[Unit] = set()
        self._held: set[str] = set()
        self._when_gone: defaultdict[str, list[Callable[[], None]]] = defaultdict(list)
        self._drain: frozenset[str] = frozenset()
        self._all_created = False
        self.outcome: Outcome | None = None

    # -- what happens ------------------------------------------------------------------------------------------------

    def published(self, notice: Published) -> None:
        """A connector said which tasks it wants."""
        name = notice.connector
        entry, connector = self._configs.connectors().get(name), self._running.get(Unit(name))
        if entry is None or entry.target is TargetState.STOPPED or connector is None:
            return
        if connector.phase is Phase.STOPPING or connector.command.config != entry.config:
            # Of a configuration that is no more; the connector is about to say it again.
            return
        self._published.add(name)
        if entry.task_configs != notice.configs or entry.applied != entry.config:
            self._configs.put_task_configs(name, notice.configs)

    def changed(self, change: Changed) -> None:
        """A unit entered a phase."""
        unit = change.unit
        if change.phase is Phase.GONE:
            del self._running[unit]
            self._gone(unit)
            return
        self._running[unit] = replace(self._running[unit], phase=change.phase, version=change.version)
        if change.phase is Phase.FAILED:
            logger.error("%s failed:\n%s", unit, change.trace, extra={"context": str(unit)})
        if (state := _STATES.get(change.phase)) is not None:
            self._restarting.discard(unit)
            self._put_status(unit, state, change.trace)

    # -- what is wanted ----------------------------------------------------------------------------------------------

    def runs(self, unit: Unit) -> bool:
        """Whether a unit has a process, or had one until it failed."""
        return unit in self._running

    def restart(self, units: Iterable[Unit]) -> None:
        """Stop these, as far as they run; the next :meth:`reconcile` after their end starts them again."""
        for unit in units:
            running = self._running.get(unit)
            if running is None or running.phase is Phase.STOPPING:
                continue
            self._restarting.add(unit)
            status = self._statuses.statuses().get(unit)
            self._put_status(unit, State.RESTARTING, status.trace if status is not None else None)
            self._act(Stop(unit))

    def hold(self, connector: str, when_gone: Callable[[], None]) -> None:
        """Start nothing of this connector until :meth:`release`; ``when_gone`` is called once nothing of it runs."""
        self._held.add(connector)
        self._when_gone[connector].append(when_gone)
        self._look_whether_gone(connector)

    def release(self, connector: str) -> None:
        """Let the connector start again, with the next :meth:`reconcile`."""
        self._held.discard(connector)

    def holds(self, connector: str) -> bool:
        """Whether the connector is held."""
        return connector in self._held

    def forget(self, connector: str) -> None:
        """The connector is no more: neither are its statuses."""
        self._published.discard(connector)
        self._statuses.remove_topics(connector)
        for unit in [unit for unit in self._statuses.statuses() if unit.connector == connector]:
            self._statuses.remove(unit)

    def reconcile(self) -> None:
        """Do what brings that which runs nearer to what should."""
        self._see_to_draining()
        connectors = self._configs.connectors()
        desired = desired_units(connectors, self._worker_props, self._drain)
        assigned = self._membership.assigned(desired)
        wanted = {unit: item for unit, item in desired.items() if unit in assigned and unit.connector not in self._held}
        for action in reconcile(wanted, self._running):
            self._act(action)
        self._tell_of_rest(connectors)

    # -- acting --------------------------------------------------------------------------------------------------------

    def _act(self, action: Action) -> None:
        match action:
            case Start(unit, desired):
                self._running[unit] = Running(desired.command, paused=desired.paused)
                command = desired.command
                if isinstance(command, RunTask):
                    command = replace(command, paused=desired.paused)
                if unit not in self._restarting:
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

    def _gone(self, unit: Unit) -> None:
        """What is said of a unit that has ended as it was asked to."""
        entry = self._configs.connectors().get(unit.connector)
        if entry is None or (unit.is_task and unit.task >= len(entry.task_configs)):
            self._restarting.discard(unit)
            self._statuses.remove(unit)
        elif not unit.is_task and (state := _AT_REST.get(entry.target)) is not None:
            self._restarting.discard(unit)
            self._put_status(unit, state, None)
        elif unit not in self._restarting:
            self._put_status(unit, State.UNASSIGNED, None)
        self._look_whether_gone(unit.connector)

    def _look_whether_gone(self, connector: str) -> None:
        if not any(unit.connector == connector for unit in self._running):
            for action in self._when_gone.pop(connector, []):
                action()

    def _tell_of_rest(self, connectors: Mapping[str, ConnectorEntry]) -> None:
        """Say of connectors that do not run that this is as it should be."""
        resting = {Unit(name): _AT_REST[entry.target] for name, entry in connectors.items() if entry.target in _AT_REST}
        statuses = self._statuses.statuses()
        for unit in self._membership.assigned(resting) - self._running.keys():
            if unit not in statuses or statuses[unit].state is not resting[unit]:
                self._put_status(unit, resting[unit], None)

    def _put_status(self, unit: Unit, state: State, trace: str | None) -> None:
        if unit.connector not in self._configs.connectors():
            return
        running, before = self._running.get(unit), self._statuses.statuses().get(unit)
        version = running.version if running is not None else None
        if version is None and before is not None:
            version = before.version
        self._statuses.put(unit, Status(state, self._worker_id, self._membership.generation, trace, version))

    # -- draining ------------------------------------------------------------------------------------------------------

    def all_created(self) -> None:
        """There are no more connectors to come: sinks need not wait for sources that are not there yet."""
        self._all_created = True

    def _see_to_draining(self) -> None:
        entries = self._configs.connectors()
        bounded = {name: entry for name, entry in entries.items() if entry.config.get("run.until") == "drained"}
        decision = draining({name: self._drainable(name, entry) for name, entry in bounded.items()})
        if self._all_created:
            self._drain = decision.sinks
        for name in decision.stop:
            self._configs.put_task_configs(name, ())
            self._configs.put_target_state(name, TargetState.STOPPED)
        only_bounded = len(bounded) == len(entries)
        if self._all_created and decision.finished and only_bounded and self.outcome is None:
            failed = sorted({unit.connector for unit, item in self._running.items() if item.phase is Phase.FAILED})
            self.outcome = Outcome(tuple(failed))

    def _drainable(self, name: str, entry: ConnectorEntry) -> Drainable:
        connector = self._running.get(Unit(name))
        tasks = None
        if name in self._published:
            units = [Unit(name, task) for task in range(len(entry.task_configs))]
            tasks = tuple(self._running[unit].phase if unit in self._running else None for unit in units)
        return Drainable(
            is_source=self._is_source(name),
            stopped=entry.target is TargetState.STOPPED,
            connector=connector.phase if connector is not None else None,
            tasks=tasks,
        )
