"""What the processes of a worker use, as documents: its own, and those of its connectors and tasks."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from worker.metrics.processes import ProcessUse, use_of
from worker.unit import Unit

__all__ = ["processes_document"]

Use: TypeAlias = Callable[[int], ProcessUse | None]


def processes_document(processes: Mapping[Unit, int], use: Use = use_of) -> list[dict[str, Any]]:
    """The worker's own process, and each of these that is still there, those with the most memory first."""
    own = _document(None, os.getpid(), use(os.getpid()))
    units = [_document(unit, pid, use(pid)) for unit, pid in processes.items()]
    found = sorted(filter(None, units), key=lambda item: -item["resident_bytes"])
    return [*filter(None, [own]), *found]


def _document(unit: Unit | None, pid: int, used: ProcessUse | None) -> dict[str, Any] | None:
    if used is None:
        return None
    return {
        "pid": pid,
        "connector": None if unit is None else unit.connector,
        "task": unit.task if unit is not None and unit.is_task else None,
        "resident_bytes": used.resident_bytes,
        "cpu_seconds": used.cpu_seconds,
        "open_files": used.open_files,
    }
