"""The memory of a test's processes, by kind."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from equipment.workers.processes import descendants

__all__ = ["MemoryWatch", "watched_memory"]

_PAUSE = 0.2
_OTHER = "other"


class MemoryWatch(threading.Thread):
    """Checks the processes below a process five times a second.

    ``kinds`` has a part of the command line for each kind of process; the first match counts. Memory is the resident
    set, including shared pages.
    """

    def __init__(self, root: int, kinds: Mapping[str, str]) -> None:
        super().__init__(daemon=True)
        self.largest: dict[str, int] = {}
        """The largest number of bytes of one process of each kind."""
        self._root = root
        self._kinds = kinds
        self._over = threading.Event()

    def run(self) -> None:
        while not self._over.wait(_PAUSE):
            for pid in descendants(self._root):
                found = _command_and_bytes(pid)
                if found is None:
                    continue
                kind = next((kind for kind, mark in self._kinds.items() if mark in found[0]), _OTHER)
                self.largest[kind] = max(self.largest.get(kind, 0), found[1])

    def end(self) -> None:
        """Stop checking."""
        self._over.set()
        self.join()


@contextmanager
def watched_memory(root: int, kinds: Mapping[str, str]) -> Iterator[MemoryWatch]:
    """Watch the processes below a process during the block."""
    watch = MemoryWatch(root, kinds)
    watch.start()
    try:
        yield watch
    finally:
        watch.end()


def _command_and_bytes(pid: int) -> tuple[str, int] | None:
    folder = Path(f"/proc/{pid}")
    try:
        command = folder.joinpath("cmdline").read_text(errors="replace").replace("\0", " ")
        lines = folder.joinpath("status").read_text().splitlines()
    except OSError:
        return None
    size = next((int(line.split()[1]) for line in lines if line.startswith("VmRSS:")), 0)
    return command, size * 1024
