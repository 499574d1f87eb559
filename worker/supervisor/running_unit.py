"""A unit that the supervisor runs: its phases, the commands for it, its commits and its silence.

A unit outlives its processes: it moves to another, or rests without one. What it is told meanwhile is part of the
command that starts it again, or is held for its next process. For the supervisor's thread alone.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace

from worker.messages import messages
from worker.messages.messages import Command
from worker.processes.stacks import Silence
from worker.supervisor.hosts.hosts import RunUnit
from worker.supervisor.lifecycle import LIVE, Event, Phase, ProcessEvent, ProcessPhase, next_phase, next_process_phase
from worker.supervisor.notices import Changed
from worker.supervisor.process import Child
from worker.unit import Unit

__all__ = ["RunningUnit"]


class RunningUnit:
    """A unit in its process, between two, or at rest without one."""

    def __init__(self, unit: Unit, child: Child, command: RunUnit) -> None:
        self.unit = unit
        self.child = child
        self.command = command
        self.trace: str | None = None
        self.version: str | None = None
        self.deadline: float | None = None
        """The time at which the unit is killed unless it has ended; set only by the supervisor's ``_expect_end_by``."""
        self.within = 0.0
        """The seconds that the unit was given to end in."""
        self.hangs = False
        """Whether it is reported as hanging."""
        self.silence = Silence()
        self._phase = Phase.STARTING
        self._process = ProcessPhase.SERVING
        self._drain: Command | None = None
        self._held: list[Command] = []
        self._commits: set[Future[Command]] = set()
        self._when_settled: list[Callable[[], None]] = []

    # -- phases --------------------------------------------------------------------------------------------------------

    @property
    def phase(self) -> Phase:
        """The phase of the unit."""
        return self._phase

    @property
    def process(self) -> ProcessPhase:
        """The phase of its process."""
        return self._process

    @property
    def is_live(self) -> bool:
        """Whether the unit should keep running."""
        return self._phase in LIVE

    @property
    def has_process(self) -> bool:
        """Whether its process is not reaped yet."""
        return self._process not in (ProcessPhase.RESTING, ProcessPhase.ENDED)

    @property
    def changes_process(self) -> bool:
        """Whether the unit is live and leaves its process, or has left it and waits for the next."""
        return self.is_live and self._process in (ProcessPhase.MOVING, ProcessPhase.ENDED)

    @property
    def can_rest(self) -> bool:
        """Whether the process may end without the unit."""
        return self._phase is Phase.RUNNING and self._process is ProcessPhase.SERVING

    @property
    def ends_unasked(self) -> bool:
        """Whether an end of the process now is neither asked for nor explained."""
        return self.is_live and self.trace is None and self._process is ProcessPhase.SERVING

    @property
    def is_moving(self) -> bool:
        """Whether the unit moves, or has moved and not started yet."""
        return self.changes_process or self._phase is Phase.STARTING

    def advance(self, event: Event) -> Changed | None:
        """Enter the next phase. Return the notice of it, or ``None`` if it is the same."""
        before, self._phase = self._phase, next_phase(self._phase, event)
        if self._phase is before:
            return None
        return Changed(self.unit, self._phase, self.trace if self._phase is Phase.FAILED else None, self.version)

    def advance_process(self, event: ProcessEvent) -> None:
        """Enter the next phase of the process."""
        self._process = next_process_phase(self._process, event)

    # -- commands ------------------------------------------------------------------------------------------------------

    def take(self, command: Command) -> None:
        """Send a command to the process, and keep what the next one must know of it."""
        match command:
            case messages.Pause() | messages.Resume() if isinstance(self.command, messages.RunTask):
                self.command = replace(self.command, paused=isinstance(command, messages.Pause))
            case messages.TakeConfig(config) if isinstance(self.command, messages.RunTask):
                self.command = replace(self.command, config=config)
                if self.changes_process:
                    return
            case messages.Drain():
                self._drain = command
            case _ if self.changes_process and not isinstance(command, messages.SetLogLevel):
                self._held.append(command)
                return
        self.child.send(command)

    def continue_in(self, child: Child) -> list[Command]:
        """Go on in another process. Return the commands to send after the one that starts the unit."""
        self.advance_process(ProcessEvent.REPLACED)
        self.child, self.silence = child, Silence()
        waiting, self._held = self._held, []
        return waiting if self._drain is None else [*waiting, self._drain]

    # -- commits -------------------------------------------------------------------------------------------------------

    def begin_commit(self, answer: Future[Command]) -> None:
        """Note a commit of the process, after which alone the unit counts as gone."""
        self._commits.add(answer)

    def end_commit(self, answer: Future[Command]) -> None:
        """Note that a commit is over."""
        self._commits.discard(answer)
        self._look_whether_settled()

    def settle(self, action: Callable[[], None]) -> None:
        """Run an action once all commits of an ended process are over."""
        self._when_settled.append(action)
        for commit in list(self._commits):
            commit.cancel()
        self._look_whether_settled()

    def _look_whether_settled(self) -> None:
        if not self._commits:
            actions, self._when_settled = self._when_settled, []
            for action in actions:
                action()
