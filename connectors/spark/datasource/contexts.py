"""The contexts of connectors and tasks that run without a worker."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

from connect.data import Offset, SourceRecord, TopicPartition
from connect.errors import ConnectError
from connect.internals.chain.sink_context import SinkContext
from connect.internals.chain.tolerance import Failure, Stage, Tolerance

__all__ = ["KnownOffsets", "NoTopics", "PlacelessContext", "PlainConnectorContext", "SourceContext", "sleep"]

logger = logging.getLogger(__name__)
_LOOK_SECONDS: Final = 0.05


class KnownOffsets:
    """The source offsets to start from; see :class:`connect.source.OffsetStorageReader`."""

    def __init__(self, offsets: Iterable[tuple[Offset, Offset]] = ()) -> None:
        self._offsets = {_text(partition): dict(offset) for partition, offset in offsets}

    def offset(self, partition: Offset) -> Offset | None:
        """Return the offset of one source partition."""
        return self._offsets.get(_text(partition))

    def offsets(self, partitions: Sequence[Offset]) -> Sequence[Offset | None]:
        """Return the offset of each source partition."""
        return [self.offset(partition) for partition in partitions]


class _Waiting:
    """Waits that end when :meth:`end` is called, from any thread."""

    def __init__(self) -> None:
        self._ended = threading.Event()

    def wait(self, seconds: float) -> bool:
        """Wait, unless :meth:`end` has been called."""
        return not self._ended.wait(seconds)

    def end(self) -> None:
        """End all waits."""
        self._ended.set()


class PlainConnectorContext(_Waiting):
    """The context of a connector: records the connector's requests."""

    def __init__(self, offsets: KnownOffsets | None = None) -> None:
        super().__init__()
        self.offset_storage_reader = offsets or KnownOffsets()
        self.reconfigures = False
        """Whether the connector has requested new task configs."""
        self._error: Exception | None = None

    def request_task_reconfiguration(self) -> None:
        """Note that the task configs have to be generated again."""
        self.reconfigures = True

    def raise_error(self, error: Exception) -> None:
        """Keep an error for :meth:`check`."""
        self._error = error

    def show_wait(self, reason: str | None) -> None:
        """Log what the connector waits for."""
        if reason is not None:
            logger.warning("%s", reason)

    def check(self) -> None:
        """Raise the error the connector has reported, if any."""
        if self._error is not None:
            raise self._error


class SourceContext(_Waiting):
    """The context of a source task."""

    transaction_context: Any = None

    def __init__(self, offsets: KnownOffsets, tolerance: Tolerance, task_class: str) -> None:
        super().__init__()
        self.offset_storage_reader = offsets
        self.errant_record_reporter = self
        self._tolerance = tolerance
        self._task_class = task_class

    def poll_when_readable(self, descriptors: Collection[int], seconds: float) -> None:  # noqa: ARG002
        """Wait a little, unless :meth:`end` has been called."""
        self.wait(min(seconds, _LOOK_SECONDS))

    def wake(self) -> None:
        """Do nothing: the waits for a poll are short."""

    def pass_offset(self, partition: Offset, offset: Offset) -> None:
        """Do nothing: a DataFrame stores no offsets, and a stream continues after its last row."""

    def report(self, record: SourceRecord, error: Exception) -> None:
        """Skip data that cannot be parsed, if the error policy allows it."""
        self._tolerance.give_up(Failure(Stage.TASK_POLL, self._task_class, error, record=record))


class PlacelessContext:
    """The context of a sink task that writes the rows of a DataFrame: like a runtime's, but without offsets to resume
    from.
    """

    def __init__(self, context: SinkContext, task_class: str) -> None:
        self._context = context
        self._task_class = task_class

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    def offset(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Refuse to resume from an offset: the rows of a DataFrame have no offsets that a target can store."""
        if any(offset > 0 for offset in offsets.values()):
            raise ConnectError(
                f"{self._task_class} continues from offsets in its target, but the rows of a DataFrame have "
                "none: write to a target that no other run has written to, or use a sink that keeps no "
                "offsets."
            )


class NoTopics:
    """Refuses to publish, because there is no Kafka."""

    def __init__(self, task_class: str) -> None:
        self._task_class = task_class

    def publish(self, topic: str, key: bytes | None, value: bytes | None) -> None:  # noqa: ARG002
        """Raise an error."""
        raise ConnectError(
            f"{self._task_class} publishes its own records to topic {topic}, but there is no Kafka here: turn "
            "that off in its options, or run the connector in a worker."
        )

    def flush(self) -> None:
        """Do nothing: there is nothing to flush."""


def sleep(seconds: float) -> bool:
    """Sleep; when a task is to stop, Spark ends its process."""
    time.sleep(seconds)
    return True


def _text(partition: Offset) -> str:
    return json.dumps(dict(partition), sort_keys=True)
