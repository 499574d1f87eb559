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
from dataclasses import dataclass
from typing import Final

from worker.herder.cluster.leadership import Leadership
from worker.herder.inbox import Action, Inbox
from worker.herder.inquiries import Inquiries
from worker.herder.settings import ClusterSettings, HerderCallbacks
from worker.herder.units import Units
from worker.membership.events import Event, Joined, Lost, Refused
from worker.membership.membership import Membership
from worker.stores.config.store import ConfigSnapshot, ConfigStore

__all__ = ["Rebalancing", "Round"]

logger = logging.getLogger(__name__)

_MOST_ROUNDS: Final = 20


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
    ) -> None:
        self._membership = membership
        self._configs = configs
        self._units = units
        self._leadership = leadership
        self._inquiries = inquiries
        self._inbox = inbox
        self._callbacks = callbacks
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
        """The connectors and tasks to assign, read up to ``offset`` if possible; from any thread."""
        snapshot: Future[ConfigSnapshot] = Future()

        def look() -> None:
            if self._configs.snapshot().offset >= offset:
                snapshot.set_result(self._configs.snapshot())
            else:
                read = self._configs.read_to_end()
                read.add_done_callback(
                    lambda _: self._inbox.post(lambda: snapshot.set_result(self._configs.snapshot()))
                )

        self._inbox.post(look)
        return snapshot

    def unready(self) -> list[str]:
        """Return the reasons why this worker is not a member of its cluster; empty if it is."""
        reasons = []
        if self._membership.counts is not None and self._membership.leader_url is None:
            reasons.append("This worker has not joined its group yet, or has lost its place in it.")
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
            self._caught_up(event, lambda: self._membership.rejoin("the leader knew older configurations"))
        elif event.config_offset > self._configs.snapshot().offset:
            self._caught_up(event, lambda: self._take(event))
        else:
            self._take(event)

    def _take(self, event: Joined) -> None:
        logger.info(
            "Generation %d: %s leads; this worker runs %s, stops %d",
            event.generation,
            event.leader_url,
            _counted(len(event.held)),
            len(event.revoked),
        )
        self._rounds.append(Round(time.time(), event.generation, event.leader_url, len(event.held), len(event.revoked)))
        self._membership.happened(event)
        self._units.joined()
        self._leadership.changed()
        self._callbacks.reconcile()
        self._units.divided()
        if event.revoked:
            self._units.when_gone(event.revoked, lambda: self._revoked(event))

    def _revoked(self, event: Joined) -> None:
        if self._is_newest(event):
            self._membership.rejoin("what was revoked is stopped")

    def _lost(self, event: Lost) -> None:
        logger.warning("This worker is no longer a member of its cluster and stops all connectors and tasks")
        self._rounds.append(Round(time.time(), None, None, 0, 0))
        self._membership.happened(event)
        self._leadership.changed()
        self._units.lost(event.within)
        self._units.when_gone(None, lambda: self._inquiries.when_done(lambda: event.stopped.set_result(None)))

    def _caught_up(self, event: Joined, go_on: Action) -> None:
        """Read the configurations to their end and continue, unless another event has happened meanwhile."""
        read = self._configs.read_to_end()
        given_up = self._inbox.after(self._sync_timeout, lambda: self._stay_away(event))

        def done() -> None:
            if not self._is_newest(event):
                return
            if read.exception() is None and self._configs.snapshot().offset >= event.config_offset:
                given_up.cancel()
                go_on()

        read.add_done_callback(lambda _: self._inbox.post(done))

    def _stay_away(self, event: Joined) -> None:
        if self._is_newest(event):
            self._newest = None
            logger.error(
                "The configurations up to offset %d could not be read within worker.sync.timeout.ms=%d; this worker "
                "leaves its cluster for worker.unsync.backoff.ms=%d",
                event.config_offset,
                self._sync_timeout * 1000,
                self._unsync_backoff * 1000,
            )
            self._membership.leave(self._unsync_backoff)

    def _is_newest(self, event: Event) -> bool:
        return self._newest is event


def _counted(units: int) -> str:
    return f"{units} connector or task" if units == 1 else f"{units} connectors or tasks"
