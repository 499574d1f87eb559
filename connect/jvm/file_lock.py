"""One process at a time: a lock on a file, given up when its holder leaves or dies."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["file_lock"]


@contextmanager
def file_lock(path: Path) -> Iterator[None]:
    """Hold the lock on ``path``, waiting for whoever has it. Programs started meanwhile do not inherit it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
