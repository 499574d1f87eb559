"""The pipe of a process to its worker, and the part of it that belongs to one unit."""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from queue import SimpleQueue

from worker.loggers import set_level
from worker.messages import messages
from worker.messages.messages import Addressed, Command, Report, decode, encode
from worker.processes.descendants import exit_with_descendants

__all__ = ["ErrorRaised", "Line", "Link", "Woken"]


class Line:
    """The pipe of a process to its worker. Sends from any thread, and receives in one.

    When the worker is gone, the thread that sends or receives calls ``on_orphaned``. A process then exits at once, with
    everything that it has started, because it must not write after another has taken over its work (invariant I6).
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
        """End this process at once, and everything that it has started."""
        self._on_orphaned()

    def send(self, report: Report) -> None:
        """Send a report to the worker."""
        data = encode(report)
        with self._lock:
            self._outbox.append(data)
            if self._sending:
                # Called in the middle of a send by the same thread, from a finalizer or a signal handler that logs.
                return
            self._sending = True
            try:
                while self._outbox:
                    self._connection.send_bytes(self._outbox.popleft())
            except (BrokenPipeError, ConnectionResetError):
                self._on_orphaned()
            finally:
                self._sending = False


@dataclass(frozen=True, slots=True)
class ErrorRaised:
    """Makes the task fail with an error. Put into the inbox by another thread."""

    error: Exception


@dataclass(frozen=True, slots=True)
class Woken:
    """Makes the runtime poll the task. Put into the inbox by any thread of the task."""


def _do_nothing(_name: str, _level: int) -> None:
    """Set no level elsewhere: only a JVM has a log of its own."""


class Link:
    """A unit's part of the pipe to the worker. ``send`` may be called from any thread; ``inbox`` has the commands.

    In a shared process, ``seat`` is the number of the unit, from 1 on. ``cpu`` returns the CPU seconds of the unit,
    when its thread calls it.
    """

    def __init__(self, line: Line, seat: int = 0, cpu: Callable[[], float] = time.process_time) -> None:
        self.cpu = cpu
        self.inbox: SimpleQueue[Command | ErrorRaised | Woken] = SimpleQueue()
        self.when_stopped: Callable[[], None] = lambda: None
        """Called from the reading thread when a stop arrives."""
        self._line = line
        self._seat = seat
        self._lock = threading.Lock()
        self._levels: dict[str, int] = {}
        self._follow_levels: Callable[[str, int], None] = _do_nothing
        self._bell: int | None = None
        self._is_woken = False
        self._closed = False

    @property
    def shares(self) -> bool:
        """Whether this process is shared."""
        return self._seat > 0

    @property
    def link(self) -> object:
        """The link itself; see :class:`worker.runtime.log.LogTarget`."""
        return self

    @property
    def closed(self) -> bool:
        """Whether nothing more is sent."""
        return self._closed

    def open(self) -> Command:
        """Wait for the first command, and read the following ones in a thread.

        After :class:`messages.RunUnits` the caller reads them.
        """
        first = self._line.receive()
        assert not isinstance(first, Addressed)
        if not isinstance(first, messages.RunUnits):
            threading.Thread(target=self._read, name="commands", daemon=True).start()
        return first

    def next_command(self) -> Command:
        """Wait for the next command of the worker."""
        while True:
            said = self.inbox.get()
            if not isinstance(said, ErrorRaised | Woken):
                return said

    def exit(self) -> None:
        """End this process at once, and everything that it has started."""
        self._line.exit()

    def send(self, report: Report) -> None:
        """Send a report to the worker."""
        if not self._closed:
            self._line.send(Addressed(self._seat, report) if self.shares else report)

    def send_of_process(self, report: Report) -> None:
        """Send a report of the whole process, which the unit may share with others."""
        self._line.send(report)

    def hear(self, command: Command) -> None:
        """Take in a command. Called by one thread."""
        if isinstance(command, messages.SetLogLevel):
            # Now, not when the task reads its inbox: somebody may want the log of a task that hangs.
            set_level(command.logger, command.level)
            with self._lock:
                self._levels[command.logger] = command.level
                follow = self._follow_levels
            follow(command.logger, command.level)
            return
        if isinstance(command, messages.Stop):
            self.when_stopped()
        self._put(command)

    def follow_levels(self, set_elsewhere: Callable[[str, int], None] | None) -> None:
        """Have log levels set elsewhere, too: those that were set so far, and later ones; ``None`` ends that."""
        with self._lock:
            self._follow_levels = set_elsewhere or _do_nothing
            levels = dict(self._levels)
        for name, level in levels.items():
            self._follow_levels(name, level)

    def wake(self) -> None:
        """Wake the task, unless that is under way. From any thread."""
        if not self._is_woken:
            self._is_woken = True
            self._put(Woken())

    def has_woken(self) -> None:
        """Note that the task was woken."""
        self._is_woken = False

    def bell(self) -> int:
        """Return a descriptor that becomes readable with the inbox, to wait for it together with others."""
        with self._lock:
            if self._bell is None:
                self._bell = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
            return self._bell

    def close(self, last: Report) -> None:
        """Send a last report, in a process that goes on without this unit."""
        self.send(last)
        self._closed = True
        with self._lock:
            if self._bell is not None:
                os.close(self._bell)
                self._bell = None

    def _read(self) -> None:
        while True:
            try:
                command = self._line.receive()
            except (EOFError, OSError):
                self._line.exit()
                return
            assert not isinstance(command, Addressed)
            self.hear(command)

    def _put(self, said: Command | Woken) -> None:
        self.inbox.put(said)
        with self._lock:
            if self._bell is not None:
                os.eventfd_write(self._bell, 1)
