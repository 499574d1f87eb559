"""Leadership of the cluster: the right to write configurations and session keys. Used only in the herder's thread.

A new leader writes nothing until it has read the config topic to its end and fenced the former leader's writes
(invariant I6). Crash point: a killed leader leaves at most task configs without a commit record, which no worker
applies.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from connect.errors import ConnectError
from worker.errors import NotLeaderError, RebalanceInProgressError, UnavailableError
from worker.herder.inbox import Action, Deferred, Inbox, Later
from worker.herder.requests import Request, Requests, Steps
from worker.membership.membership import Membership
from worker.processes.lease import Lease
from worker.security.session_keys import new_key
from worker.stores.config.store import ConfigStore, SessionKey

__all__ = ["KeyRotation", "Leadership"]

logger = logging.getLogger(__name__)
_RETRY_SECONDS: Final = 1.0
_ASK_AGAIN_SECONDS: Final = 5


@dataclass(frozen=True, slots=True)
class KeyRotation:
    """The algorithm and size of session keys, and the seconds after which they are replaced."""

    algorithm: str
    bits: int | None
    seconds: float


class Leadership:
    """Lets only the leader write. Without a ``rotation`` there are no session keys.

    ``on_ready`` is called when this worker has become the leader. A leader whose ``lease`` has expired may not write
    either: the worker was frozen or has lost its cluster, and another worker may lead. An ``obstacle`` is why nothing
    can be written for longer than a moment.
    """

    def __init__(
        self,
        membership: Membership,
        configs: ConfigStore,
        inbox: Inbox,
        rotation: KeyRotation | None = None,
        on_ready: Action | None = None,
        lease: Lease | None = None,
        obstacle: Callable[[], str | None] = lambda: None,
    ) -> None:
        self._membership = membership
        self._configs = configs
        self._inbox = inbox
        self._requests = Requests(inbox)
        self._rotation = rotation
        self._on_ready = on_ready
        self._when_taken: list[Action] = []
        self._when_lost: list[Action] = [configs.cease_writes]
        self._lease = lease
        self._obstacle = obstacle
        self._ready = False
        self._taking = False
        self._waiting: list[Deferred[None]] = []
        self._next_key: Later | None = None

    @property
    def is_ready(self) -> bool:
        """Whether this worker is the leader and may write."""
        return self._ready and not self._is_over()

    def refusal(self) -> ConnectError:
        """Return the error with which this worker refuses to write as the leader."""
        if self._membership.is_leader:
            return RebalanceInProgressError("This worker may not lead the cluster any more; ask again.")
        return NotLeaderError("Another worker leads the cluster now.", self._membership.leader_url)

    def lead(self, request: Request[Any]) -> Steps[None]:
        """Wait until this worker has joined its cluster and may write as the leader.

        Raises :class:`~worker.errors.NotLeaderError` if another worker leads, and
        :class:`~worker.errors.UnavailableError` while there is an obstacle.
        """
        if (obstacle := self._obstacle()) is not None:
            raise UnavailableError(obstacle, _ASK_AGAIN_SECONDS)
        if self._has_yet_to_join():
            yield self._wait(request, "joining the cluster")
        elif not self._membership.is_leader:
            raise NotLeaderError("Only the leader of the cluster may do this.", self._membership.leader_url)
        elif not self._ready:
            yield self._wait(request, "taking over the lead of the cluster")
        elif self._is_over():
            raise self.refusal()

    def _wait(self, request: Request[Any], stage: str) -> Deferred[None]:
        request.enter(stage)
        leads: Deferred[None] = Deferred()
        self._waiting.append(leads)
        return leads

    def when_taken(self, action: Action) -> None:
        """Call ``action`` each time this worker becomes the leader and may write."""
        self._when_taken.append(action)

    def when_lost(self, action: Action) -> None:
        """Call ``action`` each time this worker stops being a leader that may write."""
        self._when_lost.append(action)

    def changed(self) -> None:
        """Check whether this worker is the leader now, and prepare for it."""
        if self._has_yet_to_join():
            return
        if not self._membership.is_leader:
            self._give_up()
        elif not (self._ready or self._taking):
            self._taking = True
            self._requests.start(lambda _: self._take())

    def obstructed(self) -> None:
        """Fail the requests that wait to be done as the leader while there is an obstacle."""
        if (obstacle := self._obstacle()) is not None:
            waiting, self._waiting = self._waiting, []
            for leads in waiting:
                leads.set_exception(UnavailableError(obstacle, _ASK_AGAIN_SECONDS))

    def writes_lost(self) -> None:
        """Claim the config topic again if this worker still leads: a former leader may have claimed it meanwhile."""
        if self._ready:
            self._lose()
            self.changed()

    def _has_yet_to_join(self) -> bool:
        return self._membership.generation < 0

    def _take(self) -> Steps[None]:
        # The claim ends the former leader's open transaction, for which reading to the end would wait.
        for prepare in (self._configs.claim_writes, self._configs.read_to_end):
            error: Exception | None = None
            try:
                yield prepare()
            except Exception as failed:
                error = failed
            if not (self._taking and self._membership.is_leader):
                return
            if error is not None:
                logger.warning("This worker could not become the leader of the cluster and will try again: %s", error)
                self._taking = False
                self._fail_waiting(error)
                self._inbox.after(_RETRY_SECONDS, self.changed)
                return
        self._begin()

    def _begin(self) -> None:
        self._taking, self._ready = False, True
        for taken in self._when_taken:
            taken()
        self._renew_key()
        waiting, self._waiting = self._waiting, []
        for leads in waiting:
            leads.set_result(None)
        if self._on_ready is not None:
            self._on_ready()

    def _give_up(self) -> None:
        self._taking = False
        if self._ready:
            self._lose()
        if self._next_key is not None:
            self._next_key.cancel()
        waiting, self._waiting = self._waiting, []
        for leads in waiting:
            leads.set_exception(self.refusal())

    def _lose(self) -> None:
        self._ready = False
        for action in self._when_lost:
            action()

    def _is_over(self) -> bool:
        return self._lease is not None and self._lease.is_over()

    def _fail_waiting(self, error: BaseException) -> None:
        waiting, self._waiting = self._waiting, []
        for leads in waiting:
            leads.set_exception(ConnectError(f"This worker could not take over the lead of the cluster: {error}"))

    # -- session keys --------------------------------------------------------------------------------------------------

    def _renew_key(self) -> None:
        """Write a new session key: each leader uses its own, and replaces it when it expires."""
        rotation = self._rotation
        if rotation is None or not self._ready:
            return
        if not self.is_ready:
            self._next_key = self._inbox.after(_RETRY_SECONDS, self._renew_key)
            return
        key = new_key(rotation.algorithm, rotation.bits, time.time_ns() // 1_000_000)
        self._requests.start(lambda _: self._write_key(key, rotation.seconds))

    def _write_key(self, key: SessionKey, seconds: float) -> Steps[None]:
        try:
            yield self._configs.put_session_key(key)
        except Exception as error:
            logger.warning("A new session key could not be written; the worker will try again: %s", error)
            seconds = _RETRY_SECONDS
        if not self._ready:
            return
        if self._next_key is not None:
            self._next_key.cancel()
        self._next_key = self._inbox.after(seconds, self._renew_key)
