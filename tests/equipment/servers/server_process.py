"""The process of a server that tests kill, freeze and start again; it ends with the process that has started it."""

from __future__ import annotations

import ctypes
import signal
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final

__all__ = ["ServerProcess", "die_with_parent"]

_SET_PARENT_DEATH_SIGNAL: Final = 1


class ServerProcess(ABC):
    """A server of one process."""

    _process: subprocess.Popen[bytes] | None = None

    @abstractmethod
    def start(self) -> None:
        """Start the server and wait until it answers."""

    def _run(self, command: Sequence[str], environ: Mapping[str, str] | None = None) -> None:
        self._process = subprocess.Popen(
            command,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            preexec_fn=die_with_parent,  # noqa: PLW1509 - only a call of the C library
        )

    def kill(self) -> None:
        """Kill the server as ``kill -9`` does."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def freeze(self) -> None:
        """Stop the server from running, without closing its connections."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let the server run again."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    @contextmanager
    def down(self) -> Iterator[None]:
        """Kill the server for the time of a ``with`` block."""
        self.kill()
        try:
            yield
        finally:
            self.start()


def die_with_parent() -> None:
    """Have the kernel kill this process at the end of the one that has started it."""
    ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
