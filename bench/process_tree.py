"""Measures the cost of a process and all its descendants: CPU seconds, and peak memory."""

from __future__ import annotations

import os
import threading
from pathlib import Path

__all__ = ["ProcessTree"]

_TICKS = os.sysconf("SC_CLK_TCK")
_LOOK_SECONDS = 0.1


class ProcessTree:
    """Samples a process tree ten times per second, in a thread of its own, until it is closed.

    Memory is the proportional set size: a page shared by several processes counts once.
    """

    def __init__(self, root: int, *, memory: bool = True) -> None:
        """``memory`` can be switched off, as each sample of it takes milliseconds of CPU for each large process."""
        self._root = root
        self._adds_memory = memory
        self._pids = _below(root)
        self._cpu: dict[int, float] = {}
        self._peak = 0
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()

    def cpu(self) -> float:
        """Return the CPU seconds in user and kernel mode so far, including processes that have ended."""
        for pid in self._pids:
            if (seconds := _cpu(pid)) is not None:
                self._cpu[pid] = seconds
        return sum(dict(self._cpu).values())

    def runs(self) -> bool:
        """Return whether the root process is still running."""
        fields = _fields(Path(f"/proc/{self._root}/stat"))
        return fields is not None and fields[0] != "Z"

    def peak(self) -> int:
        """Return the maximum number of bytes of memory seen so far."""
        return self._peak

    def memory(self) -> int:
        """Return the bytes of memory that are used now."""
        return sum(map(_memory, self._pids))

    def close(self) -> None:
        """Stop sampling."""
        self._closed.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._closed.wait(_LOOK_SECONDS):
            self._pids = _below(self._root)
            self.cpu()
            if self._adds_memory:
                self._peak = max(self._peak, sum(map(_memory, self._pids)))


def _below(root: int) -> set[int]:
    parents: dict[int, int] = {}
    for file in Path("/proc").glob("[0-9]*/stat"):
        if (fields := _fields(file)) is not None:
            parents[int(file.parent.name)] = int(fields[1])
    below = {root}
    while more := {pid for pid, parent in parents.items() if parent in below} - below:
        below |= more
    return below


def _cpu(pid: int) -> float | None:
    fields = _fields(Path(f"/proc/{pid}/stat"))
    return None if fields is None else (int(fields[11]) + int(fields[12])) / _TICKS


def _fields(stat: Path) -> list[str] | None:
    try:
        return stat.read_text().rpartition(")")[2].split()
    except OSError:
        return None


def _memory(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:")), 0)
