"""Inquiries to child processes. Used only in the herder's thread."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, TypeAlias

from connect.errors import ConnectError
from worker.errors import BadRequestError
from worker.herder.inbox import Action, Request
from worker.supervisor.messages import messages
from worker.supervisor.messages.messages import Inquiry, Report
from worker.supervisor.notices import Answered, AnsweredInPart

__all__ = ["Inquiries", "OnAnswer", "OnPart"]

OnAnswer: TypeAlias = Callable[[Report | ConnectError], None]
"""Called in the herder's thread with the answer, or with the reason why there is none."""
OnPart: TypeAlias = Callable[[Report], None]
"""Called in the herder's thread with each part that comes before the answer."""


class Inquiries:
    """Sends inquiries with ``ask`` and calls back with the answers. ``give_up`` ends the process of an inquiry."""

    def __init__(self, ask: Callable[[int, Inquiry], None], give_up: Callable[[int], None]) -> None:
        self._ask = ask
        self._give_up = give_up
        self._numbers = itertools.count()
        self._waiting: dict[int, OnAnswer] = {}
        self._parts: dict[int, OnPart] = {}
        self._abandoned: set[int] = set()
        self._when_done: list[Action] = []

    def put(self, inquiry: Inquiry, on_answer: OnAnswer) -> int:
        """Send an inquiry, pass its answer to ``on_answer``, and return the inquiry's number."""
        number = next(self._numbers)
        self._waiting[number] = on_answer
        self._ask(number, inquiry)
        return number

    def answer(
        self,
        inquiry: Inquiry,
        request: Request[Any],
        go_on: Callable[[Report], None],
        on_part: OnPart = lambda _: None,
    ) -> None:
        """Send an inquiry and continue with its answer; fail the request if there is none or ``go_on`` raises.

        Once the request is cancelled, nothing more is done for it, and the process that works on it is ended.
        """
        if request.done():
            return

        def on_answer(outcome: Report | ConnectError) -> None:
            if request.done():
                return
            try:
                if isinstance(outcome, ConnectError):
                    raise outcome
                go_on(outcome)
            except ConnectError as error:
                request.set_exception(error)

        number = self.put(inquiry, on_answer)
        self._parts[number] = on_part
        request.add_done_callback(lambda _: self._abandon(number))

    def answered_in_part(self, notice: AnsweredInPart) -> None:
        """Pass a partial answer to the caller that waits for it."""
        if notice.request in self._parts:
            self._parts[notice.request](notice.report)

    def answered(self, notice: Answered) -> None:
        """Pass an answer to the caller that waits for it."""
        self._parts.pop(notice.request, None)
        self._waiting.pop(notice.request)(_outcome(notice.report))
        self._look_what_is_done()

    def when_done(self, action: Action) -> None:
        """Call ``action`` once every process working for a cancelled request has ended."""
        self._when_done.append(action)
        self._look_what_is_done()

    def _abandon(self, number: int) -> None:
        if number in self._waiting:
            self._abandoned.add(number)
            self._give_up(number)

    def _look_what_is_done(self) -> None:
        self._abandoned &= self._waiting.keys()
        if not self._abandoned:
            actions, self._when_done = self._when_done, []
            for action in actions:
                action()


def _outcome(report: Report) -> Report | ConnectError:
    match report:
        case messages.Refused(message, invalid):
            return BadRequestError(message) if invalid else ConnectError(message)
        case messages.Failed(trace):
            return ConnectError(f"A plugin could not answer: {trace.strip()}")
        case _:
            return report
