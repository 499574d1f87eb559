"""Polls the tasks of a stream, each in its own thread, so that a waiting task does not delay the others."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any, Final

from connect.data import SourceBatch
from connect.errors import RetriableError
from connectors.spark.datasource.chain import logging_tolerance
from connectors.spark.datasource.contexts import KnownOffsets, PlainConnectorContext, SourceContext
from connectors.spark.datasource.deployment import Deployment
from connectors.spark.datasource.source_tasks import connector_started, poll_once

__all__ = ["Pollers"]

_log = logging.getLogger(__name__)

_TICK_SECONDS: Final = 1.0
"""The maximum time, in seconds, to gather records once there are some, and to wait for records if there are none."""

_RETRY_SECONDS: Final = 1.0


@dataclass(frozen=True, slots=True)
class _Polled:
    """The result of one poll."""

    poller: _Poller
    batches: list[SourceBatch]
    drained: bool = False
    error: Exception | None = None


class Pollers:
    """A running connector and its tasks; :meth:`close` stops them. Used by one thread."""

    def __init__(self, deployment: Deployment, offsets: KnownOffsets) -> None:
        """Start the connector and its tasks from ``offsets``."""
        self._results: SimpleQueue[_Polled] = SimpleQueue()
        self._context = PlainConnectorContext(offsets)
        self._stack = ExitStack()
        self._drained: set[_Poller] = set()
        self._asked: set[_Poller] = set()
        with ExitStack() as starting:
            connector = starting.enter_context(connector_started(deployment, self._context))
            configs = connector.task_configs(deployment.config.tasks_max or 1)
            self._pollers = [
                _Poller(deployment, deployment.storable(config), offsets, self._results) for config in configs
            ]
            for poller in self._pollers:
                starting.callback(poller.end)
            self._stack = starting.pop_all()

    @property
    def is_current(self) -> bool:
        """Whether the connector has not requested other tasks since."""
        return not self._context.reconfigures

    @property
    def at_end(self) -> bool:
        """Whether every task reports that it has read all there is."""
        return len(self._drained) == len(self._pollers)

    def gather(self, most: int) -> list[SourceBatch]:
        """Return the next records of all tasks: about ``most``, or fewer if fewer are available now."""
        self._context.check()
        found: list[SourceBatch] = []
        count, until = 0, time.monotonic() + _TICK_SECONDS
        for poller in self._pollers:
            self._ask(poller)
        if not self._pollers:
            self._context.wait(_TICK_SECONDS)
        while count < most and self._asked:
            try:
                polled = self._results.get(timeout=max(0.0, until - time.monotonic()))
            except Empty:
                break
            self._asked.discard(polled.poller)
            if polled.error is not None:
                raise polled.error
            self._drained.discard(polled.poller)
            if polled.drained:
                self._drained.add(polled.poller)
            if polled.batches:
                found += polled.batches
                count += sum(map(len, polled.batches))
                self._ask(polled.poller)
        return found

    def close(self) -> None:
        """Stop the connector and all tasks."""
        self._stack.close()

    def _ask(self, poller: _Poller) -> None:
        if poller not in self._asked:
            self._asked.add(poller)
            poller.ask()


class _Poller:
    """A task in its own thread, which polls it on request."""

    def __init__(
        self,
        deployment: Deployment,
        task_config: Mapping[str, str],
        offsets: KnownOffsets,
        results: SimpleQueue[_Polled],
    ) -> None:
        tolerance = logging_tolerance(deployment.config.policy)
        self._context = SourceContext(offsets, tolerance, deployment.task_class)
        self._task: Any = deployment.task(task_config, self._context)
        self._asked: SimpleQueue[bool] = SimpleQueue()
        self._results = results
        # A daemon thread, not joined when the process ends: the task may be in a long call.
        self._thread = threading.Thread(target=self._run, name="sluice-poll", daemon=True)
        self._thread.start()

    def ask(self) -> None:
        """Request one poll of the task; the result goes to the queue."""
        self._asked.put(True)

    def end(self) -> None:
        """Request that the task stop; this ends its waits."""
        self._context.end()
        self._asked.put(False)
        self._thread.join(_TICK_SECONDS)

    def _run(self) -> None:
        try:
            self._task.start()
            while self._asked.get():
                self._results.put(self._poll())
        except Exception as error:
            self._results.put(_Polled(self, [], error=error))
        finally:
            self._stop()

    def _poll(self) -> _Polled:
        try:
            batches = poll_once(self._task)
            return _Polled(self, batches, drained=not batches and self._task.drained())
        except RetriableError as error:
            _log.warning("The source asks to be polled again later: %s", error)
            self._context.wait(error.retry_after or _RETRY_SECONDS)
            return _Polled(self, [])

    def _stop(self) -> None:
        try:
            self._task.stop()
        except Exception as error:
            _log.warning("A task of the stream did not stop properly: %s", error)
