"""The limit of the memory of a worker's processes: which of them have more, looked at from time to time."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final

__all__ = ["MEMORY_LIMIT", "MemoryLimit"]

MEMORY_LIMIT: Final = "process.memory.max.bytes"
"""The key of the limit."""

_INTERVAL: Final = 1.0
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
_RESIDENT: Final = 1


class MemoryLimit:
    """At most so many bytes for each process; 0 is no limit. Used by one thread."""

    def __init__(self, limit: int, now: Callable[[], float] = time.monotonic) -> None:
        self.limit = limit
        self._now = now
        self._looked = now()

    @property
    def next_look(self) -> float | None:
        """When to look again, if there is a limit."""
        return self._looked + _INTERVAL if self.limit else None

    def exceeded(self, processes: Iterable[int]) -> Iterator[tuple[int, int]]:
        """If it is time to look, yield the processes that have more, and what they have."""
        if self.next_look is None or self._now() < self.next_look:
            return
        self._looked = self._now()
        for pid in processes:
            if (used := _resident(pid)) > self.limit:
                yield pid, used


def _resident(pid: int) -> int:
    """The bytes of memory that a process has; none once it is gone."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_bytes().split()[_RESIDENT]) * _PAGE
    except (OSError, IndexError):
        return 0
