"""The source connector of a mirror, which copies the records of one Kafka cluster to another unchanged."""

from __future__ import annotations

import json
import logging
import time
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from confluent_kafka import OFFSET_BEGINNING, OFFSET_END

from connect.data import Offset, SourceBatch, TopicPartition
from connect.errors import RetriableError
from connect.internals.kafka.settings.client import ClientKind
from connect.measurement import Measurement
from connect.source import SHARE_KEYS, Delivered, ExactlyOnceSupport, SourceConnector, SourceTask
from connectors.mirror.clients import Clients, Cluster, Role, java_settings
from connectors.mirror.config.source import MirrorSourceConfig, MirrorSourceTaskConfig
from connectors.mirror.patience import StoppedError
from connectors.mirror.policies import ReplicationPolicy, replication_policy
from connectors.mirror.selection import INTERNAL_TOPICS
from connectors.mirror.shares import (
    ASSIGNED_PARTITIONS,
    BYTES,
    GROWING_PARTITIONS,
    IDS,
    INDEX,
    assigned_partitions,
    partition_shares,
    written_partitions,
)
from connectors.mirror.source.batches import Message, Provenance, foreign, mirrored, size
from connectors.mirror.source.gaps import Gaps, Renewals
from connectors.mirror.source.journal import JournalOpening, OffsetJournal
from connectors.mirror.source.measurements import MirrorMeasurements
from connectors.mirror.source.monitor import TopicMonitor
from connectors.mirror.source.reader import SourceReader, Throttle
from connectors.mirror.source_offsets import (
    RESET,
    RecordOffsets,
    check_offset,
    position,
    source_offset,
    source_partition,
)

__all__ = ["MirrorSourceConnector", "MirrorSourceTask"]

logger = logging.getLogger(__name__)

_FIRST_LOOK_SECONDS: Final = 20.0
_MOST_RECORDS: Final = 10_000
_WAIT_SECONDS: Final = 0.1
"""Longest wait of a poll, in seconds. Acknowledgements that arrive meanwhile are handled between two polls."""
_JOIN_RETRY_SECONDS: Final = 2.0
_CONSUMER: Final = Role(Cluster.SOURCE, ClientKind.CONSUMER, "replication-consumer")


@dataclass(frozen=True, slots=True)
class _Passed:
    """Says that records of a source partition, up to an offset, were left out."""

    place: Offset
    offset: int


