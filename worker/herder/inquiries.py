"""Inquiries to child processes. Used only in the herder's thread."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, TypeVar

from connect.errors import ConnectError
from worker.errors import BadRequestError, UnavailableError
from worker.herder.inbox import Deferred, together
from worker.herder.requests import Steps
from worker.messages import messages
from worker.messages.messages import Inquiry, Report
from worker.supervisor.notices import Answered, AnsweredInPart
from worker.supervisor.process import LOST_PLACE

__all__ = ["Inquiries", "OnPart"]

R = TypeVar("R", bound=Report)
OnPart: TypeAlias = Callable[[Report], None]
"""Called in the herder's thread with each part that comes before the answer."""


class Inquiries:
    """Sends inquiries with ``ask`` and calls back with the answers. ``give_up`` ends the process of an inquiry.

    ``lost`` returns how this worker has lost its cluster, if it has: then its processes end, whatever they were asked.
    """

    def __init__(
        self,
        ask: Callable[[int, Inquiry], None],
        give_up: Callable[[int], None],
        lost: Callable[[], str | None] = lambda: None,
    ) -> None:
        self._ask = ask
        self._give_up = give_up
        self._lost = lost
        self._numbers = itertools.count()
        self._waiting: dict[int, Deferred[Any]] = {}
        self._parts: dict[int, OnPart] = {}
        self._abandoned: set[int] = set()
        self._when_ended: list[Deferred[None]] = []

    def ask(self, inquiry: Inquiry, kind: type[R], on_part: OnPart = lambda _: None) -> Steps[R]:
        """Send an inquiry and return its answer, a report of this ``kind``. Raises why there is none.

        If the steps are closed before, the process that works on it is ended.
        """
        [report] = yield from self.ask_all([inquiry], kind, on_part)
        return report

    def ask_all(self, inquiries: Sequence[Inquiry], kind: type[R], on_part: OnPart = lambda _: None) -> Steps[list[R]]:
        """Send several inquiries at once and return their answers in order. Raises the first reason for none."""
        numbers = [next(self._numbers) for _ in inquiries]
        answers = together([self._waiting.setdefault(number, Deferred()) for number in numbers])
        self._parts |= dict.fromkeys(numbers, on_part)
        for number, inquiry in zip(numbers, inquiries, strict=True):
            self._ask(number, inquiry)
        try:
            reports: list[R] = yield answers
        finally:
            for number in numbers:
                self._abandon(number)
        assert all(isinstance(report, kind) for report in reports)
        return reports

    def answered_in_part(self, notice: AnsweredInPart) -> None:
        """Pass a partial answer to the caller that waits for it."""
        if notice.request in self._parts:
            self._parts[notice.request](notice.report)

    def answered(self, notice: Answered) -> None:
        """Pass an answer to the caller that waits for it."""
        self._parts.pop(notice.request, None)
        outcome = _outcome(notice.report)
        if isinstance(notice.report, messages.Failed) and (lost := self._lost()) is not None:
            outcome = UnavailableError(lost)
        waiting = self._waiting.pop(notice.request)
        if isinstance(outcome, ConnectError):
            waiting.set_exception(outcome)
        else:
            waiting.set_result(outcome)
        self._look_what_is_done()

    def all_ended(self) -> Deferred[None]:
        """Return a future that completes once every process working for a cancelled request has ended."""
        ended: Deferred[None] = Deferred()
        self._when_ended.append(ended)
        self._look_what_is_done()
        return ended

    def _abandon(self, number: int) -> None:
        if number in self._waiting:
            self._abandoned.add(number)
            self._give_up(number)

    def _look_what_is_done(self) -> None:
        self._abandoned &= self._waiting.keys()
        if not self._abandoned:
            all_ended, self._when_ended = self._when_ended, []
            for ended in all_ended:
                ended.set_result(None)


def _outcome(report: Report) -> Report | ConnectError:
    match report:
        case messages.Refused(message, invalid):
            return BadRequestError(message) if invalid else ConnectError(message)
        case messages.Failed(trace) if LOST_PLACE in trace:
            return ConnectError(
                "This worker has lost its place in its cluster, since the brokers did not answer it in time or it was "
                "held up itself. So the process that was at work for this request has ended, and may have done a part "
                "of it. Ask again once GET /health says that the worker is well."
            )
        case messages.Failed(trace):
            return ConnectError(f"A plugin could not answer: {trace.strip()}")
        case _:
            return report
