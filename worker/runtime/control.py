"""The commands of the worker as a task sees them: whether it should stop, pause or drain, and answers to its requests.

Commands arrive in one inbox, which the task's thread empties between two pieces of work and while it waits. So no flag
is shared between threads, and every wait ends on a command.
"""

from __future__ import annotations

import itertools
import os
import select
import time
from collections.abc import Callable, Collection
from queue import Empty
from typing import TypeAlias

from connect.errors import ConnectError
from worker.messages import messages
from worker.messages.messages import Command, Report
from worker.runtime.link import ErrorRaised, Link, Woken
from worker.runtime.watch import Watch

__all__ = ["Control", "Reply"]

Reply: TypeAlias = messages.OffsetsRead | messages.OffsetsCommitted | messages.OwnershipConfirmed
"""The worker's answer to a request of this process."""


class Control:
    """The state that the worker wants a task to be in. Used by the task's thread alone."""

    def __init__(self, link: Link, watch: Watch | None = None, *, paused: bool = False) -> None:
        self.watch = Watch(link.send, str, link.exit) if watch is None else watch
        self.stopping = False
        self.paused = paused
        self.draining = False
        self.reconfiguring = False
        self.resting = False
        self.takes_configs = False
        """Whether the task takes new configurations while it runs; otherwise they are declined."""
        self.takes_signals = False
        """Whether the task takes signals now; otherwise they are refused."""
        self._signals: list[messages.TakeSignal] = []
        self._config: dict[str, str] | None = None
        self._is_woken = False
        self._link = link
        self._replies: dict[int, Reply] = {}
        self._requests = itertools.count()

    @property
    def cpu(self) -> Callable[[], float]:
        """Returns the CPU seconds of this task."""
        return self._link.cpu

    def send(self, report: Report) -> None:
        """Send a report to the worker."""
        self._link.send(report)

    def poll(self) -> bool:
        """Take in all commands so far. Returns whether the task may go on moving data."""
        while True:
            try:
                self._apply(self._link.inbox.get_nowait())
            except Empty:
                return not (self.stopping or self.paused)

    def is_stopping(self) -> bool:
        """Take in all commands so far. Returns whether the task has to stop."""
        self.poll()
        return self.stopping

    def wait(self, seconds: float) -> bool:
        """Wait this many seconds, or until the task has to stop or pause. Returns whether it may go on moving data."""
        deadline = time.monotonic() + seconds
        while not (self.stopping or self.paused):
            left = deadline - time.monotonic()
            if left <= 0:
                return True
            self._take(left)
        return False

    def wait_unless_stopped(self, seconds: float) -> bool:
        """Wait this many seconds, or until the task has to stop. Returns whether it may finish its work."""
        deadline = time.monotonic() + seconds
        while not self.stopping:
            left = deadline - time.monotonic()
            if left <= 0:
                return True
            self._take(left)
        return False

    def wake(self) -> None:
        """End the current or next :meth:`wait_for_wish`. From any thread."""
        self._link.wake()

    def wait_for_wish(self, descriptors: Collection[int], seconds: float) -> bool:
        """Wait until a descriptor is readable, the task is woken or a command arrives, for at most this many seconds.

        Returns whether a descriptor is readable or the task was woken.
        """
        if descriptors:
            is_readable = self._wait_readable(descriptors, seconds)
        else:
            is_readable = False
            if not self._is_woken:
                self._take(seconds)
        self.poll()
        is_woken, self._is_woken = self._is_woken, False
        return is_readable or is_woken

    def _wait_readable(self, descriptors: Collection[int], seconds: float) -> bool:
        bell = self._link.bell()
        if self._is_woken or not self._link.inbox.empty():
            return False
        waiting = select.poll()
        for descriptor in (bell, *descriptors):
            waiting.register(descriptor, select.POLLIN)
        ready = {descriptor for descriptor, _ in waiting.poll(seconds * 1000)}
        if bell in ready:
            os.eventfd_read(bell)
        return bool(ready - {bell})

    def wait_for_command(self, seconds: float | None = None) -> None:
        """Wait for a command, for at most this many seconds."""
        self._take(seconds)

    def rest(self) -> None:
        """Report that the task is paused, and return when it may resume or has to stop."""
        if self.stopping:
            return
        self.send(messages.Paused())
        while self.paused and not self.stopping:
            self.wait_for_command()
        if not self.stopping:
            self.send(messages.Resumed())

    def await_stop(self) -> None:
        """Report that the task is drained, and wait for the stop."""
        self.send(messages.Drained())
        while not self.stopping:
            self.wait_for_command()

    @property
    def has_config(self) -> bool:
        """Whether a new configuration waits for the task."""
        return self._config is not None

    def take_config(self) -> dict[str, str] | None:
        """Return the newest configuration that waits for the task, once."""
        config, self._config = self._config, None
        return config

    @property
    def has_signals(self) -> bool:
        """Whether signals wait for the task."""
        return bool(self._signals)

    def take_signals(self) -> list[messages.TakeSignal]:
        """Return the signals that wait for the task, once. Each has to be answered with :meth:`answer_signal`."""
        signals, self._signals = self._signals, []
        return signals

    def answer_signal(self, signal: messages.TakeSignal, refused: str | None) -> None:
        """Report that the task has a signal, or why it was refused."""
        self.send(messages.SignalTaken(signal.request, refused))

    def refuse_signals(self, reason: str) -> None:
        """Refuse the signals that wait for the task, and those that come later."""
        self.takes_signals = False
        for signal in self.take_signals():
            self.answer_signal(signal, reason)

    def decline(self) -> None:
        """Report that the task has to be started again with its new configuration."""
        self.send(messages.Declined())

    def request(self) -> int:
        """The number of a new request, whose answer :meth:`reply` returns."""
        return next(self._requests)

    def reply(self, request: int) -> Reply | None:
        """The answer to a request; ``None`` until it arrives."""
        return self._replies.pop(request, None)

    def await_reply(self, request: int, seconds: float) -> Reply | None:
        """Wait for the answer to a request; ``None`` if it does not come in time or the task has to stop first."""
        deadline = time.monotonic() + seconds
        while (answer := self.reply(request)) is None:
            left = deadline - time.monotonic()
            if left <= 0 or self.stopping:
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

    def _apply(self, command: Command | ErrorRaised | Woken) -> None:
        match command:
            case Woken():
                self._link.has_woken()
                self._is_woken = True
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
            case messages.TakeConfig() | messages.TakeSignal():
                self._hear_wish(command)
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
                raise ConnectError(f"A running task was sent the unknown command {type(command).__name__}.")

    def _hear_wish(self, wish: messages.TakeConfig | messages.TakeSignal) -> None:
        """Keep a new configuration or a signal for the task, or turn it down."""
        match wish:
            case messages.TakeConfig(config) if self.takes_configs:
                self._config = config
            case messages.TakeConfig():
                self.decline()
            case messages.TakeSignal() if self.takes_signals:
                self._signals.append(wish)
            case messages.TakeSignal():
                self.answer_signal(wish, "The connector takes no signals, or not in the state that it is in.")
