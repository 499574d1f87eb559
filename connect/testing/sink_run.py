"""Runs of a sink connector in a test: its tasks from open to close, over records instead of topics."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

from connect.bulk import BulkSinkTask
from connect.data import SinkBatch, SinkRecord, TopicPartition
from connect.errors import ConnectError, RetriableError
from connect.internals.chain.sink_context import durable_offsets
from connect.sink import SinkConnector, SinkTask
from connect.testing.contexts import ConnectorTestContext, ErrantRecords, SinkTaskTestContext
from connect.testing.props import connector_props, task_props

__all__ = ["SinkTaskRun", "TopicLog", "run_sink", "sink_task_class", "sink_task_configs"]

_RETRY: Final = 1.0


class TopicLog:
    """Kafka as a sink sees it: the records of topics, and the offsets that a connector has committed."""

    def __init__(self, records: Iterable[SinkRecord]) -> None:
        self.committed: dict[TopicPartition, int] = {}
        self._records: dict[TopicPartition, list[SinkRecord]] = {}
        for record in sorted(records, key=lambda record: record.original_offset):
            self._records.setdefault(record.origin, []).append(record)

    @property
    def partitions(self) -> list[TopicPartition]:
        """The existing topic partitions."""
        return sorted(self._records)

    def read(self, positions: Mapping[TopicPartition, int], most: int) -> list[SinkRecord]:
        """Read up to ``most`` records from these positions, partition by partition."""
        found: list[SinkRecord] = []
        for partition, position in sorted(positions.items()):
            after = (item for item in self._records.get(partition, ()) if item.original_offset >= position)
            found += [record for record, _ in zip(after, range(most - len(found)), strict=False)]
        return found


class SinkTaskRun:
    """One run of a sink task. Call :meth:`start`, then :meth:`put` and :meth:`commit`, then :meth:`stop`.

    To rebalance, call :meth:`open` and :meth:`close`; to crash, just stop calling it.
    """

    def __init__(self, task_class: type[SinkTask[Any]], props: Mapping[str, str], log: TopicLog) -> None:
        self.log = log
        self.context = SinkTaskTestContext()
        self.task = task_class(task_class.config_class.parse(props), self.context)
        self._positions: dict[TopicPartition, int] = {}
        self._delivered: dict[TopicPartition, int] = {}

    def start(self, partitions: Collection[TopicPartition]) -> None:
        """Start the task and assign it ``partitions``."""
        self.task.start()
        self.open(partitions)

    def open(self, partitions: Collection[TopicPartition]) -> None:
        """Assign more partitions. They are consumed from their committed offsets, unless the task asks for others."""
        self.context.assignment |= set(partitions)
        self.task.open(sorted(partitions))
        rewinds, self.context.rewinds = self.context.rewinds, {}
        for partition in partitions:
            self._positions[partition] = rewinds.get(partition, self.log.committed.get(partition, 0))

    @property
    def at_end(self) -> bool:
        """Return whether every record of its partitions was put, including paused ones."""
        return not self.log.read(self._positions, 1)

    def put(self, most: int, *, timeout: float = 30.0) -> int:
        """Put the next records, up to ``most``, and return how many there were.

        After a ``RetriableError`` the same batch is put again, for at most ``timeout`` seconds.
        """
        self._rewind()
        open_ = {tp: position for tp, position in self._positions.items() if tp not in self.context.paused}
        found = self.log.read(open_, most)
        for batch in SinkBatch.from_records(found):
            self._deliver(batch, time.monotonic() + timeout)
            for partition, offset in zip(batch.origins, batch.original_offsets, strict=True):
                self._positions[partition] = self._delivered[partition] = offset + 1
        self._rewind()
        return len(found)

    def put_nothing(self) -> None:
        """Put an empty batch, as the runtime does when only time has passed."""
        if found := self.log.read(dict.fromkeys(self.log.partitions, 0), 1):
            self.task.put(SinkBatch.from_records(found)[0].slice(0, 0))

    def commit(self, partitions: Collection[TopicPartition] | None = None) -> Mapping[TopicPartition, int]:
        """Ask the task which offsets may be committed, for all of its partitions or some; commit and return them."""
        wanted = self.pre_commit(partitions)
        self.log.committed.update(wanted)
        return wanted

    def pre_commit(self, partitions: Collection[TopicPartition] | None = None) -> Mapping[TopicPartition, int]:
        """Ask the task which offsets may be committed; raise ``ConnectError`` if they exceed those passed."""
        current = {tp: end for tp, end in self._delivered.items() if partitions is None or tp in partitions}
        self.context.commit_requested = False
        wanted = durable_offsets(self.task, self.task.pre_commit(dict(current)))
        for partition, offset in wanted.items():
            if partition not in current or offset > current[partition]:
                raise ConnectError(
                    f"pre_commit of {type(self.task).__name__} returned offset {offset} for {partition}, but the "
                    f"offset passed to it was {current.get(partition, 'nothing')}: do not return offsets beyond those "
                    "in its argument."
                )
        return wanted

    def close(self, partitions: Collection[TopicPartition]) -> None:
        """Revoke partitions, after a final commit."""
        self.commit(partitions)
        self.context.assignment -= set(partitions)
        self.context.paused -= set(partitions)
        for partition in partitions:
            self._positions.pop(partition, None)
            self._delivered.pop(partition, None)
        self.task.close(sorted(partitions))

    def stop(self) -> None:
        """End the run in order: final commit, close, stop."""
        try:
            self.close(list(self.context.assignment))
        finally:
            self.context.stop()
            self.task.stop()

    def _deliver(self, batch: SinkBatch, deadline: float) -> None:
        while True:
            try:
                self.task.put(batch)
            except RetriableError as error:
                if time.monotonic() > deadline:
                    raise
                batch = self._without_rewound(batch)
                if not len(batch):
                    return
                self.context.wait(error.retry_after or self.context.retry_after or _RETRY)
            else:
                return

    def _without_rewound(self, batch: SinkBatch) -> SinkBatch:
        """Return the records of partitions that the task has not asked to be rewound: the others come again."""
        kept = [at for at, partition in enumerate(batch.origins) if partition not in self.context.rewinds]
        return batch.take(kept) if len(kept) < len(batch) else batch

    def _rewind(self) -> None:
        rewinds, self.context.rewinds = self.context.rewinds, {}
        for partition in rewinds.keys() & self._positions.keys():
            self._positions[partition] = self._delivered[partition] = rewinds[partition]


def run_sink(
    connector_class: type[SinkConnector[Any]],
    props: Mapping[str, str],
    records: Iterable[SinkRecord] | TopicLog,
    *,
    max_tasks: int = 1,
    batch_size: int = 500,
    errant_records: ErrantRecords[SinkRecord] | None = None,
    timeout: float = 30.0,
) -> dict[TopicPartition, int]:
    """Run a sink connector until it has written ``records``, stop it, and return the committed offsets.

    The partitions are divided among its tasks. If ``log`` is a :class:`TopicLog`, the run continues from the offsets
    committed there. Raises ``TimeoutError`` if the task has not accepted everything within ``timeout`` seconds.
    """
    log = records if isinstance(records, TopicLog) else TopicLog(records)
    task_class = sink_task_class(connector_class)
    configs = sink_task_configs(connector_class, props, log, max_tasks)
    for index, config in enumerate(configs):
        run = SinkTaskRun(task_class, config, log)
        run.context.errant_record_reporter = errant_records
        try:
            run.start(log.partitions[index :: len(configs)])
            _put_all(run, batch_size, time.monotonic() + timeout)
        except BaseException:
            # As in the runtime, a task that failed is stopped without another commit.
            run.task.stop()
            raise
        run.stop()
    return dict(log.committed)


def sink_task_class(connector_class: type[SinkConnector[Any]]) -> type[SinkTask[Any]]:
    """Return the task class of a sink; raise ``ConnectError`` if its tasks receive no records, as in bulk sinks."""
    task_class = connector_class.task_class
    if issubclass(task_class, SinkTask):
        return task_class
    kind = "a bulk sink" if issubclass(task_class, BulkSinkTask) else "no sink"
    raise ConnectError(
        f"{connector_class.__name__} is {kind}: only connectors whose tasks receive records can be run here."
    )


def sink_task_configs(
    connector_class: type[SinkConnector[Any]], props: Mapping[str, str], log: TopicLog, max_tasks: int = 1
) -> list[dict[str, str]]:
    """Return the task configs that a sink connector makes for the topics in ``log``."""
    topics = ",".join(sorted({partition.topic for partition in log.partitions}))
    given = connector_props(connector_class, {"topics": topics, **props}, max_tasks)
    context = ConnectorTestContext()
    connector = connector_class(connector_class.config_class.parse(given), context)
    connector.start()
    try:
        return task_props(connector, max_tasks)
    finally:
        context.stop()
        connector.stop()


def _put_all(run: SinkTaskRun, batch_size: int, deadline: float) -> None:
    while not run.at_end:
        if run.put(batch_size) == 0:
            # All remaining partitions are paused, and only the task can resume them, when it is called.
            run.put_nothing()
            run.context.wait(_RETRY)
        run.commit()
        if time.monotonic() > deadline:
            raise TimeoutError(
                f"{type(run.task).__name__} has not accepted every record in time; its paused partitions are "
                f"{sorted(run.context.paused)}."
            )
