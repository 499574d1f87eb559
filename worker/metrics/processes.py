"""What the operating system says of processes: CPU time, memory, open files."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

__all__ = ["ProcessUse", "use_of"]

_TICKS: Final = os.sysconf("SC_CLK_TCK")
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
_USER, _SYSTEM, _STARTED, _PAGES = 11, 12, 19, 21
"""The places of these fields in ``/proc/PID/stat``, counted from the state."""


@dataclass(frozen=True, slots=True)
class ProcessUse:
    """What a process has used; ``started`` is in seconds since the machine has."""

    cpu_seconds: float
    resident_bytes: int
    open_files: int
    started: float


def use_of(pid: int) -> ProcessUse | None:
    """What a process uses; ``None`` if it is gone, or is no business of ours."""
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
