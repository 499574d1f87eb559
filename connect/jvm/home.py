"""The folder in which Sluice keeps what it fetches and runs for its user: jars, embedded servers, their data.

Processes that share it take turns by a :func:`file_lock`, which is given up when its holder leaves or dies.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

__all__ = ["file_lock", "sluice_home"]


def sluice_home(environ: Mapping[str, str] = os.environ) -> Path:
    """``SLUICE_HOME`` if set, else ``sluice`` below the user's data folder (``XDG_DATA_HOME``, ``~/.local/share``)."""
    if home := environ.get("SLUICE_HOME"):
        return Path(home)
    data = environ.get("XDG_DATA_HOME")
    return (Path(data) if data else Path.home() / ".local" / "share") / "sluice"


@contextmanager
def file_lock(path: Path) -> Iterator[None]:
    """Hold the lock on the file ``path`` for a ``with`` block, after waiting for another holder.

    Programs started meanwhile do not inherit it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
