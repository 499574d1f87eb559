"""Changes of a file as the kernel tells of them (inotify), so that nobody needs to look whether there are any."""

from __future__ import annotations

import contextlib
import errno
import os
import re
from pathlib import Path
from typing import Final

from inotify_simple import INotify, flags

__all__ = ["Changes", "file_system"]

_OF_FILE: Final = flags.MODIFY | flags.ATTRIB | flags.MOVE_SELF | flags.DELETE_SELF
_OF_FOLDER: Final = flags.CREATE | flags.MOVED_TO | flags.ONLYDIR
_WATCHED: Final = 2
"""The file at the path, and the one before it, to which a writer may still add."""

_TELL: Final = frozenset(
    {
        *("bcachefs", "btrfs", "ext2", "ext3", "ext4", "f2fs", "jfs", "overlay", "ramfs", "reiserfs", "rootfs"),
        *("tmpfs", "xfs", "zfs"),
    }
)
"""The file systems whose files change through this machine's kernel alone."""

_MOUNTS: Final = Path("/proc/self/mountinfo")
_OCTAL: Final = re.compile(r"\\([0-7]{3})")


class Changes:
    """Has a descriptor that can be read once the file at a path may have grown, shrunk or made room for another.

    Raises ``OSError`` where the kernel does not tell: the file is on another machine's file system, say, or this user
    watches too many already (``fs.inotify.max_user_instances``). What is written through a mapping of the file, or
    by moving a folder above it, is not told.
    """

    def __init__(self, path: str) -> None:
        kind = file_system(path)
        if kind not in _TELL:
            raise OSError(errno.ENOTSUP, f"a file system of the type {kind} may change unnoticed")
        self._path = path
        self._name = Path(path).name
        self._watches: list[int] = []
        self._kernel = INotify(nonblocking=True)
        try:
            self._kernel.add_watch(Path(path).parent, _OF_FOLDER)
            self._watch()
        except OSError:
            self._kernel.close()
            raise

    @property
    def descriptor(self) -> int:
        """Can be read once there was a change since the last :meth:`forget`."""
        return int(self._kernel.fileno())

    def forget(self) -> None:
        """Note that what has changed so far is about to be looked at."""
        if any(event.name == self._name for event in self._kernel.read(timeout=0)):
            self._watch()

    def close(self) -> None:
        """Watch nothing more."""
        self._kernel.close()

    def _watch(self) -> None:
        """Watch the file that is at the path now."""
        try:
            watch = self._kernel.add_watch(self._path, _OF_FILE)
        except FileNotFoundError:
            return  # It has gone again; the folder tells of the next.
        if watch not in self._watches:
            self._watches.append(watch)
        for old in self._watches[:-_WATCHED]:
            # The kernel lets go of it by itself, with the file.
            with contextlib.suppress(OSError):
                self._kernel.rm_watch(old)
        del self._watches[:-_WATCHED]


def file_system(path: str, mounts: Path = _MOUNTS) -> str:
    """The type of the file system that a path is on, as ``/proc/self/mountinfo`` has it."""
    real = os.path.realpath(path)
    place, kind = "", "unknown"
    for line in mounts.read_text(errors="surrogateescape").splitlines():
        before, _, after = line.partition(" - ")
        mounted = _OCTAL.sub(lambda code: chr(int(code[1], 8)), before.split()[4])
        # Of two at one place the later one hides the other.
        if len(mounted) >= len(place) and f"{real}/".startswith(f"{mounted.rstrip('/')}/"):
            place, kind = mounted, after.split()[0]
    return kind
