"""The task of the object sinks: one writer for each topic partition, and what they share.

What a kill costs is in :mod:`connectors.objects.cuts`: nothing is lost, and no record is in two files.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, Generic, TypeVar

from connect.data import Constant, SinkBatch, SinkRecord, TopicPartition
from connect.errors import ConnectError, DataError, RetriableError
from connect.internals.crash import crash_point
from connect.kits.files.rotation import Reason
from connect.kits.objects.local import LocalFiles
from connect.kits.objects.uploads import discard_uploads
from connect.sink import SinkTask
from connectors.objects.cuts import Cuts
from connectors.objects.open_files import Uploads
from connectors.objects.partition_writer import BusyError, PartitionWriter, Plan, staging_of
from connectors.objects.placing import placing_of
from connectors.objects.record_views import views_of
from connectors.objects.schema_changes import SchemaChanges
from connectors.objects.sink_config import ObjectSinkConfig, S3SinkConfig

__all__ = ["ObjectSinkTask"]

_log = logging.getLogger(__name__)
_FOLDER: Final = "_sluice/objects"
_SENDERS: Final = 8
_PUBLISHERS: Final = 4
_LOOK_SECONDS: Final = 0.2
"""How soon the task looks again for files that are being published."""
_LONGEST_PUT_SECONDS: Final = 30.0
_LAST_FILES_SECONDS: Final = 30.0
"""How long a commit of offsets waits for files that are being published."""


C = TypeVar("C", bound=ObjectSinkConfig)


class ObjectSinkTask(SinkTask[C], Generic[C]):
    """Writes its partitions' records to files in a store."""

    def start(self) -> None:
        config = self.config
        self._store = config.open_store()
        self._folder = f"{_FOLDER}/{config.originals.get('name') or 'sink'}"
        self._senders = ThreadPoolExecutor(_SENDERS, "send")
        self._publishers = ThreadPoolExecutor(_PUBLISHERS, "publish")
        self._writers: dict[TopicPartition, PartitionWriter] = {}
        self._closed_until = 0.0
        self._failure = ""
        self._plan = self._planned()
        self._rotates_on_commit = config.rotates_on_commit(has_output_type=config.has_output_type)

    def _planned(self) -> Plan:
        config = self.config
        tags = config.tags if isinstance(config, S3SinkConfig) else None
        uploads = Uploads(
            self._store,
            config.upload_settings(f"{self._folder}/staging"),
            self._senders,
            config.part_bytes,
            tags,
        )
        return Plan(
            rules=config.rotation_rules(),
            placing=placing_of(config, is_local=isinstance(self._store, LocalFiles)),
            times=config.record_times,
            changes=SchemaChanges(config.schema_compatibility),
            views=views_of(config),
            uploads=uploads,
            publishers=self._publishers,
            on_null="keep" if config.has_output_type else config.on_null,
            patience=min(config.max_write_duration_ms / 1000, _LONGEST_PUT_SECONDS),
            report=self._give_up,
            skip_null=self._skip_null,
        )

    def open(self, partitions: Collection[TopicPartition]) -> None:
        ids = self.context.topic_ids({partition.topic for partition in partitions})
        for partition in partitions:
            cuts = Cuts(self._store, f"{self._folder}/cuts", partition, ids.get(partition.topic))
            self._writers[partition] = PartitionWriter(self._plan, partition, cuts)

    def close(self, partitions: Collection[TopicPartition]) -> None:
        for partition in partitions:
            if (writer := self._writers.pop(partition, None)) is not None:
                writer.discard()

    def stop(self) -> None:
        for writer in getattr(self, "_writers", {}).values():
            writer.discard()
        for threads in (getattr(self, "_publishers", None), getattr(self, "_senders", None)):
            if threads is not None:
                threads.shutdown(wait=True, cancel_futures=True)

    # -- records -------------------------------------------------------------------------------------------------

    def put(self, records: SinkBatch) -> None:
        self._respect_pause()
        self._settle()
        self._make_ready()
        for partition, batch in _by_partition(records):
            writer = self._writers[partition]
            with _Attempt(self, writer):
                writer.take(batch, _now_ms())
            self._limit_memory()
        self._end_due()
        self._ask_for_time()

    def _respect_pause(self) -> None:
        if (left := self._closed_until - time.monotonic()) > 0:
            raise RetriableError(self._failure, retry_after=left)

    def _settle(self) -> None:
        for writer in self._writers.values():
            if writer.is_publishing:
                with _Attempt(self, writer):
                    writer.settle()

    def _make_ready(self) -> None:
        """Read what earlier runs left of new partitions."""
        new = [writer for writer in self._writers.values() if not writer.is_ready]
        if not new:
            return
        try:
            for topic in sorted({writer.partition.topic for writer in new}):
                self._clean(topic, [writer.partition.partition for writer in new if writer.partition.topic == topic])
            for loaded in [self._senders.submit(writer.cuts.load) for writer in new]:
                loaded.result()
        except RetriableError as error:
            self._pause_after(error)
            raise
        except OSError as error:
            raise RetriableError(f"The store cannot be read now: {error}") from error
        for writer in new:
            writer.is_ready = True

    def _clean(self, topic: str, partitions: Collection[int]) -> None:
        """Discard the uploads that a killed task of these partitions left."""
        placing = self._plan.placing
        try:
            count = discard_uploads(
                self._store,
                placing.folder(topic),
                [staging_of(self._plan, TopicPartition(topic, number)) for number in partitions],
                lambda path: any(placing.is_of(path, topic, number) for number in partitions),
            )
        except RetriableError:
            raise
        except ConnectError as error:
            _log.warning(
                "Incomplete uploads of earlier runs cannot be looked for, and may cost something until a lifecycle "
                "rule removes them: %s",
                error,
            )
            return
        if count:
            _log.info("Discarded %d incomplete uploads of an earlier run of topic %s.", count, topic)

    def _limit_memory(self) -> None:
        """Send parts early, and then end the files that are open longest, until memory is within its limit."""
        limit = self.config.buffer_max_bytes
        if self._held <= limit:
            return
        for writer in self._writers.values():
            with _Attempt(self, writer):
                writer.send_early()
        while self._held > limit:
            free = [(at, writer) for writer in self._writers.values() if (at := writer.opened_ms) is not None]
            if free:
                _, oldest = min(free, key=lambda item: (item[0], item[1].partition))
                with _Attempt(self, oldest):
                    oldest.end(Reason.MEMORY)
                if self._held <= limit:
                    return
            if not self._await_one():
                return

    @property
    def _held(self) -> int:
        return sum(writer.held for writer in self._writers.values())

    def _await_one(self) -> bool:
        """Wait until some files are published; ``False`` if none are about to be."""
        writer = next((writer for writer in self._writers.values() if writer.is_publishing), None)
        if writer is None:
            return False
        with _Attempt(self, writer):
            writer.settle(self._plan.patience)
        return not writer.is_publishing

    def _end_due(self) -> None:
        now = _now_ms()
        for writer in self._writers.values():
            with _Attempt(self, writer):
                writer.end_if_due(now)

    def _ask_for_time(self) -> None:
        """Ask to be called when the clock ends files, or soon if some are being published."""
        now = _now_ms()
        due = [at for writer in self._writers.values() if (at := writer.due_ms(now)) is not None]
        seconds = [max(0.0, (min(due) - now) / 1000)] if due else []
        if any(writer.is_publishing for writer in self._writers.values()):
            seconds.append(_LOOK_SECONDS)
        if seconds:
            self.context.timeout(min(seconds))

    # -- offsets -------------------------------------------------------------------------------------------------

    def pre_commit(self, offsets: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
        known = {partition: self._writers[partition] for partition in offsets if partition in self._writers}
        deadline = time.monotonic() + _LAST_FILES_SECONDS
        for writer in known.values():
            self._finish(writer, offsets[writer.partition], deadline)
        crash_point("objects-before-commit")
        found = {}
        for partition, writer in known.items():
            found[partition] = offset = writer.durable(offsets[partition])
            writer.committed(offset)
        return found

    def _finish(self, writer: PartitionWriter, delivered: int, deadline: float) -> None:
        """Wait for files of a partition that are being published. What goes wrong is told by the next put."""
        try:
            with _Attempt(self, writer):
                writer.end_if_reached(delivered)
                if self._rotates_on_commit and writer.opened_ms is not None:
                    writer.end(Reason.COMMIT)
                writer.settle(max(0.0, deadline - time.monotonic()))
        except RetriableError as error:
            _log.warning("Files of %s-%d are not written yet: %s", *writer.partition, error)

    # -- what goes wrong -----------------------------------------------------------------------------------------

    def read_again(self, writer: PartitionWriter, error: RetriableError) -> None:
        """Give up what a writer has not made durable, and have its records consumed again."""
        offset = writer.start_again()
        if offset is not None:
            self.context.offset({writer.partition: offset})
        self._pause_after(error)

    def _pause_after(self, error: RetriableError) -> None:
        seconds = self.config.backoff_seconds if error.retry_after is None else error.retry_after
        self._closed_until = time.monotonic() + seconds
        self._failure = str(error)

    def _give_up(self, record: SinkRecord, error: DataError) -> None:
        reporter = self.context.errant_record_reporter
        if reporter is None:
            raise ConnectError(
                f"The record at offset {record.original_offset} of {record.original_topic}-{record.original_partition} "
                f"cannot be written: {error} To leave out such records, set errors.tolerance=all and a dead letter "
                "queue."
            ) from error
        reporter.report(record, error)

    def _skip_null(self, record: SinkRecord) -> None:
        config, reporter = self.config, self.context.errant_record_reporter
        has_queue = config.originals.get("errors.deadletterqueue.topic.name") is not None
        is_tolerant = (config.originals.get("errors.tolerance") or "").lower() == "all"
        if reporter is not None and config.report_null_values_to_dlq and has_queue and is_tolerant:
            reporter.report(record, DataError("Skipping null value record."))


class _Attempt:
    """Has the records of a writer read again if the store fails it."""

    def __init__(self, task: ObjectSinkTask[Any], writer: PartitionWriter) -> None:
        self._task = task
        self._writer = writer

    def __enter__(self) -> None:
        """Begin."""

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, RetriableError) and not isinstance(error, BusyError):
            self._task.read_again(self._writer, error)


def _by_partition(records: SinkBatch) -> Iterator[tuple[TopicPartition, SinkBatch]]:
    topic, partitions = records.original_topic, records.original_partitions
    if not len(records):
        return
    if isinstance(partitions, Constant) or len(found := set(partitions)) == 1:
        yield TopicPartition(topic, partitions[0]), records
        return
    for number in sorted(found):
        indices = [at for at, partition in enumerate(partitions) if partition == number]
        yield TopicPartition(topic, number), records.take(indices)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
