"""A herder of a cluster's worker without the cluster: what REST asks of it, over connectors that workers share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from connect.errors import AlreadyExistsError, ConnectError, NotFoundError
from worker.errors import NotAssignedError, NotLeaderError
from worker.herder.cluster.publication import Publication
from worker.herder.inbox import Request
from worker.security.session_keys import SignedRequest, verify
from worker.stores.config.store import SessionKey, TargetState

__all__ = ["ClusterHerder"]

T = TypeVar("T")


class ClusterHerder:
    """Keeps configurations in ``connectors``; writes them only where it leads.

    ``leader_url`` is where it believes the leader to be, ``owner_url`` who it believes to run every task (it does,
    if that is ``None``). One that ``hangs`` answers no write, ``broken`` is what it answers a ping.
    """

    def __init__(self, connectors: dict[str, dict[str, str]], *, is_leader: bool = False) -> None:
        self.connectors_by_name = connectors
        self.is_leader = is_leader
        self.leader_url: str | None = None
        self.owner_url: str | None = None
        self.hangs = False
        self.broken: ConnectError | None = None
        self.key: SessionKey | None = None
        self.accepted: Sequence[str] = ("HmacSHA256",)
        self.task_configs_by_name: dict[str, list[dict[str, str]]] = {}
        self.publications: dict[str, Publication | None] = {}
        self.fenced: list[str] = []
        self.cluster_levels: dict[str, str] = {}
        self.restarted: list[tuple[str, int]] = []

    def connector_names(self) -> Request[list[str]]:
        return answered(sorted(self.connectors_by_name))

    def connector_config(self, name: str) -> Request[dict[str, str]]:
        if name not in self.connectors_by_name:
            return refused(NotFoundError(f"Connector {name} not found"))
        return answered(self.connectors_by_name[name])

    def create_connector(
        self, name: str, config: Mapping[str, str | None], target: TargetState | None = None
    ) -> Request[dict[str, Any]]:
        if self.hangs:
            return Request()
        if not self.is_leader:
            return self._not_leader()
        if name in self.connectors_by_name:
            return refused(AlreadyExistsError(f"Connector {name} already exists"))
        self.connectors_by_name[name] = {key: value for key, value in config.items() if value is not None}
        return answered({"name": name, "config": self.connectors_by_name[name], "tasks": [], "type": "source"})

    def delete_connector(self, name: str) -> Request[None]:
        if not self.is_leader:
            return self._not_leader()
        return answered(None) if self.connectors_by_name.pop(name, None) else refused(NotFoundError("there is none"))

    def restart_task(self, name: str, task: int) -> Request[None]:
        if self.owner_url is not None:
            return refused(NotAssignedError("it runs elsewhere", self.owner_url))
        self.restarted.append((name, task))
        return answered(None)

    def put_task_configs(
        self,
        name: str,
        configs: list[dict[str, str]],
        signed: SignedRequest,
        publication: Publication | None = None,
    ) -> Request[None]:
        try:
            verify(signed, self.key, self.accepted)
        except ConnectError as error:
            return refused(error)
        if not self.is_leader:
            return self._not_leader()
        self.task_configs_by_name[name] = configs
        self.publications[name] = publication
        return answered(None)

    def fence(self, name: str, signed: SignedRequest) -> Request[None]:
        try:
            verify(signed, self.key, self.accepted)
        except ConnectError as error:
            return refused(error)
        self.fenced.append(name)
        return answered(None)

    def set_cluster_logger_level(self, name: str, level: str) -> Request[None]:
        self.cluster_levels[name] = level
        return answered(None)

    def ping(self) -> Request[None]:
        return answered(None) if self.broken is None else refused(self.broken)

    def _not_leader(self) -> Request[Any]:
        return refused(NotLeaderError("Only the leader can do this", self.leader_url))


def answered(value: T) -> Request[T]:
    """A request that has its answer."""
    request: Request[T] = Request()
    request.set_result(value)
    return request


def refused(error: ConnectError) -> Request[Any]:
    """A request that has failed."""
    request: Request[Any] = Request()
    request.set_exception(error)
    return request
