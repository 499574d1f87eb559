"""How the process of a connector or task comes to life and ends.

Children come from a fork server that has the imports done and holds no client of Kafka, so that one starts in
milliseconds (design decision: tasks are processes). For tests, :class:`ThreadLauncher` runs the same child in a thread.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import socket
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection, Pipe
from typing import Final, Protocol

from worker.supervisor.messages import Command, Report, decode, encode

__all__ = ["Child", "ChildMain", "ForkServerLauncher", "Launcher", "ThreadLauncher"]

ChildMain = Callable[[Connection], None]
"""What a child runs; it returns when it is to end. Its first message says what to run."""

_PRELOAD: Final = ("worker.runtime.child", "worker.cli", "confluent_kafka", "orjson")


class Child(Protocol):
    """A started child. Used by the supervisor's thread alone."""

    @property
    def connection(self) -> Connection:
        """Becomes readable when the child says something, and reads as ended once it is gone."""

    def send(self, command: Command) -> None:
        """Tell the child something; one that is gone already is not told."""

    def receive(self) -> Report | None:
        """What the child says next; ``None`` once it is gone."""

    def kill(self) -> None:
        """End the child at once, whatever it does."""

    def join(self) -> str:
        """Reap the child that is gone, and say how it ended."""

    @property
    def pid(self) -> int | None:
        """The process, if it is one."""


class Launcher(Protocol):
    """Starts children."""

    def launch(self, label: str) -> Child:
        """Start a child that waits for its first command; ``label`` names it in the process list and the log."""


class _Piped:
    """The pipe end that both kinds of child have."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection

    def send(self, command: Command) -> None:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError, OSError):
            self.connection.send_bytes(encode(command))

    def receive(self) -> Report | None:
        try:
            report: Report = decode(self.connection.recv_bytes())
        except (EOFError, ConnectionResetError, OSError):
            return None
        return report


class _Process(_Piped):
    def __init__(self, connection: Connection, process: multiprocessing.process.BaseProcess) -> None:
        super().__init__(connection)
        self._process = process

    @property
    def pid(self) -> int | None:
        return self._process.pid

    def kill(self) -> None:
        self._process.kill()

    def join(self) -> str:
        # The pipe is closed when the process has ended or is about to; a plugin that closed it by itself is killed.
        self._process.join(timeout=5)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
        code = self._process.exitcode
        self._process.close()
        self.connection.close()
        if code is not None and code < 0:
            return f"was ended by {signal.Signals(-code).name}"
        return f"exited with status {code}"


class ForkServerLauncher:
    """Starts children as processes, from a fork server that lives as long as the worker."""

    def __init__(self, main: ChildMain) -> None:
        self._main = main
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(list(_PRELOAD))

    def launch(self, label: str) -> Child:
        """Start a process; see :class:`Launcher`."""
        ours, theirs = Pipe()
        process = self._context.Process(target=self._main, args=(theirs,), name=label)
        process.start()
        theirs.close()
        return _Process(ours, process)


class _Thread(_Piped):
    pid = None

    def __init__(self, connection: Connection, thread: threading.Thread) -> None:
        super().__init__(connection)
        self._thread = thread

    def kill(self) -> None:
        """Cut the pipe, at both ends: a thread cannot be killed, but it can be left without a worker."""
        with socket.socket(fileno=os.dup(self.connection.fileno())) as pipe:
            pipe.shutdown(socket.SHUT_RDWR)

    def join(self) -> str:
        self._thread.join(timeout=5)
        self.connection.close()
        return "ended"


class ThreadLauncher:
    """Runs children in threads of this process, for tests."""

    def __init__(self, main: ChildMain) -> None:
        self._main = main

    def launch(self, label: str) -> Child:
        """Start a thread; see :class:`Launcher`."""
        ours, theirs = Pipe()

        def run() -> None:
            try:
                self._main(theirs)
            finally:
                theirs.close()

        thread = threading.Thread(target=run, name=label, daemon=True)
        thread.start()
        return _Thread(ours, thread)
