"""Processes of the command ``sluice``, which are forked with all imports done where they can be."""

from __future__ import annotations

import json
import os
import select
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import IO, Final, Protocol

from equipment.scripts import command_nursery

__all__ = ["CommandProcess", "start_command"]

_COMMAND: Final = Path(sys.executable).parent / "sluice"
# What an interpreter, or the C library, reads once as it starts.
_READ_AT_START: Final = ("PYTHON", "LD_", "MALLOC_", "TZ")
_FORKED: Final = 60.0


class CommandProcess(Protocol):
    """A process, in the words of :class:`subprocess.Popen`."""

    @property
    def pid(self) -> int: ...

    def poll(self) -> int | None: ...

    def wait(self, timeout: float | None = None) -> int: ...

    def send_signal(self, sig: int) -> None: ...


def start_command(
    arguments: Sequence[str], output: IO[bytes], environ: Mapping[str, str] | None = None, stdin: IO[str] | None = None
) -> CommandProcess:
    """Start ``sluice`` with these arguments, which prints to ``output``, and has these variables in addition."""
    given = {**os.environ, **(environ or {})}
    nursery = _nursery()
    if _read_at_start(given) == nursery.environ:
        with open(os.devnull) as nothing:  # noqa: PTH123 - a device
            return nursery.fork(arguments, given, stdin or nothing, output)
    return subprocess.Popen(
        [str(_COMMAND), *arguments], stdout=output, stderr=output, stdin=stdin or subprocess.DEVNULL, env=given
    )


class _Forked:
    def __init__(self, pid: int, status: int) -> None:
        self.pid = pid
        self._told = open(status, "rb", buffering=0)  # noqa: SIM115 - a descriptor
        self._status: int | None = None

    def poll(self) -> int | None:
        if self._status is None and select.select([self._told], [], [], 0)[0]:
            told = self._told.read()
            self._told.close()
            assert told, "what forks commands has ended"
            self._status = int(told)
        return self._status

    def wait(self, timeout: float | None = None) -> int:
        if self._status is None:
            select.select([self._told], [], [], timeout)
        if (status := self.poll()) is None:
            raise subprocess.TimeoutExpired([str(_COMMAND)], timeout or 0.0)
        return status

    def send_signal(self, sig: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, sig)


class _Nursery:
    def __init__(self) -> None:
        self.environ = _read_at_start(os.environ)
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket.settimeout(_FORKED)
        with theirs:
            command = [sys.executable, command_nursery.__file__, str(theirs.fileno())]
            # It ends with this process.
            self._process = subprocess.Popen(
                command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL
            )

    def fork(self, arguments: Sequence[str], environ: Mapping[str, str], stdin: IO[str], output: IO[bytes]) -> _Forked:
        request = json.dumps({"arguments": list(arguments), "environ": dict(environ)}).encode()
        reads, writes = os.pipe()
        try:
            socket.send_fds(self._socket, [request], [stdin.fileno(), output.fileno(), output.fileno(), writes])
        finally:
            os.close(writes)
        return _Forked(int(self._socket.recv(32)), reads)


@cache
def _nursery() -> _Nursery:
    return _Nursery()


def _read_at_start(environ: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in environ.items() if key.startswith(_READ_AT_START)}
