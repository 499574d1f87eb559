"""Looks which call of its plugin a Java unit is in, and tells the watch of one that does not return.

A stack shows which method a thread is in, and not whether that is still the same call: a source with nothing to send is
in ``poll`` whenever one looks. So a task that has been in one method for half of the limit is asked to pause, which
Kafka Connect's runtime does between two calls; it goes on at once, and only a call that does not return by then counts
as one that hangs.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from worker.runtime.java.connect_runtime import failures
from worker.runtime.java.jvm import Jvm
from worker.runtime.watch import Limits, OutsideCall, Watch
from worker.unit import Unit

__all__ = ["Place", "PluginCalls", "called_place", "place_of"]

_LOOKS: Final = 6
_LOOKS_AT_STOP: Final = 8
_SHORTEST_SECONDS: Final = 0.2
_LONGEST_SECONDS: Final = 10.0
_FRAMES: Final = 100
_DEPTH: Final = 2000
_CALLED: Final = frozenset({"py4j.GatewayConnection", "org.apache.kafka.connect.runtime.AbstractHerder"})
"""Classes in the stacks of threads in which this process calls Java, and of those that validate for it."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a thread is: the method of the plugin that the runtime has called, the line, and the stack."""

    method: str
    line: str
    stack: str


def place_of(thread: Mapping[str, Any]) -> Place | None:
    """Return where a thread is within a plugin; ``None`` if none of its frames is a plugin's.

    ``thread`` is a ``ThreadInfo``. Only the class loaders of plugins have no name, and no named modules.
    """
    frames: Sequence[Mapping[str, Any]] = thread["stackTrace"]
    own = [each for each in frames if not (each["classLoaderName"] or each["moduleName"])]
    if not own:
        return None
    head = f'"{thread["threadName"]}" {thread["threadState"]}'
    if thread["lockName"]:
        head += f" on {thread['lockName']}"
    if thread["lockOwnerName"]:
        head += f' owned by "{thread["lockOwnerName"]}"'
    stack = "\n".join(
        ["Stack (most recent call first):", head, *(f"\tat {_written(each)}" for each in frames[:_FRAMES])]
    )
    return Place(own[-1]["methodName"], f"{own[0]['fileName']}:{own[0]['lineNumber']}", stack)


def _written(frame: Mapping[str, Any]) -> str:
    where = "Native Method" if frame["nativeMethod"] else f"{frame['fileName']}:{frame['lineNumber']}"
    return f"{frame['className']}.{frame['methodName']}({where})"


class PluginCalls:
    """The calls of one unit's plugin. Used by the thread of the unit, but for :meth:`returned`."""

    def __init__(
        self, jvm: Jvm, unit: Unit, watch: Watch, limits: Limits, now: Callable[[], float] = time.monotonic
    ) -> None:
        self.probe: Callable[[], None] | None = None
        """Asks the task to pause; ``None`` for a connector, whose calls do not repeat."""
        self.rests = False
        """Whether only calls of this process, and a stop, make the plugin do anything in the threads looked at."""
        self._jvm = jvm
        self._thread = (
            f"task-thread-{unit.connector}-{unit.task}" if unit.is_task else f"connector-thread-{unit.connector}"
        )
        self._watch = watch
        self._now = now
        self._limits = limits
        self._lock = threading.Lock()
        self._threads: Any = jvm.java.java.lang.management.ManagementFactory.getThreadMXBean()
        self._id: int | None = None
        self._method: str | None = None
        self._since = 0.0
        self._told: OutsideCall | None = None
        self._own_call: float | None = None
        self._looked = self._now()

    @contextmanager
    def calling(self) -> Iterator[None]:
        """Note that this process calls the runtime, in whose own thread the plugin may hang as well."""
        self._own_call = self._now()
        try:
            yield
        finally:
            self._own_call = None
            self.returned()

    def returned(self) -> None:
        """Note that the call of the plugin has returned. From any thread."""
        with self._lock:
            self._method = None
            if self._told is not None:
                self._told = None
                self._watch.enter(None)

    def run_on(self) -> bool:
        """Return whether the thread in which the runtime calls the plugin still runs."""
        with failures(self._jvm):
            return self._find() is not None

    def next_look(self, *, stops: bool) -> float:
        """Return when to look again, by :func:`time.monotonic`; ``stops`` is whether the unit is to stop."""
        if self.rests and self._own_call is None and not stops:
            return math.inf
        limits = (self._limits.shortest / _LOOKS, stops * self._limits.stop / _LOOKS_AT_STOP)
        shortest = min((limit for limit in limits if limit), default=math.inf)
        if math.isinf(shortest):
            return shortest
        return self._looked + min(max(shortest, _SHORTEST_SECONDS), _LONGEST_SECONDS)

    def look(self, *, stops: bool) -> None:
        """Look where the unit is."""
        self._looked = self._now()
        with failures(self._jvm):
            place = self._place()
        if place is None or place.method != self._method:
            self.returned()
        if place is not None:
            self._note(place, stops=stops)

    def _note(self, place: Place, *, stops: bool) -> None:
        now = self._now()
        if self._method is None:
            self._method, self._since = place.method, now
        if self._told is not None:
            self._told.place = place.line, place.stack
        elif stops or (self._limits.shortest and now - self._since >= self._limits.shortest / 2):
            self._tell(place, now - self._since, probes=not stops)

    def _tell(self, place: Place, lasted: float, *, probes: bool) -> None:
        with self._lock:
            self._told = OutsideCall(place.method, lasted, (place.line, place.stack))
            self._watch.enter(self._told)
        if probes and self.probe is not None and self._own_call is None:
            self.probe()

    # -- threads of Java -----------------------------------------------------------------------------------------------

    def _place(self) -> Place | None:
        thread = self._info()
        if thread is not None and (place := place_of(thread)) is not None:
            return place
        half = self._limits.shortest / 2
        if self._own_call is None or not half or self._now() - self._own_call < half:
            return None
        # Several units may call at once: then the line that is shown may be another's.
        return called_place(self._jvm)

    def _info(self) -> Mapping[str, Any] | None:
        """Return the ``ThreadInfo`` of the unit's own thread; ``None`` while it has none."""
        found = None if self._id is None else self._read(self._id)
        if found is None or found["threadName"] != self._thread:
            self._id = self._find()
            found = None if self._id is None else self._read(self._id)
        return found

    def _read(self, number: int) -> Mapping[str, Any] | None:
        found: Mapping[str, Any] | None = self._jvm.to_python(self._threads.getThreadInfo(number, _DEPTH))
        return found

    def _find(self) -> int | None:
        every = self._jvm.to_python(self._threads.getThreadInfo(self._threads.getAllThreadIds(), 0))
        return next((each["threadId"] for each in every if each and each["threadName"] == self._thread), None)


def called_place(jvm: Jvm) -> Place | None:
    """Return where a thread is within a plugin in which this process has called Java; ``None`` if none is."""
    threads = jvm.java.java.lang.management.ManagementFactory.getThreadMXBean()
    every = jvm.to_python(threads.dumpAllThreads(False, False))
    found = (place_of(each) for each in every if _is_called(each))
    return next((place for place in found if place is not None), None)


def _is_called(thread: Mapping[str, Any]) -> bool:
    return any(frame["className"] in _CALLED for frame in thread["stackTrace"])
