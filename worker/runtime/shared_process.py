"""Runs several units in one process, each in its own thread, with one pipe to the worker.

The resources of the process are divided where possible: log lines and output belong to the unit whose thread wrote
them, and the threads of each unit have their own working directory and umask. Secrets are hidden in the lines of all
units (invariant I8). A unit has ended when none of its threads is left; if it leaves some behind, the worker kills the
process after a while. Crash points: those of each unit, all at once.
"""

from __future__ import annotations

import contextvars
import ctypes
import faulthandler
import logging
import math
import os
import threading
import time
from collections.abc import Callable
from contextvars import ContextVar
from typing import Final, TypeAlias

from worker.messages import messages
from worker.messages.messages import Addressed
from worker.runtime.link import Line, Link
from worker.runtime.log import send_log, send_output
from worker.runtime.usage import ThreadTimes, give_back, share_arenas
from worker.runtime.watch import Lookout, Watch
from worker.security.redaction import Redaction

__all__ = ["SharedProcess"]

logger = logging.getLogger(__name__)

_CLONE_FS: Final = 0x200
_PATIENCE_SECONDS: Final = 2.0
_LONGEST_SILENCE_SECONDS: Final = 30.0
_LOOKS: Final = 6
_GIVES_BACK_SECONDS: Final = 30.0

Live: TypeAlias = Callable[[messages.Command, Link, Redaction, Watch], None]
"""Carries out the first command of a unit."""


class _Member:
    """A unit of this process, and its threads."""

    def __init__(self, line: Line, seat: int) -> None:
        self.link = Link(line, seat, ThreadTimes(self.threads))
        self._lock = threading.RLock()
        self._threads: list[threading.Thread] = []
        self._context = contextvars.copy_context()
        self._context.run(_MEMBER.set, self)

    def hear(self, command: messages.Command) -> None:
        """Take in a command, in the context of the unit."""
        try:
            self._context.run(self.link.hear, command)
        except Exception:
            # A bug in Sluice; the other units of this process must still get their commands.
            self._context.run(logger.exception, "What the worker says is not understood")

    def threads(self) -> list[threading.Thread]:
        """Return the running threads that the unit has started."""
        with self._lock:
            self._threads = [thread for thread in self._threads if thread.is_alive()]
            return self._threads.copy()

    def has_started(self, thread: threading.Thread) -> None:
        """Note that the unit has started a thread."""
        with self._lock:
            self._threads = [*self.threads(), thread]

    def await_threads(self) -> None:
        """Wait until all threads of the unit have ended."""
        deadline = time.monotonic() + _PATIENCE_SECONDS
        for thread in self.threads():
            thread.join(max(0.0, deadline - time.monotonic()))
        if left := self.threads():
            names = ", ".join(sorted(thread.name for thread in left))
            logger.warning("It has ended and left threads behind, so that its process has to be killed: %s", names)
        for thread in left:
            thread.join()


_MEMBER: ContextVar[_Member | None] = ContextVar("member", default=None)


class _LinkOfThread:
    """Sends reports by the link of the unit whose thread makes them, or by that of the process."""

    def __init__(self, own: Link) -> None:
        self._own = own

    @property
    def link(self) -> Link:
        member = _MEMBER.get()
        return self._own if member is None or member.link.closed else member.link

    def send(self, report: messages.LogRecord) -> None:
        self.link.send(report)


