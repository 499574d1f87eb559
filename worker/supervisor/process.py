"""Starts, commands, hears and ends children: the processes of connectors, tasks and inquiries.

They are forked by a server that has done the imports and holds no Kafka client, so a child starts in milliseconds. A
child has ended when nothing that it started is left; one that exceeds the limit of memory is ended. For tests,
:class:`ThreadLauncher` runs the same in a thread.
"""

from __future__ import annotations

import contextlib
import logging
import os
import select
import signal
import socket
import threading
import time
from collections.abc import Callable, Collection, Iterator
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from typing import Final, Protocol

from connect.internals.status_line import IN_PLACE
from worker.messages.messages import Command, LogRecord, Report
from worker.processes.descendants import LET_GO, kill_descendants, kill_session_of
from worker.processes.output import Output
from worker.supervisor.fork_client import ForkClient, Forked, fork_client
from worker.supervisor.pipe import WorkerEnd
from worker.supervisor.plugin_homes import PluginHomes

__all__ = [
    "LOST_PLACE",
    "MEMORY_LIMIT",
    "Child",
    "ChildMain",
    "ForkServerLauncher",
    "Launcher",
    "MemoryLimit",
    "Piped",
    "Stillborn",
    "ThreadLauncher",
    "log_record",
]

ChildMain = Callable[[Connection], None]
"""The function that a child runs until it ends. The first message says what to run."""

LeasedMain = Callable[[Connection, str | None], None]
"""The same for a process, with the path of its worker's lease, if the worker has one."""

LOST_PLACE: Final = "ended because its worker had lost its place in the cluster"
"""How a process ends whose worker is no longer a member of its cluster."""

_REAPED_SECONDS: Final = 5.0
_OUT_OF: Final = "Is the machine out of memory, or at its limit of processes or of open files (ulimit -n)?"
_NO_SLUICE: Final = (
    "Its interpreter is {0}; see its messages in the worker's standard error. It has to exist and to have Sluice with "
    "all requirements: sluice plugins install --into FOLDER, with the folder that it is in, repairs that."
)
_LONGEST_STATUS: Final = 16
_PIPES_OF_A_START: Final = 8
"""A start opens at most seven descriptors, and other threads may open some meanwhile."""


class Child(Protocol):
    """A started child. Used by the supervisor's thread alone; only :meth:`join` waits for the child."""

    @property
    def pipe(self) -> WorkerEnd:
        """The pipe to the child."""

    @property
    def output(self) -> int | None:
        """A descriptor that becomes readable when the child prints; ``None`` if its output does not come here."""

    @property
    def crash(self) -> str | None:
        """The text that the interpreter wrote when it crashed, with all stacks; known after :meth:`join`."""

    @property
    def sentinel(self) -> int | None:
        """A descriptor that becomes readable when the child is gone; ``None`` if the end of the pipe shows that."""

    def send(self, command: Command) -> None:
        """Send the child a command; does nothing if the child is gone."""

    def receive(self) -> Iterator[Report]:
        """Yield the reports that have arrived; once the child is gone, all that are left."""

    def gone(self) -> bool:
        """Return whether the child has ended and all its reports are received."""

    def kill(self) -> None:
        """Kill the child at once."""

    def join(self) -> str:
        """Reap a child that is gone or killed. Return how it ended, as the end of a sentence."""

    @property
    def was_let_go(self) -> bool:
        """Whether the child has ended because its worker was gone, or had lost its place in the cluster."""

    @property
    def pid(self) -> int | None:
        """The process id, if the child is a process."""

    @property
    def shares(self) -> bool:
        """Whether the child shares its process, so that to kill it ends others too."""


class Launcher(Protocol):
    """Starts children."""

    def launch(self, label: str, first: Command | None = None) -> Child:
        """Start a child that waits for its first command; ``label`` is its name in the list of processes.

        ``first`` is that command, or a later one. It is not sent: it determines the interpreter that the child needs.
        """

    def home(self, command: Command) -> str:
        """Return what units that share a child must have in common: the interpreter, and where their plugins are
        installed.
        """

    def prepare(self) -> None:
        """Prepare the next launch, so that it is quick."""

    def close(self) -> None:
        """Release what :meth:`prepare` has made; nothing is launched after this."""


def log_record(context: str, said: LogRecord) -> None:
    """Log a record of a child with the time at which it was made; ``context`` is the unit or inquiry."""
    target = logging.getLogger(said.logger)
    if target.isEnabledFor(said.level):
        record = target.makeRecord(said.logger, said.level, "", 0, said.text, (), None)
        record.created = said.created
        record.msecs = said.created % 1 * 1000
        record.context = context
        if said.in_place:
            record.__dict__.update(IN_PLACE)
        target.handle(record)


