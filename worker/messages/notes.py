"""What a task says about itself beside its state: what it waits for, and the records that it has left out."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Skipped", "Waiting"]


@dataclass(frozen=True, slots=True)
class Waiting:
    """The task waits until something exists, for this reason; ``None`` once it goes on."""

    reason: str | None


@dataclass(frozen=True, slots=True)
class Skipped:
    """The records that the task has left out since it started, and how many of them are dead letters.

    ``since`` and ``last`` are the times of the start of the task and of the last record that was left out, in seconds
    since 1970, and ``reason`` is why the last one was; empty if that is unknown.
    """

    records: int
    dead_letters: int
    since: float
    last: float
    reason: str
