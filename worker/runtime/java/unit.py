"""Runs a Java connector or task: its ``Worker`` does the work, and this thread passes commands and events on.

Records never pass through this process: the JVM reads and writes them itself. Only source offsets do, on their way to
the worker's store.

======================================  ================================================================================
kill -9 here                            then
======================================  ================================================================================
this process, or the worker             the JVM ends with it; what is not committed is repeated, as after any kill (I3)
the JVM                                 this process ends, and its units start again by the rules for shared processes
between a commit in Java and the        the offsets are not stored, and Java counts the commit as failed
worker's answer
an exactly-once task, in a transaction  the broker aborts it; the next task starts from the offsets in the last one
======================================  ================================================================================
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Final, TypeVar

from connect.errors import ConnectError
from worker.errors import JavaError
from worker.messages import messages
from worker.messages.messages import Report
from worker.runtime.assembly import Assembly
from worker.runtime.control import Control
from worker.runtime.java.callbacks import OffsetStore
from worker.runtime.java.calls import PluginCalls
from worker.runtime.java.connect_runtime import JavaWorker, failures, java_error, jvm_for, runtime_of_process
from worker.runtime.java.jvm import when_jvm_ends
from worker.runtime.java.passwords import password_values
from worker.runtime.link import ErrorRaised, Link
from worker.security.redaction import Redaction
from worker.unit import Unit

__all__ = ["JavaUnit"]

logger = logging.getLogger(__name__)
T = TypeVar("T")
_REQUEST_SECONDS: Final = 60.0


class JavaUnit:
    """What a Java connector and a Java task have in common. Used as a context by the thread of the unit.

    Calls that may take long are made in other threads, one after the other, while this one passes on commands and the
    answers of the worker that they may wait for. Most units rest, so that none of these threads stays.
    """

    def __init__(self, unit: Unit, assembly: Assembly, control: Control, link: Link, redaction: Redaction) -> None:
        self.assembly = assembly
        self.control = control
        self._unit = unit
        self._link = link
        self._redaction = redaction
        self._lock = threading.Lock()
        self._asked: dict[int, Callable[[Any], None]] = {}
        self._events: deque[str] = deque()
        self.has_failed = False
        self._jvm = jvm_for(assembly.worker_props)
        self.calls = PluginCalls(self._jvm, unit, control.watch, assembly.hang_limits)
        self._forget: Callable[[], None] = lambda: None
        self.java: JavaWorker

    def __enter__(self) -> JavaUnit:
        # All plugins are made to be asked for their versions, and those of the unit for their keys: each may hang.
        self.java = self.call(self._worker)
        self.assembly.redaction.add(self.call(lambda: password_values(self.java, self.assembly)))
        self._forget = when_jvm_ends(self._tell_end)
        self._link.send(messages.RunsJvm(self._jvm.pid))
        self._jvm.log.join(self._unit, self._tell_line)
        self._link.follow_levels(self._jvm.set_level)
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.call(self.java.close)
        except ConnectError as error:
            logger.warning("The runtime of Java failed to stop: %s", error)
        self._forget()
        self._link.follow_levels(None)
        self._jvm.log.leave(self._unit)

    def _worker(self) -> JavaWorker:
        runtime = runtime_of_process(self.assembly.worker_props, self.assembly.plugins)
        return runtime.worker(str(self._unit), OffsetStore(self._jvm, self.ask))

    # -- from any thread -----------------------------------------------------------------------------------------------

    def ask(self, request: Callable[[int], Report], answer: Callable[[Any], None]) -> None:
        """Send the worker a request; ``answer`` is called by the thread of the unit."""
        number = self.control.request()
        with self._lock:
            self._asked[number] = answer
        self.control.send(request(number))

    def hear(self, event: str, error: Any = None) -> None:
        """Take in an event of Java. A failure ends the unit."""
        if event == "pause":
            self.calls.returned()
        if event == "failure":
            self.has_failed = True
            self._link.inbox.put(ErrorRaised(self.failure(error)))
            return
        self._events.append(event)
        self.control.wake()

    def request_reconfiguration(self) -> None:
        """Have the connector asked for its task configs again."""
        self._link.inbox.put(messages.Reconfigure())

    def failure(self, thrown: Any) -> JavaError:
        """Return the error that stands for a ``Throwable``."""
        return java_error(self._jvm, thrown)

    def owns(self) -> bool:
        """Ask the worker whether the unit is still its own, and wait for the answer; not in the thread of the unit."""
        confirmed = threading.Event()
        self.ask(messages.ConfirmOwnership, lambda _: confirmed.set())
        return confirmed.wait(_REQUEST_SECONDS)

    def _tell_end(self, reason: str) -> None:
        # A unit alone in its process fails with the reason; those of a shared one start again elsewhere.
        self._link.send_of_process(messages.Failed(self._redaction.redacted(reason)))

    def _tell_line(self, record: messages.LogRecord) -> None:
        text = self._redaction.redacted(record.text)
        self._link.send(messages.LogRecord(record.logger, record.level, record.created, text))

    # -- in the thread of the unit -------------------------------------------------------------------------------------

    def call(self, act: Callable[[], T]) -> T:
        """Make a call and return its result; meanwhile commands are noted and answers of the worker passed on."""
        future: Future[T] = Future()
        future.add_done_callback(lambda _: self.control.wake())
        threading.Thread(target=_settle, args=(future, act), name="java call", daemon=True).start()
        postponed: BaseException | None = None
        with self.calls.calling():
            while not future.done():
                try:
                    self.take(None)
                except (ConnectError, OSError) as error:
                    # The call has to end all the same: nothing else may be done in Java meanwhile.
                    postponed = postponed or error
        with failures(self._jvm):
            result = future.result()
        if postponed is not None:
            raise postponed
        return result

    def take(self, seconds: float | None) -> None:
        """Wait for a command, an event or an answer for at most this many seconds, and pass on answers.

        Meanwhile it is looked whether a call of the plugin hangs; that ends the wait, too.
        """
        left = self.calls.next_look(stops=self.control.stopping) - time.monotonic()
        least = left if seconds is None else min(left, seconds)
        try:
            self.control.wait_for_command(None if math.isinf(least) else max(0.0, least))
            self.control.poll()
        finally:
            self._pass_on_answers()
        if time.monotonic() >= self.calls.next_look(stops=self.control.stopping):
            self._look_at_calls()

    def archive_classes(self) -> None:
        """Have JVMs that start later start faster, unless the process that does that would count as too much memory."""
        if not self.assembly.worker.process_memory_max_bytes:
            self._jvm.archive_classes()

    def _look_at_calls(self) -> None:
        try:
            self.calls.look(stops=self.control.stopping)
        except ConnectError as error:
            logger.warning("It cannot be seen whether a call of the plugin hangs: %s", error)

    def _pass_on_answers(self) -> None:
        with self._lock:
            asked = list(self._asked)
        for number in asked:
            if (answer := self.control.reply(number)) is not None:
                with self._lock:
                    handle = self._asked.pop(number)
                handle(answer)

    def events(self) -> list[str]:
        """Return the events since the last call."""
        heard = []
        while self._events:
            heard.append(self._events.popleft())
        return heard


def _settle(future: Future[T], act: Callable[[], T]) -> None:
    try:
        future.set_result(act())
    except BaseException as error:
        future.set_exception(error)