class Piped:
    """A child as far as its pipe goes: what all kinds of children have in common. See :class:`Child`."""

    pid: int | None = None
    shares: bool = False
    was_let_go: bool = False
    crash: str | None = None

    def __init__(self, connection: Connection | None) -> None:
        self.pipe = WorkerEnd(connection)

    @property
    def output(self) -> int | None:
        """``None``: the output of the child does not come here."""
        return None

    @property
    def sentinel(self) -> int | None:
        """``None``: the end of the pipe shows the end of the child."""
        return None

    def send(self, command: Command) -> None:
        """Send the child a command."""
        self.pipe.send(command)

    def receive(self) -> Iterator[Report]:
        """Yield the reports that have arrived."""
        return self.pipe.receive()

    def gone(self) -> bool:
        """Return whether the child has ended and all its reports are received."""
        return self.pipe.closed


class _Process(Piped):
    """A child that is a process. Its end shows in its own descriptor, since processes that it forked may hold the pipe.

    The fork server reports its exit status once nothing is left below it. If the fork server is gone, the end of the
    process itself is waited for, and the processes that it left behind are ended here.
    """

    def __init__(self, connection: Connection, output: int, forked: Forked) -> None:
        super().__init__(connection)
        self._output = Output(output)
        self.pid = forked.pid
        self._pid = forked.pid
        self._pidfd: int | None = forked.pidfd
        self._status: int | None = forked.status
        self._code: int | None = None
        self._is_heard = False
        """Whether all that is left of an ended process is received."""

    @property
    def sentinel(self) -> int | None:
        return self._pidfd if self._status is None else self._status

    @property
    def output(self) -> int | None:
        return self._output.descriptor

    def receive(self) -> Iterator[Report]:
        ended = self.has_ended()
        said = list(self.pipe.drain() if ended else self.pipe.receive())
        # All output that it printed before it sent these reports has arrived.
        yield from self._output.drain() if ended else self._output.receive()
        yield from said
        self._is_heard = ended

    def gone(self) -> bool:
        # Not just ended: what it wrote when it crashed, after the last read, is yet to be received.
        return self._is_heard

    def kill(self) -> None:
        if self._pidfd is None:
            return
        orphaned = not self.has_ended() and self._status is None
        with contextlib.suppress(ProcessLookupError):
            if orphaned:
                # Stop it first, so that it starts nothing while its descendants are searched.
                signal.pidfd_send_signal(self._pidfd, signal.SIGSTOP)
                kill_descendants(self._pid)
            signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)

    def join(self) -> str:
        deadline = time.monotonic() + _REAPED_SECONDS
        while not self.has_ended() and (left := deadline - time.monotonic()) > 0:
            _is_readable(self.sentinel, left)
        if self._status is None and self._pidfd is not None:
            kill_session_of(self._pid)
        for descriptor in (self._status, self._pidfd):
            if descriptor is not None:
                os.close(descriptor)
        self._status = self._pidfd = None
        self.pipe.close()
        self._output.close()
        self.crash = self._output.crash
        self.was_let_go = self._code == LET_GO
        if self.was_let_go:
            return LOST_PLACE
        if self._code is not None and self._code < 0:
            unsaid = " without having said why" if self.crash is None else ""
            return f"was killed by {_signal_name(-self._code)}{unsaid}"
        status = "unknown" if self._code is None else self._code
        return f"exited with status {status} without having said why"

    def has_ended(self) -> bool:
        """Return whether the process is gone, even if some of its reports are not received yet."""
        if self._code is not None or self._pidfd is None:
            return True
        if not _is_readable(self.sentinel):
            return False
        if self._status is None:
            self._code = _reaped(self._pidfd)
            return True
        if status := os.read(self._status, _LONGEST_STATUS):
            self._code = int(status)
            return True
        os.close(self._status)
        self._status = None
        self.pipe.when_touched()
        return self.has_ended()


def _is_readable(descriptor: int | None, seconds: float = 0.0) -> bool:
    poll = select.poll()
    poll.register(descriptor if descriptor is not None else -1, select.POLLIN)
    return bool(poll.poll(seconds * 1000))


def _reaped(pidfd: int) -> int | None:
    """Return the status of an ended process, if this one may wait for it, as the first process of a container may."""
    try:
        ended = os.waitid(os.P_PIDFD, pidfd, os.WEXITED | os.WNOHANG)
    except ChildProcessError:
        return None
    if ended is None:
        return None
    return ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


class Stillborn(Piped):
    """A child that could not be started, and is gone from the beginning."""

    def __init__(self, error: Exception, remedy: str = _OUT_OF) -> None:
        super().__init__(None)
        self._error = error
        self._remedy = remedy

    def kill(self) -> None:
        """Do nothing: there is no process."""

    def join(self) -> str:
        """Return why it could not be started."""
        return f"could not be started: {self._error!r}. {self._remedy}"


