"""The preview of a source: starts and polls its tasks, produces nothing and stores no offsets."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack
from itertools import islice
from typing import Any, Final

from connect.connector import Task
from connect.data import Offset, SourceRecord
from connect.errors import RetriableError
from connect.internals.chain.converters import Converters
from connect.internals.chain.record_trace import trace_source
from connect.internals.chain.source import SourceChain
from connect.internals.chain.steps import Steps, transformation_steps
from connect.internals.chain.tolerance import Tolerance
from connect.source import SourceTask, TransactionContext
from worker.runtime.assembly import Assembly
from worker.runtime.connector import checked_task_configs
from worker.runtime.preview.documents import CUT, MORE, LimitedDocuments, RecordDocuments
from worker.runtime.preview.offsets import FixedOffsets
from worker.runtime.source.transactions import TransactionRequests

__all__ = ["SourcePreview"]

logger = logging.getLogger(__name__)

_RETRY_SECONDS: Final = 1.0
_IDLE_SECONDS: Final = 0.01
_LOOK_SECONDS: Final = 0.05
_REGISTERS: Final = "auto.register.schemas"


class _Context:
    """The runtime context of a connector and a task in a preview, until ``deadline``."""

    def __init__(
        self, offsets: FixedOffsets, deadline: float, transactions: TransactionContext | None, give_up: GiveUp
    ) -> None:
        self.offset_storage_reader = offsets
        self.errant_record_reporter = self
        self.transaction_context = transactions
        self._deadline = deadline
        self._give_up = give_up

    def wait(self, seconds: float) -> bool:
        """Wait, until the end of the preview at the latest."""
        time.sleep(max(0.0, min(seconds, self._deadline - time.monotonic())))
        return time.monotonic() < self._deadline

    def poll_when_readable(self, descriptors: Collection[int], seconds: float) -> None:  # noqa: ARG002
        """Wait briefly: a preview does not last long."""
        self.wait(min(seconds, _LOOK_SECONDS))

    def wake(self) -> None:
        """Do nothing: the waits of a preview are short."""

    def pass_offset(self, partition: Offset, offset: Offset) -> None:
        """Do nothing: a preview stores no offsets."""

    def report(self, record: SourceRecord, error: Exception) -> None:
        """Show a record that the task cannot parse, and go on."""
        self._give_up(record, error)

    def request_task_reconfiguration(self) -> None:
        """Do nothing: a preview keeps its first task configs."""

    def raise_error(self, error: Exception) -> None:
        """Log the failure of a thread of the connector: its tasks still show their records."""
        logger.error("The connector failed: %s", error)

    def show_wait(self, reason: str | None) -> None:
        """Do nothing: a preview waits for nothing to be created."""


GiveUp = Callable[[SourceRecord, Exception], None]


class SourcePreview:
    """Passes the next records of a source to ``show``, each with its steps."""

    def __init__(
        self,
        assembly: Assembly,
        tolerance: Tolerance,
        documents: RecordDocuments,
        offsets: FixedOffsets,
        show: LimitedDocuments,
    ) -> None:
        self._assembly = assembly
        self._tolerance = tolerance
        self._documents = documents
        self._offsets = offsets
        self._show = show
        self._shown = 0
        self._steps = transformation_steps(assembly.registry, assembly.config.transformations())
        converters = assembly.converters()
        self._not_converted = _why_not_converted(converters)
        chain = SourceChain(Steps((), tolerance), converters, tolerance)
        self._encoder = chain if self._not_converted is None else None

    def run(self, records: int, deadline: float) -> str:
        """Show up to this many records until a deadline. Return why there are no more."""
        with ExitStack() as started:
            tasks = self._started(started, deadline)
            if not tasks:
                return "the connector makes no task: it finds nothing to read"
            while self._shown < records and not self._show.full:
                if time.monotonic() >= deadline:
                    return "the time is up"
                found = sum([self._poll(number, task, records) for number, task in enumerate(tasks)])
                if not found:
                    if all(task.drained() for task in tasks):
                        return "that is all: the source is read to its end"
                    time.sleep(_IDLE_SECONDS)
        return CUT if self._show.full else MORE

    def _started(self, started: ExitStack, deadline: float) -> list[SourceTask[Any]]:
        assembly, transactions = self._assembly, self._transactions()

        def context(number: int) -> _Context:
            return _Context(
                self._offsets, deadline, transactions, lambda record, error: self._give_up(number, record, error)
            )

        connector = assembly.connector_class(assembly.connector_config, context(0))
        connector.start()
        started.callback(_stop, connector.stop)
        configs = checked_task_configs(assembly.config.name, connector.task_configs(assembly.config.tasks_max))
        task_class: Any = assembly.connector_class.task_class
        tasks: list[SourceTask[Any]] = []
        for number, config in enumerate(configs):
            given = {key: value for key, value in config.items() if value is not None}
            task: Task[Any] = task_class(assembly.task_config(given), context(number))
            started.callback(_stop, task.stop)
            task.start()
            assert isinstance(task, SourceTask)
            tasks.append(task)
        return tasks

    def _transactions(self) -> TransactionContext | None:
        """Return the transaction context of a task that ends its transactions itself; a preview has none to end."""
        ends = self._assembly.supports_exactly_once and self._assembly.source_config.boundary == "connector"
        return TransactionRequests() if ends else None

    def _poll(self, number: int, task: SourceTask[Any], records: int) -> int:
        """Show the records of one poll, up to the limit. Return how many."""
        before = self._shown
        for record in islice(_polled(task), max(0, records - before)):
            trace = trace_source(record, self._steps, self._encoder, self._tolerance)
            self._show(self._documents.of_source(number, trace, self._not_converted))
            self._shown += 1
        return self._shown - before

    def _give_up(self, number: int, record: SourceRecord, error: Exception) -> None:
        self._show(self._documents.given_up(number, record, error))
        self._shown += 1


def _polled(task: SourceTask[Any]) -> Iterator[SourceRecord]:
    try:
        yield from task.poll() or ()
    except RetriableError as error:
        logger.warning("The task asks to be polled again: %s", error)
        task.context.wait(error.retry_after or _RETRY_SECONDS)


def _why_not_converted(converters: Converters) -> str | None:
    """Return why a record is not converted: a converter that would write to a schema registry is not called."""
    for converter in (converters.key, converters.value):
        if getattr(converter.config, _REGISTERS.replace(".", "_"), False):
            return (
                f"not converted: {type(converter).__name__} would register schemas, and a preview changes nothing; set "
                f"{_REGISTERS}=false on it to convert with the schemas that are registered"
            )
    return None


def _stop(stop: Callable[[], None]) -> None:
    """Stop what was started; errors are only logged."""
    try:
        stop()
    except Exception:
        logger.exception("stop() of the plugin failed")
