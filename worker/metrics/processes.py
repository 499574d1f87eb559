"""Resources used by processes, from the operating system: CPU time, memory, open files."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

from worker.unit import Unit

__all__ = ["ProcessUse", "Use", "processes_document", "units_of_processes", "use_of", "with_jvms"]

_TICKS: Final = os.sysconf("SC_CLK_TCK")
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
_USER, _SYSTEM, _STARTED, _PAGES = 11, 12, 19, 21
"""The positions of these fields in ``/proc/PID/stat``, counted from the state."""


@dataclass(frozen=True, slots=True)
class ProcessUse:
    """The resources used by a process; ``started`` is in seconds since the machine started."""

    cpu_seconds: float
    resident_bytes: int
    open_files: int
    started: float


def use_of(pid: int) -> ProcessUse | None:
    """Return the resources used by a process, or ``None`` if it is gone or belongs to another user."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
        files = len(os.listdir(f"/proc/{pid}/fd"))  # noqa: PTH208 - names alone, of which there may be many
        fields = stat.rpartition(b")")[2].split()
        return ProcessUse(
            (int(fields[_USER]) + int(fields[_SYSTEM])) / _TICKS,
            int(fields[_PAGES]) * _PAGE,
            files,
            int(fields[_STARTED]) / _TICKS,
        )
    except (OSError, ValueError, IndexError):
        return None


Use: TypeAlias = Callable[[int], ProcessUse | None]


def with_jvms(use: Use, jvms: Mapping[int, int]) -> Use:
    """Return a function that counts the JVM of a process with the process."""

    def both(pid: int) -> ProcessUse | None:
        own, jvm = use(pid), use(jvms[pid]) if pid in jvms else None
        if own is None or jvm is None:
            return own
        cpu, memory = own.cpu_seconds + jvm.cpu_seconds, own.resident_bytes + jvm.resident_bytes
        return ProcessUse(cpu, memory, own.open_files + jvm.open_files, own.started)

    return both


def processes_document(processes: Mapping[Unit, int], use: Use = use_of) -> list[dict[str, Any]]:
    """Return the worker's own process, and each given process that still exists, the largest in memory first."""
    own = _document([], os.getpid(), use(os.getpid()))
    units = [_document(units, pid, use(pid)) for pid, units in units_of_processes(processes).items()]
    found = sorted(filter(None, units), key=lambda item: -item["resident_bytes"])
    return [*filter(None, [own]), *found]


def units_of_processes(processes: Mapping[Unit, int]) -> dict[int, list[Unit]]:
    """Return the units that each process runs."""
    found: dict[int, list[Unit]] = {}
    for unit, pid in sorted(processes.items()):
        found.setdefault(pid, []).append(unit)
    return found


def _document(units: Sequence[Unit], pid: int, used: ProcessUse | None) -> dict[str, Any] | None:
    """Return the description of a process, with the name of a connector or task if it runs nothing else."""
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
