"""Summaries of connectors for the overview: state, rate, lag, and how much attention each needs."""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from worker.metrics.work import Work, work_of
from worker.traces import messages_of

__all__ = ["NOT_COMMITTED", "ConnectorSummary", "Trouble", "counted", "summaries"]

_RATES: Final = ("sink-record-send-rate", "source-record-write-rate")
_LAG: Final = "sink-record-lag"
_REMAINING: Final = "source-remaining-"
_MOST_CHARACTERS: Final = 1_000
"""How much of a reason the list has: it shows three lines, and the rest under the pointer."""
_UNCOMMITTED: Final = "sink-uncommitted-partition-count"
NOT_COMMITTED: Final = "not committed yet"
"""What is shown in place of the lag of a sink whose group has no offset yet in a partition that it has consumed."""
_RECENT: Final = timedelta(days=1)
"""How long after the last lost record a connector needs attention."""


class Trouble(enum.IntEnum):
    """How much attention a connector needs, most urgent first. The names appear on the page's counters."""

    FAILED = 0
    RESTARTING = 1
    HANGING = 2
    UNASSIGNED = 3
    LOSING = 4
    WAITING = 5
    BEHIND = 6
    RUNNING = 7
    PAUSED = 8
    STOPPED = 9

    @property
    def word(self) -> str:
        """The name in addresses and on the page."""
        return self.name.lower()

    @property
    def label(self) -> str:
        """The name on the page."""
        return "Losing records" if self is Trouble.LOSING else self.word.capitalize()


_BY_STATE: Final = {
    "FAILED": Trouble.FAILED,
    "RESTARTING": Trouble.RESTARTING,
    "UNASSIGNED": Trouble.UNASSIGNED,
    "RUNNING": Trouble.RUNNING,
    "PAUSED": Trouble.PAUSED,
    "STOPPED": Trouble.STOPPED,
}


@dataclass(frozen=True, slots=True)
class ConnectorSummary:
    """A connector as the overview shows it. ``rate`` and ``lag`` are ``None`` while they are unknown.

    ``lag_note`` says why the lag is unknown, if that is known; ``lag_was`` is what it was at ``lag_at``. ``skipped`` is
    what the connector has left out.
    """

    name: str
    type: str
    plugin: str
    state: str
    trouble: Trouble
    reason: str
    tasks: Mapping[str, int]
    worker_id: str
    workers: frozenset[str]
    rate: float | None
    lag: float | None
    lag_unit: str
    lag_note: str = ""
    lag_was: float | None = None
    lag_at: str = ""
    skipped: Mapping[str, Any] | None = None
    work: Work | None = None
    """How much of its work is done, while the whole is known and something is left."""

    @property
    def task_count(self) -> int:
        """The number of tasks that have a status."""
        return sum(self.tasks.values())


def summaries(views: Mapping[str, Mapping[str, Any]]) -> list[ConnectorSummary]:
    """Summarize connectors from their ``status`` and ``info`` views, those that need attention first."""
    found = [_connector(name, view.get("status"), view.get("info", {})) for name, view in views.items()]
    return sorted(found, key=lambda connector: (connector.trouble, connector.name))


def counted(connectors: Iterable[ConnectorSummary]) -> dict[Trouble, int]:
    """Count the connectors by trouble, in order."""
    counts = Counter(connector.trouble for connector in connectors)
    return {trouble: counts[trouble] for trouble in Trouble if counts[trouble] or trouble in _ALWAYS}


_ALWAYS: Final = (Trouble.FAILED, Trouble.RUNNING)


def _connector(name: str, status: Mapping[str, Any] | None, info: Mapping[str, Any]) -> ConnectorSummary:
    plugin = str(info.get("config", {}).get("connector.class", "")).rpartition(".")[2]
    kind = str(info.get("type", "unknown"))
    if status is None:
        return ConnectorSummary(
            name, kind, plugin, "UNASSIGNED", Trouble.UNASSIGNED, "", {}, "", frozenset(), None, None, ""
        )
    own, tasks = status["connector"], status["tasks"]
    trouble, reason = _trouble(own, tasks, str(status.get("next_run") or ""))
    lag, unit = _lag(tasks)
    if trouble is Trouble.RUNNING:
        trouble, reason = _quiet_trouble(own, tasks, status.get("skipped"), reason)
    if trouble is Trouble.RUNNING and _is_behind(lag, _rate(tasks), unit):
        trouble, reason = Trouble.BEHIND, "Records are waiting, but none are delivered"
    return ConnectorSummary(
        name,
        kind,
        plugin,
        str(own["state"]),
        trouble,
        reason,
        Counter(str(task["state"]) for task in tasks),
        str(own["worker_id"]),
        frozenset(str(part["worker_id"]) for part in (own, *tasks)) - {""},
        _rate(tasks),
        lag,
        unit,
        NOT_COMMITTED if any(task.get("metrics", {}).get(_UNCOMMITTED) for task in tasks) else "",
        *_last_lag(tasks),
        status.get("skipped"),
        work_of([task.get("metrics", {}) for task in tasks]),
    )


