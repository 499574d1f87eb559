"""Asks the other workers for information about their tasks, for display. Used only in the herder's thread.

A worker that fails or does not answer in time is left out.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

from worker.herder.inbox import Inbox
from worker.herder.requests import Request, Steps
from worker.membership.membership import Membership
from worker.peers.owner import OwnerClient
from worker.stores.status.store import State, StatusStore

__all__ = ["LIVE", "OtherWorkers"]

T = TypeVar("T")

logger = logging.getLogger(__name__)
_PATIENCE_SECONDS: Final = 1.5

LIVE: Final = frozenset((State.RUNNING, State.PAUSED))
"""The states of tasks whose workers are asked."""


class OtherWorkers:
    """Asks the workers that run tasks of one connector, or any tasks. Without ``owners`` there are no other workers."""

    def __init__(
        self, worker_id: str, statuses: StatusStore, membership: Membership, inbox: Inbox, owners: OwnerClient | None
    ) -> None:
        self._worker_id = worker_id
        self._statuses = statuses
        self._membership = membership
        self._inbox = inbox
        self._owners = owners

    def gather(
        self, request: Request[Any], connector: str | None, ask: Callable[[OwnerClient, str], Future[T]]
    ) -> Steps[list[T]]:
        """Ask each worker by its URL, and return the answers that come in time."""
        asked = self._ask(connector, ask)
        if asked:
            request.enter("asking the other workers about their tasks")
            yield self._inbox.all_done(asked.values(), _PATIENCE_SECONDS)
        return _answers(asked)

    def _ask(self, connector: str | None, ask: Callable[[OwnerClient, str], Future[T]]) -> dict[str, Future[T]]:
        if self._owners is None or (leader := self._membership.leader_url) is None:
            return {}
        scheme = urlsplit(leader).scheme
        return {
            worker_id: ask(self._owners, f"{scheme}://{worker_id}/") for worker_id in sorted(self._elsewhere(connector))
        }

    def _elsewhere(self, connector: str | None) -> set[str]:
        return {
            status.worker_id
            for unit, status in self._statuses.statuses().items()
            if unit.is_task and status.state in LIVE and connector in (None, unit.connector)
        } - {self._worker_id}


def _answers(asked: Mapping[str, Future[T]]) -> list[T]:
    answers = []
    for worker_id, answer in asked.items():
        if not answer.done():
            logger.debug("Worker %s did not answer in time when asked about its tasks", worker_id)
        elif (error := answer.exception()) is not None:
            logger.debug("Worker %s could not be asked about its tasks: %s", worker_id, error)
        else:
            answers.append(answer.result())
    return answers
