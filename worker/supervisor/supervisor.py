"""The supervisor: one thread that owns the processes of all connectors and tasks of this worker.

It starts, commands, watches and ends them, and tells the herder what became of them. A child that does not end within
``task.shutdown.graceful.timeout.ms`` of being asked to is killed; one that ends unasked has failed. Crash point: if the
worker is killed, its children see their pipe end and exit at once, so at most uncommitted work is done again
(invariant I3).
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import Final, TypeAlias

from worker.metrics.buckets import BOUNDS
from worker.metrics.snapshot import ClientSeen, OwnSeries, OwnValue, own_values
from worker.supervisor.lifecycle import Event, Phase, next_phase
from worker.supervisor.messages import messages
from worker.supervisor.messages.messages import Command, Report
from worker.supervisor.process import Child, Launcher, log_record, ready_children
from worker.supervisor.silence import Silence
from worker.supervisor.stacks import told_crash
from worker.unit import Unit

__all__ = [
    "Answered",
    "AnsweredInPart",
    "Changed",
    "ClientMeasured",
    "Expires",
    "Hangs",
    "Launched",
    "Loaded",
    "Measured",
    "Notice",
    "OwnershipAsked",
    "Published",
    "Supervisor",
    "TopicsUsed",
]

logger = logging.getLogger(__name__)
_WAKES: Final = 4096
_EVENTS: Final[Mapping[type[Report], Event]] = {
    messages.Paused: Event.PAUSED,
    messages.Resumed: Event.RESUMED,
    messages.Drained: Event.DRAINED,
}


@dataclass(frozen=True, slots=True)
class Changed:
    """A unit entered a phase. ``trace`` says why it failed."""

    unit: Unit
    phase: Phase
    trace: str | None
    version: str | None


@dataclass(frozen=True, slots=True)
class Published:
    """A connector said which tasks it wants."""

    connector: str
    configs: tuple[dict[str, str], ...]


@dataclass(frozen=True, slots=True)
class Launched:
    """A process has been started for a unit."""

    unit: Unit
    pid: int


@dataclass(frozen=True, slots=True)
class Measured:
    """A unit reported: for statuses, for scrapes, histograms, and changes of its plugin's own numbers."""

    unit: Unit
    values: dict[str, float]
    details: dict[str, float] = field(default_factory=dict)
    histograms: dict[str, tuple[float, ...]] = field(default_factory=dict)
    own: dict[OwnSeries, OwnValue | None] = field(default_factory=dict)

    @classmethod
    def of(cls, unit: Unit, report: messages.Metrics) -> Measured:
        """What a report says. What is no number, as a source may say of what remains, is left out."""
        histograms = {
            name: tuple(map(float, kept))
            for name, kept in report.histograms.items()
            if name in BOUNDS and len(kept) == len(BOUNDS[name]) + 2
        }
        return cls(unit, _numbers(report.values), _numbers(report.details), histograms, own_values(report.own))


@dataclass(frozen=True, slots=True)
class ClientMeasured:
    """A Kafka client of a unit has told its statistics."""

    unit: Unit
    client: ClientSeen

    @classmethod
    def of(cls, unit: Unit, report: messages.ClientMetrics) -> ClientMeasured:
        """What a report says."""
        lags = tuple((str(topic), int(partition), int(lag)) for topic, partition, lag in report.lags)
        return cls(unit, ClientSeen(str(report.kind), str(report.client_id), _numbers(report.values), lags))


@dataclass(frozen=True, slots=True)
class Hangs:
    """A call of a unit's plugin hangs, or goes on: then ``hanging`` is ``None``."""

    unit: Unit
    hanging: messages.Hanging | None


@dataclass(frozen=True, slots=True)
class Loaded:
    """A bulk sink has begun a load, is further with it, or has ended it."""

    unit: Unit
    loads: messages.Loads


@dataclass(frozen=True, slots=True)
class TopicsUsed:
    """A task said which topics it writes to or reads from."""

    unit: Unit
    topics: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Expires:
    """A unit said for how many seconds the values from its config providers hold."""

    unit: Unit
    seconds: float


@dataclass(frozen=True, slots=True)
class OwnershipAsked:
    """The process of a unit asks whether the unit is still this worker's; ``confirm``, from any thread, says yes."""

    unit: Unit
    confirm: Callable[[], None]


@dataclass(frozen=True, slots=True)
class AnsweredInPart:
    """A part of the answer to an inquiry, which comes before it."""

    request: int
    report: Report


@dataclass(frozen=True, slots=True)
class Answered:
    """The outcome of an inquiry: the report that answers it, or a ``Failed`` if its process could not finish."""

    request: int
    report: Report


Notice: TypeAlias = (
    Launched
    | Changed
    | Published
    | Measured
    | ClientMeasured
    | Loaded
    | Hangs
    | TopicsUsed
    | Expires
    | OwnershipAsked
    | AnsweredInPart
    | Answered
)


