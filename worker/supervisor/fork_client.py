"""Starts the fork server and asks it for children: the processes of connectors, tasks and inquiries.

The fork server has imported all that children need, and has no threads.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import logging
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, Final, NoReturn, Protocol

from worker.supervisor import fork_server
from worker.supervisor.fork_server import MOST_BYTES

__all__ = ["ForkClient", "Forked", "fork_client"]

logger = logging.getLogger(__name__)

_PRELOAD: Final = (
    *("worker.runtime.child", "worker.runtime.entry", "confluent_kafka", "orjson"),
    # Converters that nearly every task uses: imported before the fork, their memory is shared by all tasks.
    *("converters.json", "converters.string", "converters.simple_header"),
)
_CODE: Final = """
import json, sys
descriptor, preload, path = json.loads(sys.argv[1])
sys.path[:] = path or sys.path
from worker.supervisor.fork_server import main
main(descriptor, preload)
"""
_ANSWERED_SECONDS: Final = 60.0
_ENDED_SECONDS: Final = 10.0
_DESCRIPTORS: Final = 2


@dataclass(frozen=True, slots=True)
class Forked:
    """A child: its process id, its pidfd, and a descriptor for its exit status, which comes once nothing is left of it.

    The latter ends without a status if the fork server ended first.
    """

    pid: int
    pidfd: int
    status: int


class _Server(Protocol):
    """A fork server's process, in the words of :class:`subprocess.Popen`."""

    @property
    def pid(self) -> int: ...

    def poll(self) -> int | None: ...

    def wait(self, timeout: float | None = None) -> int: ...

    def kill(self) -> None: ...


class _Fork:
    """A fork of this process."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._pidfd = os.pidfd_open(pid)
        self._status: int | None = None

    def poll(self) -> int | None:
        if self._status is None and select.select([self._pidfd], [], [], 0)[0]:
            self._status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
            os.close(self._pidfd)
        return self._status

    def wait(self, timeout: float | None = None) -> int:
        if self._status is None:
            select.select([self._pidfd], [], [], timeout)
        if (status := self.poll()) is None:
            raise subprocess.TimeoutExpired(["fork server"], timeout or 0.0)
        return status

    def kill(self) -> None:
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)


class ForkClient:
    """Starts the fork server, and restarts it when it is gone. May be used from any thread.

    ``interpreter`` is that of a folder of plugins, from whose packages it imports; ``None`` is this process's own.
    """

    def __init__(self, interpreter: Path | None = None) -> None:
        self._interpreter = interpreter
        self._lock = threading.Lock()
        self._process: _Server | None = None
        self._socket: socket.socket | None = None

    @property
    def pid(self) -> int | None:
        """The process id of the fork server that ran last."""
        return None if self._process is None else self._process.pid

    def start(self) -> None:
        """Import what children need, and fork the fork server from this process, with which it ends.

        They share the memory of these modules, which are imported once. Call it while this process has one thread: a
        fork has the locks of the others, but not the threads that would release them.
        """
        fork_server.await_children()
        fork_server.prepare(_PRELOAD)
        ours, theirs = _pair()
        with theirs, self._lock:
            pid = os.fork()
            if pid == 0:
                ours.close()
                _serve(theirs.detach())
            self._process, self._socket = _Fork(pid), ours

    def fork(self, main: Callable[..., None], pipe: int, output: int, lease: str | None, label: str) -> Forked:
        """Fork a child that calls ``main``, a function of a module, with this pipe and lease, and prints to ``output``.

        Raises :class:`EOFError` if the fork server is gone. It is restarted for the next child, which needs another
        pipe, since a child may hold this one. Raises ``OSError`` if no child can be forked.
        """
        request = {"main": f"{main.__module__}:{main.__qualname__}", "lease": lease, "label": label}
        with self._lock:
            connection = self._running()
            try:
                socket.send_fds(connection, [json.dumps(request).encode()], [pipe, output])
                data, descriptors, _, _ = socket.recv_fds(connection, MOST_BYTES, _DESCRIPTORS)
            except (ConnectionError, TimeoutError) as error:
                self._end()
                raise EOFError(f"the fork server does not answer: {error!r}") from error
            if not data:
                self._end()
                raise EOFError("the fork server has ended")
        return _forked(json.loads(data), descriptors)

    def close(self) -> None:
        """End the fork server and all children that are left."""
        with self._lock:
            if self._socket is not None:
                self._socket.close()
                self._socket = None
            if self._process is not None:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._process.wait(_ENDED_SECONDS)

    def _running(self) -> socket.socket:
        if self._process is not None and (status := self._process.poll()) is not None:
            logger.warning("The fork server ended with status %s and is restarted", status)
            self._end()
        if self._socket is None:
            self._socket = self._execute()
        return self._socket

    def _execute(self) -> socket.socket:
        ours, theirs = _pair()
        with theirs:
            path = sys.path if self._interpreter is None else None
            # Another interpreter must not import from this process's PYTHONPATH.
            options = ["-P"] if self._interpreter is None else ["-P", "-E"]
            code = [*options, "-c", _CODE, json.dumps([theirs.fileno(), _PRELOAD, path])]
            command = [str(self._interpreter or sys.executable), *code]
            # In its own session, so that signals of the terminal do not reach it.
            self._process = subprocess.Popen(command, pass_fds=[theirs.fileno()], start_new_session=True)
        return ours

    def _end(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


def _pair() -> tuple[socket.socket, socket.socket]:
    """Return the connection between this process and a fork server: this process's end, and the other one."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.settimeout(_ANSWERED_SECONDS)
    return ours, theirs


def _serve(descriptor: int) -> NoReturn:
    """Be the fork server."""
    try:
        # In its own session, so that signals of the terminal do not reach it.
        os.setsid()
        # The worker's own descriptors, such as the lock of a program that has started it, are to be gone with it.
        os.closerange(3, descriptor)
        os.closerange(descriptor + 1, fork_server.LAST_DESCRIPTOR)
        # What a plugin starts with multiprocessing must not run the worker's script.
        sys.argv[:], sys.modules["__main__"] = [""], ModuleType("__main__")
        fork_server.main(descriptor, ())
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(1)


def _forked(answer: dict[str, Any], descriptors: list[int]) -> Forked:
    if "error" in answer:
        raise OSError(answer["error"])
    if len(descriptors) < _DESCRIPTORS:
        for descriptor in descriptors:
            os.close(descriptor)
        raise OSError("this process is at its limit of open files (ulimit -n)")
    return Forked(answer["pid"], *descriptors)


@cache
def fork_client(interpreter: Path | None = None) -> ForkClient:
    """Return this process's client of the fork server of an interpreter; both end with the process."""
    client = ForkClient(interpreter)
    atexit.register(client.close)
    return client
