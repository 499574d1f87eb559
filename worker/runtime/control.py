"""The end of the pipe in a child process: commands in, reports out, and the state the worker wants its task in.

Commands arrive in one inbox, which the task's thread empties between two pieces of work and while it waits. So
pausing, stopping and waiting are one thing, and no flag is shared between threads.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import select
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Collection
from dataclasses import dataclass
from multiprocessing.connection import Connection
from queue import Empty, SimpleQueue
from typing import TypeAlias

from connect.errors import ConnectError
from worker.loggers import set_level
from worker.runtime.hearing import Hearing
from worker.runtime.watch import Watch
from worker.supervisor.descendants import exit_with_descendants
from worker.supervisor.messages import messages
from worker.supervisor.messages.messages import Command, Report, decode, encode

__all__ = ["Control", "ErrorRaised", "Link", "Reply"]

Reply: TypeAlias = messages.OffsetsRead | messages.OffsetsCommitted | messages.OwnershipConfirmed
"""What the worker answers to a request of this process."""


@dataclass(frozen=True, slots=True)
class ErrorRaised:
    """Put into the inbox by another thread of this process: something that its task's thread is to fail with."""

    error: Exception


class Link:
    """The pipe to the worker. ``send`` may be called from any thread; commands come out of ``inbox``.

    When the worker is gone, ``on_orphaned`` is called from the reading thread: a process exits at once, with all that
    it started, because whoever takes over its work must not find it still writing (invariant I6).
    """

    def __init__(
        self,
        connection: Connection,
        on_orphaned: Callable[[], None] = exit_with_descendants,
        hearing: Hearing | None = None,
        cpu: Callable[[], float] = time.process_time,
    ) -> None:
        self.shares = hearing is not None
        """Whether other units live in this process, whose pipes are read with this one."""
        self.cpu = cpu
        """How many seconds of a core the unit has taken, asked by its thread."""
        self._hearing = hearing
        self.inbox: SimpleQueue[Command | ErrorRaised] = SimpleQueue()
        self._connection = connection
        self._on_orphaned = on_orphaned
        self._lock = threading.RLock()
        self._outbox: deque[bytes] = deque()
        self.when_stopped: Callable[[], None] = lambda: None
        """Called from the reading thread when the worker asks to stop."""
        self._sending = False
        self._bell: int | None = None
        self._ends = False
        self._closed = False
        self._has_heard_all = threading.Event()

    @property
    def speaker(self) -> object:
        """Who speaks here: one and the same."""
        return self

    @property
    def closed(self) -> bool:
        """Whether nothing more is said here."""
        return self._closed

    def open(self) -> Command:
        """Wait for the first command, which says what to run, and go on reading in the background.

        After :class:`messages.RunUnits` there is nothing to read but what :meth:`receive_pipe` does.
        """
        first: Command = decode(self._connection.recv_bytes())
        if self._hearing is not None:
            self._hearing.add(self._connection.fileno(), self._hear, self._has_heard_all.set)
        elif not isinstance(first, messages.RunUnits):
            threading.Thread(target=self._read, name="commands", daemon=True).start()
        return first

    def bell(self) -> int:
        """A descriptor that can be read once there is a new command, for who waits for something else besides."""
        if self._bell is None:
            self._bell = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        return self._bell

    def receive_pipe(self) -> Connection:
        """Wait for the pipe of one more unit that is to run in this process."""
        with socket.socket(fileno=os.dup(self._connection.fileno())) as pipe:
            data, descriptors, _, _ = socket.recv_fds(pipe, 1, 1, socket.MSG_CMSG_CLOEXEC)
        if not data:
            self._on_orphaned()
        return Connection(descriptors[0])

    def exit(self) -> None:
        """End this process at once, with all that it started."""
        self._on_orphaned()

    def close(self, last: Report) -> None:
        """Say one thing more and then nothing, and hear nothing, where the process goes on without this pipe."""
        # The worker may close its end as soon as it has heard that.
        self._ends = True
        self.send(last)
        with self._lock:
            self._closed = True
            with socket.socket(fileno=os.dup(self._connection.fileno())) as pipe, contextlib.suppress(OSError):
                # The reading thread sees the end, and only then is the descriptor free for others.
                pipe.shutdown(socket.SHUT_RDWR)
        self._has_heard_all.wait()
        self._connection.close()
        if self._bell is not None:
            os.close(self._bell)

    def send(self, report: Report) -> None:
        """Tell the worker something."""
        data = encode(report)
        with self._lock:
            if self._closed:
                return
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

    def _read(self) -> None:
        while self._hear():
            pass
        self._has_heard_all.set()

    def _hear(self) -> bool:
        """Take in one command, waiting for it; whether there may be more."""
        try:
            data = self._connection.recv_bytes()
        except (EOFError, OSError):
            if not self._ends:
                self._on_orphaned()
            return False
        command = decode(data)
        if isinstance(command, messages.SetLogLevel):
            # At once, and not when the task looks: it may be the one that hangs whose log is wanted.
            set_level(command.logger, command.level)
        else:
            if isinstance(command, messages.Stop):
                self.when_stopped()
            self.inbox.put(command)
            if self._bell is not None:
                os.eventfd_write(self._bell, 1)
        return True


