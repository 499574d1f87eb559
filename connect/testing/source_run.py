"""Runs of a source connector in a test: its task configs, its tasks from start to stop, and the records they read."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from connect.data import SourceRecord
from connect.errors import RetriableError
from connect.source import SourceConnector, SourceTask
from connect.testing.contexts import ConnectorTestContext, SourceTaskTestContext
from connect.testing.offsets import StoredOffsets
from connect.testing.props import connector_props, split_props, task_props

__all__ = ["SourceTaskRun", "run_source", "run_splits", "running_source"]

_QUIET_POLLS: Final = 3
_RETRY_SECONDS: Final = 1.0


@dataclass
class SourceTaskRun:
    """A started source task and its records. Offsets are stored at once, as if Kafka acknowledged immediately."""

    task: SourceTask[Any]
    context: SourceTaskTestContext
    offsets: StoredOffsets
    records: list[SourceRecord] = field(default_factory=list)
    quiet_polls: int = 0

    def poll(self) -> list[SourceRecord]:
        """Poll once and add the result to ``records``. The task is told that it was acknowledged and committed."""
        try:
            polled = self.task.poll()
        except RetriableError as error:
            self.context.wait(error.retry_after or _RETRY_SECONDS)
            return []
        found = [] if polled is None else list(polled)
        self.quiet_polls = 0 if found else self.quiet_polls + 1
        self.records += found
        for record in found:
            self.task.commit_record(record)
        self.offsets.keep(found)
        passed = self.context.take_passed()
        for partition, offset in passed:
            self.offsets.put(partition, offset)
        if stored := [*((record.source_partition, record.source_offset) for record in found), *passed]:
            self.task.stored(list({str(partition): (partition, offset) for partition, offset in stored}.values()))
        if found:
            self.task.commit()
        return found

    @property
    def at_end(self) -> bool:
        """Return whether everything was read: the task says so or, if it never does, several polls returned nothing."""
        if type(self.task).drained is SourceTask.drained:
            return self.quiet_polls >= _QUIET_POLLS
        return self.quiet_polls > 0 and self.task.drained()


def run_source(
    connector_class: type[SourceConnector[Any]],
    props: Mapping[str, str],
    *,
    offsets: StoredOffsets | None = None,
    until: Callable[[Sequence[SourceRecord]], bool] | None = None,
    max_tasks: int = 1,
    tolerate_errors: bool = False,
    timeout: float = 30.0,
    before_poll: Callable[[], None] = lambda: None,
) -> list[SourceRecord]:
    """Run a source connector and return the records it reads, in order.

    It reads to the end of its input, or until ``until(records)`` is true. It starts after ``offsets``, which are
    updated with what was read. ``before_poll`` is called before each poll. Raises ``TimeoutError`` if the end is not
    reached within ``timeout`` seconds.
    """
    kept = offsets if offsets is not None else StoredOffsets()
    records: list[SourceRecord] = []
    deadline = time.monotonic() + timeout
    with running_source(connector_class, props, kept, max_tasks=max_tasks, tolerate_errors=tolerate_errors) as tasks:
        while not (until(records) if until else all(task.at_end for task in tasks)):
            if time.monotonic() > deadline:
                raise TimeoutError(
                    f"{connector_class.__name__} read {len(records)} records in {timeout} s without reaching the end; "
                    "if it has no end, pass until= to say when there are enough."
                )
            for task in tasks:
                before_poll()
                records += task.poll()
    return records


def run_splits(
    connector_class: type[SourceConnector[Any]],
    props: Mapping[str, str],
    *,
    offsets: StoredOffsets | None = None,
    max_splits: int = 3,
    timeout: float = 30.0,
    before_poll: Callable[[], None] = lambda: None,
) -> list[SourceRecord] | None:
    """Read the splits that a source connector makes now, one after the other, each to its end.

    Return ``None`` if the source cannot be divided. It starts after ``offsets``, which are updated with what was read.
    Raises ``TimeoutError`` if a split does not reach its end.
    """
    kept = offsets if offsets is not None else StoredOffsets()
    task_class = connector_class.task_class
    assert issubclass(task_class, SourceTask)
    records: list[SourceRecord] = []
    deadline = time.monotonic() + timeout
    with _started(connector_class, props, kept, max_splits) as connector:
        splits = split_props(connector, max_splits)
        for given in splits or ():
            context = SourceTaskTestContext(kept)
            run = SourceTaskRun(task_class(task_class.config_class.parse(given), context), context, kept)
            try:
                run.task.start()
                while not (run.quiet_polls and run.task.drained()):
                    if time.monotonic() > deadline:
                        raise TimeoutError(
                            f"A split of {connector_class.__name__} returned {len(run.records)} records and did not "
                            "end: drained() of its task must become true."
                        )
                    before_poll()
                    records += run.poll()
            finally:
                run.task.stop()
    return None if splits is None else records


@contextmanager
def _started(
    connector_class: type[SourceConnector[Any]], props: Mapping[str, str], offsets: StoredOffsets, max_tasks: int
) -> Iterator[SourceConnector[Any]]:
    config = connector_class.config_class.parse(connector_props(connector_class, props, max_tasks))
    context = ConnectorTestContext(offsets)
    connector = connector_class(config, context)
    with ExitStack() as started:
        connector.start()
        started.callback(connector.stop)
        started.callback(context.stop)
        yield connector


@contextmanager
def running_source(
    connector_class: type[SourceConnector[Any]],
    props: Mapping[str, str],
    offsets: StoredOffsets,
    *,
    max_tasks: int = 1,
    tolerate_errors: bool = False,
) -> Iterator[list[SourceTaskRun]]:
    """Run a source connector and its tasks for the duration of a ``with`` block."""
    task_class = connector_class.task_class
    assert issubclass(task_class, SourceTask)
    with _started(connector_class, props, offsets, max_tasks) as connector, ExitStack() as started:
        tasks = []
        for given in task_props(connector, max_tasks):
            task_context = SourceTaskTestContext(offsets, tolerate_errors=tolerate_errors)
            task = task_class(task_class.config_class.parse(given), task_context)
            # As in the runtime, a task whose start fails is stopped all the same.
            started.callback(task.stop)
            task.start()
            tasks.append(SourceTaskRun(task, task_context, offsets))
        yield tasks
