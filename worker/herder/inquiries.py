"""The questions that wait for an answer of a child process. Used by the herder's thread alone."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, TypeAlias

from connect.errors import ConnectError
from worker.errors import BadRequestError
from worker.herder.request import Request
from worker.supervisor import messages
from worker.supervisor.messages import Inquiry, Report
from worker.supervisor.supervisor import Answered

__all__ = ["Inquiries", "OnAnswer"]

OnAnswer: TypeAlias = Callable[[Report | ConnectError], None]
"""Called in the herder's thread with the answer, or with why there is none."""


class Inquiries:
    """Asks through ``ask`` and calls back when the answer has come."""

    def __init__(self, ask: Callable[[int, Inquiry], None]) -> None:
        self._ask = ask
        self._numbers = itertools.count()
        self._waiting: dict[int, OnAnswer] = {}

    def put(self, inquiry: Inquiry, on_answer: OnAnswer) -> None:
        """Ask, and go on with ``on_answer``."""
        number = next(self._numbers)
        self._waiting[number] = on_answer
        self._ask(number, inquiry)

    def answer(self, inquiry: Inquiry, request: Request[Any], go_on: Callable[[Report], None]) -> None:
        """Ask, and go on with the answer; where there is none, or ``go_on`` raises, the request fails."""

        def on_answer(outcome: Report | ConnectError) -> None:
            try:
                if isinstance(outcome, ConnectError):
                    raise outcome
                go_on(outcome)
            except ConnectError as error:
                request.set_exception(error)

        self.put(inquiry, on_answer)

    def answered(self, notice: Answered) -> None:
        """Pass an answer on to who waits for it."""
        self._waiting.pop(notice.request)(_outcome(notice.report))


def _outcome(report: Report) -> Report | ConnectError:
    match report:
        case messages.Refused(message, invalid):
            return BadRequestError(message) if invalid else ConnectError(message)
        case messages.Failed(trace):
            return ConnectError(f"A plugin could not answer: {trace.strip()}")
        case _:
            return report
