"""Runs one database server as long as any process holds a lease on it, and removes its data afterwards.

It is a separate process, so that the server ends even if the test run is killed: leases end with their holders, and the
server with this process. ``python -m equipment.servers.keeper FOLDER DATA USER COMMAND...``
"""

from __future__ import annotations

import ctypes
import os
import pwd
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Final

from connect.internals.jvm.home import file_lock
from worker.embedded.server import count_leases

__all__ = ["LEASES", "LOCK", "STATE", "identity"]

LEASES: Final = "leases"
LOCK: Final = "lock"
STATE: Final = "server.json"

_POLL_SECONDS: Final = 0.25
_STOP_SECONDS: Final = 5.0
_SET_PARENT_DEATH_SIGNAL: Final = 1


def identity(user: str) -> dict[str, Any]:
    """The arguments of ``subprocess`` that run a command as ``user``; none if that is the current user."""
    account = pwd.getpwnam(user)
    if account.pw_uid == os.geteuid():
        return {}
    return {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}


def _keep(folder: Path, data: Path, user: str, command: list[str]) -> None:
    server = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        cwd=data,
        preexec_fn=_die_with_parent,  # noqa: PLW1509 - this process has one thread
        **identity(user),
    )
    while server.poll() is None:
        time.sleep(_POLL_SECONDS)
        with file_lock(folder / LOCK):
            if count_leases(folder / LEASES) == 0:
                (folder / STATE).unlink(missing_ok=True)
                _stop(server)
    shutil.rmtree(data, ignore_errors=True)


def _stop(server: subprocess.Popen[bytes]) -> None:
    server.send_signal(signal.SIGQUIT)
    try:
        server.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)


if __name__ == "__main__":
    _keep(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], sys.argv[4:])
