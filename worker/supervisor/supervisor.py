"""The supervisor: one thread that owns the processes of all connectors and tasks of this worker.

It starts, commands, watches and ends them, and notifies the herder. A child that does not end within
``task.shutdown.graceful.timeout.ms`` of a stop is killed; one that ends without being asked has failed. Crash point: if
the worker is killed, its children see the end of their pipe and exit at once, so only uncommitted work is repeated
(invariant I3).

A connector that watches nothing rests: once its task configs are known its process ends, and its phase stays RUNNING.
Only the supervisor knows that it has no process.

=====================================================  =========================================================
kill -9 here                                           then
=====================================================  =========================================================
the process, before it was told to rest                the connector has failed, like any other
the process, after it was told to rest                 the connector rests: its task configs are known
the worker, while a connector rests                    the next owner starts the connector and gets its task
                                                       configs again; the stored ones stay as they are
the worker or the process, while a resting connector   as at any start: it is started again, or has failed
is started again (restart, new configuration)
=====================================================  =========================================================
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from queue import Empty, SimpleQueue
from typing import Final

from worker.messages import messages
from worker.messages.messages import Command, Report
from worker.processes.stacks import Silence, last_words
from worker.supervisor.hosts.hosts import Hosts, RunUnit
from worker.supervisor.inquiries import Inquiries
from worker.supervisor.lifecycle import LIVE, Event, Phase, next_phase
from worker.supervisor.listener import Listener
from worker.supervisor.memory_limit import MEMORY_LIMIT, MemoryLimit
from worker.supervisor.notices import (
    Changed,
    Hangs,
    Launched,
    Notice,
    OwnershipAsked,
    PassedUp,
    Published,
    Rested,
    noticed,
)
from worker.supervisor.process import Child, Launcher, log_record
from worker.unit import Unit

__all__ = ["Supervisor"]

logger = logging.getLogger(__name__)
_WAKES: Final = 4096
_TIME_TO_MOVE: Final = 60.0
_EVENTS: Final[Mapping[type[Report], Event]] = {
    messages.Paused: Event.PAUSED,
    messages.Resumed: Event.RESUMED,
    messages.Drained: Event.DRAINED,
}


@dataclass(slots=True)
class _Running:
    unit: Unit
    child: Child
    command: RunUnit
    phase: Phase = Phase.STARTING
    trace: str | None = None
    version: str | None = None
    resting: bool = False
    deadline: float | None = None
    """The time at which the unit is killed unless it has ended; set only by :meth:`Supervisor._expect_end_by`."""
    within: float = 0.0
    is_reaped: bool = False
    clears: bool = False
    """Whether a failed unit is removed once its process is gone."""
    moves: bool = False
    held: list[Command] = field(default_factory=list)
    """Commands to send after the move."""
    drain: Command | None = None
    hangs: bool = False
    silence: Silence = field(default_factory=Silence)
    commits: set[Future[Command]] = field(default_factory=set)
    when_settled: list[Callable[[], None]] = field(default_factory=list)


class Supervisor:
    """Runs units in child processes. Its methods may be called from any thread and return at once.

    ``notify`` is called from the supervisor's thread and must not block. ``on_offsets`` gets the reads and commits of
    source offsets, with the name of their connector. When a process is gone, its commits that have not begun are
    cancelled, and its unit counts as gone only after those that have begun: a later write would be another worker's.
    """

    def __init__(
        self,
        launcher: Launcher,
        notify: Callable[[Notice], None],
        on_offsets: Callable[[messages.ReadOffsets | messages.CommitOffsets, str], Future[Command]],
        graceful_timeout: float,
        inquiry_timeout: float = 90.0,
        memory_limit: int = 0,
    ) -> None:
        self._launcher = launcher
        self._hosts = Hosts(launcher)
        self._notify = notify
        self._on_offsets = on_offsets
        self._graceful_timeout = graceful_timeout
        self._inquiries = Inquiries(launcher, notify, inquiry_timeout, graceful_timeout)
        self._memory = MemoryLimit(memory_limit)
        self._inbox: SimpleQueue[Callable[[], None]] = SimpleQueue()
        # Not closed by hand: another thread may still want to wake a supervisor that has just ended.
        self._wake_reader, self._wake_writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._listening: Listener[Child] = Listener(self._wake_reader)
        self._running: dict[Unit, _Running] = {}
        self._ending_units: dict[Unit, _Running] = {}
        self._alone: dict[Child, Unit] = {}
        self._mover: Unit | None = None
        self._waits_until = 0.0
        self._levels: dict[str, int] = {}
        self._ending = False
        self._thread = threading.Thread(target=self._loop, name="supervisor")

    # -- from any thread -----------------------------------------------------------------------------------------

    def start_thread(self) -> None:
        """Start the supervisor's thread."""
        self._thread.start()

    def start(self, unit: Unit, command: RunUnit) -> None:
        """Start a unit; does nothing if it is running."""
        self._do(lambda: self._start(unit, command))

    def stop(self, unit: Unit, within: float | None = None) -> None:
        """Stop a unit; a ``Changed`` to ``GONE`` follows when it has ended.

        The unit is killed after ``within`` seconds, by default the graceful timeout.
        """
        self._do(lambda: self._stop(unit, self._graceful_timeout if within is None else within))

    def command(self, unit: Unit, command: Command) -> None:
        """Pass a command on to a unit; does nothing if it is not running."""
        self._do(lambda: self._command(unit, command))

    def inquire(self, request: int, inquiry: messages.Inquiry) -> None:
        """Have a new process answer an inquiry; ``Answered`` brings the answer or the reason why there is none."""
        self._do(lambda: self._inquiries.ask(request, inquiry))

    def give_up(self, request: int) -> None:
        """Cancel an inquiry; ``Answered`` follows when its process is gone."""
        self._do(lambda: self._inquiries.give_up(request))

    def set_log_level(self, name: str, level: int) -> None:
        """Set the level of a logger in all processes, including those started later."""
        self._do(lambda: self._set_log_level(name, level))

    def kill(self, unit: Unit) -> None:
        """Kill the process of a unit."""
        self._do(lambda: self._running[unit].child.kill() if unit in self._running else None)

    def close(self) -> None:
        """Stop all units and the supervisor; returns when all processes are gone."""
        self._do(self._end)
        if self._thread.ident is not None:
            self._thread.join()

    # -- in the supervisor's thread ------------------------------------------------------------------------------

    def _do(self, action: Callable[[], None]) -> None:
        self._inbox.put(action)
        # A full pipe wakes the thread, too.
        with contextlib.suppress(BlockingIOError):
            os.write(self._wake_writer, b"w")

    def _loop(self) -> None:
        while not (self._ending and not self._running):
            if not self._ending:
                self._launcher.prepare()
            self._listen()
            with contextlib.suppress(BlockingIOError):
                os.read(self._wake_reader, _WAKES)
            self._work_off_inbox()
            self._kill_overdue()
            self._kill_swollen()
            self._move_misplaced()
        self._hosts.close()

    def _listen(self) -> None:
        """Wait for reports or the next deadline, and handle the reports."""
        asked = self._inquiries.children()
        for child in self._listening.ready([*self._alone, *asked, *self._hosts.shared()], self._patience()):
            if child in asked:
                self._inquiries.hear(asked[child])
            elif child in self._alone:
                self._hear(self._alone[child])
            else:
                for unit in self._hosts.hear(child):
                    self._hear(unit)
                for unit, hanging in self._hosts.take_hanging().items():
                    if (running := self._running.get(unit)) is not None and (hanging is not None or running.hangs):
                        self._tell_of_hang(unit, running, hanging)

    def _work_off_inbox(self) -> None:
        while True:
            try:
                action = self._inbox.get_nowait()
            except Empty:
                return
            try:
                action()
            except Exception:
                # A defect of Sluice, or no more file descriptors. The other units must still be stopped in good order.
                logger.exception("The supervisor failed to carry out a request; all other units go on")

    def _patience(self) -> float | None:
        timed = self._timed()
        deadlines = [deadline for _, running in timed if (deadline := running.deadline) is not None]
        deadlines += self._inquiries.deadlines()
        deadlines += [due for unit, running in timed if (due := self._condemns(unit, running))]
        deadlines += [due for due in (self._hosts.next_look(), self._memory.next_look) if due is not None]
        return max(0.0, min(deadlines) - time.monotonic()) if deadlines else None

    def _start(self, unit: Unit, command: RunUnit) -> None:
        if self._ending or unit in self._running:
            return
        self._running[unit] = _Running(unit, self._hosts.launch(unit, command), command)
        self._begin(unit, self._running[unit])

    def _begin(self, unit: Unit, running: _Running) -> None:
        """Send a new child its first commands."""
        child = running.child
        if not child.shares:
            self._alone[child] = unit
        logger.info("process %s runs %s", child.pid, unit)
        if child.pid is not None:
            self._notify(Launched(unit, child.pid))
        child.send(running.command)
        for name, level in self._levels.items():
            child.send(messages.SetLogLevel(name, level))
        if child.gone():
            self._ended(unit, running)

    def _stop(self, unit: Unit, within: float) -> None:
        running = self._running.get(unit)
        if running is None:
            return
        running.within, deadline = within, time.monotonic() + within
        if running.phase is Phase.STOPPING:
            self._expect_end_by(running, min(deadline, running.deadline or deadline))
            return
        if running.phase is Phase.FAILED:
            if not running.is_reaped and running.child.shares:
                # Its thread is about to end. If it does not, the process has to be killed, with all its units.
                running.clears = True
                self._expect_end_by(running, min(deadline, running.deadline or deadline))
                return
            if not running.is_reaped:
                running.child.kill()
                running.child.join()
                self._leave(unit, running)
            self._settle(running, lambda: self._clear(unit, running))
            return
        self._expect_end_by(running, deadline)
        self._advance(unit, running, Event.STOP_ASKED)
        if running.resting and running.is_reaped:
            self._expect_end_by(running, None)
            self._settle(running, lambda: self._advance(unit, running, Event.EXITED))
        else:
            running.child.send(messages.Stop())

    def _command(self, unit: Unit, command: Command) -> None:
        running = self._running.get(unit)
        if running is None:
            return
        if running.resting and isinstance(command, messages.Fail):
            # It has no process to send the command to.
            running.trace = running.trace or command.reason
            self._advance(unit, running, Event.FAILED)
            return
        match command:
            case messages.Pause() | messages.Resume() if isinstance(running.command, messages.RunTask):
                running.command = replace(running.command, paused=isinstance(command, messages.Pause))
            case messages.TakeConfig(config) if isinstance(running.command, messages.RunTask):
                running.command = replace(running.command, config=config)
                if running.moves:
                    return
            case messages.Drain():
                running.drain = command
            case _ if running.moves and not isinstance(command, messages.SetLogLevel):
                running.held.append(command)
                return
        running.child.send(command)

    def _set_log_level(self, name: str, level: int) -> None:
        below = f"{name}."
        self._levels = {
            other: kept for other, kept in self._levels.items() if name != "root" and not other.startswith(below)
        } | {name: level}
        for unit in self._running:
            self._command(unit, messages.SetLogLevel(name, level))

    def _end(self) -> None:
        self._ending = True
        self._inquiries.end()
        for unit in list(self._running):
            self._stop(unit, self._graceful_timeout)

    def _kill_overdue(self) -> None:
        now = time.monotonic()
        self._inquiries.kill_overdue(now)
        for unit, running in self._timed():
            if (due := self._condemns(unit, running)) is not None and due <= now:
                logger.warning("%s does not stop. The other units move out of its process before it is killed", unit)
                self._hosts.condemn(unit)
            if running.deadline is not None and running.deadline <= now:
                logger.warning("%s did not stop within %.1f s and is killed", unit, running.within)
                self._expect_end_by(running, None)
                self._hosts.is_killed(unit)
                running.child.kill()

    def _timed(self) -> list[tuple[Unit, _Running]]:
        """The units that have a deadline to end."""
        return list(self._ending_units.items())

    def _expect_end_by(self, running: _Running, deadline: float | None) -> None:
        """Set or remove the deadline of a unit. Each wake-up looks at the units that have one, and at no others."""
        running.deadline = deadline
        if deadline is None:
            self._ending_units.pop(running.unit, None)
        else:
            self._ending_units[running.unit] = running

    def _kill_swollen(self) -> None:
        """Kill the processes that exceed the memory limit."""
        if not self._memory.limit:
            return
        processes = {running.child.pid: unit for unit, running in self._running.items() if running.child.pid}
        for pid, used in self._memory.exceeded(processes):
            unit = processes[pid]
            running = self._running[unit]
            told = f"has {used} bytes of memory, more than {MEMORY_LIMIT}={self._memory.limit}, and is killed"
            if running.child.shares:
                self._hosts.kill(unit, told)
                continue
            self._hosts.is_killed(unit)
            running.child.kill()
            if running.phase in LIVE:
                self._handle(unit, running, messages.Failed(f"The process of {unit} {told}."))

    def _condemns(self, unit: Unit, running: _Running) -> float | None:
        """When the other units leave the process of a unit that does not stop; ``None`` if they need not."""
        if running.deadline is None or not running.child.shares or self._hosts.is_condemned(unit):
            return None
        return running.deadline - running.within / 2

    def _move_misplaced(self) -> None:
        """Move units out of condemned hosts at once, and others one by one, with time to end their current call."""
        if self._ending:
            return
        for unit in self._hosts.misplaced():
            running = self._running[unit]
            if running.moves or running.resting or running.phase not in LIVE or running.is_reaped:
                continue
            if self._hosts.is_condemned(unit):
                self._move(unit, running, self._graceful_timeout)
            elif running.phase is not Phase.STARTING and not self._is_somebody_moving():
                within = max(self._graceful_timeout, _TIME_TO_MOVE)
                self._mover, self._waits_until = unit, time.monotonic() + within
                self._move(unit, running, within)

    def _move(self, unit: Unit, running: _Running, within: float) -> None:
        """Stop a unit within this many seconds, to start it again in another process."""
        logger.info("%s moves to another process", unit, extra={"context": str(unit)})
        running.moves = True
        running.within = within
        self._expect_end_by(running, time.monotonic() + within)
        running.child.send(messages.Stop())

    def _is_somebody_moving(self) -> bool:
        if self._mover is None or time.monotonic() >= self._waits_until:
            return False
        mover = self._running.get(self._mover)
        return mover is not None and (mover.moves or mover.phase is Phase.STARTING)

    def _start_again(self, unit: Unit, running: _Running) -> None:
        """Start a unit in another host, from its committed offsets."""
        if running.phase not in LIVE:
            self._advance(unit, running, Event.EXITED)
            return
        self._advance(unit, running, Event.MOVED)
        if running.hangs:
            self._tell_of_hang(unit, running, None)
        running.moves = running.is_reaped = False
        running.silence = Silence()
        running.child = self._hosts.launch(unit, running.command)
        told, running.held = [*running.held, *([running.drain] if running.drain is not None else [])], []
        self._begin(unit, running)
        for command in told:
            running.child.send(command)

    def _hear(self, unit: Unit) -> None:
        running = self._running[unit]
        for report in running.child.receive():
            if running.phase is Phase.FAILED and not isinstance(report, messages.LogRecord):
                continue
            try:
                self._handle(unit, running, report)
            except (ValueError, TypeError) as error:
                running.child.kill()
                self._handle(unit, running, messages.Failed(f"Its process sent an invalid message: {error}"))
        if running.child.gone():
            self._ended(unit, running)
        elif running.child.pipe.closed:
            # The process is about to end, or its plugin has closed a descriptor that it did not open.
            self._expect_end(running)

    def _expect_end(self, running: _Running) -> None:
        running.within = self._graceful_timeout
        self._expect_end_by(running, running.deadline or time.monotonic() + self._graceful_timeout)

    def _ended(self, unit: Unit, running: _Running) -> None:
        how = running.child.join()
        self._expect_end_by(running, None)
        goes_on = self._leave(unit, running) or running.moves
        rests = running.resting and running.phase is Phase.RUNNING
        if running.phase in LIVE and goes_on and not rests:
            self._settle(running, lambda: self._start_again(unit, running))
            return
        if running.phase is not Phase.STOPPING and not rests:
            running.trace = running.trace or last_words(f"The process of {unit} {how}", running.child.crash)
        elif running.child.crash is not None:
            told = last_words(f"The process of {unit} {how}", running.child.crash)
            logger.warning("%s", told, extra={"context": str(unit)})
        if rests:
            logger.info("%s is configured; its process ends and starts again when it is needed", unit)
            self._notify(Rested(unit))
            return
        self._settle(running, lambda: self._advance(unit, running, Event.EXITED))
        if running.clears:
            self._settle(running, lambda: self._clear(unit, running))

    def _let_rest(self, running: _Running) -> None:
        """End the process of a connector that watches nothing."""
        if running.phase is Phase.RUNNING and not (running.resting or running.moves):
            running.resting = True
            if not running.child.shares:
                # No deadline in a shared host: many starts may delay it, and a kill would end all of its units.
                self._expect_end(running)
            running.child.send(messages.Rest())

    def _leave(self, unit: Unit, running: _Running) -> bool:
        """Note that the process of a unit is gone. Returns whether another unit was at fault."""
        running.is_reaped = True
        self._alone.pop(running.child, None)
        unasked = running.phase in LIVE and running.trace is None and not (running.moves or running.resting)
        return self._hosts.left(unit, unasked=unasked)

    def _clear(self, unit: Unit, running: _Running) -> None:
        """Remove a failed unit whose process is gone."""
        if running.phase is Phase.FAILED:
            self._advance(unit, running, Event.STOP_ASKED)

    def _settle(self, running: _Running, action: Callable[[], None]) -> None:
        """Run an action once all commits of an ended process are over."""
        running.when_settled.append(action)
        for commit in list(running.commits):
            commit.cancel()
        self._look_whether_settled(running)

    def _look_whether_settled(self, running: _Running) -> None:
        if not running.commits:
            actions, running.when_settled = running.when_settled, []
            for action in actions:
                action()

    def _handle(self, unit: Unit, running: _Running, report: Report) -> None:
        match report:
            case messages.LogRecord():
                log_record(str(unit), report)
            case _ if isinstance(report, PassedUp):
                self._pass_up(unit, report)
            case messages.ReadOffsets() | messages.CommitOffsets() | messages.ConfirmOwnership():
                self._pass_on(unit, running, report)
            case messages.TaskConfigs(configs):
                self._notify(Published(unit.connector, tuple(configs)))
            case messages.Idle():
                self._let_rest(running)
            case messages.Started():
                self._started(unit, running, report)
            case messages.Failed(trace):
                running.trace = trace
                if running.phase is Phase.STOPPING:
                    logger.warning("%s failed while it stopped:\n%s", unit, trace, extra={"context": str(unit)})
                self._expect_end(running)
                self._advance(unit, running, Event.FAILED)
            case messages.Watched() | messages.Hanging() | messages.HangOver() | messages.Silent():
                self._hear_of_hang(unit, running, report)
            case messages.NeedsProcess() | messages.Declined():
                self._does_not_fit(unit, running, report)
            case messages.Paused() | messages.Resumed() | messages.Drained():
                self._advance(unit, running, _EVENTS[type(report)])
            case _:
                logger.error("%s sent an unexpected %s, which is ignored", unit, type(report).__name__)

    def _started(self, unit: Unit, running: _Running, report: messages.Started) -> None:
        running.version = report.version
        if report.needs_process:
            self._hosts.needs_process(unit)
        self._advance(unit, running, Event.STARTED)

    def _does_not_fit(self, unit: Unit, running: _Running, report: messages.NeedsProcess | messages.Declined) -> None:
        """Start a unit again that cannot share its process, or cannot take its new configuration while it runs."""
        if isinstance(report, messages.NeedsProcess):
            self._hosts.needs_process(unit)
            running.moves = True
            self._expect_end(running)
        elif running.phase in LIVE and not running.moves:
            self._move(unit, running, self._graceful_timeout)

    def _pass_up(self, unit: Unit, report: PassedUp) -> None:
        if isinstance(report, messages.Metrics | messages.Unchanged):
            self._hosts.spent(unit, report.cpu)
        self._notify(noticed(unit, report))

    def _hear_of_hang(
        self,
        unit: Unit,
        running: _Running,
        report: messages.Watched | messages.Hanging | messages.HangOver | messages.Silent,
    ) -> None:
        match report:
            case messages.Watched():
                running.silence.watched(report)
            case messages.Hanging():
                self._tell_of_hang(unit, running, report)
            case messages.HangOver(method):
                if running.silence.over() or method is not None:
                    self._tell_of_hang(unit, running, None)
            case messages.Silent():
                outcome = running.silence.heard(report)
                if isinstance(outcome, messages.Hanging):
                    self._tell_of_hang(unit, running, outcome)
                elif outcome is not None:
                    self._hosts.is_killed(unit)
                    running.child.kill()
                    self._handle(unit, running, outcome)

    def _tell_of_hang(self, unit: Unit, running: _Running, hanging: messages.Hanging | None) -> None:
        running.hangs = hanging is not None
        self._notify(Hangs(unit, hanging))

    def _pass_on(
        self,
        unit: Unit,
        running: _Running,
        report: messages.ReadOffsets | messages.CommitOffsets | messages.ConfirmOwnership,
    ) -> None:
        """Forward a request, and send the answer to this process only: the next one counts requests from 0 again."""
        child = running.child
        if isinstance(report, messages.ConfirmOwnership):
            confirmed = messages.OwnershipConfirmed(report.request)
            self._notify(OwnershipAsked(unit, lambda: self._do(lambda: child.send(confirmed))))
            return
        answer = self._on_offsets(report, unit.connector)
        if isinstance(report, messages.CommitOffsets):
            running.commits.add(answer)
        answer.add_done_callback(lambda done: self._do(lambda: self._answer(running, done)))

    def _answer(self, running: _Running, answer: Future[Command]) -> None:
        running.commits.discard(answer)
        if not answer.cancelled():
            running.child.send(answer.result())
        self._look_whether_settled(running)

    def _advance(self, unit: Unit, running: _Running, event: Event) -> None:
        before = running.phase
        running.phase = next_phase(before, event)
        if running.phase is Phase.GONE:
            self._expect_end_by(running, None)
            del self._running[unit]
            self._hosts.gone(unit)
        if running.phase is not before:
            trace = running.trace if running.phase is Phase.FAILED else None
            self._notify(Changed(unit, running.phase, trace, running.version))
