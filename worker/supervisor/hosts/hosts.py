"""The hosts of a worker: which unit runs where, and which unit has ended a host."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

from worker.messages import messages
from worker.messages.hangs import Hanging, not_returned
from worker.messages.messages import Report
from worker.processes.stacks import Silence
from worker.supervisor.hosts.blame import Blame
from worker.supervisor.hosts.host import Host
from worker.supervisor.hosts.load import Load
from worker.supervisor.hosts.placement import Crowd, Group, Isolation, Vacancies, group_of, place_for, placed
from worker.supervisor.plugin_homes import JAVA
from worker.supervisor.process import Child, Launcher, log_record
from worker.unit import Unit

__all__ = ["ISOLATION", "Hosts", "RunUnit", "isolation_of"]

logger = logging.getLogger(__name__)

ISOLATION: Final = "task.isolation"
"""The config key of a worker, and of a connector for itself, that says which units may share a process."""

RunUnit: TypeAlias = messages.RunConnector | messages.RunTask


@dataclass(frozen=True, slots=True)
class _Requirements:
    isolation: Isolation
    config: dict[str, str]
    home: str


class Hosts:
    """Starts units in hosts, and decides which have to move. Used by the supervisor's thread alone."""

    def __init__(self, launcher: Launcher, now: Callable[[], float] = time.monotonic) -> None:
        self._launcher = launcher
        self._now = now
        self._blame = Blame()
        self._crowd = Crowd()
        self._load = Load()
        self._vacancies = Vacancies()
        self._requirements: dict[Unit, _Requirements] = {}
        self._needs_process: set[Unit] = set()
        self._hosts: dict[int, Host] = {}
        self._of: dict[Unit, Host] = {}
        self._shared: dict[Child, Host] = {}
        self._silences: dict[int, Silence] = {}
        self._hanging: dict[Unit, Hanging | None] = {}
        self._unused = 0
        self._is_settled = True

    # -- units ---------------------------------------------------------------------------------------------------------

    def launch(self, unit: Unit, command: RunUnit) -> Child:
        """Start a unit in a host, a new one if necessary, and return its child."""
        self._note_requirements(unit, command)
        self._load.begin(unit)
        group = self._group(unit)
        number = place_for(unit, group, self._inhabitable()) if group.is_shared else None
        if number is None:
            process = self._launcher.launch(f"host {self._unused}" if group.is_shared else str(unit), command)
            if group.is_shared and process.gone():
                return process
            number = self._open(group, process)
        host = self._hosts[number]
        child = host.take(unit)
        if unit in host.units:
            self._of[unit] = host
        elif host.condemned:
            # The process has just ended, which has not been noticed yet.
            return self.launch(unit, command)
        return child

    def left(self, unit: Unit, *, unasked: bool) -> bool:
        """Note that the child of a unit is gone. Return whether this one starts again, since another was at fault.

        ``unasked`` is an end that was neither asked for nor explained.
        """
        host = self._of.pop(unit, None)
        if host is None:
            return False
        host.leave(unit)
        if not host.group.is_shared:
            del self._hosts[host.number]
            if unasked and not host.child.was_let_go:
                self.is_killed(unit)
            return False
        if host.how is None:
            self._release(host)
            return False
        return unit != host.culprit

    def gone(self, unit: Unit) -> None:
        """Note that a unit no longer runs. The reasons why it has to run alone are kept."""
        self._crowd.goes(unit)
        if not self._is_alone(unit):
            self._requirements.pop(unit, None)
            self._load.forget(unit)

    def condemn(self, unit: Unit) -> None:
        """Have all units leave the host of a unit that does not stop, before the host is killed."""
        host = self._of.get(unit)
        if host is not None and host.group.is_shared and not host.condemned:
            host.condemned = True
            host.culprit = unit
            self._find(unit)

    def is_killed(self, unit: Unit) -> None:
        """Note that a unit has ended its process, or has to be killed."""
        if unit in self._requirements and self._requirements[unit].isolation is not Isolation.PROCESS:
            self._find(unit)

    def kill(self, unit: Unit, why: str) -> None:
        """Kill the shared host of a unit, without blaming that unit."""
        host = self._of[unit]
        if not host.is_killed:
            logger.warning("Host %s (process %s) %s", host.number, host.child.pid, why)
            host.kill(None)

    def is_condemned(self, unit: Unit) -> bool:
        """Return whether all units have to leave the host of this one."""
        return unit in self._of and self._of[unit].condemned

    def needs_process(self, unit: Unit) -> None:
        """Note that the plugin of a unit cannot share a process."""
        if unit not in self._needs_process:
            self._needs_process.add(unit)
            self._is_settled = False

    def spent(self, unit: Unit, cpu: float) -> None:
        """Take in the CPU seconds of a unit since its start, by which it may have to move."""
        host = self._of.get(unit)
        if host is None or self._requirements[unit].isolation is not Isolation.AUTO:
            return
        if self._crowd.is_alone(unit):
            if self._load.rests(unit, cpu, self._now()) and self._crowd.is_many(unit):
                self._crowd.joins(unit)
                self._is_settled = False
        elif self._load.spent(unit, cpu, host.units, self._now()):
            self._is_settled = False

    def misplaced(self) -> list[Unit]:
        """Return the units that have to move: first those of condemned hosts, then those that keep a core busy."""
        if (due := self._blame.next_acquittal()) is not None and due <= self._now():
            self._blame.acquit(self._now())
            self._is_settled = False
        if self._vacancies.look(self._shared.values(), self._now()):
            self._is_settled = False
        if self._is_settled:
            return []
        groups = {unit: self._group(unit) for unit in self._of}
        places = placed(groups, self._inhabitable(), self._unused)
        found = [unit for unit, host in self._of.items() if places[unit] != host.number]
        self._is_settled = not found
        return sorted(found, key=lambda unit: (not self._of[unit].condemned, not self._load.is_alone(unit), unit))

    def next_look(self) -> float | None:
        """Return when a unit may have to move though nothing has happened."""
        due = (self._blame.next_acquittal(), self._vacancies.next_look())
        return min((at for at in due if at is not None), default=None)

    # -- hosts ---------------------------------------------------------------------------------------------------------

    def shared(self) -> Iterator[Child]:
        """Return the children that are shared hosts."""
        return iter(self._shared)

    def hear(self, child: Child) -> list[Unit]:
        """Receive from a shared host. Return the units that have reported; all of its units if it has ended."""
        host = self._shared.get(child)
        if host is None:
            return []
        for report in host.hear():
            self._handle(host, report)
        if host.how is None:
            return host.heard_units()
        del self._shared[child], self._hosts[host.number], self._silences[host.number]
        if host.units:
            self._judge(host)
        return host.heard_units()

    def take_hanging(self) -> dict[Unit, Hanging | None]:
        """Return the news of hosts in which no Python runs: units that may be the cause, or ``None`` once Python runs
        again."""
        hanging, self._hanging = self._hanging, {}
        return hanging

    def close(self) -> None:
        """End the hosts that are left, which have no units."""
        for child in self._shared:
            child.kill()
            child.join()
        self._launcher.close()

    def _open(self, group: Group, process: Child) -> int:
        number = self._unused
        self._unused += 1
        self._hosts[number] = Host(number, group, process)
        if group.is_shared:
            self._shared[process] = self._hosts[number]
            self._silences[number] = Silence()
        return number

    def _release(self, host: Host) -> None:
        if not host.units:
            host.kill(None)

    def _judge(self, host: Host) -> None:
        """Decide which unit has ended a host."""
        names = ", ".join(map(str, sorted(host.units)))
        if host.child.was_let_go:
            logger.warning("Host %s (process %s) of %s %s", host.number, host.child.pid, names, host.how)
        elif host.culprit is None:
            apart = (
                "they start again in two processes"
                if _is_java(host.group.home)
                else "each starts again in its own process"
            )
            logger.warning(
                "Host %s (process %s) %s. Any of its units may be the cause, so %s until that is known: %s%s",
                *(host.number, host.child.pid, host.how, apart, names),
                f"\n{host.child.crash}" if host.child.crash else "",
            )
            self._blame.suspect(host.units, self._now())
            self._is_settled = False
        else:
            logger.warning("Host %s (process %s) of %s %s", host.number, host.child.pid, names, host.how)
            self._find(host.culprit)

    def _find(self, unit: Unit) -> None:
        self._blame.find(unit)
        self._is_settled = False

    def _handle(self, host: Host, report: Report) -> None:
        silence = self._silences[host.number]
        match report:
            case messages.LogRecord():
                log_record(f"host {host.number}", report)
            case messages.Failed(reason):
                host.reason = reason
            case messages.Watched():
                silence.watched(report)
            case messages.HangOver():
                if silence.over():
                    self._hanging |= dict.fromkeys(host.units)
            case messages.Silent():
                outcome = silence.heard(report)
                if isinstance(outcome, Hanging):
                    message = not_returned(outcome.method, outcome.seconds, outcome.line)
                    logger.warning("Host %s: %s\n%s", host.number, message, outcome.trace)
                    self._hanging |= host.hanging(outcome)
                elif outcome is not None and not host.is_killed:
                    logger.warning("Host %s is killed, since no Python runs in it: %s", host.number, outcome.trace)
                    host.kill(None)
            case _:
                logger.error("Host %s sent an unexpected %s and is killed", host.number, type(report).__name__)
                host.kill(None)

    def _note_requirements(self, unit: Unit, command: RunUnit) -> None:
        home = self._launcher.home(command)
        required = _Requirements(_isolation(command, home), _config(command), home)
        before = self._requirements.get(unit)
        if before is not None and before != required:
            self._blame.forget(unit)
            self._load.forget(unit)
            self._needs_process.discard(unit)
        self._requirements[unit] = required
        if required.isolation is not Isolation.AUTO:
            self._crowd.goes(unit)
        elif self._crowd.comes(unit):
            self._is_settled = False

    def _group(self, unit: Unit) -> Group:
        required = self._requirements[unit]
        cell = self._blame.cell(unit) if _is_java(required.home) and required.isolation is Isolation.SHARED else None
        if cell is not None and unit not in self._needs_process:
            return Group(Isolation.SHARED.value, cell, required.home)
        return group_of(unit, required.isolation, alone=self._is_alone(unit), home=required.home)

    def _is_alone(self, unit: Unit) -> bool:
        known = unit in self._needs_process or self._blame.is_alone(unit) or self._load.is_alone(unit)
        return known or self._crowd.is_alone(unit)

    def _inhabitable(self) -> list[Host]:
        """Return the hosts that units may run in: those that are not closing."""
        return [host for host in self._hosts.values() if not self._vacancies.is_closing(host.number)]


def isolation_of(command: RunUnit) -> Isolation:
    """Return the isolation of a unit, by the configuration of its connector or else of the worker."""
    props = command.config if isinstance(command, messages.RunConnector) else command.connector_config
    written = props.get(ISOLATION) or command.worker.get(ISOLATION) or Isolation.AUTO.value
    try:
        return Isolation(written.strip().lower())
    except ValueError:
        return Isolation.PROCESS  # such as a reference, which only the unit's own process resolves and refuses


def _isolation(command: RunUnit, home: str) -> Isolation:
    """Return the isolation of a unit; units of Java share a JVM unless they are told not to, since it is large."""
    chosen = isolation_of(command)
    return Isolation.SHARED if _is_java(home) and chosen is Isolation.AUTO else chosen


def _is_java(home: str) -> bool:
    return home.startswith(f"{JAVA}@")


def _config(command: RunUnit) -> dict[str, str]:
    if isinstance(command, messages.RunConnector):
        return command.config
    return {**command.connector_config, **{f"task {key}": value for key, value in command.config.items()}}