class ForkServerLauncher:
    """Starts children as processes, from a fork server that runs as long as the worker, or is restarted.

    One child is always started in advance, so that a connector or task need not wait for its process. ``main`` is a
    function of a module; ``lease`` is the path of the worker's lease. ``homes`` knows the interpreters of plugins.
    """

    def __init__(
        self,
        main: LeasedMain,
        lease: str | None = None,
        homes: PluginHomes | None = None,
    ) -> None:
        self._main = main
        self._lease = lease
        self._homes = homes
        self._server = fork_client()
        self._spare: _Process | None = None

    def launch(self, label: str, first: Command | None = None) -> Child:
        """Start a process; see :class:`Launcher`."""
        interpreter = None if first is None or self._homes is None else self._homes.interpreter(first)
        if interpreter is not None:
            return self._start(label, interpreter)
        spare, self._spare = self._spare, None
        if spare is None:
            return self._start(label)
        if not spare.has_ended():
            return spare
        # It may have ended with the lease, while this worker was not part of its cluster.
        spare.join()
        return self._start(label)

    def home(self, command: Command) -> str:
        """Return where the plugins of a unit are installed; see :class:`Launcher`."""
        return "" if self._homes is None else self._homes.home(command)

    def prepare(self) -> None:
        """Start a child in advance, if there is none."""
        if self._spare is None and isinstance(child := self._start("spare"), _Process):
            self._spare = child

    def close(self) -> None:
        """End the child that was started in advance."""
        if self._spare is not None:
            self._spare.kill()
            self._spare.join()

    def _start(self, label: str, interpreter: Path | None = None) -> _Process | Stillborn:
        server = self._server if interpreter is None else fork_client(interpreter)
        try:
            try:
                return self._fork(server, label)
            except EOFError:
                # The fork server is gone; the next fork starts another.
                return self._fork(server, label)
        except (OSError, EOFError) as error:
            return Stillborn(error) if interpreter is None else Stillborn(error, _NO_SLUICE.format(interpreter))

    def _fork(self, server: ForkClient, label: str) -> _Process:
        _make_sure_of_descriptors()
        ours, theirs = Pipe()
        output, printed = os.pipe()
        try:
            forked = server.fork(self._main, theirs.fileno(), printed, self._lease, label)
        except (OSError, EOFError):
            ours.close()
            os.close(output)
            raise
        finally:
            theirs.close()
            os.close(printed)
        return _Process(ours, output, forked)


def _make_sure_of_descriptors() -> None:
    """Raise ``OSError`` unless there are descriptors for a whole start, which might fail halfway otherwise."""
    with contextlib.ExitStack() as stack:
        for _ in range(_PIPES_OF_A_START):
            for descriptor in os.pipe():
                stack.callback(os.close, descriptor)


class _Thread(Piped):
    def __init__(self, connection: Connection, thread: threading.Thread) -> None:
        super().__init__(connection)
        self._thread = thread

    def kill(self) -> None:
        """Shut the pipe down at both ends: a thread cannot be killed, but it can lose its worker."""
        with contextlib.suppress(OSError), socket.socket(fileno=os.dup(self.pipe.fileno())) as pipe:
            pipe.shutdown(socket.SHUT_RDWR)

    def join(self) -> str:
        self._thread.join(timeout=_REAPED_SECONDS)
        self.pipe.close()
        return "ended without having said why"


class ThreadLauncher:
    """Runs children in threads of this process, for tests."""

    def __init__(self, main: ChildMain) -> None:
        self._main = main

    def launch(self, label: str, first: Command | None = None) -> Child:  # noqa: ARG002 - there is one interpreter
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

    def home(self, command: Command) -> str:  # noqa: ARG002 - all have this process
        """Return an empty text: all plugins of a test are in this process."""
        return ""

    def prepare(self) -> None:
        """Do nothing: a thread starts quickly."""

    def close(self) -> None:
        """Do nothing: no thread is started ahead."""


MEMORY_LIMIT: Final = "process.memory.max.bytes"
"""The config key of the limit."""
_INTERVAL_SECONDS: Final = 1.0
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
_RESIDENT: Final = 1


class MemoryLimit:
    """A limit in bytes for each process, with its JVM if it has one; 0 is none. Used by one thread."""

    def __init__(self, limit: int, now: Callable[[], float] = time.monotonic) -> None:
        self.limit = limit
        self._now = now
        self._looked = now()
        self._jvms: dict[int, int] = {}

    def count(self, pid: int, jvm: int) -> None:
        """Count the memory of a JVM with that of its process."""
        if self.limit:
            self._jvms[pid] = jvm

    @property
    def next_look(self) -> float | None:
        """When to check again; ``None`` without a limit."""
        return self._looked + _INTERVAL_SECONDS if self.limit else None

    def exceeded(self, processes: Collection[int]) -> Iterator[tuple[int, int]]:
        """If a check is due, yield the processes that exceed the limit, each with its bytes."""
        if self.next_look is None or self._now() < self.next_look:
            return
        self._looked = self._now()
        self._jvms = {pid: jvm for pid, jvm in self._jvms.items() if pid in processes}
        for pid in processes:
            jvm = self._jvms.get(pid)
            if (used := _resident(pid) + (0 if jvm is None else _resident(jvm))) > self.limit:
                yield pid, used


def _resident(pid: int) -> int:
    """Return the resident bytes of a process; 0 if it is gone."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_bytes().split()[_RESIDENT]) * _PAGE
    except (OSError, IndexError):
        return 0
