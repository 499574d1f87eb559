"""The inquiries that are under way: each is answered by a child of its own, in time or not at all."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass

from worker.supervisor.messages import messages
from worker.supervisor.messages.messages import Report
from worker.supervisor.notices import Answered, AnsweredInPart, Notice
from worker.supervisor.process import Child, Launcher, log_record

__all__ = ["Inquiries"]

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class _Asked:
    request: int
    child: Child
    what: str
    deadline: float


class Inquiries:
    """Asks, and tells the answers by ``notify``. Used by the supervisor's thread alone.

    An answer has to come within ``timeout`` seconds, and the end of a child that has closed its pipe within ``last``.
    """

    def __init__(self, launcher: Launcher, notify: Callable[[Notice], None], timeout: float, last: float) -> None:
        self._launcher = launcher
        self._notify = notify
        self._timeout = timeout
        self._last = last
        self._asked: dict[int, _Asked] = {}
        self._has_ended = False

    def children(self) -> Collection[Child]:
        """The children that are asked, each of which is to be heard."""
        return [asked.child for asked in self._asked.values()]

    def next_deadline(self) -> float | None:
        """When :meth:`cancel_overdue` has something to do."""
        return min((asked.deadline for asked in self._asked.values()), default=None)

    def ask(self, request: int, inquiry: messages.Inquiry) -> None:
        """Have a child answer an inquiry."""
        if self._has_ended:
            self._notify(Answered(request, messages.Failed("The worker is stopping.")))
            return
        what = type(inquiry).__name__
        child = self._launcher.launch(what, inquiry)
        asked = self._asked[request] = _Asked(request, child, what, time.monotonic() + self._timeout)
        try:
            child.send(inquiry)
        except TypeError as error:
            # No message can hold what the user gave, such as a number of more than 64 bits or half of a character.
            self._answered(asked, messages.Refused(f"This cannot be sent to a plugin: {error}", invalid=True))
            return
        if child.gone():
            self._answered(asked, messages.Failed(f"The process for it {child.join()}"))

    def give_up(self, request: int) -> None:
        """End the child of an inquiry whose answer nobody waits for."""
        if request in self._asked:
            self._answered(self._asked[request], messages.Failed("It was cancelled."))

    def end(self) -> None:
        """Ask nothing more, and wait for no answer."""
        self._has_ended = True
        for asked in list(self._asked.values()):
            self._answered(asked, messages.Failed("The worker is stopping."))

    def cancel_overdue(self) -> None:
        """End the children that have not answered in time."""
        now = time.monotonic()
        for asked in list(self._asked.values()):
            if asked.deadline <= now and asked.child.pipe.closed:
                self._answered(asked, _unanswered("closed its pipe, and was killed"))
            elif asked.deadline <= now:
                logger.warning("%s had no answer within %.1f s and is cancelled", asked.what, self._timeout)
                self._answered(asked, messages.Failed(f"There was no answer within {self._timeout:g} s."))

    def hear(self, child: Child) -> bool:
        """Hear what a child has to say; whether it was asked something here."""
        asked = next((asked for asked in self._asked.values() if asked.child is child), None)
        if asked is not None:
            self._hear_answer(asked)
        return asked is not None

    def _hear_answer(self, asked: _Asked) -> None:
        for report in asked.child.receive():
            if isinstance(report, messages.LogRecord):
                log_record(asked.what, report)
            elif isinstance(report, messages.PARTIAL):
                self._notify(AnsweredInPart(asked.request, report))
            else:
                self._answered(asked, report)
                return
        if asked.child.gone():
            self._answered(asked, _unanswered(asked.child.join()))
        elif asked.child.pipe.closed:
            # Either it is about to end, with a status that says how, or its plugin closed a foreign descriptor.
            asked.deadline = min(asked.deadline, time.monotonic() + self._last)

    def _answered(self, asked: _Asked, report: Report) -> None:
        del self._asked[asked.request]
        asked.child.kill()
        asked.child.join()
        self._notify(Answered(asked.request, report))


def _unanswered(how: str) -> messages.Failed:
    return messages.Failed(f"The process ended without an answer: it {how}.")