class MirrorSourceTask(SourceTask[MirrorSourceTaskConfig]):
    """Mirrors its partitions, each from the record after the last one that was mirrored.

    Crash points: records acknowledged after the last offset commit are mirrored again; with exactly-once support none
    are. Runs do not cover what was mirrored in the last second before a kill. Until these records, or as many others,
    have been mirrored again, no new runs are written, so that a translated offset may be too early but never too late.
    """

    def start(self) -> None:
        config = self.config
        self._policy: ReplicationPolicy = replication_policy(config.originals)
        self._clients = Clients(config.originals, config.task_index)
        self._gaps_topic = self._policy.gaps_topic(config.source_cluster_alias)
        self._share = assigned_partitions(config.task_assigned_partitions)
        self._pending: deque[SourceBatch | _Passed] = deque()
        rate, header = config.task_bytes_per_second, config.mirror_provenance_header
        self._throttle = Throttle(rate) if rate else None
        aliases = config.source_cluster_alias, config.target_cluster_alias
        self._provenance = Provenance(header, *aliases) if header else None
        self._gaps = Gaps(config.mirror_gap_policy, config.source_cluster_alias, self._gaps_topic)
        self._joining: tuple[TopicPartition, ...] = ()
        """Partitions that were assigned while the task runs, and are not being read yet."""
        self._join_at = 0.0
        self._renewals = Renewals(config.source_cluster_alias, self.context.offset_storage_reader)
        self._names = self._remote_names()
        labels = ("source", config.source_cluster_alias), ("target", config.target_cluster_alias)
        client = f"{aliases[0]}->{aliases[1]}|{config.originals.get('name')}-{config.task_index}|{_CONSUMER.name}"
        self._numbers = MirrorMeasurements(labels, self._names, client)
        self._reader: SourceReader | None = None
        self._journal: OffsetJournal | None = None
        settings = java_settings(config.originals, _CONSUMER)
        self._most = int(settings.get("max.poll.records", _MOST_RECORDS))
        self._wait = min(_WAIT_SECONDS, config.consumer_poll_timeout_ms / 1000)
        self._at_first = OFFSET_END if settings["auto.offset.reset"] == "latest" else OFFSET_BEGINNING
        from_beginning = self._at_first == OFFSET_BEGINNING
        self._opening = JournalOpening(config, self._policy, self._gaps.meet, from_beginning=from_beginning)

    def reconfigure(self, config: MirrorSourceTaskConfig) -> bool:
        """Read new partitions in addition to the current ones."""
        before, self._share = self._share, assigned_partitions(config.task_assigned_partitions)
        self._names |= self._remote_names()
        if self._reader is not None:
            self._joining = (*self._joining, *(partition for partition in self._share if partition not in before))
            self._join_at = 0.0
        return True

    def poll(self) -> SourceBatch | None:
        if not self._pending:
            try:
                self._read(self._reader if self._reader is not None else self._opened())
            except StoppedError:
                return None
        return self._gaps.take_mark() or self._taken()

    def _taken(self) -> SourceBatch | None:
        """Return the next batch, and pass the offsets of records that were left out around it."""
        batch: SourceBatch | None = None
        while self._pending and (batch is None or isinstance(self._pending[0], _Passed)):
            match self._pending.popleft():
                case _Passed(place, offset):
                    self.context.pass_offset(place, source_offset(offset))
                case found:
                    batch = found
        return batch

    def _read(self, reader: SourceReader) -> None:
        if self._throttle is not None and (owed := self._throttle.wait()) > 0:
            self.context.wait(min(owed, self._wait))
            return
        if self._joining and time.monotonic() >= self._join_at:
            self._join(reader)
        if ready := self._renewals.ready():
            self._read_anew(reader, ready)
        for partition, messages in reader.poll(self._most, self._wait):
            self._take(partition, messages)
        self._renew(reader.anew)
        reader.anew.clear()

    def _renew(self, anew: Iterable[TopicPartition]) -> None:
        """Reset the stored offsets of these partitions, after everything that was read before."""
        for partition in anew:
            self._pending.append(_Passed(source_partition(self.config.source_cluster_alias, partition), RESET))
        self._renewals.begin(anew)

    def _read_anew(self, reader: SourceReader, partitions: Sequence[TopicPartition]) -> None:
        """Read these partitions from their beginnings, once the new topic ids have been written."""
        if self._journal is not None:
            try:
                generations = self._opening.generations(partitions)
            except RetriableError as error:
                logger.warning("%d partitions of recreated topics cannot be read yet: %s", len(partitions), error)
                return
            for partition, generation in generations.items():
                self._journal.begin_anew(partition, generation)
            self._journal.settle()
        reader.join(dict.fromkeys(partitions, OFFSET_BEGINNING))
        self._renewals.end(partitions)

    def _take(self, partition: TopicPartition, messages: Sequence[Message]) -> None:
        if self._throttle is not None:
            self._throttle.take(size(messages))
        provenance, last = self._provenance, messages[-1].offset()
        place = source_partition(self.config.source_cluster_alias, partition)
        if provenance is not None:
            messages = foreign(messages, provenance)
        if messages:
            remote = self._remote(partition.topic)
            batch = mirrored(messages, remote, partition.partition, place, provenance)
            self._numbers.read(partition, batch, sum(map(len, messages)), time.time())
            self._pending.append(batch)
        if not messages or messages[-1].offset() != last:
            self._pending.append(_Passed(place, last))

    def remaining(self) -> Mapping[str, int]:
        """Return the number of records that have not been mirrored yet."""
        lag = None if self._reader is None else self._reader.lag()
        read = sum(len(each) for each in self._pending if isinstance(each, SourceBatch))
        return {} if lag is None else {"records": lag + read}

    def measurements(self) -> Iterable[Measurement]:
        """Return the measurements of each partition."""
        places = {} if self._reader is None else self._reader.places()
        return self._numbers.measurements(places, self._gaps.counts, time.time())

    def delivered(self, delivered: Delivered) -> None:
        if delivered.topic == self._gaps_topic:
            return
        place, offsets = delivered.source_partition, delivered.source_offsets
        upstream = offsets.numbers if isinstance(offsets, RecordOffsets) else [each["offset"] for each in offsets]
        partition = TopicPartition(place["topic"], place["partition"])
        self._numbers.acknowledged(partition, upstream[-1], time.time())
        if self._journal is not None:
            self._journal.acknowledged(partition, upstream, delivered.offsets)

    def commit(self) -> None:
        if self._journal is not None:
            self._journal.committed()

    def stop(self) -> None:
        journal, self._journal = getattr(self, "_journal", None), None
        reader, self._reader = getattr(self, "_reader", None), None
        if journal is not None:
            journal.close()
        if reader is not None:
            reader.close()

    def _opened(self) -> SourceReader:
        """Return the reader, after finding out where to start in each partition."""
        starts = self._starts(self._share)
        consumer = self._clients.consumer(Cluster.SOURCE, _CONSUMER.name, self._forced(), self._numbers.take_statistics)
        reader = SourceReader(consumer, self._gaps.meet)
        try:
            reader.assign(self._known(reader, starts))
        except RetriableError:
            reader.close()
            raise
        self._reader = reader
        return reader

    def _starts(self, share: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the offset to start at for each partition, and open the journal for them."""
        alias = self.config.source_cluster_alias
        kept = self.context.offset_storage_reader.offsets([source_partition(alias, each) for each in share])
        stored = {partition: position(offset) for partition, offset in zip(share, kept, strict=True)}
        starts = {
            partition: self._first(partition) if at is None else at or OFFSET_BEGINNING
            for partition, at in stored.items()
        }
        if self.config.emit_offset_syncs_enabled:
            self._journal, anew = self._opening.open(stored, self.context.wait, self._journal)
            self._renew(anew)
            for partition in anew:
                del starts[partition]
        return starts

    def _first(self, partition: TopicPartition) -> int:
        """Return where a partition without a stored offset begins; one that was added has nothing to leave out.

        One of a task that begins much later than another looks the same, and is read whole, too: nothing is lost.
        """
        if self._at_first == OFFSET_END and partition.partition > 0:
            first = source_partition(self.config.source_cluster_alias, TopicPartition(partition.topic, 0))
            if self.context.offset_storage_reader.offset(first) is not None:
                return OFFSET_BEGINNING
        return self._at_first

    def _known(self, reader: SourceReader, starts: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Return where partitions begin, with ends as numbers, which are stored: a restart must not skip more (I1)."""
        ends = reader.ends([partition for partition, at in starts.items() if at == OFFSET_END])
        for partition, end in ends.items():
            self._pending.append(_Passed(source_partition(self.config.source_cluster_alias, partition), end - 1))
        return {**starts, **ends}

    def _join(self, reader: SourceReader) -> None:
        """Start reading the new partitions. If a cluster does not answer, only the current ones continue."""
        try:
            reader.join(self._known(reader, self._starts(self._joining)))
        except RetriableError as error:
            logger.warning("%d new partitions cannot be read yet: %s", len(self._joining), error)
            self._join_at = time.monotonic() + _JOIN_RETRY_SECONDS
        else:
            logger.info("%d new partitions are being read.", len(self._joining))
            self._joining = ()

    def _forced(self) -> dict[str, str]:
        # MirrorMaker's consumer recreates a topic that somebody deletes at the source.
        creates = java_settings(self.config.originals, _CONSUMER).get("allow.auto.create.topics", "false")
        isolation = self.config.isolation_level
        return {"auto.offset.reset": "none", "isolation.level": isolation, "allow.auto.create.topics": creates}

    def _remote_names(self) -> dict[str, str]:
        return {partition.topic: self._remote(partition.topic) for partition in self._share}

    def _remote(self, topic: str) -> str:
        return self._policy.format_remote_topic(self.config.source_cluster_alias, topic)


class MirrorSourceConnector(SourceConnector[MirrorSourceConfig]):
    """Mirrors topics of one Kafka cluster to another, with their settings and ACLs, as MirrorMaker 2 does."""

    task_class = MirrorSourceTask
    default_converter = "org.apache.kafka.connect.converters.ByteArrayConverter"

    def start(self) -> None:
        self._shares: Sequence[Sequence[TopicPartition]] = ()
        self._monitor: TopicMonitor | None = None
        if self.config.enabled:
            self._monitor = TopicMonitor(self.config, self.context)
            self._monitor.start()

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str | None]]:
        if self._monitor is None:
            return []
        self._shares = partition_shares(self._monitor.partitions(_FIRST_LOOK_SECONDS), max_tasks, self._shares)
        self._monitor.may_delete(
            topic for topic, count in self._monitor.orphans.items() if self._has_mirrored(topic, count)
        )
        return [self._task_config(self._monitor, index) for index in range(len(self._shares))]

    def _has_mirrored(self, topic: str, partitions: int) -> bool:
        alias = self.config.source_cluster_alias
        places = [source_partition(alias, TopicPartition(topic, number)) for number in range(partitions)]
        return any(offset is not None for offset in self.context.offset_storage_reader.offsets(places))

    def _task_config(self, monitor: TopicMonitor, index: int) -> Mapping[str, str | None]:
        share = self._shares[index]
        rate = self.config.mirror_bytes_per_second
        own = {
            ASSIGNED_PARTITIONS: written_partitions(share),
            INDEX: str(index),
            IDS: monitor.ids_of(share),
            SHARE_KEYS: GROWING_PARTITIONS,
        }
        if rate:
            own[BYTES] = str(max(1, rate // len(self._shares)))
        # Each worker names its own internal topics.
        given = {key: value for key, value in self.config.originals.items() if key != INTERNAL_TOPICS}
        return {**given, **own}

    def stop(self) -> None:
        monitor, self._monitor = getattr(self, "_monitor", None), None
        if monitor is not None:
            monitor.stop()

    @classmethod
    def exactly_once_support(cls, config: MirrorSourceConfig) -> ExactlyOnceSupport:
        """Supported if the task reads only committed records of the source, which is the default."""
        committed = config.isolation_level == "read_committed"
        return ExactlyOnceSupport.SUPPORTED if committed else ExactlyOnceSupport.UNSUPPORTED

    @classmethod
    def alter_offsets(cls, config: MirrorSourceConfig, offsets: Mapping[str, Offset | None]) -> bool:  # noqa: ARG003
        for partition, offset in offsets.items():
            check_offset(json.loads(partition), offset)
        return True
