"""A process shared by several connectors of a worker, which lives as long as any of them holds a membership.

It is started by a connector's process, which may end before the others. The worker recognises the shared process by its
mark: it does not end it with the process that started it, but when the worker itself ends. The shared process ends by
itself when the last membership is given up. Memberships are file locks, so dead processes hold none.
"""

from __future__ import annotations

import fcntl
from pathlib import Path
from typing import BinaryIO, Final

__all__ = ["SHARED_MARK", "Membership", "has_members"]

SHARED_MARK: Final = "--shared-by-connectors"
"""The argument that marks the command line of a shared process."""

_MEMBERS: Final = "members"


class Membership:
    """A claim on the process of a folder that lasts until it is given up or its holder ends, in whatever way."""

    def __init__(self, folder: Path) -> None:
        self._file: BinaryIO = (folder / _MEMBERS).open("ab")
        fcntl.flock(self._file, fcntl.LOCK_SH)

    def give_up(self) -> None:
        """Give up the membership; a second call does nothing."""
        self._file.close()


def has_members(folder: Path) -> bool:
    """Return whether any living process holds a membership."""
    with (folder / _MEMBERS).open("ab") as members:
        try:
            fcntl.flock(members, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False
