"""Inquiries: questions that a new child process answers once, for the supervisor or without one.

A process with a JVM is kept for a while after its answer, since a JVM takes seconds to start, and somebody who writes a
configuration has it validated again and again. For the same reason, and for its memory, only a few of them are asked at
once: the others' turn comes sooner than JVMs of their own would start.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from worker.messages import messages
from worker.messages.hangs import not_returned
from worker.messages.messages import Report
from worker.supervisor.notices import Answered, AnsweredInPart, Notice
from worker.supervisor.pipe import Listener
from worker.supervisor.plugin_homes import JAVA
from worker.supervisor.process import Child, Launcher, log_record

__all__ = ["Inquiries", "ask"]

logger = logging.getLogger(__name__)


_WARM_SECONDS: Final = 60.0
"""For how long a process with a JVM waits for another inquiry."""
_MOST_JVMS: Final = 2
_SLOW_SECONDS: Final = 20.0
"""An inquiry that lasts longer keeps no other from its turn: its plugin may hang."""


@dataclass(frozen=True, slots=True)
class _Waiting:
    """An inquiry whose turn has not come."""

    inquiry: messages.Inquiry
    home: str
    deadline: float


@dataclass(slots=True)
class _Asked:
    child: Child
    what: str
    home: str
    begun: float
    deadline: float


@dataclass(slots=True)
class _Warm:
    """A process that has answered, and can answer again about plugins of the same home."""

    child: Child
    home: str
    deadline: float


class Inquiries:
    """Starts a process for each inquiry and passes its answer to ``notify``. Used by the supervisor's thread alone.

    An answer may take ``timeout`` seconds. A process that closes its pipe without one has ``grace`` seconds to end.
    """

    def __init__(self, launcher: Launcher, notify: Callable[[Notice], None], timeout: float, grace: float) -> None:
        self._launcher = launcher
        self._notify = notify
        self._timeout = timeout
        self._grace = grace
        self._waiting: dict[int, _Waiting] = {}
        self._asked: dict[int, _Asked] = {}
        self._warm: list[_Warm] = []
        self._ended = False

    def children(self) -> Mapping[Child, int]:
        """Return the processes of the open inquiries, with the numbers of their requests."""
        return {asked.child: request for request, asked in self._asked.items()}

    def deadlines(self) -> list[float]:
        """Return when an inquiry times out, its turn comes or a waiting process ends, by :func:`time.monotonic`."""
        found = [each.deadline for each in self._asked.values()] + [warm.deadline for warm in self._warm]
        if self._waiting:
            turns, now = (asked.begun + _SLOW_SECONDS for asked in self._in_jvms()), time.monotonic()
            found += [*(turn for turn in turns if turn > now), *(each.deadline for each in self._waiting.values())]
        return found

    def ask(self, request: int, inquiry: messages.Inquiry) -> None:
        """Have a process answer an inquiry in its turn: a new one, or one with a JVM that has answered others."""
        if self._ended:
            self._notify(Answered(request, messages.Failed("The worker is stopping.")))
            return
        self._waiting[request] = _Waiting(inquiry, self._launcher.home(inquiry), time.monotonic() + self._timeout)
        self._take_turns(time.monotonic())

    def _take_turns(self, now: float) -> None:
        """Have those inquiries answered whose turn has come."""
        for request, waiting in list(self._waiting.items()):
            busy = sum(asked.begun + _SLOW_SECONDS > now for asked in self._in_jvms())
            if busy < _MOST_JVMS or not _is_java(waiting.home):
                del self._waiting[request]
                self._begin(request, waiting)

    def _in_jvms(self) -> Iterator[_Asked]:
        return (asked for asked in self._asked.values() if _is_java(asked.home))

    def _begin(self, request: int, waiting: _Waiting) -> None:
        what, inquiry = type(waiting.inquiry).__name__, waiting.inquiry
        child = self._warm_child(waiting.home) or self._launcher.launch(what, inquiry)
        self._asked[request] = _Asked(child, what, waiting.home, time.monotonic(), waiting.deadline)
        try:
            child.send(inquiry)
        except TypeError as error:
            # JSON cannot hold some values that users may give: numbers of more than 64 bits, lone surrogates.
            self._answered(request, messages.Refused(f"This value cannot be passed to a plugin: {error}", invalid=True))
            return
        if child.gone():
            self._answered(request, messages.Failed(f"Its process {child.join()}"))

    def give_up(self, request: int) -> None:
        """Cancel an inquiry, and end its process."""
        if request in self._asked or self._waiting.pop(request, None) is not None:
            self._answered(request, messages.Failed("It was cancelled."))
        self._take_turns(time.monotonic())

    def hear(self, request: int) -> None:
        """Receive from the process of an inquiry."""
        self._hear(request, self._asked[request])
        self._take_turns(time.monotonic())

    def _hear(self, request: int, asked: _Asked) -> None:
        for report in asked.child.receive():
            if isinstance(report, messages.LogRecord):
                log_record(asked.what, report)
            elif isinstance(report, messages.Hanging):
                _log_hang(asked.what, report)
            elif isinstance(report, messages.PARTIAL):
                self._notify(AnsweredInPart(request, report))
            else:
                # Whoever asked need not wait until nothing is left of the process, which has nothing more to do.
                self._notify(Answered(request, report))
                self._end(request, can_answer_again=not isinstance(report, messages.Failed))
                return
        if asked.child.gone():
            self._answered(request, _unanswered(asked.child.join()))
        elif asked.child.pipe.closed:
            # It is about to end with a status, or its plugin has closed a descriptor that it did not open.
            asked.deadline = min(asked.deadline, time.monotonic() + self._grace)

    def kill_overdue(self, now: float) -> None:
        """End the processes that are too late, and those that have waited long enough for another inquiry, whose turn
        may have come.
        """
        self._cool_down(lambda warm: warm.deadline <= now)
        for request, waiting in list(self._waiting.items()):
            if waiting.deadline <= now:
                del self._waiting[request]
                self._answered(request, messages.Failed(f"Its turn did not come within {self._timeout:g} s."))
        for request, asked in list(self._asked.items()):
            if asked.deadline <= now and asked.child.pipe.closed:
                self._answered(request, _unanswered("closed its pipe, and was killed"))
            elif asked.deadline <= now:
                logger.warning("%s had no answer within %.1f s and is cancelled", asked.what, self._timeout)
                self._answered(request, messages.Failed(f"There was no answer within {self._timeout:g} s."))
        self._take_turns(now)

    def end(self) -> None:
        """Cancel all inquiries, and start no more."""
        self._ended = True
        open_inquiries, self._waiting = [*self._waiting, *self._asked], {}
        for request in open_inquiries:
            self._answered(request, messages.Failed("The worker is stopping."))
        self._cool_down(lambda _: True)

    def _answered(self, request: int, report: Report) -> None:
        """End a process that has not answered, and then say so: what it was doing has come to its end."""
        self._end(request)
        self._notify(Answered(request, report))

    def _end(self, request: int, *, can_answer_again: bool = False) -> None:
        """End the process of an inquiry, or keep one with a JVM for the next."""
        asked = self._asked.pop(request, None)
        if asked is None:
            return
        if can_answer_again and _is_java(asked.home):
            self._warm.append(_Warm(asked.child, asked.home, time.monotonic() + _WARM_SECONDS))
        else:
            _kill(asked.child)

    def _warm_child(self, home: str) -> Child | None:
        """Take a process that waits for another inquiry about plugins of this home; ``None`` if there is none."""
        self._cool_down(_is_closed)
        found = next((warm for warm in self._warm if warm.home == home), None)
        if found is None:
            return None
        self._warm.remove(found)
        return found.child

    def _cool_down(self, is_due: Callable[[_Warm], bool]) -> None:
        due = [warm for warm in self._warm if is_due(warm)]
        self._warm = [warm for warm in self._warm if warm not in due]
        for warm in due:
            _kill(warm.child)


def _is_java(home: str) -> bool:
    return home.startswith(f"{JAVA}@")


def _is_closed(warm: _Warm) -> bool:
    """Return whether a waiting process has closed its pipe; log what it has said meanwhile."""
    for report in warm.child.receive():
        if isinstance(report, messages.LogRecord):
            log_record(JAVA, report)
    return warm.child.pipe.closed


def _kill(child: Child) -> None:
    child.kill()
    child.join()


def _log_hang(label: str, hanging: messages.Hanging) -> None:
    """Log which call of a plugin does not return."""
    logger.warning("%s: %s\n%s", label, not_returned(hanging.method, hanging.seconds, hanging.line), hanging.trace)


def _unanswered(how: str) -> messages.Failed:
    return messages.Failed(f"The process ended without an answer: it {how}.")


def ask(
    launcher: Launcher,
    inquiry: messages.Inquiry,
    label: str,
    seconds: float,
    on_part: Callable[[messages.Report], None] = lambda _: None,
) -> messages.Report | str:
    """Ask a new process, without a supervisor. Return its answer, or the reason why there is none, and end it.

    ``label`` marks its log lines. ``on_part`` receives the reports that come before the answer.
    """
    child = launcher.launch(label, inquiry)
    try:
        child.send(inquiry)
        return _answer(child, label, seconds, on_part)
    finally:
        child.kill()
        child.join()


def _answer(
    child: Child, label: str, seconds: float, on_part: Callable[[messages.Report], None]
) -> messages.Report | str:
    deadline = time.monotonic() + seconds
    listening: Listener[Child] = Listener()
    while (left := deadline - time.monotonic()) > 0:
        listening.ready([child], left)
        for report in child.receive():
            if isinstance(report, messages.LogRecord):
                log_record(label, report)
            elif isinstance(report, messages.Hanging):
                _log_hang(label, report)
            elif isinstance(report, messages.PARTIAL):
                on_part(report)
            else:
                return report
        if child.gone():
            return f"its process {child.join()}"
    return f"it did not answer within {seconds:g} s"
