"""The processes below a process, whoever started them and in whatever session they are.

A process that adopts orphans becomes the parent of every process below it whose own parent ends. So nothing that a
plugin starts can get away from the process of its connector or task, by ``setsid`` or by a double fork, nor can what
is left of it get away from the fork server.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Final, NamedTuple

__all__ = ["adopt_orphans", "end_orphans", "exit_with_descendants", "kill_descendants", "kill_session_of"]

_PR_SET_CHILD_SUBREAPER: Final = 36
_ENDED: Final = (b"Z", b"X")


class _Process(NamedTuple):
    pid: int
    state: bytes
    parent: int
    session: int


def adopt_orphans() -> None:
    """Be the parent from now on of every process below this one that loses its own."""
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "this process cannot adopt orphans (prctl PR_SET_CHILD_SUBREAPER)")


def end_orphans(own: Collection[int], number: signal.Signals) -> list[int]:
    """Send a signal to the children of this process that are not its ``own``; which there were.

    Only this process waits for them, so that no process id can have passed to another.
    """
    me, found = os.getpid(), []
    for process in _processes():
        if process.parent != me or process.pid in own:
            continue
        # What is below it is an orphan next.
        found.append(process.pid)
        if process.state in _ENDED:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(process.pid, os.WNOHANG)
        else:
            _signal(process.pid, number)
    return found


def kill_descendants(pid: int) -> None:
    """Kill all that is below this living process, or in the session that it leads."""
    processes = list(_processes())
    found = {pid}
    while more := {each.pid for each in processes if each.parent in found or each.session == pid} - found:
        found |= more
    for each in found - {pid}:
        _signal(each, signal.SIGKILL)


def kill_session_of(leader: int) -> None:
    """Kill what is left in the session of a process that has ended.

    No other process is given its id while the session has members; if one has it now, there were none.
    """
    processes = list(_processes())
    if all(each.pid != leader or each.state in _ENDED for each in processes):
        for each in processes:
            if each.session == leader and each.pid != leader:
                _signal(each.pid, signal.SIGKILL)


def exit_with_descendants() -> None:
    """End this process at once, and with it what it has started."""
    try:
        kill_descendants(os.getpid())
    finally:
        os._exit(1)


def _signal(pid: int, number: signal.Signals) -> None:
    # One that runs as another user cannot be told, such as by sudo.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def _processes() -> Iterator[_Process]:
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                fields = (folder / "stat").read_bytes().rpartition(b")")[2].split()
            except OSError:
                continue
            yield _Process(int(folder.name), fields[0], int(fields[1]), int(fields[3]))
