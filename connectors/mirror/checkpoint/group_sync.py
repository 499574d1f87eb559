"""Commits translated offsets at the target, for groups that have no members there."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence

from connect.errors import ConnectError
from connectors.mirror.checkpoints import Checkpoints, GroupOffset, offsets_to_sync
from connectors.mirror.groups import Groups, GroupState
from connectors.mirror.records import Checkpoint

__all__ = ["GroupSync"]

logger = logging.getLogger(__name__)


class GroupSync:
    """Keeps the offsets of some groups at the target in step with their checkpoints. For one thread."""

    def __init__(self, groups: Groups, target_alias: str) -> None:
        self._groups = groups
        self._target_alias = target_alias
        self._left_alone: dict[str, str] = {}
        """The reason why a group's offsets were not committed last time, logged whenever it changes."""

    def sync(self, names: Iterable[str], checkpoints: Checkpoints) -> None:
        """Commit offsets that have moved on. A failure is logged once and tried again next time."""
        known = [name for name in names if checkpoints.of_group(name)]
        states = self._groups.states(known)
        committed = self._groups.committed(name for name in known if states[name] is GroupState.EMPTY)
        for name in known:
            self._tell(name, self._synced(name, states[name], committed.get(name, ()), checkpoints))

    def _synced(
        self,
        name: str,
        state: GroupState | ConnectError,
        committed: Sequence[GroupOffset] | ConnectError,
        checkpoints: Checkpoints,
    ) -> str | None:
        """Commit the offsets of one group; return the reason if that was not possible."""
        if isinstance(state, ConnectError):
            return str(state)
        if isinstance(committed, ConnectError):
            return str(committed)
        if state is GroupState.ACTIVE:
            return f"it has members at {self._target_alias}"
        there = {(place.topic, place.partition): place.offset for place in committed}
        found = offsets_to_sync(checkpoints.of_group(name).values(), None if state is GroupState.ABSENT else there)
        return self._commit(name, found) if found else None

    def _commit(self, name: str, found: Iterable[Checkpoint]) -> str | None:
        offsets = [GroupOffset(each.topic, each.partition, each.downstream, each.metadata) for each in found]
        try:
            refused = self._groups.commit(name, offsets)
        except ConnectError as error:
            return str(error)
        return str(refused[0]) if refused else None

    def _tell(self, name: str, reason: str | None) -> None:
        if reason is None:
            if self._left_alone.pop(name, None) is not None:
                logger.info("The offsets of group %s are committed at %s again", name, self._target_alias)
        elif self._left_alone.get(name) != reason:
            self._left_alone[name] = reason
            logger.warning("The offsets of group %s are not committed: %s", name, reason)
