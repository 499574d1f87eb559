"""Judges a child in which no Python runs: its plugin is in C code that lets no thread of Python run.

The child says so itself, again and again, while that lasts. The first time counts for nothing: the machine may have
been suspended, and the child with it.
"""

from __future__ import annotations

import time

from worker.supervisor.messages.hangs import Hanging, Silent, Watched, hang_trace
from worker.supervisor.messages.messages import Failed
from worker.supervisor.stacks import hang_place

__all__ = ["Silence"]

_GROWTH = 2


class Silence:
    """How long a child has been silent, and what is to be done about it."""

    def __init__(self) -> None:
        self._limits = Watched(0, 0)
        self._seconds = 0.0
        self._next_report = 0.0

    def watched(self, limits: Watched) -> None:
        """Take note of the limits that hold for the child."""
        self._limits = limits

    def heard(self, silent: Silent) -> Hanging | Failed | None:
        """What to report after a further silence; the child is to be killed if that is a failure."""
        self._seconds += silent.seconds
        if self._seconds < _GROWTH * silent.seconds:
            return None
        method, line = hang_place(silent.stacks)
        trace = f"No Python runs in this process; its stacks are:\n{silent.stacks}"
        hanging = Hanging(method or "C code", self._seconds, time.time() - self._seconds, line, trace)
        if self._limits.timeout and self._seconds >= self._limits.timeout:
            return Failed(hang_trace(hanging))
        if self._limits.warning and self._seconds >= max(self._limits.warning, self._next_report):
            self._next_report = _GROWTH * self._seconds
            return hanging
        return None

    def over(self) -> bool:
        """Take note that Python runs again; whether the silence was reported."""
        was_reported = self._next_report > 0
        self._seconds = self._next_report = 0.0
        return was_reported
