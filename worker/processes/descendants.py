"""The processes below a process, whatever their session and whoever started them.

A process that adopts orphans becomes the parent of every process below it whose own parent ends. So no program that a
plugin starts can escape the process of its connector or task, neither by ``setsid`` nor by a double fork, and what that
process leaves behind cannot escape the fork server.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Final, NamedTuple

__all__ = [
    "LET_GO",
    "adopt_orphans",
    "end_orphans",
    "exit_with_descendants",
    "kill_descendants",
    "kill_session_of",
]

LET_GO: Final = 75
"""The exit status of a process that has lost its worker, or whose worker has lost the cluster: no unit's fault."""

_PR_SET_CHILD_SUBREAPER: Final = 36
_ENDED: Final = (b"Z", b"X")


class _Process(NamedTuple):
    pid: int
    state: bytes
    parent: int
    session: int


def adopt_orphans() -> None:
    """Become the parent of every process below this one whose own parent ends, from now on."""
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "this process cannot adopt orphans (prctl PR_SET_CHILD_SUBREAPER)")


def end_orphans(own: Collection[int], number: signal.Signals, spared: str | None = None) -> list[int]:
    """Send a signal to the children of this process that are not among its ``own``, and return their ids.

    Those with the argument ``spared`` on their command line are left alone. Only this process waits for its children,
    so no process id can have been reused.
    """
    me, found = os.getpid(), []
    for process in _processes():
        if process.parent != me or process.pid in own:
            continue
        if spared is not None and process.state not in _ENDED and os.fsencode(spared) in _arguments(process.pid):
            continue
        # Its own children become orphans then, and are found by the next call.
        found.append(process.pid)
        if process.state in _ENDED:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(process.pid, os.WNOHANG)
        else:
            _signal(process.pid, number)
    return found


def kill_descendants(pid: int) -> None:
    """Kill every process below this process, which is still running, or in the session that it leads."""
    processes = list(_processes())
    found = {pid}
    while more := {each.pid for each in processes if each.parent in found or each.session == pid} - found:
        found |= more
    for each in found - {pid}:
        _signal(each, signal.SIGKILL)


def kill_session_of(leader: int) -> None:
    """Kill all processes left in the session of a process that has ended.

    Its id is not reused while the session has members, so if another process has it now, there were none.
    """
    processes = list(_processes())
    if all(each.pid != leader or each.state in _ENDED for each in processes):
        for each in processes:
            if each.session == leader and each.pid != leader:
                _signal(each.pid, signal.SIGKILL)


def exit_with_descendants() -> None:
    """End this process at once, and everything that it has started."""
    try:
        kill_descendants(os.getpid())
    finally:
        os._exit(LET_GO)


def _signal(pid: int, number: signal.Signals) -> None:
    # A process that runs as another user, by sudo for instance, cannot be signalled.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def _arguments(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return []


def _processes() -> Iterator[_Process]:
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                fields = (folder / "stat").read_bytes().rpartition(b")")[2].split()
            except OSError:
                continue
            yield _Process(int(folder.name), fields[0], int(fields[1]), int(fields[3]))
