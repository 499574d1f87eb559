"""The task of the checkpoint connector."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from connect.data import Schema, SourceRecord
from connect.errors import ConnectError, RetriableError
from connect.measurement import Measurement
from connect.source import SourceTask
from connectors.mirror.checkpoint.group_sync import GroupSync
from connectors.mirror.checkpoint.measurements import CheckpointLatencies, FailoverMeasurements
from connectors.mirror.checkpoints import Checkpoints, FlowTopics, GroupOffset
from connectors.mirror.clients import Clients, Cluster
from connectors.mirror.config.checkpoint import MirrorCheckpointTaskConfig
from connectors.mirror.extents import FlowExtents
from connectors.mirror.filters import topic_filter
from connectors.mirror.groups import Groups
from connectors.mirror.offset_topics import OffsetTopics, patience_with, read_checkpoints
from connectors.mirror.patience import StoppedError
from connectors.mirror.policies import replication_policy
from connectors.mirror.records import Checkpoint
from connectors.mirror.shares import assigned_groups
from connectors.mirror.source_offsets import NO_OFFSET, checkpoint_partition
from connectors.mirror.verification.results import FollowedVerifications

__all__ = ["MirrorCheckpointTask"]

logger = logging.getLogger(__name__)

_BYTES: Final = Schema.bytes()
_MS: Final = 1000


class MirrorCheckpointTask(SourceTask[MirrorCheckpointTaskConfig]):
    """Translates the offsets of its groups.

    Crash points: nothing is resumed from stored offsets. At the start, earlier checkpoints are read from their topic;
    one that is emitted twice says the same. Offsets at the target only move forward.
    """

    def start(self) -> None:
        config = self.config
        self._groups = assigned_groups(config.task_assigned_groups)
        self._offsets: OffsetTopics | None = None
        self._checkpoints = Checkpoints()
        self._due = self._sync_due = 0.0
        self._refused: frozenset[str] = frozenset()
        self._numbers = FailoverMeasurements(config.source_cluster_alias, config.target_cluster_alias)
        self._latencies = CheckpointLatencies(config.source_cluster_alias, config.target_cluster_alias)
        policy = replication_policy(config.originals)
        self._policy = policy
        self._topic = policy.checkpoints_topic(config.source_cluster_alias)
        self._flow = FlowTopics(
            topic_filter(config.originals), policy, config.source_cluster_alias, config.target_cluster_alias
        )
        self._clients = Clients(config.originals, config.task_index)
        self._extents = FlowExtents(config, self._clients, self._flow.remote)
        wait = self.context.wait
        self._at_source = self._groups_at(Cluster.SOURCE)
        # One task of the connector measures it for all.
        self._verified = FollowedVerifications(config, self._clients, wait) if config.task_index == 0 else None
        self._sync: GroupSync | None = None
        if config.sync_group_offsets_enabled:
            self._sync = GroupSync(self._groups_at(Cluster.TARGET), config.target_cluster_alias)

    def reconfigure(self, config: MirrorCheckpointTaskConfig) -> bool:
        """Translate new groups in addition to the current ones."""
        self._groups = assigned_groups(config.task_assigned_groups)
        # Earlier checkpoints of the new groups are read before any are emitted.
        self._leave_offsets()
        self._due = self._sync_due = 0.0
        return True

    def poll(self) -> list[SourceRecord] | None:
        try:
            offsets = self._offsets or self._read()
            offsets.follow()
            now = time.monotonic()
            if now >= self._due and self._verified is not None:
                self._verified.follow()
            records = self._emitted(offsets) if now >= self._due else []
            if not records and self._sync is not None and now >= self._sync_due:
                # In a poll without checkpoints, so that those of the last poll have been sent.
                self._sync.sync(self._groups, self._checkpoints)
                self._sync_due = now + self.config.sync_group_offsets_interval_seconds
        except StoppedError:
            return None
        if not records:
            self._wait()
        return records

    def measurements(self) -> Iterable[Measurement]:
        yield from self._numbers.measurements()
        yield from self._latencies.measurements(time.time())
        if self._verified is not None:
            yield from self._verified.measurements()

    def commit_record(self, record: SourceRecord) -> None:
        if record.timestamp is not None:
            self._latencies.acknowledged(record.source_partition, record.timestamp / _MS, time.time())

    def stop(self) -> None:
        verified, self._verified = getattr(self, "_verified", None), None
        if verified is not None:
            verified.close()
        self._leave_offsets()

    def _leave_offsets(self) -> None:
        offsets, self._offsets = getattr(self, "_offsets", None), None
        if offsets is not None:
            offsets.close()

    def _groups_at(self, cluster: Cluster) -> Groups:
        name = f"checkpoint-{cluster}-admin"
        return Groups(
            lambda: self._clients.admin(cluster, name), patience_with(self.config, cluster, self.context.wait)
        )

    def _read(self) -> OffsetTopics:
        """Read earlier checkpoints, and the offset syncs and runs of the flow."""
        keeps_history = self._read_checkpoints()
        offsets = OffsetTopics(self.config, self._clients, self._policy, self.context.wait, keeps_history=keeps_history)
        try:
            offsets.read_to_end()
        except BaseException:
            offsets.close()
            raise
        self._offsets = offsets
        return offsets

    def _read_checkpoints(self) -> bool:
        checkpoints, own = Checkpoints(), frozenset(self._groups)

        def take(checkpoint: Checkpoint) -> None:
            if checkpoint.group in own:
                checkpoints.read(checkpoint)

        try:
            read_checkpoints(self.config, self._clients, self._policy, self.context.wait, take)
        except RetriableError:
            raise
        except ConnectError as error:
            logger.warning(
                "Earlier checkpoints cannot be read. So that no group is moved back, only the last offset "
                "sync of each partition is used: %s",
                error,
            )
            return False
        self._checkpoints = checkpoints
        return True

    def _emitted(self, offsets: OffsetTopics) -> list[SourceRecord]:
        """Return the checkpoints that have moved on."""
        committed = self._at_source.committed(self._groups)
        self._due = time.monotonic() + self.config.emit_checkpoints_interval_seconds
        self._tell({group: found for group, found in committed.items() if isinstance(found, ConnectError)})
        read = {group: found for group, found in committed.items() if not isinstance(found, ConnectError)}
        self._look_at_unknown(offsets, [place for found in read.values() for place in found])
        timestamp = round(time.time() * _MS)
        return [
            self._record(checkpoint, timestamp)
            for group, found in read.items()
            for checkpoint in self._translated(offsets, group, found)
            if self._checkpoints.emit(checkpoint)
        ]

    def _look_at_unknown(self, offsets: OffsetTopics, committed: Sequence[GroupOffset]) -> None:
        """Look where partitions begin and end whose offsets cannot be translated: they may be empty."""
        translator = offsets.translator
        translator.extents = {}
        try:
            translator.extents = self._extents.of(self._flow.unknown(translator, committed))
        except RetriableError as error:
            logger.warning("Offsets of empty partitions cannot be translated now: %s", error)

    def _translated(self, offsets: OffsetTopics, group: str, found: Sequence[GroupOffset]) -> Iterator[Checkpoint]:
        translated = list(self._flow.checkpoints(offsets.translator, group, found))
        taken = sum(self._flow.filter.should_replicate_topic(place.topic) for place in found)
        self._numbers.note(group, sum(place.again for _, place in translated), taken - len(translated))
        return (checkpoint for checkpoint, _ in translated)

    def _tell(self, refused: dict[str, ConnectError]) -> None:
        """Log groups whose offsets cannot be read, each once until that changes."""
        for group in sorted(refused.keys() - self._refused):
            logger.warning("The offsets of group %s cannot be read and are not translated: %s", group, refused[group])
        self._refused = frozenset(refused)

    def _record(self, checkpoint: Checkpoint, timestamp: int) -> SourceRecord:
        return SourceRecord(
            topic=self._topic,
            partition=0,
            key_schema=_BYTES,
            key=checkpoint.key(),
            value_schema=_BYTES,
            value=checkpoint.value(),
            timestamp=timestamp,
            source_partition=checkpoint_partition(checkpoint),
            source_offset=dict(NO_OFFSET),
        )

    def _wait(self) -> None:
        due = self._due if self._sync is None else min(self._due, self._sync_due)
        longest = self.config.consumer_poll_timeout_ms / _MS
        self.context.wait(max(0.001, min(due - time.monotonic(), longest)))
