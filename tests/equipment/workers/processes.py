"""Processes of this machine, as ``/proc`` shows them."""

from __future__ import annotations

from pathlib import Path

from equipment.waiting import wait_until

__all__ = ["command_line", "descendants", "runs"]


def descendants(pid: int) -> list[int]:
    """The processes below a process."""
    parents: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents[int(stat.parent.name)] = int(fields[1])
    below, found = [pid], []
    while below:
        parent = below.pop()
        children = [child for child, its_parent in parents.items() if its_parent == parent]
        found += children
        below += children
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
