"""Polls source tasks until they are drained."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from connect.data import SourceBatch, SourceRecord
from connect.errors import ConnectError, RetriableError
from connect.internals.chain.tolerance import Tolerance
from connect.internals.plugins import class_name
from connect.source import SourceConnector, SourceTask
from connectors.spark.datasource.contexts import KnownOffsets, PlainConnectorContext, SourceContext
from connectors.spark.datasource.deployment import Deployment

__all__ = ["PATIENCE_SECONDS", "connector_started", "poll_once", "polled_to_the_end", "task_started"]

_log = logging.getLogger(__name__)

PATIENCE_SECONDS: Final = 60.0
"""How long, in seconds, a source may return nothing without saying that it is drained, or keep failing with retriable
errors.
"""

_IDLE_SECONDS: Final = 0.01
_RETRY_SECONDS: Final = 1.0


@contextmanager
def connector_started(deployment: Deployment, context: PlainConnectorContext) -> Iterator[SourceConnector[Any]]:
    """The started connector, for a ``with`` block that stops it at the end."""
    connector: Any = deployment.connector(context)
    try:
        connector.start()
        yield connector
    finally:
        context.end()
        connector.stop()


@contextmanager
def task_started(
    deployment: Deployment, task_config: Mapping[str, str], offsets: KnownOffsets, tolerance: Tolerance
) -> Iterator[SourceTask[Any]]:
    """Yield a started source task that continues from ``offsets``."""
    context = SourceContext(offsets, tolerance, deployment.task_class)
    task: Any = deployment.task(task_config, context)
    try:
        task.start()
        yield task
    finally:
        context.end()
        task.stop()


def poll_once(task: SourceTask[Any]) -> list[SourceBatch]:
    """Return the records of one poll as batches, including those it gave before asking for a retry.

    Raises :class:`~connect.errors.RetriableError` if the task asked for a retry without giving records.
    """
    records: list[SourceRecord] = []
    try:
        polled = task.poll()
        if isinstance(polled, SourceBatch):
            return [polled] if len(polled) else []
        for record in polled or ():
            if not isinstance(record, SourceRecord):
                raise ConnectError(
                    f"poll of {class_name(task)} returned a {type(record).__name__}; it must return records."
                )
            records.append(record)
    except RetriableError:
        if not records:
            raise
    return SourceBatch.from_records(records)


def polled_to_the_end(
    task: SourceTask[Any], *, patience: float = PATIENCE_SECONDS, clock: Callable[[], float] = time.monotonic
) -> Iterator[SourceBatch]:
    """Yield the records of a task until it is drained.

    Raises :class:`~connect.errors.ConnectError` if a source that never says it is drained returns nothing for
    ``patience`` seconds, and the source's own :class:`~connect.errors.RetriableError` if it keeps failing that long.
    """
    quiet_since = clock()
    says_its_end = type(task).drained is not SourceTask.drained
    while True:
        try:
            batches = poll_once(task)
        except RetriableError as error:
            if clock() - quiet_since > patience:
                raise
            _log.warning("The source asks to be polled again later: %s", error)
            task.context.wait(error.retry_after or _RETRY_SECONDS)
            continue
        if batches:
            yield from batches
            quiet_since = clock()
        elif task.drained():
            return
        elif not says_its_end and clock() - quiet_since > patience:
            raise ConnectError(
                f"{class_name(task)} has returned nothing for {patience:g} seconds and does not report whether "
                "it is at its end: read it as a stream (readStream), limit the number of rows (limit), or "
                "implement drained() in the task."
            )
        else:
            task.context.wait(_IDLE_SECONDS)
