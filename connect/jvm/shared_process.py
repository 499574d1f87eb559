"""A process that several connectors of one worker share: it lives as long as any of them holds a membership.

Whoever starts it is a connector's process, which may end before the others. So the worker leaves it alone when that
process ends, by its mark, and ends it with itself. It ends by itself when the last membership is given up; memberships
are locks of files, so that the dead hold none.
"""

from __future__ import annotations

import fcntl
from pathlib import Path
from typing import BinaryIO, Final

__all__ = ["SHARED_MARK", "Membership", "has_members"]

SHARED_MARK: Final = "--shared-by-connectors"
"""The argument in the command line of such a process."""

_MEMBERS: Final = "members"


class Membership:
    """A claim on the process of a folder that lasts until it is given up or its holder ends, whichever way."""

    def __init__(self, folder: Path) -> None:
        self._file: BinaryIO = (folder / _MEMBERS).open("ab")
        fcntl.flock(self._file, fcntl.LOCK_SH)

    def give_up(self) -> None:
        """Give it up; a second call does nothing."""
        self._file.close()


def has_members(folder: Path) -> bool:
    """Whether any living process holds a membership."""
    with (folder / _MEMBERS).open("ab") as members:
        try:
            fcntl.flock(members, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False
