"""Task configs on their way from the connector that wants them to the config store. The herder's thread alone.

The worker that runs a connector hears which tasks it wants, and only the leader writes. Crash point: if either is
killed before the commit record is written, the connector is started again somewhere and says it again.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from typing import Final, Protocol, TypeAlias

from worker.errors import RebalanceInProgressError
from worker.herder.inbox import Inbox
from worker.herder.leadership import Leadership
from worker.membership.membership import Membership
from worker.stores.config import ConfigStore, ConnectorEntry, SessionKey, TargetState

__all__ = ["Leader", "Publishing"]

logger = logging.getLogger(__name__)
_FIRST_BACKOFF: Final = 0.25
_LONGEST_BACKOFF: Final = 60.0

TaskConfigs: TypeAlias = tuple[Mapping[str, str], ...]


class Leader(Protocol):
    """Asks the leader, at its URL, for what only the leader may do. The requests are signed with ``key``."""

    def post_task_configs(
        self, url: str, connector: str, configs: Sequence[Mapping[str, str]], key: SessionKey | None
    ) -> Future[None]:
        """Have it keep the task configs of a connector."""

    def fence(self, url: str, connector: str, key: SessionKey | None) -> Future[None]:
        """Have it fence the producers of a connector's former tasks."""


class Publishing:
    """Has task configs kept, and tries again until they are or the connector wants others."""

    def __init__(
        self,
        configs: ConfigStore,
        membership: Membership,
        leadership: Leadership,
        inbox: Inbox,
        leader: Leader | None,
    ) -> None:
        self._configs = configs
        self._membership = membership
        self._leadership = leadership
        self._inbox = inbox
        self._leader = leader
        self._wanted: dict[str, TaskConfigs] = {}

    def publish(self, connector: str, configs: TaskConfigs) -> None:
        """Have these be the connector's task configs."""
        self._wanted[connector] = configs
        self._attempt(connector, configs, _FIRST_BACKOFF)

    def forget(self, connector: str) -> None:
        """The connector does not run here any more; whoever runs it says what it wants."""
        self._wanted.pop(connector, None)

    def _attempt(self, connector: str, configs: TaskConfigs, backoff: float) -> None:
        entry = self._configs.connectors().get(connector)
        if self._wanted.get(connector) is not configs:
            return
        if entry is None or entry.target is TargetState.STOPPED or is_applied(entry, configs):
            self.forget(connector)
            return
        kept = self._kept(connector, configs)
        kept.add_done_callback(lambda done: self._inbox.post(lambda: self._done(connector, configs, done, backoff)))

    def _kept(self, connector: str, configs: TaskConfigs) -> Future[None]:
        if self._leadership.is_ready:
            return self._configs.put_task_configs(connector, configs)
        url = self._membership.leader_url
        if self._leader is None or url is None or self._membership.is_leader:
            nobody: Future[None] = Future()
            nobody.set_exception(RebalanceInProgressError("The cluster has no leader at the moment."))
            return nobody
        return self._leader.post_task_configs(url, connector, configs, self._configs.session_key())

    def _done(self, connector: str, configs: TaskConfigs, done: Future[None], backoff: float) -> None:
        if self._wanted.get(connector) is not configs:
            return
        if (error := done.exception()) is None:
            self.forget(connector)
            return
        # Between two leaders this is how it goes; more is worth a line.
        level = logging.DEBUG if isinstance(error, RebalanceInProgressError) else logging.WARNING
        logger.log(level, "The task configs of connector %s are not kept yet: %s", connector, error)
        longer = min(backoff * 2, _LONGEST_BACKOFF)
        self._inbox.after(backoff, lambda: self._attempt(connector, configs, longer))


def is_applied(entry: ConnectorEntry, configs: Sequence[Mapping[str, str]]) -> bool:
    """Whether these are the connector's task configs already, made of the configuration that it has."""
    return entry.task_configs == tuple(configs) and entry.applied == entry.config
