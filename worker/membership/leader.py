"""The leader's part in a round, in the member's thread: reads all members' metadata and assigns their shares."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence, Set
from concurrent.futures import Future
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from connect.errors import ConnectError
from worker.config.worker import DistributedConfig
from worker.formatting import counted
from worker.membership.assignor import AssignorState, assign, round_robin, units_of
from worker.membership.protocol import (
    CONFIG_MISMATCH,
    EAGER,
    VERSIONS,
    Assignment,
    MemberMetadata,
    decode_metadata,
    encode_assignment,
)
from worker.stores.config.store import ConfigSnapshot
from worker.unit import Unit

if TYPE_CHECKING:
    from worker.membership.coordinator import GroupMemberData

__all__ = ["Leader"]

logger = logging.getLogger(__name__)

_NOTHING: Final[frozenset[Unit]] = frozenset()


class Leader:
    """Assigns work to the members while this worker leads.

    ``owners`` maps each unit to the URL of the worker that runs it since the last round; ``reported`` are the units
    that members held when that round began, ``members`` the URLs of all members, and ``draining`` those being drained.
    """

    def __init__(self, config: DistributedConfig, snapshot: Callable[[int], Future[ConfigSnapshot]]) -> None:
        self._max_delay = config.scheduled_rebalance_max_delay_ms
        # No heartbeat is sent during this wait, so it must end well within the session.
        self._patience = min(config.worker_sync_timeout_ms, config.session_timeout_ms // 3) / 1000
        self._snapshot = snapshot
        self._state = AssignorState()
        self._last_generation = -1
        self.owners: Mapping[Unit, str] = {}
        self.reported: frozenset[Unit] = _NOTHING
        self.members: frozenset[str] = frozenset()
        self.draining: frozenset[str] = frozenset()

    def completed(self, generation: int) -> None:
        """Record that this worker got its share of a generation, whichever worker led it."""
        self._last_generation = generation

    def assign(
        self, leader: str, protocol: str, generation: int, members: Sequence[GroupMemberData]
    ) -> Mapping[str, bytes]:
        """Return each member's encoded assignment. Waits a moment if this worker has to read configurations first."""
        version = VERSIONS[protocol]
        metadata = {member.member_id: decode_metadata(member.metadata) for member in members}
        self.reported = _NOTHING.union(*(_held(item) for item in metadata.values()))
        self.members = frozenset(item.url for item in metadata.values())
        self.draining = frozenset(item.url for item in metadata.values() if item.draining)
        newest = max(item.config_offset for item in metadata.values())
        snapshot = self._read(newest)
        blank = Assignment(leader, metadata[leader].url, newest)
        if snapshot is None:
            assignments = self._mismatch(blank, metadata, generation)
        elif version == EAGER:
            assignments = self._eager(replace(blank, config_offset=snapshot.offset), metadata, snapshot)
        else:
            static = {member.member_id for member in members if member.instance_id is not None}
            blank = replace(blank, config_offset=snapshot.offset)
            assignments = self._incremental(blank, metadata, snapshot, generation, static)
        return {member: encode_assignment(assignment, version) for member, assignment in assignments.items()}

    def _read(self, newest: int) -> ConfigSnapshot | None:
        """Return the configurations, or ``None`` if they cannot be read as far as a member has read them."""
        try:
            snapshot = self._snapshot(newest).result(self._patience)
        except (TimeoutError, ConnectError) as error:
            logger.warning(
                "This worker leads but could not read the configurations up to offset %d; it will try again: %r",
                newest,
                error,
            )
            return None
        return snapshot if snapshot.offset >= newest else None

    def _mismatch(
        self, blank: Assignment, metadata: Mapping[str, MemberMetadata], generation: int
    ) -> dict[str, Assignment]:
        if self._state.generation == self._last_generation:
            self._state = replace(self._state, generation=generation)
        self.owners = {unit: item.url for item in metadata.values() for unit in _held(item)}
        return dict.fromkeys(metadata, replace(blank, error=CONFIG_MISMATCH))

    def _eager(
        self, blank: Assignment, metadata: Mapping[str, MemberMetadata], snapshot: ConfigSnapshot
    ) -> dict[str, Assignment]:
        shares = round_robin(units_of(snapshot.tasks), metadata)
        self.owners = {unit: metadata[member].url for member, units in shares.items() for unit in units}
        return {member: replace(blank, assigned=units) for member, units in shares.items()}

    def _incremental(
        self,
        blank: Assignment,
        metadata: Mapping[str, MemberMetadata],
        snapshot: ConfigSnapshot,
        generation: int,
        static: set[str],
    ) -> dict[str, Assignment]:
        held = {member: _held(item) for member, item in metadata.items()}
        outcome = assign(
            self._state,
            units_of(snapshot.tasks),
            held,
            now=int(time.monotonic() * 1000),
            max_delay=self._max_delay,
            generation=generation,
            last_generation=self._last_generation,
            draining={member for member, item in metadata.items() if item.draining},
            urls={member: item.url for member, item in metadata.items()},
        )
        self._state = outcome.state
        if outcome.delay > 0:
            self._warn_of_waiting(outcome.state.previous - outcome.owners.keys(), outcome.delay / 1000)
        self.owners = {unit: metadata[member].url for unit, member in outcome.owners.items()}
        return {
            member: replace(
                blank,
                # The broker repeats its last assignment to a restarting static member without a round, so it must be
                # complete.
                assigned=increments.assigned | (held[member] - increments.revoked if member in static else _NOTHING),
                revoked=increments.revoked,
                delay=outcome.delay,
            )
            for member, increments in outcome.increments.items()
        }

    def _warn_of_waiting(self, units: Set[Unit], seconds: float) -> None:
        """Log the units that now wait for their worker; they had an owner before this round and have none after it."""
        left = Counter((self.owners[unit], unit.is_task) for unit in units if unit in self.owners)
        until = (datetime.now(UTC) + timedelta(seconds=seconds)).astimezone()
        for url in sorted({url for url, _ in left}):
            logger.warning(
                "%s has left the group. Its %s wait for its return until %s (scheduled.rebalance.max.delay.ms); then "
                "other workers take them over",
                url,
                f"{counted(left[url, False], 'connector')} and {counted(left[url, True], 'task')}",
                until.strftime("%Y-%m-%d %H:%M:%S"),
            )


def _held(metadata: MemberMetadata) -> frozenset[Unit]:
    return metadata.held.assigned if metadata.held is not None else _NOTHING
