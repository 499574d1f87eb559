"""Messages about calls of a plugin that do not return: reports of a child process.

They are part of :mod:`worker.messages.messages`, which encodes and decodes all messages.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["HangOver", "Hanging", "Silent", "Watched", "hang_trace", "not_returned"]


@dataclass(frozen=True, slots=True)
class Watched:
    """Calls of the plugin are watched: the seconds after which one is reported, and ended; 0 is never."""

    warning: float
    timeout: float


@dataclass(frozen=True, slots=True)
class Hanging:
    """A call of the plugin has not returned for this many seconds, ``since`` this time (seconds since 1970).

    ``line`` is the line of the plugin that it has reached, ``trace`` the whole stack.
    """

    method: str
    seconds: float
    since: float
    line: str
    trace: str


def not_returned(method: str, seconds: float, line: str) -> str:
    """Return the sentence about a call that hangs."""
    return f"{method} has not returned for {round(seconds) if seconds >= 10 else round(seconds, 1):g} s: {line}"


def hang_trace(hanging: Hanging) -> str:
    """Return the trace of a connector or task that fails because a call hangs."""
    sentence = not_returned(hanging.method, hanging.seconds, hanging.line)
    return f"{sentence} (task.hang.timeout.ms)\n\n{hanging.trace}"


@dataclass(frozen=True, slots=True)
class HangOver:
    """A call that was reported has returned; without a ``method``, the process runs Python again."""

    method: str | None


@dataclass(frozen=True, slots=True)
class Silent:
    """The process has run no Python for this many seconds; ``stacks`` are those of its threads."""

    seconds: float
    stacks: str
