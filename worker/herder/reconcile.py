"""Compares the running units with the desired ones and returns the actions that bring them in line. Pure functions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from worker.messages.messages import Drain, Pause, Resume, RunConnector, RunTask, TakeConfig
from worker.stores.config.store import ConnectorEntry, TargetState
from worker.stores.status.store import Hang, Skips, Wait
from worker.supervisor.lifecycle import Phase
from worker.unit import Unit

__all__ = ["Action", "Desired", "DesiredUnits", "Running", "Start", "Stop", "Tell", "reconcile", "units_of"]


@dataclass(frozen=True, slots=True)
class Desired:
    """How a unit should run."""

    command: RunConnector | RunTask
    paused: bool = False
    drain: bool = False
    since: int = 0
    """Stays the same while a task keeps running through changes of its configuration; 0 for all other units."""


@dataclass(frozen=True, slots=True)
class Running:
    """How a unit runs: the command that started it, the commands sent since, and its phase."""

    command: RunConnector | RunTask
    phase: Phase = Phase.STARTING
    paused: bool = False
    drain: bool = False
    version: str | None = None
    hanging: Hang | None = None
    waiting: Wait | None = None
    skipped: Skips | None = None
    since: int = 0


@dataclass(frozen=True, slots=True)
class Start:
    """Start a unit."""

    unit: Unit
    desired: Desired


@dataclass(frozen=True, slots=True)
class Stop:
    """Stop a unit."""

    unit: Unit


@dataclass(frozen=True, slots=True)
class Tell:
    """Send a command to a running unit."""

    unit: Unit
    command: Pause | Resume | Drain | TakeConfig


Action: TypeAlias = Start | Stop | Tell

_TAKES_CONFIG: Final = (Phase.STARTING, Phase.RUNNING, Phase.PAUSED)


class DesiredUnits:
    """Says which units should run on any worker. Used by one thread.

    While a connector's entry is the same object, so are its units: thousands that stay as they are cost little to
    compare.
    """

    def __init__(self, worker: Mapping[str, str]) -> None:
        self._worker = dict(worker)
        self._known: dict[str, _Known] = {}

    def of(self, connectors: Mapping[str, ConnectorEntry], drain: frozenset[str]) -> dict[Unit, Desired]:
        """Return every unit that should run. ``drain`` names the sinks that should drain and stop."""
        known = {name: self._connector(name, entry, drains=name in drain) for name, entry in connectors.items()}
        self._known = known
        return {unit: desired for each in known.values() for unit, desired in each.units.items()}

    def _connector(self, name: str, entry: ConnectorEntry, *, drains: bool) -> _Known:
        known = self._known.get(name)
        if known is not None and known.entry is entry and known.drains is drains:
            return known
        return _Known(entry, drains, units_of(name, entry, self._worker, drains=drains))


@dataclass(frozen=True, slots=True)
class _Known:
    entry: ConnectorEntry
    drains: bool
    units: Mapping[Unit, Desired]


def units_of(
    name: str, entry: ConnectorEntry, worker: Mapping[str, str], *, drains: bool = False
) -> dict[Unit, Desired]:
    """Return the units of a connector that should run on any worker.

    If a connector is paused, it is stopped and its tasks stay, paused; if it is stopped, none of its units runs.
    """
    if entry.target is TargetState.STOPPED:
        return {}
    desired: dict[Unit, Desired] = {}
    props, paused = dict(worker), entry.target is TargetState.PAUSED
    if not paused:
        desired[Unit(name)] = Desired(RunConnector(name, dict(entry.config), props))
    for task, task_config in enumerate(entry.task_configs):
        command = RunTask(name, task, dict(task_config), dict(entry.applied), props, paused=False)
        desired[Unit(name, task)] = Desired(command, paused, drains, _since(entry, task))
    return desired


def reconcile(desired: Mapping[Unit, Desired], running: Mapping[Unit, Running]) -> list[Action]:
    """Return the next actions that turn ``running`` into ``desired``, without those already under way.

    A unit with a changed configuration is stopped, and started again once it is gone, unless it is a task that can
    continue with the new configuration. A failed unit stays as it is until it is restarted.
    """
    actions: list[Action] = [
        Stop(unit)
        for unit, now in running.items()
        if now.phase is not Phase.STOPPING and (unit not in desired or not _goes_on(now, desired[unit]))
    ]
    for unit, wanted in desired.items():
        now = running.get(unit)
        if now is None:
            actions.append(Start(unit, _to_start(wanted)))
        elif _goes_on(now, wanted) and now.phase not in (Phase.STOPPING, Phase.FAILED):
            actions += _tell(unit, wanted, now)
    return actions


def _since(entry: ConnectorEntry, task: int) -> int:
    return entry.since[task] if task < len(entry.since) else 0


def _goes_on(now: Running, wanted: Desired) -> bool:
    """Return whether a unit's process can keep running as desired."""
    if now.since != wanted.since:
        return False
    if now.command is wanted.command or now.command == wanted.command:
        return True
    if not (now.since and isinstance(now.command, RunTask) and isinstance(wanted.command, RunTask)):
        return False
    return now.phase in _TAKES_CONFIG and replace(now.command, config=wanted.command.config) == wanted.command


def _to_start(wanted: Desired) -> Desired:
    # A starting unit accepts no commands yet, so the drain follows at the next call.
    return replace(wanted, drain=False)


def _tell(unit: Unit, wanted: Desired, now: Running) -> Iterator[Tell]:
    if isinstance(wanted.command, RunTask) and now.command != wanted.command:
        yield Tell(unit, TakeConfig(wanted.command.config))
    if wanted.paused is not now.paused:
        yield Tell(unit, Pause() if wanted.paused else Resume())
    if wanted.drain and not now.drain:
        yield Tell(unit, Drain())
