"""Watches the calls of a plugin: reports one that does not return, with the line that it has reached.

A separate thread looks at the current call from time to time. Time counts only while that thread can look, so that no
call seems to hang because the machine was suspended. While C code lets no Python thread run, :mod:`faulthandler` writes
the stacks instead, into the output of this process, and the supervisor decides.

Crash points: a call that exceeds ``task.hang.timeout.ms`` is ended as by a crash, so that only uncommitted work is
repeated (invariant I3). Either the call has returned and the process goes on, or nothing is done after it: one lock
decides.
"""

from __future__ import annotations

import faulthandler
import logging
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType, TracebackType
from typing import Final, TypeAlias

from worker.messages import messages
from worker.messages.hangs import hang_trace
from worker.processes.stacks import line_of_plugin

__all__ = ["CHAIN", "Limits", "Lookout", "OutsideCall", "Watch"]

CHAIN: Final = "the chain of transformations and converters"
"""The name of the call that takes a batch through the chain."""

logger = logging.getLogger(__name__)
_LOOKS: Final = 12
_OF_STOP: Final = 0.5
_SHORTEST_SECONDS: Final = 0.02
_LONGEST_SECONDS: Final = 5.0
_FRAMES: Final = 100
_GROWTH: Final = 2

Say: TypeAlias = Callable[[messages.Hanging | messages.HangOver | messages.Watched | messages.Failed], None]


@dataclass(frozen=True, slots=True)
class Limits:
    """The seconds after which a call is reported, and after which its process is ended; 0 is never.

    ``stop`` is how many seconds the process has to end after a stop.
    """

    warning: float
    timeout: float
    stop: float

    @property
    def shortest(self) -> float:
        """The shorter limit; 0 without limits."""
        return min((limit for limit in (self.warning, self.timeout) if limit), default=0.0)


class _Call:
    """A call of the plugin, and the frame of the runtime that makes it."""

    __slots__ = ("_watch", "before", "frame", "name", "patience", "reported", "thread")

    def __init__(self, watch: Watch, name: str, patience: int) -> None:
        self._watch = watch
        self.name = name
        self.patience = patience
        self.before: _Call | OutsideCall | None = None
        self.frame: FrameType | None = None
        self.thread = 0
        self.reported = False

    def __enter__(self) -> None:
        self.frame = sys._getframe(1)
        self.thread = threading.get_ident()
        self.before = self._watch.enter(self)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._watch.enter(self.before)
        self.frame = None


class OutsideCall:
    """A call of a plugin that another than a thread of Python is in, such as one of a JVM.

    ``lasted`` is for how many seconds it has been there before; ``place`` is its line and stack, which are kept new.
    """

    __slots__ = ("lasted", "name", "patience", "place", "reported", "thread")

    def __init__(self, name: str, lasted: float, place: tuple[str, str]) -> None:
        self.name = name
        self.lasted = lasted
        self.place = place
        self.patience = 1
        self.thread = 0
        self.reported = False


