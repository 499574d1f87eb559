"""Summarises the statuses of connectors: counts by state, failures with their causes, and hanging calls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from worker.cli.output import state
from worker.formatting import counted, size_text
from worker.metrics.work import Work, last_work
from worker.traces import cause_of, messages_of

__all__ = [
    "Failure",
    "failures",
    "hanging",
    "lag_text",
    "losses",
    "notices",
    "summed",
    "unknown_since",
    "unknown_work",
    "waiting",
    "work_text",
]

_FAILED: Final = "FAILED"
_LAG: Final = "sink-record-lag"
_UNCOMMITTED: Final = "sink-uncommitted-partition-count"
_REMAINING: Final = "source-remaining-"


@dataclass(frozen=True, slots=True)
class Failure:
    """A connector, or one of its tasks, that has failed."""

    connector: str
    task: int | None
    worker_id: str
    cause: str
    trace: str

    @property
    def whole(self) -> str:
        """The whole message of what has failed, and those of what caused it, each in a line of its own."""
        return "\nCaused by: ".join(messages_of(self.trace))


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


def waiting(status: Mapping[str, Any]) -> list[str]:
    """Return what a connector and its tasks wait for, each as a sentence."""
    parts = [("", status["connector"]), *((f"task {task['id']}: ", task) for task in status["tasks"])]
    return [f"{name}{wait['reason']}" for name, part in parts if (wait := part.get("waiting")) is not None]


def losses(status: Mapping[str, Any]) -> str | None:
    """Return what a connector has left out, as a sentence; ``None`` if that is nothing."""
    skipped = status.get("skipped")
    if skipped is None:
        return None
    records = f"{counted(skipped['records'], 'record')} skipped since {skipped['since']}"
    if skipped["dead_letters"]:
        records += f" ({counted(skipped['dead_letters'], 'dead letter')})"
    reason = f": {skipped['reason']}" if skipped["reason"] else ""
    return f"{records}, the last one at {skipped['last']}{reason}"


def notices(status: Mapping[str, Any]) -> list[str]:
    """Return what a user should know about a connector beside failures, worst first, each as a sentence."""
    lost = losses(status)
    return [*(sentence for sentence, _ in hanging(status)), *waiting(status), *([] if lost is None else [lost])]


def lag_text(task: Mapping[str, Any]) -> str | None:
    """Return the lag of a task, or what a source has left to read; ``None`` if it is unknown."""
    values = task.get("metrics", {})
    if values.get(_UNCOMMITTED):
        return "not committed yet"
    if (lag := values.get(_LAG)) is not None:
        return f"{lag:,.0f}"
    left = sorted((key.removeprefix(_REMAINING), value) for key, value in values.items() if key.startswith(_REMAINING))
    return ", ".join(f"{value:,.0f} {unit}" for unit, value in left) or None


def unknown_since(status: Mapping[str, Any]) -> list[str]:
    """Return the last known lags of tasks whose lag is unknown now, each as a sentence."""
    return [
        f"The lag of task {task['id']} is unknown; it was {was} at {last['at']}."
        for task in status["tasks"]
        if (last := task.get("last_metrics")) is not None and (was := lag_text({"metrics": last["values"]})) is not None
    ]


def work_text(work: Work) -> str:
    """Return how much is done, with a bar."""
    whole = size_text(work.total) if work.unit == "bytes" else f"{work.total:,} {work.unit}"
    return f"{work.bar} {work.percent} % of {whole}"


def unknown_work(status: Mapping[str, Any]) -> list[str]:
    """Return the last known progress of tasks that tell none now, each as a sentence."""
    return [
        f"The progress of task {task} is unknown; it was {work_text(work)} at {at}."
        for task, work, at in last_work(status["tasks"])
    ]


def summed(states: Iterable[str]) -> str:
    """Return the number of items in each state, the most frequent first: ``2 RUNNING, 1 FAILED``."""
    counted = Counter(states)
    return ", ".join(f"{count} {state(name)}" for name, count in counted.most_common()) or "none"
