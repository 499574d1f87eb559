"""The supervisor: one thread that owns the processes of all connectors and tasks of this worker.

It starts, commands, watches and ends them, and tells the herder what became of them. A child that does not end within
``task.shutdown.graceful.timeout.ms`` of being asked to is killed; one that ends unasked has failed. Crash point: if the
worker is killed, its children see their pipe end and exit at once, so at most uncommitted work is done again
(invariant I3).

A connector that watches nothing rests: its process ends once its task configs are known, and the connector goes on in
the phase RUNNING. Nothing but this supervisor knows of it, and it holds nothing, so its crash points are few:

==================================================  =============================================================
kill -9 here                                        then
==================================================  =============================================================
the process, before it was told to rest             the connector has failed, as one that does not rest
the process, while it ends because it was told to   it rests all the same: what it had to say is said
the worker, while a connector rests                 who runs the connector next starts it anew, and hears its task
                                                    configs again; those that are kept stay as they are
the worker or the process, while it is started      as at any start: it is started again, or has failed
again (a restart, another configuration)
==================================================  =============================================================
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

from worker.supervisor.hosts.hosts import Hosts, RunUnit
from worker.supervisor.inquiries import Inquiries
from worker.supervisor.lifecycle import LIVE, Event, Phase, next_phase
from worker.supervisor.listening import Listening
from worker.supervisor.memory import MEMORY_LIMIT, MemoryLimit
from worker.supervisor.messages import messages
from worker.supervisor.messages.messages import Command, Report
from worker.supervisor.notices import (
    Changed,
    Hangs,
    Launched,
    Notice,
    OwnershipAsked,
    Published,
    Rested,
    noticed,
)
from worker.supervisor.process import Child, Launcher, log_record
from worker.supervisor.silence import Silence
from worker.supervisor.stacks import last_words
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
    """When it is killed unless it has ended; set by :meth:`Supervisor._expect_end_by` alone."""
    within: float = 0.0
    is_reaped: bool = False
    clears: bool = False
    """Whether it is to be let go of, though it has failed, once its process is gone."""
    moves: bool = False
    held: list[Command] = field(default_factory=list)
    """What it is told once it has moved."""
    drain: Command | None = None
    hangs: bool = False
    silence: Silence = field(default_factory=Silence)
    commits: set[Future[Command]] = field(default_factory=set)
    when_settled: list[Callable[[], None]] = field(default_factory=list)


class Supervisor:
    """Runs units in child processes. Its methods may be called from any thread and return at once.

    ``notify`` is called from the supervisor's thread and must not block. ``on_offsets`` is given the reads and
    commits of source offsets, with the name of their connector. A commit that has not begun when its process is gone is
    cancelled, and a unit is not gone before a commit that has begun is over: any later write is another worker's.
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
        self._listening: Listening[Child] = Listening(self._wake_reader)
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
        """Begin to supervise."""
        self._thread.start()

    def start(self, unit: Unit, command: RunUnit) -> None:
        """Start a unit; does nothing if it is running."""
        self._do(lambda: self._start(unit, command))

    def stop(self, unit: Unit, within: float | None = None) -> None:
        """Stop a unit; its ``Changed`` to ``GONE`` tells when it has ended.

        It is killed if that takes more than ``within`` seconds, by default the graceful timeout.
        """
        self._do(lambda: self._stop(unit, self._graceful_timeout if within is None else within))

    def command(self, unit: Unit, command: Command) -> None:
        """Pass a command on to a unit; does nothing if it is not running."""
        self._do(lambda: self._command(unit, command))

    def inquire(self, request: int, inquiry: messages.Inquiry) -> None:
        """Have a process of its own answer an inquiry; ``Answered`` brings the answer, or says that none came."""
        self._do(lambda: self._inquiries.ask(request, inquiry))

    def give_up(self, request: int) -> None:
        """End the process of an inquiry whose answer nobody waits for; ``Answered`` says when it is gone."""
        self._do(lambda: self._inquiries.give_up(request))

    def set_log_level(self, name: str, level: int) -> None:
        """Set the level of a logger in every process, also in those started later."""
        self._do(lambda: self._set_log_level(name, level))

    def kill(self, unit: Unit) -> None:
        """End the process of a unit as a crash would."""
        self._do(lambda: self._running[unit].child.kill() if unit in self._running else None)

    def close(self) -> None:
        """Stop every unit and end; returns when all processes are gone."""
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
        """Wait until something is said or is due, and hear it."""
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
                # A defect of ours, or no more file descriptors. The other units must still be stopped in good order.
                logger.exception("The supervisor failed to carry out a request; its other units go on")

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
        """Tell a child that waits for its first command what to do."""
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
                # Its thread is about to end. If that does not, it has to be killed, with all that live there.
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
            # There is nobody to tell any more.
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
                logger.warning("%s does not stop; what shares its process moves out before that is killed", unit)
                self._hosts.condemn(unit)
            if running.deadline is not None and running.deadline <= now:
                logger.warning("%s did not stop within %.1f s and is killed", unit, running.within)
                self._expect_end_by(running, None)
                self._hosts.is_killed(unit)
                running.child.kill()

    def _timed(self) -> list[tuple[Unit, _Running]]:
        """The units that are to have ended by some time."""
        return list(self._ending_units.items())

    def _expect_end_by(self, running: _Running, deadline: float | None) -> None:
        """Note by when a unit is to have ended. The few that are to end are looked at often, all others are not."""
        running.deadline = deadline
        if deadline is None:
            self._ending_units.pop(running.unit, None)
        else:
            self._ending_units[running.unit] = running

    def _kill_swollen(self) -> None:
        """Kill the processes that have more memory than they may."""
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
        """When all are to leave the process of a unit that is to end, since that may have to be killed."""
        if running.deadline is None or not running.child.shares or self._hosts.is_condemned(unit):
            return None
        return running.deadline - running.within / 2

    def _move_misplaced(self) -> None:
        """Have units move whose hosts are condemned, and others one by one, which have time to end what they do."""
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
        """Have a unit stop within so many seconds, and go on in another process."""
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
        """Start a unit in another host, where it begins with what was committed."""
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
            # It is about to end, or its plugin has closed a descriptor that it did not open.
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
            logger.info("%s rests: it watches nothing, and its process has ended", unit)
            self._notify(Rested(unit))
            return
        self._settle(running, lambda: self._advance(unit, running, Event.EXITED))
        if running.clears:
            self._settle(running, lambda: self._clear(unit, running))

    def _let_rest(self, running: _Running) -> None:
        """Have the process of a connector end that watches nothing; from now on only this supervisor speaks for it."""
        if running.phase is Phase.RUNNING and not (running.resting or running.moves):
            running.resting = True
            if not running.child.shares:
                # In a host that is busy with many starts this may take long, and all others must not pay for it.
                self._expect_end(running)
            running.child.send(messages.Rest())

    def _leave(self, unit: Unit, running: _Running) -> bool:
        """Take note that the process of a unit is gone; whether it was another's fault."""
        running.is_reaped = True
        self._alone.pop(running.child, None)
        unasked = running.phase in LIVE and running.trace is None and not (running.moves or running.resting)
        return self._hosts.left(unit, unasked=unasked)

    def _clear(self, unit: Unit, running: _Running) -> None:
        """Let go of a unit that has failed and whose process is gone."""
        if running.phase is Phase.FAILED:
            self._advance(unit, running, Event.STOP_ASKED)

    def _settle(self, running: _Running, action: Callable[[], None]) -> None:
        """Run an action once all commits of a process that is gone are over."""
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
            case (
                messages.Metrics()
                | messages.ClientMetrics()
                | messages.Loads()
                | messages.ActiveTopics()
                | messages.ConfigExpires()
            ):
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
                logger.error("%s sent %s, which nobody asked for", unit, type(report).__name__)

    def _started(self, unit: Unit, running: _Running, report: messages.Started) -> None:
        running.version = report.version
        if report.needs_process:
            self._hosts.needs_process(unit)
        self._advance(unit, running, Event.STARTED)

    def _does_not_fit(self, unit: Unit, running: _Running, report: messages.NeedsProcess | messages.Declined) -> None:
        """Have a unit begin again that cannot live where it does, or cannot take its new configuration."""
        if isinstance(report, messages.NeedsProcess):
            self._hosts.needs_process(unit)
            running.moves = True
            self._expect_end(running)
        elif running.phase in LIVE and not running.moves:
            self._move(unit, running, self._graceful_timeout)

    def _pass_up(
        self,
        unit: Unit,
        report: messages.Metrics
        | messages.ClientMetrics
        | messages.Loads
        | messages.ActiveTopics
        | messages.ConfigExpires,
    ) -> None:
        if isinstance(report, messages.Metrics):
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
        """Have a request answered to this very process: the unit's next one counts its requests from 0 again."""
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
