"""The memory limit of a worker's child processes, checked once a second."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final

__all__ = ["MEMORY_LIMIT", "MemoryLimit"]

MEMORY_LIMIT: Final = "process.memory.max.bytes"
"""The config key of the limit."""

_INTERVAL: Final = 1.0
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
_RESIDENT: Final = 1


class MemoryLimit:
    """A limit in bytes for each process; 0 is none. Used by one thread."""

    def __init__(self, limit: int, now: Callable[[], float] = time.monotonic) -> None:
        self.limit = limit
        self._now = now
        self._looked = now()

    @property
    def next_look(self) -> float | None:
        """When to check again; ``None`` without a limit."""
        return self._looked + _INTERVAL if self.limit else None

    def exceeded(self, processes: Iterable[int]) -> Iterator[tuple[int, int]]:
        """If a check is due, yield the processes that exceed the limit, each with its bytes."""
        if self.next_look is None or self._now() < self.next_look:
            return
        self._looked = self._now()
        for pid in processes:
            if (used := _resident(pid)) > self.limit:
                yield pid, used


def _resident(pid: int) -> int:
    """Return the resident bytes of a process; 0 if it is gone."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_bytes().split()[_RESIDENT]) * _PAGE
    except (OSError, IndexError):
        return 0
