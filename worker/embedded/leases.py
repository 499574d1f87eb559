"""Leases on an embedded server: files locked by their holders, so that a dead process holds none."""

from __future__ import annotations

import fcntl
import os
import uuid
from pathlib import Path
from typing import BinaryIO

__all__ = ["ServerLease", "count_leases"]

_SUFFIX = ".lease"


class ServerLease:
    """A claim on a server that lasts until it is released or its process ends for any reason."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        name = f"{os.getpid()}-{uuid.uuid4().hex}"
        taken = folder / f"{name}.taken"
        self._path = folder / (name + _SUFFIX)
        self._file: BinaryIO = taken.open("xb")
        fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # It gets its final name only once it is locked, so that nobody sees a live lease that looks dead.
        taken.rename(self._path)

    def release(self) -> None:
        """Release the claim; further calls do nothing."""
        self._path.unlink(missing_ok=True)
        self._file.close()


def count_leases(folder: Path) -> int:
    """Count the leases in ``folder`` held by living processes, and remove the files of dead ones."""
    return sum(_is_held(path) for path in folder.glob("*" + _SUFFIX))


def _is_held(path: Path) -> bool:
    try:
        with path.open("rb") as lease:
            fcntl.flock(lease, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except FileNotFoundError:
        return False
    path.unlink(missing_ok=True)
    return False
