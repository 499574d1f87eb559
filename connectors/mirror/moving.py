"""Moves a consumer group from one cluster of a flow to the other, and back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import TypeVar

from connect.errors import ConnectError
from connectors.mirror.asking import Asking, Wait
from connectors.mirror.checkpoints import Checkpoints, FlowTopics, GroupOffset
from connectors.mirror.clients import Clients, Cluster
from connectors.mirror.config.checkpoint import MirrorCheckpointConfig
from connectors.mirror.filters import group_filter, topic_filter
from connectors.mirror.groups import Groups, GroupState
from connectors.mirror.moves import Move, moves_back, moves_by_checkpoints, moves_over
from connectors.mirror.offset_topics import OffsetTopics, asking, read_checkpoints
from connectors.mirror.policies import replication_policy

__all__ = ["Direction", "GroupMover"]


T = TypeVar("T")


class Direction(Enum):
    """Which way a group moves."""

    OVER = "failover"
    """From the source to the target."""

    BACK = "failback"
    """From the target to the source."""


class GroupMover:
    """Moves groups of one flow, by the configuration of its checkpoint connector. For one thread.

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
        """Where the group continues, by what it has committed where it comes from."""
        return self._planned([group])[group]

    def planned_for_all(self) -> dict[str, list[Move]]:
        """The same for each group that ``groups`` names and that has something to move."""
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
        return {
            group: list(moves(self._flow, offsets.translator, _answered(committed[group]), _answered(there[group])))
            for group in groups
        }

    def planned_by_checkpoints(self, group: str) -> list[Move]:
        """Where the group continues at the target by its last checkpoints, without the source."""
        checkpoints = Checkpoints()
        read_checkpoints(self._config, self._clients, self._policy, self._wait, checkpoints.read)
        return list(moves_by_checkpoints(checkpoints.of_group(group).values(), self._committed_there(group)))

    def in_use(self, groups: Iterable[str]) -> list[str]:
        """Those of the groups that have members where they come from."""
        states = self._groups(self._from).states(groups)
        return [group for group in states if _answered(states[group]) is GroupState.ACTIVE]

    def check_stopped(self, group: str) -> None:
        """Refuse a group that has members where it comes from: what they read now would be read again."""
        if self.in_use([group]):
            raise ConnectError(
                f"The group {group} has members at {self._asking(self._from).cluster}: stop them first, so that it "
                "continues where they have ended."
            )

    def commit(self, group: str, moves: Sequence[Move]) -> None:
        """Commit the offsets that are due; refused while the group has members there.

        That it has none where it comes from is for the caller to see (:meth:`in_use`), if that cluster is there.
        """
        due = [move.committed() for move in moves if move.is_due]
        if not due:
            return
        if _answered(self._there.states([group])[group]) is GroupState.ACTIVE:
            raise ConnectError(
                f"The group {group} has members at {self._asking(self._to).cluster}, which alone may commit its "
                "offsets: stop them first."
            )
        refused = self._there.commit(group, due)
        if refused:
            raise refused[0]

    def _committed_there(self, group: str) -> Sequence[GroupOffset]:
        return _answered(self._there.committed([group])[group])

    def _groups(self, cluster: Cluster) -> Groups:
        name = f"checkpoint-{cluster}-admin"
        return Groups(lambda: self._clients.admin(cluster, name), self._asking(cluster))

    def _asking(self, cluster: Cluster) -> Asking:
        return asking(self._config, cluster, self._wait)


def _answered(found: T | ConnectError) -> T:
    if isinstance(found, ConnectError):
        raise found
    return found