@dataclass(slots=True)
class _Running:
    child: Child
    phase: Phase = Phase.STARTING
    trace: str | None = None
    version: str | None = None
    deadline: float | None = None
    within: float = 0.0
    silence: Silence = field(default_factory=Silence)
    commits: set[Future[Command]] = field(default_factory=set)
    when_settled: list[Callable[[], None]] = field(default_factory=list)


@dataclass(slots=True)
class _Asked:
    child: Child
    what: str
    deadline: float


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
    ) -> None:
        self._launcher = launcher
        self._notify = notify
        self._on_offsets = on_offsets
        self._graceful_timeout = graceful_timeout
        self._inquiry_timeout = inquiry_timeout
        self._inbox: SimpleQueue[Callable[[], None]] = SimpleQueue()
        # Not closed by hand: another thread may still want to wake a supervisor that has just ended.
        self._wake_reader, self._wake_writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._running: dict[Unit, _Running] = {}
        self._asked: dict[int, _Asked] = {}
        self._levels: dict[str, int] = {}
        self._ending = False
        self._thread = threading.Thread(target=self._loop, name="supervisor")

    # -- from any thread -----------------------------------------------------------------------------------------

    def start_thread(self) -> None:
        """Begin to supervise."""
        self._thread.start()

    def start(self, unit: Unit, command: messages.RunConnector | messages.RunTask) -> None:
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
        self._do(lambda: self._inquire(request, inquiry))

    def give_up(self, request: int) -> None:
        """End the process of an inquiry whose answer nobody waits for; ``Answered`` says when it is gone."""
        self._do(lambda: self._give_up(request))

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
            units = {running.child: unit for unit, running in self._running.items()}
            asked = {asked.child: request for request, asked in self._asked.items()}
            for child in ready_children([*units, *asked], self._wake_reader, self._patience()):
                if child in units:
                    self._hear(units[child])
                else:
                    self._hear_answer(asked[child])
            with contextlib.suppress(BlockingIOError):
                os.read(self._wake_reader, _WAKES)
            self._work_off_inbox()
            self._kill_overdue()
        self._launcher.close()

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
        deadlines = [running.deadline for running in self._running.values() if running.deadline is not None]
        deadlines += [asked.deadline for asked in self._asked.values()]
        return max(0.0, min(deadlines) - time.monotonic()) if deadlines else None

    def _start(self, unit: Unit, command: messages.RunConnector | messages.RunTask) -> None:
        if self._ending or unit in self._running:
            return
        child = self._launcher.launch(str(unit))
        self._running[unit] = _Running(child)
        logger.info("process %s runs %s", child.pid, unit)
        if child.pid is not None:
            self._notify(Launched(unit, child.pid))
        child.send(command)
        for name, level in self._levels.items():
            child.send(messages.SetLogLevel(name, level))
        if child.gone():
            self._ended(unit, self._running[unit])

    def _stop(self, unit: Unit, within: float) -> None:
        running = self._running.get(unit)
        if running is None:
            return
        running.within, deadline = within, time.monotonic() + within
        if running.phase is Phase.STOPPING:
            running.deadline = min(deadline, running.deadline or deadline)
            return
        if running.phase is Phase.FAILED:
            if not _is_reaped(running):
                running.child.kill()
                running.child.join()
            self._settle(running, lambda: self._clear(unit, running))
            return
        running.deadline = deadline
        self._advance(unit, running, Event.STOP_ASKED)
        running.child.send(messages.Stop())

    def _command(self, unit: Unit, command: Command) -> None:
        running = self._running.get(unit)
        if running is not None:
            running.child.send(command)

    def _inquire(self, request: int, inquiry: messages.Inquiry) -> None:
        if self._ending:
            self._notify(Answered(request, messages.Failed("The worker is stopping.")))
            return
        what = type(inquiry).__name__
        child = self._launcher.launch(what)
        self._asked[request] = _Asked(child, what, time.monotonic() + self._inquiry_timeout)
        try:
            child.send(inquiry)
        except TypeError as error:
            # No message can hold what the user gave, such as a number of more than 64 bits or half of a character.
            self._answered(request, messages.Refused(f"This cannot be sent to a plugin: {error}", invalid=True))
            return
        if child.gone():
            self._answered(request, messages.Failed(f"The process for it {child.join()}"))

    def _give_up(self, request: int) -> None:
        if request in self._asked:
            self._answered(request, messages.Failed("It was cancelled."))

    def _set_log_level(self, name: str, level: int) -> None:
        below = f"{name}."
        self._levels = {
            other: kept for other, kept in self._levels.items() if name != "root" and not other.startswith(below)
        } | {name: level}
        for unit in self._running:
            self._command(unit, messages.SetLogLevel(name, level))

    def _end(self) -> None:
        self._ending = True
        for request in list(self._asked):
            self._answered(request, messages.Failed("The worker is stopping."))
        for unit in list(self._running):
            self._stop(unit, self._graceful_timeout)

    def _kill_overdue(self) -> None:
        now = time.monotonic()
        for request, asked in list(self._asked.items()):
            if asked.deadline <= now and asked.child.pipe.closed:
                self._answered(request, _unanswered("closed its pipe, and was killed"))
            elif asked.deadline <= now:
                logger.warning("%s had no answer within %.1f s and is cancelled", asked.what, self._inquiry_timeout)
                self._answered(request, messages.Failed(f"There was no answer within {self._inquiry_timeout:g} s."))
        for unit, running in list(self._running.items()):
            if running.deadline is not None and running.deadline <= now:
                logger.warning("%s did not stop within %.1f s and is killed", unit, running.within)
                running.deadline = None
                running.child.kill()

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
        running.deadline = running.deadline or time.monotonic() + self._graceful_timeout

    def _ended(self, unit: Unit, running: _Running) -> None:
        how = running.child.join()
        running.deadline = None
        if running.phase is not Phase.STOPPING:
            running.trace = running.trace or _last_words(unit, how, running.child.crash)
        elif running.child.crash is not None:
            logger.warning("%s", _last_words(unit, how, running.child.crash), extra={"context": str(unit)})
        self._settle(running, lambda: self._advance(unit, running, Event.EXITED))

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
                self._notify(_noticed(unit, report))
            case messages.ReadOffsets() | messages.CommitOffsets() | messages.ConfirmOwnership():
                self._pass_on(unit, running, report)
            case messages.TaskConfigs(configs):
                self._notify(Published(unit.connector, tuple(configs)))
            case messages.Started(version):
                running.version = version
                self._advance(unit, running, Event.STARTED)
            case messages.Failed(trace):
                running.trace = trace
                if running.phase is Phase.STOPPING:
                    logger.warning("%s failed while it stopped:\n%s", unit, trace, extra={"context": str(unit)})
                self._expect_end(running)
                self._advance(unit, running, Event.FAILED)
            case messages.Watched() | messages.Hanging() | messages.HangOver() | messages.Silent():
                self._hear_of_hang(unit, running, report)
            case messages.Paused() | messages.Resumed() | messages.Drained():
                self._advance(unit, running, _EVENTS[type(report)])
            case _:
                logger.error("%s sent %s, which nobody asked for", unit, type(report).__name__)

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
                self._notify(Hangs(unit, report))
            case messages.HangOver(method):
                if running.silence.over() or method is not None:
                    self._notify(Hangs(unit, None))
            case messages.Silent():
                outcome = running.silence.heard(report)
                if isinstance(outcome, messages.Hanging):
                    self._notify(Hangs(unit, outcome))
                elif outcome is not None:
                    running.child.kill()
                    self._handle(unit, running, outcome)

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
            del self._running[unit]
        if running.phase is not before:
            trace = running.trace if running.phase is Phase.FAILED else None
            self._notify(Changed(unit, running.phase, trace, running.version))

    def _hear_answer(self, request: int) -> None:
        asked = self._asked[request]
        for report in asked.child.receive():
            if isinstance(report, messages.LogRecord):
                log_record(asked.what, report)
            elif isinstance(report, messages.PARTIAL):
                self._notify(AnsweredInPart(request, report))
            else:
                self._answered(request, report)
                return
        if asked.child.gone():
            self._answered(request, _unanswered(asked.child.join()))
        elif asked.child.pipe.closed:
            # Either it is about to end, with a status that says how, or its plugin closed a foreign descriptor.
            asked.deadline = min(asked.deadline, time.monotonic() + self._graceful_timeout)

    def _answered(self, request: int, report: Report) -> None:
        asked = self._asked.pop(request)
        asked.child.kill()
        asked.child.join()
        self._notify(Answered(request, report))


def _numbers(values: Mapping[str, float | None]) -> dict[str, float]:
    return {name: float(value) for name, value in values.items() if value is not None}


def _noticed(
    unit: Unit,
    report: messages.Metrics | messages.ClientMetrics | messages.Loads | messages.ActiveTopics | messages.ConfigExpires,
) -> Notice:
    match report:
        case messages.Metrics():
            return Measured.of(unit, report)
        case messages.ClientMetrics():
            return ClientMeasured.of(unit, report)
        case messages.Loads():
            return Loaded(unit, report)
        case messages.ActiveTopics(topics):
            return TopicsUsed(unit, tuple(topics))
        case messages.ConfigExpires(ttl_ms):
            return Expires(unit, ttl_ms / 1000)


def _last_words(unit: Unit, how: str, crash: str | None) -> str:
    sentence = f"The process of {unit} {how}"
    return f"{sentence}." if crash is None else told_crash(sentence, crash)


def _unanswered(how: str) -> messages.Failed:
    return messages.Failed(f"The process ended without an answer: it {how}.")


def _is_reaped(running: _Running) -> bool:
    return running.child.pipe.closed and running.child.sentinel is None
