"""The preview of a bulk sink: its task, which is not started, describes what a load of the next records would write."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from connect.bulk import BulkSinkTask, FailuresOf, OffsetRange, Progress, TablePreview
from connect.data import TopicPartition
from connect.internals.kafka.settings.client import PropertyValue
from connect.offset_set import OffsetSet
from worker.runtime.assembly import Assembly
from worker.runtime.clients import Clients

__all__ = ["is_bulk", "previewed_tables"]


class _PreviewContext:
    """A :class:`~connect.bulk.BulkSinkTaskContext` that changes and reports nothing."""

    def __init__(self, assembly: Assembly) -> None:
        self.connector_name = assembly.config.name
        clients = Clients(assembly, 0)
        self.consumer_properties: Mapping[str, str] = clients.sink_consumer_java_properties()
        self.consumer_settings: Mapping[str, PropertyValue] = clients.sink_consumer_settings()
        self.connector_properties: Mapping[str, str] = assembly.effective_props()

    def wait(self, seconds: float) -> bool:  # noqa: ARG002
        return True

    def stopping(self) -> bool:
        return False

    def progress(self, progress: Progress) -> None:
        """Do nothing: progress is not shown."""

    def leave_out(self, bad: Mapping[TopicPartition, OffsetSet], failures: FailuresOf) -> None:
        """Send nothing to the dead letter queue: the records are shown with their errors."""


def is_bulk(assembly: Assembly) -> bool:
    """Return whether the connector is a sink that loads ranges of offsets."""
    return issubclass(assembly.connector_class.task_class, BulkSinkTask)


def previewed_tables(assembly: Assembly, ranges: Sequence[OffsetRange], rows: int) -> Iterator[TablePreview]:
    """Yield the tables that the task would write from these ranges."""
    props = {key: value for key, value in assembly.props.items() if value is not None}
    task_class: Any = assembly.connector_class.task_class
    task: BulkSinkTask[Any] = task_class(assembly.task_config(props), _PreviewContext(assembly))
    try:
        yield from task.preview(ranges, rows)
    finally:
        task.stop()
