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
from queue import Empty, SimpleQueue
from typing import Final

from worker.messages import messages
from worker.messages.messages import Command, Report
from worker.processes.stacks import last_words
from worker.supervisor.hosts.hosts import Hosts, RunUnit
from worker.supervisor.inquiries import Inquiries
from worker.supervisor.lifecycle import Event, Phase, ProcessEvent, ProcessPhase
from worker.supervisor.notices import (
    Hangs,
    JvmLaunched,
    Launched,
    Notice,
    OwnershipAsked,
    PassedUp,
    Published,
    Rested,
    noticed,
)
from worker.supervisor.pipe import Listener
from worker.supervisor.process import MEMORY_LIMIT, Child, Launcher, MemoryLimit, log_record
from worker.supervisor.running_unit import RunningUnit
from worker.unit import Unit

__all__ = ["Supervisor"]

logger = logging.getLogger(__name__)
_WAKES_BYTES: Final = 4096
_TIME_TO_MOVE_S: Final = 60.0
_EVENTS: Final[Mapping[type[Report], Event]] = {
    messages.Paused: Event.PAUSED,
    messages.Resumed: Event.RESUMED,
    messages.Drained: Event.DRAINED,
}
_AT_REST: Final = (ProcessPhase.RETIRING, ProcessPhase.RESTING)


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
        self._running: dict[Unit, RunningUnit] = {}
        self._ending_units: dict[Unit, RunningUnit] = {}
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

    # -- in the supervisor's thread ------------------------------------------------------------------------------------

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
                os.read(self._wake_reader, _WAKES_BYTES)
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
                self._hear(self._running[self._alone[child]])
            else:
                for unit in self._hosts.hear(child):
                    self._hear(self._running[unit])
                for unit, hanging in self._hosts.take_hanging().items():
                    if (running := self._running.get(unit)) is not None and (hanging is not None or running.hangs):
                        self._report_hang(running, hanging)

    def _patience(self) -> float | None:
        timed = self._timed()
        deadlines = [running.deadline for running in timed if running.deadline is not None]
        deadlines += self._inquiries.deadlines()
        deadlines += [due for running in timed if (due := self._condemns(running))]
        deadlines += [due for due in (self._hosts.next_look(), self._memory.next_look) if due is not None]
        return max(0.0, min(deadlines) - time.monotonic()) if deadlines else None

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

    # -- starts, commands and stops ------------------------------------------------------------------------------------

    def _start(self, unit: Unit, command: RunUnit) -> None:
        if self._ending or unit in self._running:
            return
        self._running[unit] = RunningUnit(unit, self._hosts.launch(unit, command), command)
        self._begin(self._running[unit])

    def _begin(self, running: RunningUnit) -> None:
        """Send a new child its first commands."""
        child = running.child
        if not child.shares:
            self._alone[child] = running.unit
        # The process that configures the tasks of a connector is of interest to nobody but who debugs it.
        level = logging.INFO if running.unit.is_task else logging.DEBUG
        logger.log(level, "process %s runs %s", child.pid, running.unit)
        if child.pid is not None:
            self._notify(Launched(running.unit, child.pid))
        child.send(running.command)
        for name, level in self._levels.items():
            child.send(messages.SetLogLevel(name, level))
        if child.gone():
            self._ended(running)

    def _command(self, unit: Unit, command: Command) -> None:
        running = self._running.get(unit)
        if running is None:
            return
        if isinstance(command, messages.Fail) and running.is_live and running.process in _AT_REST:
            # It has no process to send the command to.
            running.trace = running.trace or command.reason
            self._advance(running, Event.FAILED)
        else:
            running.take(command)

    def _set_log_level(self, name: str, level: int) -> None:
        below = f"{name}."
        self._levels = {
            other: kept for other, kept in self._levels.items() if name != "root" and not other.startswith(below)
        } | {name: level}
        for unit in self._running:
            self._command(unit, messages.SetLogLevel(name, level))

    def _stop(self, unit: Unit, within: float) -> None:
        running = self._running.get(unit)
        if running is None:
            return
        running.within, deadline = within, time.monotonic() + within
        if running.phase is Phase.STOPPING:
            self._expect_end_by(running, min(deadline, running.deadline or deadline))
        elif running.phase is Phase.FAILED:
            self._stop_failed(running, deadline)
        else:
            self._expect_end_by(running, deadline)
            self._advance(running, Event.STOP_ASKED)
            if running.process is ProcessPhase.RESTING:
                self._expect_end_by(running, None)
                running.settle(lambda: self._advance(running, Event.EXITED))
            else:
                running.child.send(messages.Stop())

    def _stop_failed(self, running: RunningUnit, deadline: float) -> None:
        """Remove a failed unit, with its process if that is its own."""
        if running.has_process and running.child.shares:
            # Its thread is about to end. If it does not, the process has to be killed, with all its units.
            running.advance_process(ProcessEvent.CLEAR_ASKED)
            self._expect_end_by(running, min(deadline, running.deadline or deadline))
            return
        if running.has_process:
            running.child.kill()
            running.child.join()
            self._leave(running)
        running.settle(lambda: self._clear(running))

    def _end(self) -> None:
        self._ending = True
        self._inquiries.end()
        for unit in list(self._running):
            self._stop(unit, self._graceful_timeout)

    # -- reports -------------------------------------------------------------------------------------------------------

    def _hear(self, running: RunningUnit) -> None:
        for report in running.child.receive():
            if running.phase is Phase.FAILED and not isinstance(report, messages.LogRecord):
                continue
            try:
                self._handle(running, report)
            except (ValueError, TypeError) as error:
                running.child.kill()
                self._handle(running, messages.Failed(f"Its process sent an invalid message: {error}"))
        if running.child.gone():
            self._ended(running)
        elif running.child.pipe.closed:
            # The process is about to end, or its plugin has closed a descriptor that it did not open.
            self._expect_end(running)

    def _handle(self, running: RunningUnit, report: Report) -> None:
        unit = running.unit
        match report:
            case messages.LogRecord():
                log_record(str(unit), report)
            case _ if isinstance(report, PassedUp):
                self._pass_up(unit, report)
            case messages.ReadOffsets() | messages.CommitOffsets():
                self._pass_on(running, report)
            case messages.ConfirmOwnership():
                self._ask_ownership(running, report)
            case messages.TaskConfigs(configs):
                self._notify(Published(unit.connector, tuple(configs)))
            case messages.Idle():
                self._let_rest(running)
            case messages.RunsJvm() | messages.Started():
                self._started(running, report)
            case messages.Failed(trace):
                self._failed(running, trace)
            case messages.Watched() | messages.Hanging() | messages.HangOver() | messages.Silent():
                self._hear_of_hang(running, report)
            case messages.NeedsProcess() | messages.Declined():
                self._does_not_fit(running, report)
            case messages.Paused() | messages.Resumed() | messages.Drained():
                self._advance(running, _EVENTS[type(report)])
            case _:
                logger.error("%s sent an unexpected %s, which is ignored", unit, type(report).__name__)

    def _started(self, running: RunningUnit, report: messages.RunsJvm | messages.Started) -> None:
        if isinstance(report, messages.RunsJvm):
            if (pid := running.child.pid) is not None:
                self._memory.count(pid, report.pid)
                self._notify(JvmLaunched(pid, report.pid))
            return
        running.version = report.version
        if report.needs_process:
            self._hosts.needs_process(running.unit)
        self._advance(running, Event.STARTED)

    def _failed(self, running: RunningUnit, trace: str) -> None:
        running.trace = trace
        if running.phase is Phase.STOPPING:
            context = {"context": str(running.unit)}
            logger.warning("%s failed while it stopped:\n%s", running.unit, trace, extra=context)
        self._expect_end(running)
        self._advance(running, Event.FAILED)

    def _pass_up(self, unit: Unit, report: PassedUp) -> None:
        if isinstance(report, messages.Metrics | messages.Unchanged):
            self._hosts.spent(unit, report.cpu)
        self._notify(noticed(unit, report))

    def _pass_on(self, running: RunningUnit, report: messages.ReadOffsets | messages.CommitOffsets) -> None:
        """Have offsets read or committed. Only this process gets the answer: the next counts requests from 0 again."""
        child = running.child
        answer = self._on_offsets(report, running.unit.connector)
        if isinstance(report, messages.CommitOffsets):
            running.begin_commit(answer)
        answer.add_done_callback(lambda done: self._do(lambda: self._answer(running, child, done)))

    def _answer(self, running: RunningUnit, child: Child, answer: Future[Command]) -> None:
        if not answer.cancelled():
            child.send(answer.result())
        running.end_commit(answer)

    def _ask_ownership(self, running: RunningUnit, report: messages.ConfirmOwnership) -> None:
        """Ask whether the unit is still this worker's. The answer goes to this process only, too."""
        child, confirmed = running.child, messages.OwnershipConfirmed(report.request)
        self._notify(OwnershipAsked(running.unit, lambda: self._do(lambda: child.send(confirmed))))

    def _hear_of_hang(
        self,
        running: RunningUnit,
        report: messages.Watched | messages.Hanging | messages.HangOver | messages.Silent,
    ) -> None:
        match report:
            case messages.Watched():
                running.silence.watched(report)
            case messages.Hanging():
                self._report_hang(running, report)
            case messages.HangOver(method):
                if running.silence.over() or method is not None:
                    self._report_hang(running, None)
            case messages.Silent():
                outcome = running.silence.heard(report)
                if isinstance(outcome, messages.Hanging):
                    self._report_hang(running, outcome)
                elif outcome is not None:
                    self._hosts.is_killed(running.unit)
                    running.child.kill()
                    self._handle(running, outcome)

    def _report_hang(self, running: RunningUnit, hanging: messages.Hanging | None) -> None:
        running.hangs = hanging is not None
        self._notify(Hangs(running.unit, hanging))

    def _advance(self, running: RunningUnit, event: Event) -> None:
        changed = running.advance(event)
        if running.phase is Phase.GONE:
            self._expect_end_by(running, None)
            del self._running[running.unit]
            self._hosts.gone(running.unit)
        if changed is not None:
            self._notify(changed)

    # -- rest and moves ------------------------------------------------------------------------------------------------

    def _let_rest(self, running: RunningUnit) -> None:
        """End the process of a connector that watches nothing."""
        if running.can_rest:
            running.advance_process(ProcessEvent.REST_ASKED)
            if not running.child.shares:
                # No deadline in a shared host: many starts may delay it, and a kill would end all of its units.
                self._expect_end(running)
            running.child.send(messages.Rest())

    def _does_not_fit(self, running: RunningUnit, report: messages.NeedsProcess | messages.Declined) -> None:
        """Start a unit again that cannot share its process, or cannot take its new configuration while it runs."""
        if isinstance(report, messages.NeedsProcess):
            self._hosts.needs_process(running.unit)
            running.advance_process(ProcessEvent.MOVE_ASKED)
            self._expect_end(running)
        elif running.is_live and running.process is ProcessPhase.SERVING:
            self._move(running, self._graceful_timeout)

    def _move_misplaced(self) -> None:
        """Move units out of condemned hosts at once, and others one by one, with time to end their current call."""
        if self._ending:
            return
        for unit in self._hosts.misplaced():
            running = self._running[unit]
            if not running.is_live or running.process is not ProcessPhase.SERVING:
                continue
            if self._hosts.is_condemned(unit):
                self._move(running, self._graceful_timeout)
            elif running.phase is not Phase.STARTING and not self._is_somebody_moving():
                within = max(self._graceful_timeout, _TIME_TO_MOVE_S)
                self._mover, self._waits_until = unit, time.monotonic() + within
                self._move(running, within)

    def _is_somebody_moving(self) -> bool:
        if self._mover is None or time.monotonic() >= self._waits_until:
            return False
        mover = self._running.get(self._mover)
        return mover is not None and mover.is_moving

    def _move(self, running: RunningUnit, within: float) -> None:
        """Stop a unit within this many seconds, to start it again in another process."""
        logger.info("%s moves to another process", running.unit, extra={"context": str(running.unit)})
        running.advance_process(ProcessEvent.MOVE_ASKED)
        running.within = within
        self._expect_end_by(running, time.monotonic() + within)
        running.child.send(messages.Stop())

    # -- ends ----------------------------------------------------------------------------------------------------------

    def _ended(self, running: RunningUnit) -> None:
        """Decide what follows the end of a process: rest, another process, or the end of the unit."""
        how = running.child.join()
        self._expect_end_by(running, None)
        was = running.process
        is_to_go_on = self._leave(running) or was is ProcessPhase.MOVING
        if running.process is ProcessPhase.RESTING:
            _log_crash(running, how)
            logger.debug("%s is configured; its process ends and starts again when it is needed", running.unit)
            self._notify(Rested(running.unit))
        elif running.is_live and is_to_go_on:
            running.settle(lambda: self._start_again(running))
        else:
            if running.phase is Phase.STOPPING:
                _log_crash(running, how)
            else:
                running.trace = running.trace or last_words(_ending(running, how), running.child.crash)
            running.settle(lambda: self._advance(running, Event.EXITED))
            if was is ProcessPhase.CLEARING:
                running.settle(lambda: self._clear(running))

    def _leave(self, running: RunningUnit) -> bool:
        """Note that the process of a unit is gone. Return whether another unit was at fault."""
        unasked = running.ends_unasked
        rests = running.phase is Phase.RUNNING and running.process is ProcessPhase.RETIRING
        running.advance_process(ProcessEvent.RESTED if rests else ProcessEvent.ENDED)
        self._alone.pop(running.child, None)
        return self._hosts.left(running.unit, unasked=unasked)

    def _start_again(self, running: RunningUnit) -> None:
        """Start a unit in another host, from its committed offsets."""
        if not running.is_live:
            self._advance(running, Event.EXITED)
            return
        self._advance(running, Event.MOVED)
        if running.hangs:
            self._report_hang(running, None)
        waiting = running.continue_in(self._hosts.launch(running.unit, running.command))
        self._begin(running)
        for command in waiting:
            running.child.send(command)

    def _clear(self, running: RunningUnit) -> None:
        """Remove a failed unit whose process is gone."""
        if running.phase is Phase.FAILED:
            self._advance(running, Event.STOP_ASKED)

    # -- deadlines and limits ------------------------------------------------------------------------------------------

    def _expect_end(self, running: RunningUnit) -> None:
        running.within = self._graceful_timeout
        self._expect_end_by(running, running.deadline or time.monotonic() + self._graceful_timeout)

    def _expect_end_by(self, running: RunningUnit, deadline: float | None) -> None:
        """Set or remove the deadline of a unit. Each wake-up looks at the units that have one, and at no others."""
        running.deadline = deadline
        if deadline is None:
            self._ending_units.pop(running.unit, None)
        else:
            self._ending_units[running.unit] = running

    def _timed(self) -> list[RunningUnit]:
        """Return the units that have a deadline to end."""
        return list(self._ending_units.values())

    def _kill_overdue(self) -> None:
        now = time.monotonic()
        self._inquiries.kill_overdue(now)
        for running in self._timed():
            unit = running.unit
            if (due := self._condemns(running)) is not None and due <= now:
                logger.warning("%s does not stop. The other units move out of its process before it is killed", unit)
                self._hosts.condemn(unit)
            if running.deadline is not None and running.deadline <= now:
                logger.warning("%s did not stop within %.1f s and is killed", unit, running.within)
                self._expect_end_by(running, None)
                self._hosts.is_killed(unit)
                running.child.kill()

    def _condemns(self, running: RunningUnit) -> float | None:
        """Return when the other units leave the process of a unit that does not stop, or ``None`` if they need not."""
        if running.deadline is None or not running.child.shares or self._hosts.is_condemned(running.unit):
            return None
        return running.deadline - running.within / 2

    def _kill_swollen(self) -> None:
        """Kill the processes that exceed the memory limit."""
        if not self._memory.limit:
            return
        processes = {running.child.pid: running for running in self._running.values() if running.child.pid}
        for pid, used in self._memory.exceeded(processes):
            running = processes[pid]
            reason = f"has {used} bytes of memory, more than {MEMORY_LIMIT}={self._memory.limit}, and is killed"
            if running.child.shares:
                self._hosts.kill(running.unit, reason)
                continue
            self._hosts.is_killed(running.unit)
            running.child.kill()
            if running.is_live:
                self._handle(running, messages.Failed(f"The process of {running.unit} {reason}."))


def _ending(running: RunningUnit, how: str) -> str:
    return f"The process of {running.unit} {how}"


def _log_crash(running: RunningUnit, how: str) -> None:
    if running.child.crash is not None:
        message = last_words(_ending(running, how), running.child.crash)
        logger.warning("%s", message, extra={"context": str(running.unit)})
