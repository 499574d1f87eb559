"""Moves consumer groups from one cluster of a flow to the other, and back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeVar

from connect.data import TopicPartition
from connect.errors import ConnectError
from connectors.mirror.checkpoints import (
    Checkpoints,
    FlowTopics,
    GroupOffset,
    OffsetTranslator,
    source_topic,
)
from connectors.mirror.clients import Clients, Cluster
from connectors.mirror.config.checkpoint import MirrorCheckpointConfig
from connectors.mirror.extents import FlowExtents
from connectors.mirror.filters import group_filter, topic_filter
from connectors.mirror.groups import Groups, GroupState
from connectors.mirror.offset_topics import OffsetTopics, patience_with, read_checkpoints
from connectors.mirror.patience import Patience, Wait
from connectors.mirror.policies import replication_policy
from connectors.mirror.records import Checkpoint
from connectors.mirror.runs import Translation

__all__ = ["Direction", "GroupMover", "Move", "moves_back", "moves_by_checkpoints", "moves_over", "read_again"]


@dataclass(frozen=True, slots=True)
class Move:
    """The committed offset of a group at one cluster, and where it continues at the other, if that is known."""

    origin: GroupOffset
    topic: str
    found: Translation | None
    there: int | None
    """The offset that the group already has at the other cluster."""

    is_measured: bool = True
    """Whether the number of records that are read again is known."""

    @property
    def is_due(self) -> bool:
        """Whether the offset is to be committed. No offset is moved back."""
        return self.found is not None and (self.there is None or self.found.offset > self.there)

    @property
    def remark(self) -> str:
        """Whether the offset is exact, or why it is not committed."""
        if self.found is None:
            return "unknown: no run or offset sync is this old, and the partition is not empty"
        if self.there is not None and not self.is_due:
            return "already there" if self.there == self.found.offset else f"stays at {self.there}, which is further"
        if not self.is_measured:
            return "by the last checkpoint"
        return "exact" if self.found.is_exact else "conservative"

    def committed(self) -> GroupOffset:
        """Return the offset to commit; only for a move that is due."""
        assert self.found is not None
        return GroupOffset(self.topic, self.origin.partition, self.found.offset, self.origin.metadata)

    @property
    def read_again(self) -> int | None:
        """The most records that the group reads again; ``None`` if that is unknown."""
        return self.found.again if self.found is not None and self.is_measured else None

    def document(self) -> dict[str, Any]:
        """Return the move as JSON has it."""
        return {
            "topic": self.origin.topic,
            "partition": self.origin.partition,
            "offset": self.origin.offset,
            "topic_there": self.topic,
            "offset_there": None if self.found is None else self.found.offset,
            "read_again": self.read_again,
            "commit": self.is_due,
            "remark": self.remark,
        }


def moves_over(
    flow: FlowTopics, translator: OffsetTranslator, committed: Iterable[GroupOffset], there: Iterable[GroupOffset]
) -> Iterator[Move]:
    """Yield how a group of the source continues at the target."""
    known = _by_place(there)
    for place in sorted(committed, key=_order):
        if flow.filter.should_replicate_topic(place.topic):
            topic = flow.remote(place.topic)
            found = translator.downstream_of(place.topic, place.partition, place.offset)
            yield Move(place, topic, found, known.get((topic, place.partition)))


def moves_by_checkpoints(checkpoints: Iterable[Checkpoint], there: Iterable[GroupOffset]) -> Iterator[Move]:
    """Yield how a group continues at the target by its last checkpoints, which do not say what is read again."""
    known = _by_place(there)
    for each in sorted(checkpoints, key=lambda each: (each.topic, each.partition)):
        origin = GroupOffset(each.topic, each.partition, each.upstream, each.metadata)
        found = Translation(each.downstream)
        yield Move(origin, each.topic, found, known.get((each.topic, each.partition)), is_measured=False)


def moves_back(
    flow: FlowTopics, translator: OffsetTranslator, committed: Iterable[GroupOffset], there: Iterable[GroupOffset]
) -> Iterator[Move]:
    """Yield how a group that has read mirrored topics at the target continues at the source."""
    known = _by_place(there)
    for place in sorted(committed, key=_order):
        topic = source_topic(flow.policy, flow.source_alias, place.topic)
        if topic is not None and flow.filter.should_replicate_topic(topic):
            found = translator.upstream_of(topic, place.partition, place.offset)
            yield Move(place, topic, found, known.get((topic, place.partition)))


def read_again(moves: Iterable[Move]) -> int:
    """Return the most records that a group reads again in all its partitions, as far as that is known."""
    return sum(move.read_again or 0 for move in moves)


def _by_place(offsets: Iterable[GroupOffset]) -> Mapping[tuple[str, int], int]:
    return {(place.topic, place.partition): place.offset for place in offsets}


def _order(place: GroupOffset) -> tuple[str, int]:
    return place.topic, place.partition


T = TypeVar("T")


class Direction(Enum):
    """The direction in which a group moves."""

    OVER = "failover"
    """From the source to the target."""

    BACK = "failback"
    """From the target to the source."""


class GroupMover:
    """Moves the groups of one flow, by the configuration of its checkpoint connector. For one thread.

    Each method raises a ``ConnectError`` if a cluster does not answer or refuses.
    """

    def __init__(self, props: Mapping[str, str], direction: Direction, wait: Wait = lambda _: True) -> None:
        self._config = MirrorCheckpointConfig.parse(props)
        self._clients = Clients(props)
        self._wait = wait
        self._direction = direction
        config = self._config
        self._policy = replication_policy(props)
        self._flow = FlowTopics(
            topic_filter(props), self._policy, config.source_cluster_alias, config.target_cluster_alias
        )
        is_over = direction is Direction.OVER
        self._from, self._to = (Cluster.SOURCE, Cluster.TARGET) if is_over else (Cluster.TARGET, Cluster.SOURCE)
        self._there = self._groups(self._to)

    def planned(self, group: str) -> list[Move]:
        """Return where a group continues, by the offsets it has committed at the cluster it leaves."""
        return self._planned([group])[group]

    def planned_for_all(self) -> dict[str, list[Move]]:
        """Return the same for each group that ``groups`` selects and that has offsets to move."""
        chosen = group_filter(self._config.originals)
        names = [name for name in self._groups(self._from).names() if chosen.should_replicate_group(name)]
        return {group: moves for group, moves in self._planned(names).items() if moves}

    def _planned(self, groups: Sequence[str]) -> dict[str, list[Move]]:
        committed = self._groups(self._from).committed(groups)
        there = self._there.committed(groups)
        offsets = OffsetTopics(self._config, self._clients, self._policy, self._wait)
        try:
            offsets.read_to_end()
        finally:
            offsets.close()
        moves = moves_over if self._direction is Direction.OVER else moves_back

        def planned() -> dict[str, list[Move]]:
            return {
                group: list(moves(self._flow, offsets.translator, _answered(committed[group]), _answered(there[group])))
                for group in groups
            }

        unknown = {self._at_source(move) for rows in planned().values() for move in rows if move.found is None}
        offsets.translator.extents = FlowExtents(self._config, self._clients, self._flow.remote).of(unknown)
        return planned()

    def _at_source(self, move: Move) -> TopicPartition:
        topic = move.origin.topic if self._direction is Direction.OVER else move.topic
        return TopicPartition(topic, move.origin.partition)

    def planned_by_checkpoints(self, group: str) -> list[Move]:
        """Return where a group continues at the target, by its last checkpoints, without asking the source."""
        checkpoints = Checkpoints()
        read_checkpoints(self._config, self._clients, self._policy, self._wait, checkpoints.read)
        return list(moves_by_checkpoints(checkpoints.of_group(group).values(), self._committed_there(group)))

    def in_use(self, groups: Iterable[str]) -> list[str]:
        """Return those of the groups that have members at the cluster they leave."""
        states = self._groups(self._from).states(groups)
        return [group for group in states if _answered(states[group]) is GroupState.ACTIVE]

    def check_stopped(self, group: str) -> None:
        """Refuse a group that has members at the cluster it leaves: what they read now would be read again."""
        if self.in_use([group]):
            raise ConnectError(
                f"The group {group} has members at {self._patience(self._from).cluster}. Stop them first, so that it "
                "continues where they stopped."
            )

    def commit(self, group: str, moves: Sequence[Move]) -> None:
        """Commit the offsets that are due; refused while the group has members at the cluster it moves to.

        Check :meth:`in_use` before, if the cluster that the group leaves can be reached.
        """
        due = [move.committed() for move in moves if move.is_due]
        if not due:
            return
        if _answered(self._there.states([group])[group]) is GroupState.ACTIVE:
            raise ConnectError(
                f"The group {group} has members at {self._patience(self._to).cluster}, and only they may commit its "
                "offsets. Stop them first."
            )
        refused = self._there.commit(group, due)
        if refused:
            raise refused[0]

    def _committed_there(self, group: str) -> Sequence[GroupOffset]:
        return _answered(self._there.committed([group])[group])

    def _groups(self, cluster: Cluster) -> Groups:
        name = f"checkpoint-{cluster}-admin"
        return Groups(lambda: self._clients.admin(cluster, name), self._patience(cluster))

    def _patience(self, cluster: Cluster) -> Patience:
        return patience_with(self._config, cluster, self._wait)


def _answered(found: T | ConnectError) -> T:
    if isinstance(found, ConnectError):
        raise found
    return found
