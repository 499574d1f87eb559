"""Notifications of file changes from the kernel (inotify), which save polling.

A user may have 128 inotify instances, so a process shares one among all its files.
"""

from __future__ import annotations

import contextlib
import contextvars
import errno
import os
import re
import threading
import time
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Final

from inotify_simple import Event, INotify, flags

__all__ = ["Changes", "file_system"]

_OF_FILE: Final = flags.MODIFY | flags.ATTRIB | flags.MOVE_SELF | flags.DELETE_SELF
_OF_FOLDER: Final = flags.CREATE | flags.MOVED_TO | flags.ONLYDIR
_PAUSE_SECONDS: Final = 0.02
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


class _Kernel:
    """This process's inotify instance, which dispatches events to watchers. Thread-safe.

    Nothing is read while no watcher waits, so a file that grows all the time wakes nobody up.
    """

    def __init__(self) -> None:
        self._lock = threading.Condition()
        self._inotify: INotify | None = None
        self._watchers: dict[int, set[Changes]] = {}
        self._waiting: set[Changes] = set()

    def watch(self, path: str | Path, mask: int, watcher: Changes) -> int:
        """Send a watcher these events at a path; return the number of the watch, which may be shared with others."""
        with self._lock:
            number = int(self._started().add_watch(path, mask))
            self._watchers.setdefault(number, set()).add(watcher)
            return number

    def await_change(self, watcher: Changes) -> None:
        """Call a watcher back at its next event."""
        with self._lock:
            self._waiting.add(watcher)
            self._lock.notify()

    def forget(self, watcher: Changes) -> None:
        """Stop waiting on behalf of a watcher."""
        with self._lock:
            self._waiting.discard(watcher)

    def leave(self, numbers: Collection[int], watcher: Changes) -> None:
        """Stop sending a watcher the events of these watches."""
        with self._lock:
            for number in numbers:
                watchers = self._watchers.get(number, set())
                watchers.discard(watcher)
                if not watchers and self._watchers.pop(number, None) is not None and self._inotify is not None:
                    # The kernel has already removed the watch together with the file.
                    with contextlib.suppress(OSError):
                        self._inotify.rm_watch(number)

    def _started(self) -> INotify:
        if self._inotify is None:
            self._inotify = INotify()
            listening = threading.Thread(target=self._listen, args=(self._inotify,), name="changes", daemon=True)
            # The thread belongs to no task: it must not end with the first one.
            contextvars.Context().run(listening.start)
        return self._inotify

    def _listen(self, inotify: INotify) -> None:
        while True:
            with self._lock:
                self._lock.wait_for(lambda: self._waiting)
            for event in inotify.read():
                with self._lock:
                    overflow = event.mask & flags.Q_OVERFLOW
                    touched = set().union(*self._watchers.values()) if overflow else self._watchers.get(event.wd, ())
                    for watcher in touched:
                        if watcher.hear(event):
                            self._waiting.discard(watcher)
            # Meanwhile the kernel merges the events of a file that grows line by line.
            time.sleep(_PAUSE_SECONDS)


_KERNEL: Final = _Kernel()


class Changes:
    """Calls ``ring``, from another thread, when the file at a path may have grown, shrunk or been replaced.

    Raises ``OSError`` where the kernel does not report changes: on a remote file system, for example, or if this user
    has too many instances (``fs.inotify.max_user_instances``). Writes through a memory mapping, and moves of a parent
    folder, are not reported.
    """

    def __init__(self, path: str, ring: Callable[[], None]) -> None:
        kind = file_system(path)
        if kind not in _TELL:
            raise OSError(errno.ENOTSUP, f"changes on a file system of type {kind} are not reported")
        self._path = path
        self._name = Path(path).name
        self._files: list[int] = []
        self._is_renewed = False
        self._ring = ring
        self._folder: list[int] = []
        try:
            self._folder = [_KERNEL.watch(Path(path).parent, _OF_FOLDER, self)]
            self._watch()
            _KERNEL.await_change(self)
        except OSError:
            self.close()
            raise

    def hear(self, event: Event) -> bool:
        """Take note of an event, and return whether it matters.

        Called from the kernel's thread, but not after :meth:`close`.
        """
        if event.wd in self._folder and event.name != self._name:
            return False
        if event.wd not in self._files:
            self._is_renewed = True
        self._ring()
        return True

    def forget(self) -> None:
        """Forget the changes so far, since the caller is about to look, and ring once at the next one."""
        _KERNEL.await_change(self)
        if self._is_renewed:
            self._is_renewed = False
            self._watch()

    def close(self) -> None:
        """Stop watching."""
        _KERNEL.forget(self)
        _KERNEL.leave((*self._folder, *self._files), self)

    def _watch(self) -> None:
        """Watch the file that is at the path now."""
        try:
            watch = _KERNEL.watch(self._path, _OF_FILE, self)
        except FileNotFoundError:
            return  # It has gone again; the folder tells of the next.
        if watch not in self._files:
            self._files.append(watch)
        _KERNEL.leave(self._files[:-_WATCHED], self)
        del self._files[:-_WATCHED]


def file_system(path: str, mounts: Path = _MOUNTS) -> str:
    """Return the type of the file system of a path, from ``/proc/self/mountinfo``."""
    real = os.path.realpath(path)
    place, kind = "", "unknown"
    for line in mounts.read_text(errors="surrogateescape").splitlines():
        before, _, after = line.partition(" - ")
        mounted = _OCTAL.sub(lambda code: chr(int(code[1], 8)), before.split()[4])
        # Of two mounts at one place, the later one hides the other.
        if len(mounted) >= len(place) and f"{real}/".startswith(f"{mounted.rstrip('/')}/"):
            place, kind = mounted, after.split()[0]
    return kind