class SharedProcess:
    """Runs units in this process, which has one ``line`` to the worker."""

    def __init__(self, line: Line, live: Live) -> None:
        self._line = line
        self._link = Link(line)
        self._live = live
        self._redaction = Redaction()
        self._lookout = Lookout()
        self._shortened = threading.Condition()
        self._warning, self._timeout = 0.0, _LONGEST_SILENCE_SECONDS
        self._stacks = -1
        # Used only by the thread that runs serve.
        self._members: dict[int, _Member] = {}
        self._latest = 0

    def serve(self) -> None:
        """Run units until the worker ends this process."""
        share_arenas()
        _let_threads_inherit()
        link = _LinkOfThread(self._link)
        send_log(link, self._redaction)
        self._stacks = send_output(link, self._redaction)
        self._shorten(messages.Watched(0.0, _LONGEST_SILENCE_SECONDS))
        threading.Thread(target=self._watch_silence, name="watch", daemon=True).start()
        self._lookout.start()
        while True:
            try:
                said = self._line.receive()
            except (EOFError, OSError):
                self._line.exit()
                return
            assert isinstance(said, Addressed)
            self._pass_on(said.seat, said.message)

    def _pass_on(self, seat: int, command: messages.Command) -> None:
        """Pass a command on to a unit; the first command to a new seat starts a unit."""
        if seat <= self._latest:
            if (member := self._members.get(seat)) is not None and not member.link.closed:
                member.hear(command)
            return
        self._latest = seat
        member = _Member(self._line, seat)
        self._members = {number: each for number, each in self._members.items() if not each.link.closed}
        self._members[seat] = member
        threading.Thread(target=self._run, args=(member, command), name="unit", daemon=True).start()

    def _run(self, member: _Member, first: messages.Command) -> None:
        link = member.link
        _MEMBER.set(member)
        _have_own_folder()
        link.send(messages.Lives(threading.get_ident()))

        def say(report: messages.Hanging | messages.HangOver | messages.Watched | messages.Failed) -> None:
            if isinstance(report, messages.Watched):
                self._shorten(report)
            link.send(report)

        # The watch cannot end a call that hangs; it reports it, and the worker kills this process.
        self._live(
            first, link, self._redaction, Watch(say, self._redaction.redacted, lambda: None, lookout=self._lookout)
        )
        member.await_threads()
        link.close(messages.Ended())

    def _shorten(self, watched: messages.Watched) -> None:
        """Watch the process by the shortest limits of its units."""
        with self._shortened:
            self._warning = min(filter(None, (self._warning, watched.warning)), default=0.0)
            self._timeout = min(filter(None, (self._timeout, watched.timeout)))
            self._link.send(messages.Watched(self._warning, self._timeout))
            self._put_off()
            # The watching thread still waits by the longer limit.
            self._shortened.notify()

    def _put_off(self) -> float:
        """Have stacks written unless this is called again within the returned time."""
        period = min(filter(None, (self._warning, self._timeout))) / 2
        faulthandler.dump_traceback_later(period, repeat=True, file=self._stacks)
        return period

    def _watch_silence(self) -> None:
        """Have stacks written while no Python runs, for the worker to judge."""
        looked, before = time.monotonic(), math.inf
        given_back = looked
        while True:
            with self._shortened:
                period = self._put_off()
                now = time.monotonic()
                if now - looked >= before:
                    self._link.send(messages.HangOver(None))
                looked, before = now, period
                self._shortened.wait(period / _LOOKS)
            if now - given_back >= _GIVES_BACK_SECONDS:
                give_back()
                given_back = now


def _have_own_folder() -> None:
    """Give this thread, and those that it starts, their own working directory and umask."""
    if ctypes.CDLL(None, use_errno=True).unshare(_CLONE_FS) != 0:
        # Some containers forbid it.
        logger.debug("The units of this process share its working directory: %s", os.strerror(ctypes.get_errno()))


def _let_threads_inherit() -> None:
    """Start every thread in the context of its creator, as Python 3.14 can, and note its unit."""
    start = threading.Thread.start

    def start_in_context(thread: threading.Thread) -> None:
        run, context = thread.run, contextvars.copy_context()

        def run_in_context() -> None:
            try:
                context.run(run)
            finally:
                del thread.run

        thread.run = run_in_context  # type: ignore[method-assign]
        member = context.get(_MEMBER)
        start(thread)
        if member is not None:
            member.has_started(thread)

    threading.Thread.start = start_in_context  # type: ignore[method-assign, assignment]
