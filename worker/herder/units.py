"""Starts and stops the units of this worker and writes their statuses. Used only in the herder's thread.

A unit whose process the worker ends before it runs is started again later and later.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from worker.formatting import utc_text
from worker.herder.cluster.publishing import Publishing
from worker.herder.connectors.automatic_restarts import ExpiryRestarts, RestartPolicy
from worker.herder.inbox import Action, Deferred, Inbox, Later
from worker.herder.reconcile import Action as Step
from worker.herder.reconcile import Desired, DesiredUnits, Running, Start, Stop, Tell, reconcile, units_of
from worker.herder.settings import Stores, WorkerSettings
from worker.herder.unit_statuses import AT_REST, UnitStatuses
from worker.membership.events import Joined
from worker.membership.membership import Membership
from worker.messages.hangs import Hanging, not_returned
from worker.messages.messages import Drain, Fail, Pause, Resume, RunConnector, RunTask, Skipped, TakeConfig, Waiting
from worker.stores.config.store import TargetState
from worker.stores.status.store import Hang, Skips, State, Wait
from worker.supervisor.lifecycle import Phase
from worker.supervisor.notices import Changed, Expires, Hangs, Noted, Published
from worker.supervisor.supervisor import Supervisor
from worker.unit import Unit

__all__ = ["StartBackoff", "Units"]

logger = logging.getLogger(__name__)

_STATES: Final[Mapping[Phase, State]] = {
    Phase.RUNNING: State.RUNNING,
    Phase.DRAINED: State.RUNNING,
    Phase.PAUSED: State.PAUSED,
    Phase.FAILED: State.FAILED,
}


_FIRST_WAIT_SECONDS: Final = 0.5
_LONGEST_WAIT_SECONDS: Final = 60.0
_MOST_DOUBLINGS: Final = 16


@dataclass(frozen=True, slots=True)
class _Tried:
    command: RunConnector | RunTask
    times: int
    waits: bool


class StartBackoff:
    """Counts the ended starts of each unit until it runs; calls ``reconcile`` once a unit may start again."""

    def __init__(self, inbox: Inbox, reconcile: Action) -> None:
        self._inbox = inbox
        self._reconcile = reconcile
        self._tried: dict[Unit, _Tried] = {}

    def add(self, unit: Unit, command: RunConnector | RunTask) -> None:
        """Record a start that the worker ended. The second start follows at once, because something has changed."""
        before = self._tried.get(unit)
        times = before.times + 1 if before is not None and before.command == command else 1
        tried = self._tried[unit] = _Tried(command, times, times > 1)
        if tried.waits:
            seconds = min(_FIRST_WAIT_SECONDS * 2.0 ** min(times - 2, _MOST_DOUBLINGS), _LONGEST_WAIT_SECONDS)
            self._inbox.after(seconds, lambda: self._waited(unit, tried))

    def hold_back(self, unit: Unit, command: RunConnector | RunTask) -> bool:
        """Return whether it is too early to start the unit again with this command."""
        tried = self._tried.get(unit)
        return tried is not None and tried.waits and tried.command == command

    def forget(self, unit: Unit) -> None:
        """Forget a unit that runs or was removed."""
        self._tried.pop(unit, None)

    def _waited(self, unit: Unit, tried: _Tried) -> None:
        if self._tried.get(unit) is tried:
            self._tried[unit] = _Tried(tried.command, tried.times, waits=False)
            self._reconcile()


class Units:
    """The connectors and tasks of this worker. ``may_start`` is whether a unit may start yet."""

    def __init__(
        self,
        worker: WorkerSettings,
        stores: Stores,
        membership: Membership,
        supervisor: Supervisor,
        publishing: Publishing,
        inbox: Inbox,
        may_start: Callable[[Unit], bool],
        reconcile: Action,
    ) -> None:
        self._worker_props = dict(worker.props)
        self._desired = DesiredUnits(self._worker_props)
        self._configs = stores.configs
        self._statuses = UnitStatuses(worker, stores, membership)
        self._membership = membership
        self._supervisor = supervisor
        self._publishing = publishing
        self._inbox = inbox
        self._may_start = may_start
        self._running: dict[Unit, Running] = {}
        self._restarting: set[Unit] = set()
        self._restarts: dict[Unit, tuple[float, ...]] = {}
        self._to_restart: dict[Unit, Later] = {}
        self._when_gone: list[tuple[Callable[[], bool], Deferred[None]]] = []
        self._start_backoff = StartBackoff(inbox, reconcile)
        self._expiry_restarts = ExpiryRestarts(self.restart, inbox)

    # -- what happens ------------------------------------------------------------------------------------------------

    def heard(self, notice: Changed | Published | Expires | Hangs | Noted) -> None:
        """Handle a notice from a unit's process."""
        match notice:
            case Changed():
                self._expiry_restarts.changed(notice)
                self._changed(notice)
            case Published():
                self._published(notice)
            case Expires():
                self._expiry_restarts.expires(notice)
            case Hangs():
                self._hangs(notice)
            case Noted():
                self._noted(notice)

    def _published(self, notice: Published) -> None:
        name = notice.connector
        entry, connector = self._configs.connectors().get(name), self._running.get(Unit(name))
        if entry is None or entry.target is TargetState.STOPPED or connector is None:
            return
        if not self.speaks_for(Unit(name)):
            # The worker that runs it publishes, and its task configs may differ.
            return
        if connector.phase is Phase.STOPPING or connector.command.config != entry.config:
            # From an outdated configuration; the connector will publish again.
            return
        if not notice.configs:
            self._put_status(Unit(name), State.RUNNING, None, drained=True)
        self._publishing.publish(name, entry.config, notice.configs)

    def _hangs(self, notice: Hangs) -> None:
        """Show the call in which a unit hangs, or that it has returned."""
        unit, hanging, context = notice.unit, notice.hanging, {"context": str(notice.unit)}
        running = self._running.get(unit)
        if running is None:
            return
        if hanging is not None:
            message = not_returned(hanging.method, hanging.seconds, hanging.line)
            logger.warning("%s\n%s", message, hanging.trace, extra=context)
        elif running.hanging is not None:
            logger.info("%s has returned", running.hanging.method, extra=context)
        self._running[unit] = replace(running, hanging=_shown(hanging))
        self._show(unit, running.phase)

    def _noted(self, notice: Noted) -> None:
        """Show what a task waits for, and the records that it has left out."""
        unit, running = notice.unit, self._running.get(notice.unit)
        if running is None:
            return
        match notice.note:
            case Waiting(reason):
                waiting = None if reason is None else Wait(reason, utc_text(time.time()))
                self._running[unit] = replace(running, waiting=waiting)
            case Skipped() as skipped:
                self._running[unit] = replace(running, skipped=_skips(skipped))
        self._show(unit, running.phase)

    def _show(self, unit: Unit, phase: Phase) -> None:
        """Write the status of a unit again, in its state, since something else about it has changed."""
        if phase is Phase.STOPPING:
            return
        begins = State.RESTARTING if unit in self._restarting else State.UNASSIGNED
        state, before = _STATES.get(phase, begins), self._statuses.of(unit)
        trace = before.trace if before is not None and state in (State.RESTARTING, State.FAILED) else None
        self._put_status(unit, state, trace, drained=before is not None and before.drained)

    def _changed(self, change: Changed) -> None:
        unit = change.unit
        if change.phase is Phase.GONE:
            del self._running[unit]
            self._forget_restart(unit)
            self._gone(unit)
            return
        self._running[unit] = replace(self._running[unit], phase=change.phase, version=change.version)
        if change.phase is Phase.FAILED:
            self._running[unit] = replace(self._running[unit], hanging=None, waiting=None)
            kind = "task" if unit.is_task else "connector"
            logger.error("The %s failed: %s", kind, change.trace, extra={"context": str(unit)})
            self._restart_later(unit)
        if (state := _STATES.get(change.phase)) is not None:
            self._restarting.discard(unit)
            self._start_backoff.forget(unit)
            self._put_status(unit, state, change.trace, drained=change.phase is Phase.DRAINED)

    @property
    def running(self) -> Collection[Unit]:
        """The units that this worker runs, including those that are stopping."""
        return self._running.keys()

    # -- what is wanted ----------------------------------------------------------------------------------------------

    def assigned(self, unit: Unit) -> bool:
        """Return whether a unit is assigned to this worker."""
        return bool(self._membership.assigned([unit]))

    def phase(self, unit: Unit) -> Phase | None:
        """Return the phase of a unit; ``None`` if it does not run here."""
        running = self._running.get(unit)
        return None if running is None else running.phase

    def is_current(self, unit: Unit) -> bool:
        """Return whether a unit is assigned to this worker and its process has the current configuration."""
        entry, running = self._configs.connectors().get(unit.connector), self._running.get(unit)
        if entry is None or running is None or not (self.speaks_for(unit) and self.assigned(unit)):
            return False
        wanted = units_of(unit.connector, entry, self._worker_props).get(unit)
        return wanted is not None and running.phase is not Phase.STOPPING and running.command == wanted.command

    def will_restart(self, unit: Unit) -> bool:
        """Return whether a unit that failed here will soon be restarted by its connector's ``restart.policy``."""
        return unit in self._to_restart

    def stop(self, unit: Unit) -> None:
        """Stop a unit if it runs; :meth:`reconcile` starts it again once it has ended, if it should run."""
        running = self._running.get(unit)
        if running is not None and running.phase is not Phase.STOPPING:
            self._act(Stop(unit))

    def turn_away(self, unit: Unit) -> None:
        """Stop a unit whose process is outdated; it is started again if it should still run."""
        running = self._running.get(unit)
        if running is not None and running.phase is not Phase.STOPPING:
            self._start_backoff.add(unit, running.command)
            self._act(Stop(unit))

    def fail(self, unit: Unit, reason: str) -> None:
        """Fail a unit if it runs."""
        running = self._running.get(unit)
        if running is not None and running.phase is not Phase.STOPPING:
            self._supervisor.command(unit, Fail(reason))

    def stop_all(self, connector: str) -> None:
        """Stop a connector and its tasks immediately, although the next :meth:`reconcile` may want them to run again.

        A process that kept running would not publish its task configs again, and those it has published were removed.
        """
        for unit in [unit for unit in self._running if unit.connector == connector]:
            self.stop(unit)

    def restart(self, units: Iterable[Unit]) -> None:
        """Stop the given units if they run; :meth:`reconcile` starts them again once they have ended."""
        for unit in units:
            running = self._running.get(unit)
            if running is None or running.phase is Phase.STOPPING:
                continue
            self._restarting.add(unit)
            status = self._statuses.of(unit)
            self._put_status(unit, State.RESTARTING, status.trace if status is not None else None)
            self._act(Stop(unit))

    def connector_gone(self, connector: str) -> Deferred[None]:
        """Return a future that completes once no unit of a connector runs here."""
        return self._await(lambda: not any(unit.connector == connector for unit in self._running))

    def gone(self, units: Collection[Unit] | None) -> Deferred[None]:
        """Return a future that completes once none of the given units runs here, or no unit at all."""
        return self._await(lambda: self._running.keys().isdisjoint(units) if units is not None else not self._running)

    def joined(self) -> None:
        """Resume writing statuses: this worker has joined its cluster."""
        self._statuses.joined()

    def divided(self, joined: Joined) -> None:
        """Publish pending task configs again after a rebalance, and as the leader disown the units of nobody."""
        if joined.division is not None:
            self._statuses.disown(joined.held | joined.division.owners.keys() | joined.division.reported)
        self._publishing.joined()

    def lost(self, within: float) -> None:
        """Stop all units, kill them after ``within`` seconds, and write no more statuses."""
        self._statuses.lost()
        for unit in list(self._running):
            self._publishing.forget(unit.connector)
            self._running[unit] = replace(self._running[unit], phase=Phase.STOPPING)
            self._supervisor.stop(unit, within)

    def tasks_changed(self, connector: str) -> None:
        """Compare a connector's new task configs with the ones it published, and clean up after former tasks."""
        self._publishing.look(connector)
        self._statuses.remove_leftovers(connector, self._running)

    def forget(self, connector: str, *, with_statuses: bool) -> None:
        """Stop a deleted connector; the leader also removes the statuses of units that no worker runs."""
        self._publishing.forget(connector)
        self.stop_all(connector)
        self._restarts = {unit: times for unit, times in self._restarts.items() if unit.connector != connector}
        if with_statuses:
            self._statuses.remove_connector(connector)

    def reconcile(self, drain: frozenset[str]) -> None:
        """Take the next steps towards what should run; ``drain`` names the sinks that should drain."""
        connectors = self._configs.connectors()
        desired = self._desired.of(connectors, drain)
        assigned = self._membership.assigned(desired)
        wanted = {unit: item for unit, item in desired.items() if unit in assigned and self._may_run(unit, item)}
        for step in reconcile(wanted, self._running):
            self._act(step)
        for unit, state in self._statuses.at_rest(self._running).items():
            self._put_status(unit, state, None)

    def _may_run(self, unit: Unit, desired: Desired) -> bool:
        if unit in self._running:
            return True
        return not self._start_backoff.hold_back(unit, desired.command) and self._may_start(unit)

    # -- acting --------------------------------------------------------------------------------------------------------

    def _act(self, step: Step) -> None:
        match step:
            case Start(unit, desired):
                self._start(unit, desired)
            case Stop(unit):
                if not unit.is_task:
                    self._publishing.forget(unit.connector)
                self._running[unit] = replace(self._running[unit], phase=Phase.STOPPING)
                self._supervisor.stop(unit)
            case Tell(unit, command):
                self._running[unit] = _after_command(self._running[unit], command)
                self._supervisor.command(unit, command)

    def _start(self, unit: Unit, desired: Desired) -> None:
        self._running[unit] = Running(desired.command, paused=desired.paused, since=desired.since)
        command = desired.command
        if isinstance(command, RunTask):
            command = replace(command, paused=desired.paused)
        self._take_over_restarts(unit)
        if unit not in self._restarting:
            self._put_status(unit, State.UNASSIGNED, None)
        self._supervisor.start(unit, command)

    def _take_over_restarts(self, unit: Unit) -> None:
        """Continue another worker's restart count. The restart times are unknown, so all count as made now."""
        before = self._statuses.of(unit)
        if before is not None and (not self._statuses.is_ours(before) or unit not in self._restarts):
            self._restarts[unit] = (time.monotonic(),) * before.restarts

    def _restart_later(self, unit: Unit) -> None:
        """Schedule a restart of a failed unit if its connector's ``restart.policy`` says so."""
        entry = self._configs.connectors().get(unit.connector)
        if entry is None:
            return
        policy, now = RestartPolicy.of(entry.config), time.monotonic()
        before = policy.recent(self._restarts.get(unit, ()), now)
        if (delay := policy.delay(before, now)) is None:
            return
        logger.info("%s will be restarted in %.1f s (restart.policy)", unit, delay, extra={"context": str(unit)})

        def again() -> None:
            del self._to_restart[unit]
            if self._running[unit].phase is Phase.FAILED:
                self._restarts[unit] = (*before, time.monotonic())
                self.restart([unit])

        self._forget_restart(unit)
        self._to_restart[unit] = self._inbox.after(delay, again)

    def _forget_restart(self, unit: Unit) -> None:
        """Cancel the restart of a failure that is over: the next failure has its own."""
        if (later := self._to_restart.pop(unit, None)) is not None:
            later.cancel()

    def _gone(self, unit: Unit) -> None:
        """Write or remove the status of a unit that has ended as requested."""
        entry = self._configs.connectors().get(unit.connector)
        if entry is None or (unit.is_task and unit.task >= len(entry.task_configs)):
            self._restarting.discard(unit)
            self._restarts.pop(unit, None)
            self._start_backoff.forget(unit)
            self._statuses.remove(unit)
        elif not unit.is_task and (state := AT_REST.get(entry.target)) is not None:
            self._restarting.discard(unit)
            self._put_status(unit, state, None)
        elif unit not in self._restarting:
            self._put_status(unit, State.UNASSIGNED, None)
        self._look_what_is_gone()

    def _await(self, condition: Callable[[], bool]) -> Deferred[None]:
        gone: Deferred[None] = Deferred()
        self._when_gone.append((condition, gone))
        self._look_what_is_gone()
        return gone

    def _look_what_is_gone(self) -> None:
        met = [item for item in self._when_gone if item[0]()]
        self._when_gone = [item for item in self._when_gone if item not in met]
        for _, gone in met:
            gone.set_result(None)

    def speaks_for(self, unit: Unit) -> bool:
        """Return whether this worker may write the status of one of its units: it is still a member of its cluster."""
        return self._statuses.speaks_for(unit)

    def _put_status(self, unit: Unit, state: State, trace: str | None, *, drained: bool = False) -> None:
        running = self._running.get(unit)
        version, hanging = (running.version, running.hanging) if running is not None else (None, None)
        waiting = running.waiting if running is not None and state is State.RUNNING else None
        skipped = running.skipped if running is not None else None
        restarts = self._recent_restarts(unit)
        self._statuses.put(
            unit,
            state,
            trace,
            version,
            restarts,
            drained=drained,
            hanging=hanging,
            waiting=waiting,
            skipped=skipped,
        )

    def _recent_restarts(self, unit: Unit) -> int:
        """Return the number of restarts by ``restart.policy`` that still count."""
        restarts, entry = self._restarts.get(unit), self._configs.connectors().get(unit.connector)
        if not restarts or entry is None:
            return 0
        return len(RestartPolicy.of(entry.config).recent(restarts, time.monotonic()))


def _after_command(running: Running, command: Pause | Resume | Drain | TakeConfig) -> Running:
    """Return the running unit after a command was sent to it."""
    match command:
        case TakeConfig(config):
            assert isinstance(running.command, RunTask)
            return replace(running, command=replace(running.command, config=config))
        case Drain():
            return replace(running, drain=True)
        case Pause() | Resume():
            return replace(running, paused=isinstance(command, Pause))


def _skips(skipped: Skipped) -> Skips:
    return Skips(
        int(skipped.records),
        int(skipped.dead_letters),
        utc_text(skipped.since),
        utc_text(skipped.last),
        str(skipped.reason),
    )


def _shown(hanging: Hanging | None) -> Hang | None:
    if hanging is None:
        return None
    return Hang(hanging.method, utc_text(hanging.since), hanging.line, hanging.trace)
