"""Summarises the statuses of connectors: counts by state, failures with their causes, and hanging calls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from rest.traces import cause_of
from worker.cli.output import state

__all__ = ["Failure", "failures", "hanging", "summed"]

_FAILED: Final = "FAILED"


@dataclass(frozen=True, slots=True)
class Failure:
    """A connector, or one of its tasks, that has failed."""

    connector: str
    task: int | None
    worker_id: str
    cause: str
    trace: str


def failures(status: Mapping[str, Any]) -> list[Failure]:
    """Return the failures in a connector's status: its own first, then its tasks'."""
    parts = [(None, status["connector"]), *((task["id"], task) for task in status["tasks"])]
    return [
        Failure(status["name"], task, part["worker_id"], cause_of(part.get("trace", "")), part.get("trace", ""))
        for task, part in parts
        if part["state"] == _FAILED
    ]


def hanging(status: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the hanging calls in a connector's status, each as a sentence with its stack."""
    parts = [("", status["connector"]), *((f"task {task['id']}: ", task) for task in status["tasks"])]
    return [
        (f"{name}{hang['method']} has not returned since {hang['since']}: {hang['line']}", hang["trace"])
        for name, part in parts
        if (hang := part.get("hanging")) is not None
    ]


def summed(states: Iterable[str]) -> str:
    """Return the number of items in each state, the most frequent first: ``2 RUNNING, 1 FAILED``."""
    counted = Counter(states)
    return ", ".join(f"{count} {state(name)}" for name, count in counted.most_common()) or "none"
