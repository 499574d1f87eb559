"""The loop of a bulk source task, which repeatedly publishes all records that are available.

==================================================  =============================================================
kill -9 here                                        then
==================================================  =============================================================
while records are published                         they are read again, from the stored offsets: nothing is lost
after Kafka's acknowledgement, before the commit    they are read and published again: doubled
after the commit                                    reading continues after them
==================================================  =============================================================
"""

from __future__ import annotations

import logging
import time
from typing import Any, Final

from connect.bulk_source import BulkSourceTask
from connect.errors import MissingError, RetriableError
from worker.metrics.snapshot import POLL
from worker.runtime.bulk.loads import Loads
from worker.runtime.bulk.plan import Plan
from worker.runtime.bulk.source_context import BulkSourceTaskRuntimeContext
from worker.runtime.control import Control
from worker.runtime.metrics import TaskMetrics
from worker.runtime.waits import Waits

__all__ = ["BulkSourceLoop"]

logger = logging.getLogger(__name__)
_RETRY_SECONDS: Final = 5.0
_TIMES_AS_LONG: Final = 10
_NEW: Final = "new input"


class BulkSourceLoop:
    """Runs one bulk source task until it is told to stop. Everything happens in the thread that calls :meth:`run`."""

    def __init__(
        self,
        control: Control,
        task: BulkSourceTask[Any],
        context: BulkSourceTaskRuntimeContext,
        loads: Loads,
        metrics: TaskMetrics,
        waits: Waits,
        *,
        until_drained: bool,
    ) -> None:
        self._control = control
        self._task = task
        self._context = context
        self._loads = loads
        self._metrics = metrics
        self._waits = waits
        self._until_drained = until_drained

    def run(self) -> None:
        """Let the task load until the worker sends a stop."""
        self._report()
        while not self._control.stopping:
            if not self._control.poll():
                self._control.rest()
                continue
            found = self._load()
            self._report()
            if found is False:
                if self._until_drained and self._drained():
                    self._control.await_stop()
                    return
                self._control.wait(self._task.poll_seconds)

    def close(self) -> None:
        """Release the resources of the context."""
        self._context.close()

    def _load(self) -> bool | None:
        """Load once. Return whether there was anything to publish; ``None`` if the load has to be repeated."""
        begun = time.monotonic()
        try:
            # An engine may take long for a load; that alone is no reason to report a hang.
            with self._loads.under_way(Plan((), _NEW)), self._control.watch.call("load", _TIMES_AS_LONG):
                found = self._task.load()
        except RetriableError as error:
            if not self._control.poll():
                logger.info("The load was ended early: %s", error)
                return None
            seconds = error.retry_after or _RETRY_SECONDS
            if isinstance(error, MissingError):
                self._waits.on(str(error))
            else:
                logger.warning("The load will be tried again in %g s: %s", seconds, error)
            self._loads.retried_in(seconds)
            self._control.wait(seconds)
            return None
        self._waits.over()
        if found:
            self._metrics.timings.took(POLL, time.monotonic() - begun)
        # A load that was told to end has not found all records.
        return found if self._control.poll() else None

    def _drained(self) -> bool:
        with self._control.watch.call("drained"):
            return self._task.drained()

    def _report(self) -> None:
        self._metrics.report()
