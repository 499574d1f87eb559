"""Follows the rebalances of the group: starts assigned units and stops revoked ones. Used only in the herder's thread.

========================================  ==============================================================================
kill -9 here                              then
========================================  ==============================================================================
after a round, before the revoked stop    the child processes see their pipe close and exit; other workers take over
                                          after the session timeout (and ``scheduled.rebalance.max.delay.ms``)
after they have stopped, before rejoin    the same: no worker runs them until the group knows that they are free
no heartbeat gets through                 all units are stopped before the session times out, and the lease of the child
                                          processes expires, so that they exit even if the worker is frozen
========================================  ==============================================================================
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from worker.herder.cluster.leadership import Leadership
from worker.herder.cluster.standing import Standing
from worker.herder.inbox import Inbox
from worker.herder.inquiries import Inquiries
from worker.herder.requests import Requests, Steps
from worker.herder.settings import ClusterSettings, HerderCallbacks
from worker.herder.units import Units
from worker.membership.events import Event, Joined, Lost, Refused
from worker.membership.membership import Membership
from worker.stores.config.store import ConfigSnapshot, ConfigStore

__all__ = ["Rebalancing", "Round", "SharedNames"]

logger = logging.getLogger(__name__)

_MOST_ROUNDS: Final = 20
_MANY_MISMATCHES: Final = 5
"""After so many rounds in a row, a leader that has read less than a member is not just slow."""
_MOST_NAMED: Final = 3


@dataclass(frozen=True, slots=True)
class SharedNames:
    """What all workers of one cluster must have in common."""

    group_id: str
    config_topic: str


@dataclass(frozen=True, slots=True)
class Round:
    """A rebalance, or the loss of the group, which has no ``generation``; ``at`` is in seconds since 1970.

    ``held`` and ``revoked`` are the numbers of connectors and tasks that this worker runs from now on and gives up.
    """

    at: float
    generation: int | None
    leader_url: str | None
    held: int
    revoked: int


class Rebalancing:
    """Brings what runs here in line with each assignment.

    If a worker cannot read the configurations that an assignment is based on within the ``sync_timeout`` of its
    ``cluster``, it leaves the group for ``unsync_backoff`` seconds.
    """

    def __init__(
        self,
        membership: Membership,
        configs: ConfigStore,
        units: Units,
        leadership: Leadership,
        inquiries: Inquiries,
        inbox: Inbox,
        callbacks: HerderCallbacks,
        cluster: ClusterSettings | None,
        standing: Standing,
        group: SharedNames,
    ) -> None:
        self._membership = membership
        self._configs = configs
        self._units = units
        self._leadership = leadership
        self._inquiries = inquiries
        self._inbox = inbox
        self._requests = Requests(inbox)
        self._callbacks = callbacks
        self._standing = standing
        self._group = group
        self._mismatches = 0
        self._sync_timeout = cluster.sync_timeout if cluster is not None else 0.0
        self._unsync_backoff = cluster.unsync_backoff if cluster is not None else 0.0
        self._newest: Event | None = None
        self._rounds: deque[Round] = deque(maxlen=_MOST_ROUNDS)
        self._divided: Mapping[str, int] = {}

    @property
    def rounds(self) -> Sequence[Round]:
        """The last rebalances seen by this worker, newest first."""
        return tuple(reversed(self._rounds))

    def start(self) -> None:
        """Join the group."""
        self._divided = self._configs.snapshot().tasks
        self._membership.start(lambda event: self._inbox.post(lambda: self._happened(event)), self.snapshot)

    def snapshot(self, offset: int) -> Future[ConfigSnapshot]:
        """Return the connectors and tasks to assign, read up to ``offset`` if possible; from any thread."""
        return self._requests.begin(lambda _: self._read_up_to(offset))

    def _read_up_to(self, offset: int) -> Steps[ConfigSnapshot]:
        if self._configs.snapshot().offset < offset:
            with suppress(Exception):
                yield self._configs.read_to_end()
        return self._configs.snapshot()

    def unready(self) -> list[str]:
        """Return the reasons why this worker is not a member of its cluster; empty if it is."""
        reasons = [trouble.message for trouble in self._standing.troubles]
        if not reasons and self._membership.counts is not None and self._membership.leader_url is None:
            reasons.append("This worker has not joined its group yet, or the group is rebalancing.")
        read = self._configs.snapshot().offset
        if isinstance(self._newest, Joined) and self._newest.config_offset > read:
            reasons.append(
                f"This worker has read the config topic up to offset {read}, and its cluster is at offset "
                f"{self._newest.config_offset}."
            )
        return reasons

    def configs_changed(self) -> None:
        """Request a rebalance if connectors or tasks were added or removed."""
        snapshot = self._configs.snapshot()
        if snapshot.tasks != self._divided:
            self._divided = snapshot.tasks
            self._membership.rejoin("there are other connectors or tasks", snapshot.offset)

    def _happened(self, event: Event) -> None:
        self._newest = event
        match event:
            case Joined():
                self._joined(event)
            case Lost():
                self._lost(event)
            case Refused(message):
                self._callbacks.refused(message)

    def _joined(self, event: Joined) -> None:
        if event.mismatch:
            self._mismatches += 1
            if self._mismatches >= _MANY_MISMATCHES:
                self._is_strange(_leader_is_behind(event, self._mismatches, self._group))
            self._requests.start(lambda _: self._catch_up(event))
        elif event.config_offset > self._configs.snapshot().offset:
            self._requests.start(lambda _: self._catch_up(event))
        else:
            self._take(event)

    def _take(self, event: Joined) -> None:
        if unknown := self._unknown(event):
            self._is_strange(_unknown_units(event, unknown, self._group))
            self._stay_away(event)
            return
        logger.info(
            "Generation %d: %s leads; this worker runs %s, stops %d",
            event.generation,
            event.leader_url,
            _counted(len(event.held)),
            len(event.revoked),
        )
        self._rounds.append(Round(time.time(), event.generation, event.leader_url, len(event.held), len(event.revoked)))
        self._mismatches = 0
        self._standing.joined()
        self._membership.happened(event)
        self._units.joined()
        self._leadership.changed()
        self._callbacks.reconcile()
        self._units.divided(event)
        if event.revoked:
            self._requests.start(lambda _: self._give_up_revoked(event))

    def _unknown(self, event: Joined) -> list[str]:
        """Return the connectors that the leader has assigned, but that do not exist where the leader has read to."""
        snapshot = self._configs.snapshot()
        if snapshot.offset != event.config_offset:
            return []
        return sorted({unit.connector for unit in event.held} - self._configs.connectors().keys())

    def _give_up_revoked(self, event: Joined) -> Steps[None]:
        yield self._units.gone(event.revoked)
        if self._is_newest(event):
            self._membership.rejoin("what was revoked is stopped")

    def _lost(self, event: Lost) -> None:
        logger.warning("This worker is no longer a member of its cluster and stops all connectors and tasks")
        if event.reason:
            self._standing.lost(event.reason, self._units.running)
            self._leadership.obstructed()
        self._rounds.append(Round(time.time(), None, None, 0, 0))
        self._membership.happened(event)
        self._leadership.changed()
        self._units.lost(event.within)
        self._requests.start(lambda _: self._stop_all(event))

    def _stop_all(self, event: Lost) -> Steps[None]:
        yield self._units.gone(None)
        yield self._inquiries.all_ended()
        event.stopped.set_result(None)

    def _catch_up(self, event: Joined) -> Steps[None]:
        """Read the configurations to their end and continue, unless another event has happened meanwhile."""
        given_up = self._inbox.after(self._sync_timeout, lambda: self._stay_away(event))
        try:
            yield self._configs.read_to_end()
        except Exception:
            return
        if not self._is_newest(event):
            return
        if (end := self._configs.snapshot().offset) < event.config_offset:
            self._is_strange(_ends_earlier(event, end, self._group))
            return
        given_up.cancel()
        if event.mismatch:
            self._membership.rejoin("the leader knew older configurations")
        else:
            self._take(event)

    def _is_strange(self, reason: str) -> None:
        self._standing.strange(reason)
        self._leadership.obstructed()

    def _stay_away(self, event: Joined) -> None:
        if self._is_newest(event):
            self._newest = None
            logger.error(
                "The configurations up to offset %d are not those that this worker has read, or could not be read "
                "within worker.sync.timeout.ms=%d; this worker leaves its cluster for worker.unsync.backoff.ms=%d",
                event.config_offset,
                self._sync_timeout * 1000,
                self._unsync_backoff * 1000,
            )
            self._membership.leave(self._unsync_backoff)

    def _is_newest(self, event: Event) -> bool:
        return self._newest is event


def _ends_earlier(event: Joined, end: int, group: SharedNames) -> str:
    return (
        f"a member of the group {group.group_id}, led by {event.leader_url}, has read its config topic up to offset "
        f"{event.config_offset}, but {group.config_topic}, which this worker reads, ends at offset {end}. "
        f"{_remedy(group)}"
    )


def _leader_is_behind(event: Joined, rounds: int, group: SharedNames) -> str:
    return (
        f"in {rounds} rounds, the leader of the group {group.group_id}, {event.leader_url}, could not read the config "
        f"topic up to offset {event.config_offset}, as another member has. {_remedy(group)} If they are the same, the "
        "leader's log says why it cannot read."
    )


def _unknown_units(event: Joined, connectors: Sequence[str], group: SharedNames) -> str:
    named = ", ".join(connectors[:_MOST_NAMED]) + (" ..." if len(connectors) > _MOST_NAMED else "")
    return (
        f"the leader of the group {group.group_id}, {event.leader_url}, has assigned connectors that are not in "
        f"{group.config_topic}, which this worker reads: {named}. {_remedy(group)}"
    )


def _remedy(group: SharedNames) -> str:
    return (
        f"Either another Connect cluster uses group.id={group.group_id} with other topics, or the topic was deleted "
        "and created again. Give this worker the config.storage.topic, offset.storage.topic and status.storage.topic "
        "of that cluster, or a group.id of its own, and restart it."
    )


def _counted(units: int) -> str:
    return f"{units} connector or task" if units == 1 else f"{units} connectors or tasks"
