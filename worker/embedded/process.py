"""The process of an embedded server: started as a daemon, recognised by its command line, signalled."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from connect.errors import ConnectError

__all__ = [
    "JVM_FLAGS",
    "find_process",
    "is_process",
    "launch_daemon",
    "server_mark",
    "signal_process",
    "tail",
    "wait_gone",
]

# A server of this size is ready before the optimising compiler would pay off.
JVM_FLAGS = (
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:-UsePerfData",
    "-XX:+ExitOnOutOfMemoryError",
)
_POLL_SECONDS = 0.01
_EXEC_SECONDS = 5.0
_EXEC_POLL_SECONDS = 0.0005
_KERNEL_THREAD = 0x00200000
_ENDED = {b"Z", b"X"}
_DAEMON = '(exec "$@" </dev/null >>"$0" 2>&1) & echo $!'


def server_mark(kind: str, data: Path) -> str:
    """Return the argument that distinguishes the process serving ``data`` from a later one with the same process id."""
    return f"-Dsluice.{kind}.data={data}"


def launch_daemon(command: Sequence[str], *, log: Path, environ: Mapping[str, str]) -> int:
    """Run ``command`` in its own session, with its output appended to ``log``, and return its process id.

    It is not a child of this process and inherits no open files.
    """
    # A shell in between, so that this process need not wait for the daemon's end.
    done = subprocess.run(
        ["/bin/sh", "-c", _DAEMON, str(log), *command],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        close_fds=True,
        start_new_session=True,
        cwd=log.parent,
        env=dict(environ),
        check=False,
    )
    if done.returncode != 0 or not done.stdout.strip().isdigit():
        raise ConnectError(f"Cannot start {command[0]}: {done.stderr.strip() or 'the shell gave no process id'}.")
    return int(done.stdout)


def is_process(pid: int, mark: str) -> bool:
    """Return whether process ``pid`` is alive and carries ``mark``."""
    deadline = time.monotonic() + _EXEC_SECONDS
    while (arguments := _arguments(pid)) == [b""] and _is_between_programs(pid) and time.monotonic() < deadline:
        time.sleep(_EXEC_POLL_SECONDS)
    return os.fsencode(mark) in arguments


def find_process(mark: str) -> int | None:
    """Find the process that carries ``mark``, even if its starter died before it wrote the process id."""
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and is_process(int(folder.name), mark):
            return int(folder.name)
    return None


def signal_process(pid: int, number: signal.Signals) -> None:
    """Send a signal; do nothing if the process is gone."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return


def wait_gone(pid: int, mark: str, timeout: float) -> bool:
    """Wait up to ``timeout`` seconds for the process to end; return whether it has."""
    deadline = time.monotonic() + timeout
    while not _is_gone(pid, mark):
        if time.monotonic() >= deadline:
            return False
        time.sleep(_POLL_SECONDS)
    return True


def tail(log: Path, lines: int = 20) -> str:
    """Return the last ``lines`` of ``log``."""
    try:
        with log.open("rb") as content:
            content.seek(max(0, log.stat().st_size - 65536))
            text = content.read().decode("utf-8", "replace")
    except FileNotFoundError:
        return "(no log was written)"
    return "\n".join(text.splitlines()[-lines:]) or "(the log is empty)"


def _arguments(pid: int) -> list[bytes]:
    """Return the command line of a process; empty if the process is gone, ``[b""]`` if it has no arguments."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return []


def _stat(pid: int) -> list[bytes]:
    """Return the fields of ``/proc/PID/stat`` from the state on; empty if the process is gone (proc(5))."""
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return []


def _is_between_programs(pid: int) -> bool:
    """Return whether a process without a command line may still get one: ``execve`` drops the old one first."""
    fields = _stat(pid)
    return bool(fields) and fields[0] not in _ENDED and not int(fields[6]) & _KERNEL_THREAD


def _is_gone(pid: int, mark: str) -> bool:
    """Return whether nothing is left of the process: no sockets, no file locks.

    Its command line disappears before those do, and a process that nobody waits for remains as a zombie.
    """
    fields, arguments = _stat(pid), _arguments(pid)
    if not fields or not arguments:
        return True
    state, threads = fields[0], int(fields[17])
    if state in _ENDED and threads <= 1:
        return True
    return arguments != [b""] and os.fsencode(mark) not in arguments