class Control:
    """Knows what the worker wants of this task. Used by the task's thread alone."""

    def __init__(self, link: Link, watch: Watch | None = None, *, paused: bool = False) -> None:
        self.watch = Watch(link.send, str, link.exit) if watch is None else watch
        self.stopping = False
        self.paused = paused
        self.draining = False
        self.reconfiguring = False
        self.resting = False
        self.takes_configs = False
        """Whether somebody will ask for new configurations; else they are declined."""
        self._config: dict[str, str] | None = None
        self._link = link
        self._replies: dict[int, Reply] = {}
        self._requests = itertools.count()

    @property
    def cpu(self) -> Callable[[], float]:
        """Tells how many seconds of a core this task has taken."""
        return self._link.cpu

    def send(self, report: Report) -> None:
        """Tell the worker something."""
        self._link.send(report)

    def poll(self) -> bool:
        """Take in what the worker has said so far; whether the task may go on moving data."""
        while True:
            try:
                self._apply(self._link.inbox.get_nowait())
            except Empty:
                return not (self.stopping or self.paused)

    def is_stopping(self) -> bool:
        """Take in what the worker has said so far; whether the task is to stop."""
        self.poll()
        return self.stopping

    def wait(self, seconds: float) -> bool:
        """Wait so long, or until the task is to stop or pause; whether it may go on moving data."""
        deadline = time.monotonic() + seconds
        while not (self.stopping or self.paused):
            left = deadline - time.monotonic()
            if left <= 0:
                return True
            self._take(left)
        return False

    def wait_unless_stopped(self, seconds: float) -> bool:
        """Wait so long, or until the task is to stop; whether it may finish what it has begun."""
        deadline = time.monotonic() + seconds
        while not self.stopping:
            left = deadline - time.monotonic()
            if left <= 0:
                return True
            self._take(left)
        return False

    def wait_readable(self, descriptors: Collection[int], seconds: float) -> bool:
        """Wait until one of these descriptors can be read, the worker says something, or for so long.

        Whether one can be read.
        """
        bell = self._link.bell()
        if not self._link.inbox.empty():
            self.poll()
            return False
        waiting = select.poll()
        for descriptor in (bell, *descriptors):
            waiting.register(descriptor, select.POLLIN)
        ready = {descriptor for descriptor, _ in waiting.poll(seconds * 1000)}
        if bell in ready:
            os.eventfd_read(bell)
        self.poll()
        return bool(ready - {bell})

    def wait_for_command(self, seconds: float | None = None) -> None:
        """Wait until the worker says something, or for so long."""
        self._take(seconds)

    def rest(self) -> None:
        """Say that the task is paused, and when it goes on again; returns when it may, or is to stop."""
        if self.stopping:
            return
        self.send(messages.Paused())
        while self.paused and not self.stopping:
            self.wait_for_command()
        if not self.stopping:
            self.send(messages.Resumed())

    def await_stop(self) -> None:
        """Say that the task is drained, and wait until it is to stop."""
        self.send(messages.Drained())
        while not self.stopping:
            self.wait_for_command()

    @property
    def has_config(self) -> bool:
        """Whether there is a configuration that the task is to go on with."""
        return self._config is not None

    def take_config(self) -> dict[str, str] | None:
        """The newest configuration that the task is to go on with, once."""
        config, self._config = self._config, None
        return config

    def decline(self) -> None:
        """Say that the task is to be started anew with its new configuration."""
        self.send(messages.Declined())

    def request(self) -> int:
        """A number for a request whose answer :meth:`reply` fetches."""
        return next(self._requests)

    def reply(self, request: int) -> Reply | None:
        """The answer to a request, once it is there."""
        return self._replies.pop(request, None)

    def await_reply(self, request: int, seconds: float) -> Reply | None:
        """Wait for the answer to a request; ``None`` when it does not come in time."""
        deadline = time.monotonic() + seconds
        while (answer := self.reply(request)) is None:
            left = deadline - time.monotonic()
            if left <= 0:
                return None
            self._take(left)
        return answer

    def _take(self, seconds: float | None) -> None:
        try:
            with self.watch.waiting():
                command = self._link.inbox.get(timeout=seconds)
        except Empty:
            return
        self._apply(command)

    def _apply(self, command: Command | ErrorRaised) -> None:
        match command:
            case messages.Stop():
                self.stopping = True
            case messages.Pause():
                self.paused = True
            case messages.Resume():
                self.paused = False
            case messages.Drain():
                self.draining = True
            case messages.Reconfigure():
                self.reconfiguring = True
            case messages.Rest():
                self.resting = True
            case messages.TakeConfig(config):
                self._hear_config(config)
            case ErrorRaised(error):
                raise error
            case messages.Fail(reason):
                raise ConnectError(reason)
            case (
                messages.OffsetsRead(request)
                | messages.OffsetsCommitted(request)
                | messages.OwnershipConfirmed(request)
            ):
                self._replies[request] = command
            case _:
                raise ConnectError(f"A running task was sent {type(command).__name__}, which it does not know.")

    def _hear_config(self, config: dict[str, str]) -> None:
        if self.takes_configs:
            self._config = config
        else:
            self.decline()
