"""What the processes of a worker use, as documents: its own, and those of its connectors and tasks."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from worker.metrics.processes import ProcessUse, use_of
from worker.unit import Unit

__all__ = ["processes_document", "units_of_processes"]

Use: TypeAlias = Callable[[int], ProcessUse | None]


def processes_document(processes: Mapping[Unit, int], use: Use = use_of) -> list[dict[str, Any]]:
    """The worker's own process, and each of these that is still there, those with the most memory first."""
    own = _document([], os.getpid(), use(os.getpid()))
    units = [_document(units, pid, use(pid)) for pid, units in units_of_processes(processes).items()]
    found = sorted(filter(None, units), key=lambda item: -item["resident_bytes"])
    return [*filter(None, [own]), *found]


def units_of_processes(processes: Mapping[Unit, int]) -> dict[int, list[Unit]]:
    """The units that each process runs."""
    found: dict[int, list[Unit]] = {}
    for unit, pid in sorted(processes.items()):
        found.setdefault(pid, []).append(unit)
    return found


def _document(units: Sequence[Unit], pid: int, used: ProcessUse | None) -> dict[str, Any] | None:
    """A process; it has the name of a connector if all that it runs is of that, and of a task if that is all."""
    if used is None:
        return None
    names = {unit.connector for unit in units}
    return {
        "pid": pid,
        "connector": units[0].connector if len(names) == 1 else None,
        "task": units[0].task if len(units) == 1 and units[0].is_task else None,
        "units": len(units),
        "resident_bytes": used.resident_bytes,
        "cpu_seconds": used.cpu_seconds,
        "open_files": used.open_files,
    }
