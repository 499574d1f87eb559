"""Processes of this machine, as ``/proc`` shows them."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from equipment.waiting import wait_until

__all__ = ["child_processes", "command_line", "descendants", "runs"]


def child_processes() -> Mapping[int, Sequence[int]]:
    """The processes that each process of this machine has started and that are there now."""
    children: defaultdict[int, list[int]] = defaultdict(list)
    for name in filter(str.isdigit, os.listdir("/proc")):  # noqa: PTH208 - a Path for each process takes twice as long
        try:
            fields = Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        children[int(fields[1])].append(int(name))
    return children


def descendants(pid: int, children: Mapping[int, Sequence[int]] | None = None) -> list[int]:
    """The processes below a process, now or when ``children`` were those of each process."""
    children = child_processes() if children is None else children
    below, found = [pid], list[int]()
    while below:
        started = children.get(below.pop(), ())
        found += started
        below += started
    return found


def runs(pid: int) -> bool:
    """Whether a process exists and is not a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def command_line(pid: int) -> str:
    """The command line of a process, with spaces; empty if the process has ended.

    It is empty for a moment while a process executes another program; this waits for it.
    """

    def read() -> list[str]:
        try:
            text = Path(f"/proc/{pid}/cmdline").read_text(errors="replace")
        except OSError:
            return [""]
        return [text.replace("\0", " ")] if text or not runs(pid) else []

    return wait_until(f"process {pid} has a command line", read)[0]
