"""Contexts of connectors and tasks for tests without a runtime.

They behave like those of the runtime: stored offsets can be read, only assigned partitions can be paused, and a wait
ends when the task is stopped. A plugin's requests can be inspected afterwards. Waits are cut short, so that the test of
a source that polls every minute does not take a minute.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping
from typing import Final, Generic, TypeVar

from connect.data import Offset, Record, SinkRecord, SourceRecord, TopicPartition
from connect.errors import ConnectError
from connect.testing.offsets import StoredOffsets

__all__ = [
    "ConnectorTestContext",
    "ErrantRecords",
    "SinkTaskTestContext",
    "SourceTaskTestContext",
    "TransactionEnds",
]

R = TypeVar("R", bound=Record)

_LONGEST_WAIT_SECONDS: Final = 0.01


class ErrantRecords(Generic[R]):
    """Collects the records that a task gives up on, in ``reported``.

    Unless ``tolerate`` is set, reporting a record raises, as with ``errors.tolerance=none``.
    """

    def __init__(self, *, tolerate: bool = False) -> None:
        self.tolerate = tolerate
        self.reported: list[tuple[R, Exception]] = []

    def report(self, record: R, error: Exception) -> None:
        """Give up on one record."""
        self.reported.append((record, error))
        if not self.tolerate:
            raise ConnectError(f"Tolerance exceeded in error handler: {error}") from error

    def flush(self) -> None:
        """Do nothing: reports are kept immediately."""


class TransactionEnds:
    """Records where a source ends its transactions; ``None`` stands for the end of the next batch."""

    def __init__(self) -> None:
        self.committed: list[SourceRecord | None] = []
        self.aborted: list[SourceRecord | None] = []

    def commit_transaction(self, record: SourceRecord | None = None) -> None:
        """Commit the transaction after ``record``, or after the batch that the next poll returns."""
        self.committed.append(record)

    def abort_transaction(self, record: SourceRecord | None = None) -> None:
        """Abort the transaction after ``record``, or after the batch that the next poll returns."""
        self.aborted.append(record)


class _Waiting:
    """Shortens waits, lists them in ``waits``, and ends them when :meth:`stop` is called from any thread."""

    def __init__(self, longest_wait: float) -> None:
        self.waits: list[float] = []
        self._longest_wait = longest_wait
        self._stopped = threading.Event()

    def wait(self, seconds: float) -> bool:
        """Wait, at most for the context's ``longest_wait``. Return whether the task may go on."""
        self.waits.append(seconds)
        return not self._stopped.wait(min(seconds, self._longest_wait))

    def stop(self) -> None:
        """Tell the task to stop: every wait ends and returns ``False``."""
        self._stopped.set()


class ConnectorTestContext(_Waiting):
    """The context of a source or sink connector.

    ``reconfigurations`` counts its requests for new task configs, ``errors`` lists the errors it raised, and
    ``shown_waits`` what it said it waits for, with ``None`` where it waited for nothing more.
    """

    def __init__(self, offsets: StoredOffsets | None = None, *, longest_wait: float = _LONGEST_WAIT_SECONDS) -> None:
        super().__init__(longest_wait)
        self.offset_storage_reader = offsets if offsets is not None else StoredOffsets()
        self.reconfigurations = 0
        self.errors: list[Exception] = []
        self.shown_waits: list[str | None] = []

    def request_task_reconfiguration(self) -> None:
        """Count a request to call ``task_configs`` again."""
        self.reconfigurations += 1

    def raise_error(self, error: Exception) -> None:
        """Fail the connector."""
        self.errors.append(error)

    def show_wait(self, reason: str | None) -> None:
        """Note what the connector waits for, where that has changed."""
        if [reason] != self.shown_waits[-1:] and (reason is not None or self.shown_waits):
            self.shown_waits.append(reason)


class SourceTaskTestContext(_Waiting):
    """The context of a source task.

    >>> context = SourceTaskTestContext(StoredOffsets([({"file": "a"}, {"line": 3})]))
    >>> task = LinesTask(LinesConfig(file="a", topic="lines"), context)
    >>> task.start()
    >>> task.poll()
    """

    def __init__(
        self,
        offsets: StoredOffsets | None = None,
        *,
        tolerate_errors: bool = False,
        transactions: TransactionEnds | None = None,
        longest_wait: float = _LONGEST_WAIT_SECONDS,
    ) -> None:
        super().__init__(longest_wait)
        self.offset_storage_reader = offsets if offsets is not None else StoredOffsets()
        self.errant_record_reporter: ErrantRecords[SourceRecord] = ErrantRecords(tolerate=tolerate_errors)
        self.transaction_context = transactions
        self._passed: list[tuple[Offset, Offset]] = []

    def poll_when_readable(self, descriptors: Collection[int], seconds: float) -> None:  # noqa: ARG002
        """Wait like :meth:`wait`."""
        self.wait(seconds)

    def wake(self) -> None:
        """Do nothing: waits are cut short anyway."""

    def pass_offset(self, partition: Offset, offset: Offset) -> None:
        """Remember an offset that is not carried by a record."""
        self._passed.append((partition, offset))

    def take_passed(self) -> list[tuple[Offset, Offset]]:
        """Return the offsets passed since the last call, each after its source partition."""
        passed, self._passed = self._passed, []
        return passed


class SinkTaskTestContext(_Waiting):
    """The context of a sink task.

    Its requests are in ``rewinds``, ``paused``, ``commit_requested``, ``retry_after`` and ``published``. Without an
    ``errant_record_reporter`` the task has none, as if no dead letter queue were configured. ``ids`` are those of the
    topics.
    """

    def __init__(
        self,
        assignment: Collection[TopicPartition] = (),
        *,
        errant_record_reporter: ErrantRecords[SinkRecord] | None = None,
        longest_wait: float = _LONGEST_WAIT_SECONDS,
    ) -> None:
        super().__init__(longest_wait)
        self.assignment = set(assignment)
        self.errant_record_reporter = errant_record_reporter
        self.rewinds: dict[TopicPartition, int] = {}
        self.paused: set[TopicPartition] = set()
        self.commit_requested = False
        self.retry_after: float | None = None
        self.published: list[tuple[str, bytes | None, bytes | None]] = []
        self.ids: dict[str, str] = {}

    def offset(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Continue consuming from these offsets."""
        self.rewinds.update(offsets)

    def topic_ids(self, topics: Collection[str]) -> Mapping[str, str]:
        """Return the ids of topics, without those that have none."""
        return {topic: self.ids[topic] for topic in topics if topic in self.ids}

    def timeout(self, seconds: float) -> None:
        """Call ``put`` again within ``seconds``."""
        self.retry_after = seconds

    def pause(self, *partitions: TopicPartition) -> None:
        """Stop consuming these partitions; raise :class:`~connect.errors.ConnectError` if one is not assigned."""
        self._check(partitions)
        self.paused |= set(partitions)

    def resume(self, *partitions: TopicPartition) -> None:
        """Consume paused partitions again."""
        self._check(partitions)
        self.paused -= set(partitions)

    def request_commit(self) -> None:
        """Commit offsets soon."""
        self.commit_requested = True

    def publish(self, topic: str, key: bytes | None, value: bytes | None) -> None:
        """Record a record that the task sends to a topic."""
        self.published.append((topic, key, value))

    def _check(self, partitions: Collection[TopicPartition]) -> None:
        if strange := set(partitions) - self.assignment:
            raise ConnectError(
                f"Partition {min(strange)} is not assigned to the task; pause and resume only partitions in its "
                "assignment."
            )
