"""Embedded servers: daemons of the user on loopback, shared by several processes.

``lease()`` is for tests and short jobs: the first lease starts the server, the end of the last one stops it.
``start()`` and ``stop()`` are for people: a server that was started runs until it is stopped. Data and address are kept
in the server's folder between starts.
"""

from __future__ import annotations

import fcntl
import os
import signal
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Generic, TypeVar

from connect.errors import ConnectError
from connect.internals.jvm.home import file_lock
from worker.embedded.folder import ServerFolder, ServerState
from worker.embedded.process import find_process, is_process, signal_process, tail, wait_gone

__all__ = ["EmbeddedServer", "ServerLease", "clear_the_way", "count_leases", "wait_ready", "where_to_look"]

_STOP_SECONDS = 30.0
_KILL_SECONDS = 30.0
_POLL_SECONDS = 0.02


S = TypeVar("S", bound=ServerState)
I = TypeVar("I")  # noqa: E741


class EmbeddedServer(ABC, Generic[S, I]):
    """The server of one folder. Several processes may use it at once."""

    def __init__(self, folder: ServerFolder[S], *, mark: str, kind: str) -> None:
        self._folder = folder
        self._mark = mark
        self._kind = kind

    @abstractmethod
    def _launch(self, last: S | None) -> S:
        """Start the server, whose lock the caller holds, and wait until it is ready."""

    @abstractmethod
    def _becomes_ready(self, state: S) -> bool:
        """Wait until it is ready; return false if its process has ended."""

    @abstractmethod
    def _check_agrees(self, state: S) -> None:
        """Raise ``ConfigError`` if the server runs with other settings than requested."""

    @abstractmethod
    def _info(self, state: S) -> I:
        """Return the server's description for its users."""

    def _after_stop(self, state: S, *, in_good_order: bool) -> None:
        """Keep or remove the files left by the ended process."""

    def start(self) -> I:
        """Start the server to run until ``stop()``; if it is already running, it stays too."""
        with file_lock(self._folder.lock):
            state = self._ensure_running()
            if not state.explicit:
                state = state.as_explicit()
                self._folder.write_state(state)
            return self._info(state)

    def stop(self, timeout: float = _STOP_SECONDS) -> bool:
        """Stop the server even if it is leased; kill it after ``timeout`` seconds.

        Return whether it was running.
        """
        if not self._folder.path.is_dir():
            return False
        with file_lock(self._folder.lock):
            state = self._running()
            if state is None:
                return False
            self._stop(state, timeout)
            return True

    def kill(self) -> None:
        """Kill the server with SIGKILL, like a crash; acknowledged data is available after the next start."""
        state = self._running()
        if state is None:
            return
        signal_process(state.pid, signal.SIGKILL)
        if not wait_gone(state.pid, self._mark, _KILL_SECONDS):
            raise ConnectError(
                f"The embedded {self._kind}, process {state.pid}, was killed but has not ended. End it by hand."
            )

    def status(self) -> I | None:
        """Return the server if it is running, otherwise ``None``."""
        state = self._running()
        return None if state is None else self._info(state)

    @contextmanager
    def lease(self) -> Iterator[I]:
        """Use the server within a ``with`` block: started if needed, stopped when the last lease ends.

        A server that was started with ``start()`` is not stopped. A lease also ends with its process.
        """
        with file_lock(self._folder.lock):
            state = self._ensure_running()
            lease = ServerLease(self._folder.leases)
            info = self._info(state)
        try:
            yield info
        finally:
            self._end(lease)

    def _end(self, lease: ServerLease) -> None:
        with file_lock(self._folder.lock):
            lease.release()
            state = self._running()
            if state is not None and not state.explicit and count_leases(self._folder.leases) == 0:
                self._stop(state, _STOP_SECONDS)

    def _ensure_running(self) -> S:
        state = self._running()
        if state is not None:
            self._check_agrees(state)
            if self._becomes_ready(state):
                return state
        return self._launch(self._folder.read_state())

    def _running(self) -> S | None:
        state = self._folder.read_state()
        return state if state is not None and is_process(state.pid, self._mark) else None

    def _stop(self, state: S, timeout: float) -> None:
        signal_process(state.pid, signal.SIGTERM)
        in_good_order = wait_gone(state.pid, self._mark, timeout)
        if not in_good_order:
            self.kill()
        self._after_stop(state, in_good_order=in_good_order)
        self._folder.write_state(state.as_stopped())


def wait_ready(
    pid: int, mark: str, is_ready: Callable[[], bool], *, timeout: float, kind: str, log: Path, data: Path
) -> bool:
    """Wait until a server is ready; return false if its process has ended.

    If it does neither in time, it is killed, and the ``ConnectError`` has the end of its log.
    """
    deadline = time.monotonic() + timeout
    while not is_ready():
        if not is_process(pid, mark):
            return False
        if time.monotonic() >= deadline:
            signal_process(pid, signal.SIGKILL)
            wait_gone(pid, mark, _KILL_SECONDS)
            raise ConnectError(
                f"The embedded {kind} was not ready after {timeout:g} s and was killed; Set a longer start_timeout. "
                f"{where_to_look(log, data)}"
            )
        time.sleep(_POLL_SECONDS)
    return True


def clear_the_way(mark: str, last: ServerState | None, data: Path) -> None:
    """Wait until a killed server has released its port, and end a server that no state file mentions."""
    if last is not None:
        wait_gone(last.pid, mark, _KILL_SECONDS)
    while (pid := find_process(mark)) is not None:
        signal_process(pid, signal.SIGKILL)
        if not wait_gone(pid, mark, _KILL_SECONDS):
            raise ConnectError(f"Process {pid} serves {data} and cannot be killed. End it, then try again.")


def where_to_look(log: Path, data: Path) -> str:
    """Return the end of a server's log, with the remedy for damaged data."""
    return f"If its data are damaged, remove {data} to begin anew. The end of its log, {log}:\n{tail(log)}"


_SUFFIX = ".lease"


class ServerLease:
    """A claim on a server that lasts until it is released or its process ends for any reason."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        name = f"{os.getpid()}-{uuid.uuid4().hex}"
        taken = folder / f"{name}.taken"
        self._path = folder / (name + _SUFFIX)
        self._file: BinaryIO = taken.open("xb")
        fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # It gets its final name only once it is locked, so that nobody sees a live lease that looks dead.
        taken.rename(self._path)

    def release(self) -> None:
        """Release the claim; further calls do nothing."""
        self._path.unlink(missing_ok=True)
        self._file.close()


def count_leases(folder: Path) -> int:
    """Count the leases in ``folder`` held by living processes, and remove the files of dead ones."""
    return sum(_is_held(path) for path in folder.glob("*" + _SUFFIX))


def _is_held(path: Path) -> bool:
    try:
        with path.open("rb") as lease:
            fcntl.flock(lease, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except FileNotFoundError:
        return False
    path.unlink(missing_ok=True)
    return False
