"""The pipe to the worker, through which all of a process speaks and hears."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from multiprocessing.connection import Connection

from worker.supervisor.descendants import exit_with_descendants
from worker.supervisor.messages.messages import Command, Report, decode, encode

__all__ = ["Line"]


class Line:
    """Sends from any thread, and receives in one.

    When the worker is gone, ``on_orphaned`` is called from a thread that speaks or hears: a process exits at once, with
    all that it started, because whoever takes over its work must not find it still writing (invariant I6).
    """

    def __init__(self, connection: Connection, on_orphaned: Callable[[], None] = exit_with_descendants) -> None:
        self._connection = connection
        self._on_orphaned = on_orphaned
        self._lock = threading.RLock()
        self._outbox: deque[bytes] = deque()
        self._sending = False

    def receive(self) -> Command:
        """Wait for the next command. Raises ``EOFError`` or ``OSError`` when the worker is gone."""
        command: Command = decode(self._connection.recv_bytes())
        return command

    def exit(self) -> None:
        """End this process at once, with all that it started."""
        self._on_orphaned()

    def send(self, report: Report) -> None:
        """Tell the worker something."""
        data = encode(report)
        with self._lock:
            self._outbox.append(data)
            if self._sending:
                # A finalizer or a signal handler logs in the middle of a send of its thread: that goes first.
                return
            self._sending = True
            try:
                while self._outbox:
                    self._connection.send_bytes(self._outbox.popleft())
            except (BrokenPipeError, ConnectionResetError):
                self._on_orphaned()
            finally:
                self._sending = False