class Watch:
    """Watches the calls of one unit. The task's thread enters and leaves calls, another looks at them.

    ``hide`` removes secrets from a text; ``end`` ends this process at once; ``stacks`` is the descriptor for stacks
    while no Python runs, if this is a process; ``lookout`` is the thread that looks, if the process has several
    watches. Nothing is watched before :meth:`begin`.
    """

    def __init__(
        self,
        say: Say,
        hide: Callable[[str], str],
        end: Callable[[], None],
        stacks: int | None = None,
        lookout: Lookout | None = None,
    ) -> None:
        self._say = say
        self._hide = hide
        self._end = end
        self._stacks = stacks
        self._lookout = lookout
        self._limits = Limits(0, 0, 0)
        self._lock = threading.Lock()
        self._call: _Call | OutsideCall | None = None
        self._is_over = False
        self._closed = threading.Event()
        self._last_look: threading.Timer | None = None
        # Used only by the thread that looks.
        self._seen: _Call | OutsideCall | None = None
        self._lasted = 0.0
        self._next_report = 0.0
        self._longest: dict[str, float] = {}

    def begin(self, limits: Limits) -> None:
        """Watch from now on."""
        self._limits = limits
        if limits.shortest:
            self._say(messages.Watched(limits.warning, limits.timeout))
            tick = min(max(limits.shortest / _LOOKS, _SHORTEST_SECONDS), _LONGEST_SECONDS)
            if self._lookout is not None:
                self._lookout.add(self, tick)
                return
            threading.Thread(target=self._look_on, args=(tick, self._stacks), name="watch", daemon=True).start()

    def stopping(self) -> None:
        """Log which call keeps this process from ending, well before the worker kills it. From any thread."""
        if self._limits.stop and not self._closed.is_set():
            self._last_look = threading.Timer(self._limits.stop * _OF_STOP, self._tell_what_does_not_stop)
            self._last_look.daemon = True
            self._last_look.start()

    def close(self) -> None:
        """Stop watching."""
        self._closed.set()
        if self._lookout is not None:
            self._lookout.remove(self)
        if self._last_look is not None:
            self._last_look.cancel()

    def call(self, name: str, patience: int = 1) -> _Call:
        """Watch a ``with`` block. ``patience`` multiplies the limit of the warning, for calls that are slow."""
        return _Call(self, name, patience)

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Do not watch while the plugin lets the runtime wait; after that, the time of the call starts anew."""
        call = self._call
        if not isinstance(call, _Call) or call.thread != threading.get_ident():
            yield
            return
        self.enter(None)
        try:
            yield
        finally:
            again = _Call(self, call.name, call.patience)
            again.frame, again.thread, again.before = call.frame, call.thread, call.before
            self.enter(again)

    def enter(self, call: _Call | OutsideCall | None) -> _Call | OutsideCall | None:
        """Make this the current call, and return the former one."""
        with self._lock:
            before, self._call = self._call, call
            is_over = self._is_over
        if is_over:
            # This process is being ended; nothing more may happen until it is gone.
            threading.Event().wait()
        if before is not None and before.reported:
            self._say(messages.HangOver(before.name))
        return before

    # -- in the thread that looks ----------------------------------------------------------------------------------

    def _look_on(self, tick: float, stacks: int | None) -> None:
        period = self._limits.shortest / 2
        looked = time.monotonic()
        while True:
            if stacks is not None:
                faulthandler.dump_traceback_later(period, repeat=True, file=stacks)
            if self._closed.wait(tick):
                break
            now = time.monotonic()
            if now - looked >= period and stacks is not None:
                # Stacks that may have been written are outdated.
                self._say(messages.HangOver(None))
            self.look(min(now - looked, 2 * tick))
            looked = now
        if stacks is not None:
            faulthandler.cancel_dump_traceback_later()

    def look(self, seconds: float) -> None:
        """Look at the current call, after this many more seconds have passed."""
        call = self._call
        if call is not self._seen or call is None:
            if self._seen is not None and self._lasted >= self._limits.warning:
                self._longest[self._seen.name] = max(self._longest.get(self._seen.name, 0.0), self._lasted)
            self._seen, self._lasted = call, call.lasted if isinstance(call, OutsideCall) else 0.0
            if call is not None:
                # A call that once took long, and returned, may take long again.
                usual = _GROWTH * self._longest.get(call.name, 0.0)
                self._next_report = max(self._limits.warning * call.patience, usual)
            return
        self._lasted += seconds
        if self._limits.timeout and self._lasted >= self._limits.timeout:
            self._end_in(call)
        elif self._limits.warning and self._lasted >= self._next_report:
            self._next_report = _GROWTH * self._lasted
            self._report(call)

    def _hanging(self, call: _Call | OutsideCall) -> messages.Hanging:
        line, stack = _place(call)
        return messages.Hanging(call.name, self._lasted, time.time() - self._lasted, line, self._hide(stack))

    def _report(self, call: _Call | OutsideCall) -> None:
        hanging = self._hanging(call)
        with self._lock:
            if self._call is call:
                call.reported = True
                self._say(hanging)

    def _tell_what_does_not_stop(self) -> None:
        call = self._call
        if call is not None and not self._closed.is_set():
            line, stack = _place(call)
            logger.warning("Asked to stop, but %s has not returned: %s\n%s", call.name, line, stack)

    def _end_in(self, call: _Call | OutsideCall) -> None:
        trace = hang_trace(self._hanging(call))
        with self._lock:
            if self._call is not call:
                return
            self._is_over = True
        self._say(messages.Failed(trace))
        self._end()


class Lookout:
    """The thread that looks for several watches."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._ticks: dict[Watch, float] = {}
        self._thread = threading.Thread(target=self._look_on, name="lookout", daemon=True)

    def start(self) -> None:
        """Start the thread, which belongs to no unit."""
        self._thread.start()

    def add(self, watch: Watch, tick: float) -> None:
        """Add a watch that has to look at least once in this many seconds. From any thread."""
        with self._changed:
            self._ticks = {**self._ticks, watch: tick}
            self._changed.notify()

    def remove(self, watch: Watch) -> None:
        """Remove a watch. From any thread."""
        with self._changed:
            self._ticks = {other: tick for other, tick in self._ticks.items() if other is not watch}

    def _look_on(self) -> None:
        looked = time.monotonic()
        while True:
            with self._changed:
                tick = min(self._ticks.values(), default=None)
                self._changed.wait(tick)
                watches = self._ticks
            now = time.monotonic()
            seconds = now - looked if tick is None else min(now - looked, 2 * tick)
            looked = now
            for watch in watches:
                watch.look(seconds)


def _place(call: _Call | OutsideCall) -> tuple[str, str]:
    """Return the line of the plugin that a call has reached, and the stack from the runtime's frame on."""
    if isinstance(call, OutsideCall):
        return call.place
    frames: list[tuple[FrameType, int]] = []
    frame = sys._current_frames().get(call.thread)
    while frame is not None and frame is not call.frame:
        frames.append((frame, frame.f_lineno))
        frame = frame.f_back
    stack = traceback.StackSummary.extract(iter(frames[::-1]), limit=-_FRAMES)
    return line_of_plugin(stack), "".join(["Stack (most recent call last):\n", *stack.format()])
