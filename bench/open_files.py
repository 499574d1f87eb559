"""Classifies the open files of processes, from ``/proc``."""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

__all__ = ["OpenFiles"]

_KIND: Final = re.compile(r"(?:anon_inode:\[?)?([a-z0-9_]+)(?::\[\d+\]|\])?")
_INODE: Final = {"unix": 6, "tcp": 9, "tcp6": 9}
"""The column that holds the inode of a socket in a file of ``/proc/net``, by the name of the file."""


@dataclass(frozen=True, slots=True)
class OpenFiles:
    """The number of open files of each kind, by process; none for a process that has ended."""

    of_process: Mapping[int, Counter[str]]

    @staticmethod
    def of(pids: Iterable[int]) -> OpenFiles:
        """Count the open files of processes."""
        return OpenFiles({pid: _open_files(pid) for pid in pids})

    @property
    def total(self) -> int:
        """The total number."""
        return sum(counts.total() for counts in self.of_process.values())

    def show(self) -> None:
        """Print a table of kinds and processes, the most frequent kind first."""
        print(f"{'open files':<24}{'all':>7}" + "".join(f"{pid:>9}" for pid in self.of_process))
        all_kinds = sum(self.of_process.values(), Counter[str]())
        for kind, count in all_kinds.most_common():
            print(f"{kind:<24}{count:>7}" + "".join(f"{each[kind] or '':>9}" for each in self.of_process.values()))
        sums = "".join(f"{each.total():>9}" for each in self.of_process.values())
        print(f"{'all':<24}{self.total:>7}{sums}", flush=True)


def _open_files(pid: int) -> Counter[str]:
    with contextlib.suppress(OSError):
        sockets = _sockets(pid)
        return Counter(_kind(str(each.readlink()), sockets) for each in Path(f"/proc/{pid}/fd").iterdir())
    return Counter()


def _sockets(pid: int) -> dict[str, str]:
    """Return the kinds of the sockets on a process's machine, by inode."""
    return {
        line.split()[column]: name
        for name, column in _INODE.items()
        for line in Path(f"/proc/{pid}/net/{name}").read_text().splitlines()[1:]
    }


def _kind(target: str, sockets: Mapping[str, str]) -> str:
    if target.startswith("socket:["):
        return f"socket, {sockets.get(target[8:-1], 'other')}"
    if target.startswith("/"):
        return target.split(maxsplit=1)[0] if target.startswith(("/dev/", "/memfd:")) else "file"
    found = _KIND.match(target)
    return target if found is None else found[1]
