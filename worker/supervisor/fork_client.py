"""Starts the fork server and asks it for children: the processes of connectors, tasks and inquiries.

The fork server has imported all that children need, and has no threads.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import logging
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from worker.supervisor.fork_server import LONGEST

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
_ANSWERED: Final = 60.0
_ENDED: Final = 10.0
_DESCRIPTORS: Final = 2


@dataclass(frozen=True, slots=True)
class Forked:
    """A child: its process id, its pidfd, and a descriptor for its exit status, which comes once nothing is left of it.

    The latter ends without a status if the fork server ended first.
    """

    pid: int
    pidfd: int
    status: int


class ForkClient:
    """Starts the fork server, and restarts it when it is gone. May be used from any thread.

    ``interpreter`` is that of a folder of plugins, from whose packages it imports; ``None`` is this process's own.
    """

    def __init__(self, interpreter: Path | None = None) -> None:
        self._interpreter = interpreter
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None

    @property
    def pid(self) -> int | None:
        """The process id of the fork server that ran last."""
        return None if self._process is None else self._process.pid

    def start(self) -> None:
        """Start the fork server early, so that both processes import at the same time. It ends with this process."""
        with self._lock:
            self._running()

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
                data, descriptors, _, _ = socket.recv_fds(connection, LONGEST, _DESCRIPTORS)
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
                    self._process.wait(_ENDED)

    def _running(self) -> socket.socket:
        if self._process is not None and self._process.poll() is not None:
            logger.warning("The fork server ended with status %s and is restarted", self._process.returncode)
            self._end()
        if self._socket is None:
            self._socket = self._start()
        return self._socket

    def _start(self) -> socket.socket:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            path = sys.path if self._interpreter is None else None
            # Another interpreter must not import from this process's PYTHONPATH.
            options = ["-P"] if self._interpreter is None else ["-P", "-E"]
            code = [*options, "-c", _CODE, json.dumps([theirs.fileno(), _PRELOAD, path])]
            command = [str(self._interpreter or sys.executable), *code]
            # In its own session, so that signals of the terminal do not reach it.
            self._process = subprocess.Popen(command, pass_fds=[theirs.fileno()], start_new_session=True)
        ours.settimeout(_ANSWERED)
        return ours

    def _end(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


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
