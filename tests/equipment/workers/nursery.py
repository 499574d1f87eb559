"""Processes that are forked from one that has imported what they need, which is most of their start."""

from __future__ import annotations

import atexit
import json
import math
import os
import select
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from equipment import scripts

__all__ = ["Forked", "Nursery"]

_SCRIPT: Final = Path(scripts.__path__[0]) / "nursery.py"
_ANSWERED: Final = 60.0
_ANOTHER_THREADS_TURN: Final = 0.1
"""Seconds until a thread that waits lets another one ask."""


class Forked:
    """A forked process, in the words of :class:`subprocess.Popen`; any thread may ask about it."""

    def __init__(self, pid: int, status: int) -> None:
        self.pid = pid
        self._exit_pipe = open(status, "rb", buffering=0)  # noqa: SIM115 - until the process has ended
        self._status: int | None = None
        self._asking = threading.Lock()

    def poll(self) -> int | None:
        """Its exit status, or the signal that ended it as a negative number; ``None`` while it runs."""
        return self._look(0)

    def wait(self, timeout: float | None = None) -> int:
        """Its exit status, once it has ended."""
        deadline = math.inf if timeout is None else time.monotonic() + timeout
        while (status := self._look(_ANOTHER_THREADS_TURN)) is None:
            if time.monotonic() >= deadline:
                raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0.0)
        return status

    def _look(self, seconds: float) -> int | None:
        with self._asking:
            if self._status is None and select.select([self._exit_pipe], [], [], seconds)[0]:
                code = self._exit_pipe.read()
                self._exit_pipe.close()
                assert code, "the process that forks others has ended"
                self._status = int(code)
            return self._status

    def send_signal(self, sig: int) -> None:
        """Send it a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, sig)


class Nursery:
    """Forks processes that have imported these modules. It ends with this process, what it has forked does not."""

    def __init__(self, modules: Sequence[str], environ: Mapping[str, str] | None = None) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket.settimeout(_ANSWERED)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, str(_SCRIPT), str(theirs.fileno()), *modules],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                env={**os.environ, **(environ or {})},
            )
        atexit.register(self._close)

    def fork(self, main: str, arguments: Sequence[str], environ: Mapping[str, str], streams: Sequence[int]) -> Forked:
        """Fork a process that calls ``main``, a function without arguments, such as ``package.module:function``.

        ``arguments`` are its ``sys.argv``, ``environ`` is all of its environment, and ``streams`` are its descriptors,
        from 0 on.
        """
        request = json.dumps({"main": main, "arguments": list(arguments), "environ": dict(environ)}).encode()
        reads, writes = os.pipe()
        try:
            socket.send_fds(self._socket, [request], [writes, *streams])
        finally:
            os.close(writes)
        return Forked(int(self._socket.recv(32)), reads)

    def _close(self) -> None:
        self._socket.close()
        self._process.wait()
