"""The task of the object sinks: one writer for each topic partition, and what they share.

What a kill costs is in :mod:`connectors.objects.cuts`: nothing is lost, and no record is in two files.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Final, Generic, TypeVar

from connect.data import Constant, SinkBatch, SinkRecord, TopicPartition
from connect.errors import ConnectError, DataError, RetriableError
from connect.internals.crash import crash_point
from connect.kits.files.rotation import Reason
from connect.kits.objects.local import LocalFiles
from connect.kits.objects.sftp import SftpFiles
from connect.kits.objects.uploads import discard_uploads
from connect.sink import SinkTask
from connectors.objects.arrivals import Plan
from connectors.objects.commits import Commits
from connectors.objects.cuts import Cuts
from connectors.objects.open_files import Uploads
from connectors.objects.partition_writer import PartitionWriter
from connectors.objects.placing import FolderPlacing, placing_of
from connectors.objects.publishing import BusyError
from connectors.objects.record_views import views_of
from connectors.objects.schema_changes import SchemaChanges
from connectors.objects.sink_config import ObjectSinkConfig, S3SinkConfig
from connectors.objects.topic_writer import TopicWriter

__all__ = ["ObjectSinkTask", "set_positions"]

_log = logging.getLogger(__name__)
_FOLDER: Final = "_sluice/objects"
_SENDERS: Final = 8
_PUBLISHERS: Final = 4
_LOOK_MS: Final = 200
"""How often the task looks at all its partitions, and again at files that are being published."""
_LEAST_LOOK_MS: Final = 10
_LONGEST_PUT_SECONDS: Final = 30.0
_LAST_FILES_SECONDS: Final = 30.0
"""How long a commit of offsets waits for files that are being published."""


C = TypeVar("C", bound=ObjectSinkConfig)
Writer = PartitionWriter | TopicWriter


class ObjectSinkTask(SinkTask[C], Generic[C]):
    """Writes its partitions' records to files in a store."""

    def start(self) -> None:
        config = self.config
        self._store = config.open_store()
        self._folder = _folder_of(config)
        self._senders = ThreadPoolExecutor(_SENDERS, "send")
        self._publishers = ThreadPoolExecutor(_PUBLISHERS, "publish")
        self._writers: dict[TopicPartition, Writer] = {}
        """The writer of each partition; with combine.partitions, those of a topic have the same one."""
        self._new: list[Writer] = []
        """Those whose earlier runs were not looked at yet."""
        self._publishing: set[Writer] = set()
        self._held = 0
        """About how many bytes are in memory; exact at each look."""
        self._due_ms: int | None = None
        self._look_ms = 0
        self._closed_until = 0.0
        self._failure = ""
        self._failed_at_commit = False
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
            placing=placing_of(config, is_local=isinstance(self._store, LocalFiles | SftpFiles)),
            times=config.record_times,
            changes=SchemaChanges(config.schema_compatibility),
            views=views_of(config),
            uploads=uploads,
            publishers=self._publishers,
            on_null="keep" if config.has_output_type else config.on_null,
            patience=min(config.max_write_duration_ms / 1000, _LONGEST_PUT_SECONDS),
            report=self._give_up,
            flush_reports=self._flush_reports,
            skip_null=self._skip_null,
        )

    def open(self, partitions: Collection[TopicPartition]) -> None:
        ids = self.context.topic_ids({partition.topic for partition in partitions})
        for partition in partitions:
            self._writers[partition] = self._writer_of(partition, ids.get(partition.topic))

    def _writer_of(self, partition: TopicPartition, topic_id: str | None) -> Writer:
        if not self.config.combine_partitions:
            cuts = Cuts(self._store, f"{self._folder}/cuts", partition, topic_id)
            self._new.append(PartitionWriter(self._plan, partition, cuts))
            return self._new[-1]
        for other, writer in self._writers.items():
            if other.topic == partition.topic:
                return writer
        placing = self._plan.placing
        assert isinstance(placing, FolderPlacing)
        commits = Commits(self._store, f"{self._folder}/commits", partition.topic, topic_id)
        self._new.append(TopicWriter(self._plan, placing, partition.topic, commits))
        return self._new[-1]

    def close(self, partitions: Collection[TopicPartition]) -> None:
        gone: dict[Writer, list[TopicPartition]] = {}
        for partition in partitions:
            if (writer := self._writers.pop(partition, None)) is not None:
                gone.setdefault(writer, []).append(partition)
        stay = self._all()
        for writer, left in gone.items():
            again = writer.leave(left)
            self._publishing.discard(writer)
            self._new = [new for new in self._new if new is not writer]
            if writer in stay:
                self._new.append(writer)
                self.context.offset(again)

    def stop(self) -> None:
        for writer in set(getattr(self, "_writers", {}).values()):
            writer.discard()
        for threads in (getattr(self, "_publishers", None), getattr(self, "_senders", None)):
            if threads is not None:
                threads.shutdown(wait=True, cancel_futures=True)

    # -- records -------------------------------------------------------------------------------------------------

    def put(self, records: SinkBatch) -> None:
        self._respect_pause()
        self._settle()
        self._make_ready()
        now = _now_ms()
        for partition, batch in _by_partition(records):
            self._take(partition, batch, now)
        if now >= self._look_ms:
            self._look(now)
        if self._held > self.config.buffer_max_bytes:
            self._limit_memory()
        self._ask_for_time(now)

    def _all(self) -> Collection[Writer]:
        """Return each writer once."""
        return dict.fromkeys(self._writers.values())

    def _take(self, partition: TopicPartition, batch: SinkBatch, now: int) -> None:
        writer = self._writers[partition]
        before = writer.held
        with _Attempt(self, writer):
            writer.take(partition, batch, now)
            writer.end_if_due(now)
        self._held += writer.held - before
        if (due := writer.due_ms()) is not None:
            self._due_ms = due if self._due_ms is None else min(self._due_ms, due)
        if writer.is_publishing:
            self._publishing.add(writer)

    def _look(self, now: int) -> None:
        """Look at all partitions, of which there may be thousands, and not at every put."""
        for writer in self._all():
            with _Attempt(self, writer):
                writer.end_if_due(now)
        self._publishing = {writer for writer in self._all() if writer.is_publishing}
        self._held = self._all_held()
        self._due_ms = min((due for writer in self._all() if (due := writer.due_ms()) is not None), default=None)
        soonest = now + _LOOK_MS if self._due_ms is None else min(now + _LOOK_MS, self._due_ms)
        self._look_ms = max(soonest, now + _LEAST_LOOK_MS)

    def _respect_pause(self) -> None:
        left = self._closed_until - time.monotonic()
        # Records that follow must not be taken before those that have to come again.
        if left > 0 or self._failed_at_commit:
            self._failed_at_commit = False
            raise RetriableError(self._failure, retry_after=max(left, 0.001))

    def _settle(self) -> None:
        for writer in list(self._publishing):
            with _Attempt(self, writer):
                writer.settle()
            if not writer.is_publishing:
                self._publishing.discard(writer)

    def _make_ready(self) -> None:
        """Read what earlier runs left of new partitions."""
        new = self._new
        if not new:
            return
        try:
            for loaded in [self._senders.submit(writer.load) for writer in new]:
                loaded.result()
            for topic in sorted({partition.topic for partition, writer in self._writers.items() if writer in new}):
                self._clean(topic, [self._writers[each] for each in self._writers if each.topic == topic])
        except RetriableError as error:
            self._pause_after(error)
            raise
        except OSError as error:
            raise RetriableError(f"The store cannot be read now: {error}") from error
        self._new = []

    def _clean(self, topic: str, writers: Collection[Writer]) -> None:
        """Discard the uploads that a killed task of these partitions left."""
        new = set(writers).intersection(self._new)
        try:
            count = discard_uploads(
                self._store,
                self._plan.placing.folder(topic),
                [writer.staging for writer in new],
                lambda path: any(writer.owns(path) for writer in new),
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
        self._held = self._all_held()
        if self._held <= limit:
            return
        for writer in self._all():
            with _Attempt(self, writer):
                writer.send_early()
        while (held := self._all_held()) > limit:
            oldest = self._oldest()
            if oldest is not None:
                with _Attempt(self, oldest):
                    oldest.end(Reason.MEMORY)
                self._publishing.add(oldest)
            elif not self._await_one():
                break
        self._held = held

    def _oldest(self) -> Writer | None:
        """Return the writer whose files are open longest, of those that can be ended now."""
        free = [
            (at, writer) for writer in self._all() if (at := writer.opened_ms) is not None and not writer.is_publishing
        ]
        return min(free, key=lambda item: (item[0], item[1].shown))[1] if free else None

    def _all_held(self) -> int:
        return sum(writer.held for writer in self._all())

    def _await_one(self) -> bool:
        """Wait until some files are published; ``False`` if none are about to be."""
        writer = next((writer for writer in self._all() if writer.is_publishing), None)
        if writer is None:
            return False
        with _Attempt(self, writer):
            writer.settle(self._plan.patience)
        return not writer.is_publishing

    def _ask_for_time(self, now: int) -> None:
        """Ask to be called when the clock ends files, or soon if some are being published."""
        seconds = [] if self._due_ms is None else [max(0.0, (self._due_ms - now) / 1000)]
        if self._publishing:
            seconds.append(_LOOK_MS / 1000)
        if seconds:
            self.context.timeout(min(seconds))

    # -- offsets -------------------------------------------------------------------------------------------------

    def pre_commit(self, offsets: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
        known = {partition: self._writers[partition] for partition in offsets if partition in self._writers}
        deadline = time.monotonic() + _LAST_FILES_SECONDS
        for partition, writer in known.items():
            self._end(writer, partition, offsets[partition])
        for writer in set(known.values()):
            self._finish(writer, deadline)
        crash_point("objects-before-commit")
        found = {}
        for partition, writer in known.items():
            found[partition] = offset = writer.durable(partition, offsets[partition])
            writer.committed(partition, offset)
        return found

    def _end(self, writer: Writer, partition: TopicPartition, delivered: int) -> None:
        """End the files that end when offsets are committed."""
        with self._told(writer):
            writer.end_if_reached(partition, delivered)
            if self._rotates_on_commit and writer.opened_ms is not None:
                writer.end(Reason.COMMIT)

    def _finish(self, writer: Writer, deadline: float) -> None:
        """Wait for files of a partition that are being published."""
        with self._told(writer):
            writer.settle(max(0.0, deadline - time.monotonic()))

    @contextmanager
    def _told(self, writer: Writer) -> Iterator[None]:
        """Log what goes wrong and may pass: the next put tells of it, and has the records read again."""
        try:
            with _Attempt(self, writer):
                yield
        except RetriableError as error:
            self._failed_at_commit = self._failed_at_commit or not isinstance(error, BusyError)
            _log.warning("Files of %s are not written yet: %s", writer.shown, error)

    # -- what goes wrong -----------------------------------------------------------------------------------------

    def read_again(self, writer: Writer, error: RetriableError) -> None:
        """Give up what a writer has not made durable, and have its records consumed again."""
        if offsets := writer.start_again():
            self.context.offset(offsets)
        if not writer.is_ready and writer not in self._new:
            self._new.append(writer)
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

    def _flush_reports(self) -> None:
        if (reporter := self.context.errant_record_reporter) is not None:
            reporter.flush()

    def _skip_null(self, record: SinkRecord) -> None:
        config, reporter = self.config, self.context.errant_record_reporter
        has_queue = config.originals.get("errors.deadletterqueue.topic.name") is not None
        is_tolerant = (config.originals.get("errors.tolerance") or "").lower() == "all"
        if reporter is not None and config.report_null_values_to_dlq and has_queue and is_tolerant:
            reporter.report(record, DataError("Skipping null value record."))


class _Attempt:
    """Has the records of a writer read again if the store fails it."""

    def __init__(self, task: ObjectSinkTask[Any], writer: Writer) -> None:
        self._task = task
        self._writer = writer

    def __enter__(self) -> None:
        """Begin."""

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, RetriableError) and not isinstance(error, BusyError):
            self._task.read_again(self._writer, error)


def set_positions(config: ObjectSinkConfig, offsets: Mapping[TopicPartition, int | None]) -> None:
    """Set the offsets that the store keeps where partitions share files."""
    store = config.open_store()
    try:
        for topic in sorted({partition.topic for partition in offsets}):
            chosen = {each.partition: offset for each, offset in offsets.items() if each.topic == topic}
            Commits(store, f"{_folder_of(config)}/commits", topic, None).set(chosen)
    finally:
        if isinstance(store, SftpFiles):
            store.close()


def _folder_of(config: ObjectSinkConfig) -> str:
    return f"{_FOLDER}/{config.originals.get('name') or 'sink'}"


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
