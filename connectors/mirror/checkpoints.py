"""Decides which checkpoints are emitted, and which group offsets are written to the target."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from connect.data import TopicPartition
from connectors.mirror.extents import Extents
from connectors.mirror.filters import TopicFilter
from connectors.mirror.policies import ReplicationPolicy
from connectors.mirror.records import Checkpoint
from connectors.mirror.run_records import StoredRuns
from connectors.mirror.runs import Translation
from connectors.mirror.sync_store import SyncStore

__all__ = [
    "Checkpoints",
    "FlowTopics",
    "GroupOffset",
    "OffsetTranslator",
    "offsets_to_sync",
    "source_topic",
    "target_topic",
]


@dataclass(frozen=True, slots=True)
class GroupOffset:
    """The committed offset of a group in one partition."""

    topic: str
    partition: int
    offset: int
    metadata: str = ""


class OffsetTranslator:
    """Translates offsets of the source by runs, exactly where there are any, and otherwise as MirrorMaker 2 does.

    ``extents`` has those of partitions that can be translated in neither way, by their topic at the source.
    """

    def __init__(self, syncs: SyncStore, runs: StoredRuns) -> None:
        self.syncs = syncs
        self.runs = runs
        self.extents: Mapping[TopicPartition, Extents] = {}

    def downstream_of(self, topic: str, partition: int, offset: int) -> Translation | None:
        """Return where a group continues at the target; ``None`` if that is unknown."""
        runs = self.runs.runs(topic, partition)
        found = runs.downstream_of(offset) if runs is not None else None
        if found is not None:
            return found
        downstream = self.syncs.downstream_of(topic, partition, offset)
        if downstream is None or downstream < 0:
            extents = self.extents.get(TopicPartition(topic, partition))
            return None if extents is None else extents.downstream_of(offset)
        upstream = max(sync.upstream for sync in self.syncs.kept(topic, partition) if sync.upstream <= offset)
        return Translation(downstream, max(0, offset - upstream - 1))

    def upstream_of(self, topic: str, partition: int, offset: int) -> Translation | None:
        """Return where a reader of the mirrored topic continues at the source; ``None`` if that is unknown."""
        runs = self.runs.runs(topic, partition)
        found = runs.upstream_of(offset) if runs is not None else None
        if found is not None:
            return found
        before = (sync for sync in self.syncs.kept(topic, partition) if sync.downstream <= offset)
        sync = next(before, None)
        if sync is None:
            extents = self.extents.get(TopicPartition(topic, partition))
            return None if extents is None else extents.upstream_of(offset)
        into = offset - sync.downstream
        return Translation(sync.upstream + min(into, 1), max(0, into - 1))


class Checkpoints:
    """The last checkpoints of groups, by group, target topic and partition. For one thread."""

    def __init__(self) -> None:
        self._last: dict[str, dict[tuple[str, int], Checkpoint]] = {}

    def read(self, checkpoint: Checkpoint) -> None:
        """Take a checkpoint that was emitted earlier."""
        self._last.setdefault(checkpoint.group, {})[checkpoint.topic, checkpoint.partition] = checkpoint

    def emit(self, checkpoint: Checkpoint) -> bool:
        """Return whether to emit a checkpoint; if so, it becomes the last one.

        It is emitted if it is the first, if the group was rewound at the source, or if it moves forward at the target.
        """
        last = self._last.get(checkpoint.group, {}).get((checkpoint.topic, checkpoint.partition))
        moved = last is None or checkpoint.upstream < last.upstream or checkpoint.downstream > last.downstream
        if moved:
            self.read(checkpoint)
        return moved

    def of_group(self, group: str) -> Mapping[tuple[str, int], Checkpoint]:
        """Return the last checkpoints of a group."""
        return self._last.get(group, {})


@dataclass(frozen=True, slots=True)
class FlowTopics:
    """The topics of one flow as its groups see them: their names at both ends, and which ones the filter selects."""

    filter: TopicFilter
    policy: ReplicationPolicy
    source_alias: str
    target_alias: str

    def unknown(self, translator: OffsetTranslator, committed: Iterable[GroupOffset]) -> set[TopicPartition]:
        """Return the partitions of the source whose committed offsets cannot be translated."""
        return {
            TopicPartition(place.topic, place.partition)
            for place in committed
            if self.filter.should_replicate_topic(place.topic)
            if translator.downstream_of(place.topic, place.partition, place.offset) is None
        }

    def remote(self, topic: str) -> str:
        """Return the target's name of a topic of the source."""
        return target_topic(self.policy, self.source_alias, self.target_alias, topic)

    def checkpoints(
        self, translator: OffsetTranslator, group: str, committed: Iterable[GroupOffset]
    ) -> Iterator[tuple[Checkpoint, Translation]]:
        """Yield the current offsets of a group as checkpoints for the target, where they can be translated."""
        for place in committed:
            if not self.filter.should_replicate_topic(place.topic):
                continue
            found = translator.downstream_of(place.topic, place.partition, place.offset)
            if found is not None:
                topic = self.remote(place.topic)
                yield (
                    Checkpoint(group, topic, place.partition, place.offset, found.offset, place.metadata),
                    found,
                )


def target_topic(policy: ReplicationPolicy, source_alias: str, target_alias: str, topic: str) -> str:
    """Return the target's name of a topic that a group of the source reads, the original one if it comes from there."""
    if policy.topic_source(topic) == target_alias:
        return policy.original_topic(topic)
    return policy.format_remote_topic(source_alias, topic)


def source_topic(policy: ReplicationPolicy, source_alias: str, topic: str) -> str | None:
    """Return the source's name of a topic of the target; ``None`` if it was not mirrored from there."""
    return policy.upstream_topic(topic) if policy.topic_source(topic) == source_alias else None


def offsets_to_sync(
    checkpoints: Iterable[Checkpoint], committed: Mapping[tuple[str, int], int] | None
) -> list[Checkpoint]:
    """Return the checkpoints of a group whose offsets are to be committed at the target.

    ``committed`` has the group's offsets there; ``None`` if the group does not exist there. No offset is moved back.
    """
    if committed is None:
        return list(checkpoints)
    return [
        each
        for each in checkpoints
        if (there := committed.get((each.topic, each.partition))) is None or each.downstream > there
    ]
