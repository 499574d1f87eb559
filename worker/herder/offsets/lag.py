"""The lag and throughput of connectors, as the REST API shows them. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

__all__ = ["lag_document", "source_lag_document"]

_LAG: Final = "sink-record-lag"
_UNCOMMITTED: Final = "sink-uncommitted-partition-count"
_SENT: Final = "sink-record-send-rate"
_WRITTEN: Final = "source-record-write-rate"
_REMAINING: Final = "source-remaining-"


def lag_document(
    name: str, partitions: Sequence[tuple[str, int, int | None, int, int]], tasks: Mapping[int, Mapping[str, float]]
) -> dict[str, Any]:
    """Return the lag of a sink: of its consumer group by partition, and by task.

    ``None`` means unknown: there are no partitions yet, or a task has not reported. ``not_committed_yet`` is whether
    records are delivered in partitions without a commit, so that both lags say little until the next commit.
    """
    return {
        "name": name,
        "type": "sink",
        "lag": sum(lag for *_, lag in partitions) if partitions else None,
        "partitions": [
            {"topic": topic, "partition": partition, "offset": offset, "end_offset": end, "lag": lag}
            for topic, partition, offset, end, lag in partitions
        ],
        "tasks": [
            {"id": task, "lag": _whole(values.get(_LAG)), "records_per_second": values.get(_SENT)}
            for task, values in sorted(tasks.items())
        ],
        "not_committed_yet": any(values.get(_UNCOMMITTED, 0) for values in tasks.values()),
    }


def source_lag_document(name: str, tasks: Mapping[int, Mapping[str, float]]) -> dict[str, Any]:
    """Return how much each task of a source has left to read, if it knows, by unit of measure, and the sum.

    While one task has not reported, there is no sum, because it would be too small.
    """
    left = {task: _remaining(values) for task, values in sorted(tasks.items())}
    total: dict[str, int] = {}
    for amounts in left.values():
        for unit, amount in amounts.items():
            total[unit] = total.get(unit, 0) + amount
    shown = [
        {"id": task, "remaining": amounts or None, "records_per_second": tasks[task].get(_WRITTEN)}
        for task, amounts in left.items()
    ]
    known = total if all(tasks.values()) else None
    return {"name": name, "type": "source", "remaining": known or None, "tasks": shown}


def _remaining(values: Mapping[str, float]) -> dict[str, int]:
    return {key.removeprefix(_REMAINING): int(value) for key, value in values.items() if key.startswith(_REMAINING)}


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)