def _trouble(own: Mapping[str, Any], tasks: Sequence[Mapping[str, Any]], next_run: str) -> tuple[Trouble, str]:
    """Return the worst condition of the connector and its tasks, and the reason."""
    parts = [("", own), *((f"Task {task['id']}: ", task) for task in tasks)]
    worst = min(
        (_BY_STATE.get(str(part["state"]), Trouble.UNASSIGNED), number) for number, (_, part) in enumerate(parts)
    )
    trouble, (who, part) = worst[0], parts[worst[1]]
    if own["state"] in ("PAUSED", "STOPPED") and trouble > Trouble.FAILED:
        trouble = _BY_STATE[str(own["state"])]
    hanging = next(((who, part["hanging"]) for who, part in parts if part.get("hanging")), None)
    if hanging is not None and trouble > Trouble.HANGING:
        reason = f"{hanging[0]}{hanging[1]['method']} has not returned, at {hanging[1]['line']}"
        return Trouble.HANGING, reason[:_MOST_CHARACTERS]
    if trouble is Trouble.FAILED:
        told = " ".join(messages_of(str(part.get("trace") or ""))[0].split())
        return trouble, f"{who}{told}"[:_MOST_CHARACTERS]
    if trouble is Trouble.RUNNING and any(part.get("restarts") for _, part in parts):
        restarts = max(int(part.get("restarts", 0)) for _, part in parts)
        return Trouble.RESTARTING, f"Restarted {restarts} times after failures"
    return trouble, f"Runs next at {next_run}" if next_run else ""


def _quiet_trouble(
    own: Mapping[str, Any], tasks: Sequence[Mapping[str, Any]], skipped: Mapping[str, Any] | None, reason: str
) -> tuple[Trouble, str]:
    """Return what is wrong with a connector that runs: it loses records, or waits for something to exist."""
    if skipped is not None and _is_recent(str(skipped["last"])):
        return Trouble.LOSING, str(skipped["reason"])[:_MOST_CHARACTERS]
    parts = [("", own), *((f"Task {task['id']}: ", task) for task in tasks)]
    waiting = next((who + part["waiting"]["reason"] for who, part in parts if part.get("waiting")), None)
    if waiting is not None:
        return Trouble.WAITING, waiting[:_MOST_CHARACTERS]
    return Trouble.RUNNING, reason


def _is_recent(last: str) -> bool:
    try:
        return datetime.now(UTC) - datetime.fromisoformat(last) < _RECENT
    except ValueError:
        return True


def _last_lag(tasks: Sequence[Mapping[str, Any]]) -> tuple[float | None, str]:
    """Return the last known lag of the tasks whose lag is unknown now, and when it was."""
    last = [task["last_metrics"] for task in tasks if _LAG in task.get("last_metrics", {}).get("values", {})]
    if not last:
        return None, ""
    return sum(each["values"][_LAG] for each in last), max(str(each["at"]) for each in last)


def _rate(tasks: Sequence[Mapping[str, Any]]) -> float | None:
    """Return the sum of the tasks' rates; ``None`` if one is unknown, since the sum would be too small."""
    rates = [
        [float(task["metrics"][key]) for key in _RATES if key in task["metrics"]] for task in tasks if "metrics" in task
    ]
    return sum(map(sum, rates)) if rates and len(rates) == len(tasks) and all(rates) else None


def _lag(tasks: Sequence[Mapping[str, Any]]) -> tuple[float | None, str]:
    """Return the sum of the tasks' lags and its unit; ``None`` if one is unknown, since the sum would be too small."""
    metrics = [task.get("metrics", {}) for task in tasks]
    lags = [values[_LAG] for values in metrics if _LAG in values]
    if any(values.get(_UNCOMMITTED) for values in metrics):
        return None, ""
    if lags:
        return (sum(lags) if len(lags) == len(tasks) else None), ""
    units = sorted({key.removeprefix(_REMAINING) for values in metrics for key in values if key.startswith(_REMAINING)})
    if len(units) != 1 or any(f"{_REMAINING}{units[0]}" not in values for values in metrics):
        return None, ""
    return sum(values[f"{_REMAINING}{units[0]}"] for values in metrics), units[0]


def _is_behind(lag: float | None, rate: float | None, unit: str) -> bool:
    return not unit and bool(lag) and rate == 0
