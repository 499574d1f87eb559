"""The folder for what Sluice downloads and runs for its user: jars, embedded servers and their data.

Processes that share it coordinate with :func:`file_lock`, which is released when its holder exits or dies.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

__all__ = ["file_lock", "sluice_home"]


def sluice_home(environ: Mapping[str, str] = os.environ) -> Path:
    """Return ``SLUICE_HOME`` if set, else ``sluice`` in the user's data folder.

    That folder is ``XDG_DATA_HOME``, or ``~/.local/share``.
    """
    if home := environ.get("SLUICE_HOME"):
        return Path(home)
    data = environ.get("XDG_DATA_HOME")
    return (Path(data) if data else Path.home() / ".local" / "share") / "sluice"


@contextmanager
def file_lock(path: Path) -> Iterator[None]:
    """Wait for the lock on the file ``path`` and hold it for a ``with`` block.

    Programs started meanwhile do not inherit it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
