"""A fake herder of a distributed worker: the interface that REST uses, over connectors that several workers share."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from connect.errors import AlreadyExistsError, ConnectError, NotFoundError
from worker.errors import NotAssignedError, NotLeaderError
from worker.herder.cluster.standing import Trouble
from worker.herder.requests import Request
from worker.peers.leader import Publication
from worker.security.request_signatures import Nonces
from worker.security.session_keys import SignedRequest, verify
from worker.stores.config.store import ConnectorEntry, SessionKey, TargetState

__all__ = ["ClusterHerder"]

T = TypeVar("T")


class ClusterHerder:
    """Keeps configurations in ``connectors``; writes them only if it is the leader.

    ``leader_url`` is the leader's URL, and ``owner_url`` the URL of the worker that runs every task (``None`` for this
    one). If it ``hangs``, it answers no writes; ``broken`` is its answer to a ping.
    """

    def __init__(self, connectors: dict[str, dict[str, str]], *, is_leader: bool = False) -> None:
        self.connectors_by_name = connectors
        self.is_leader = is_leader
        self.leader_url: str | None = None
        self.owner_url: str | None = None
        self.hangs = False
        self.broken: ConnectError | None = None
        self.reasons: list[str] = []
        self.key: SessionKey | None = None
        self.accepted: Sequence[str] = ("HmacSHA256",)
        self.task_configs_by_name: dict[str, list[dict[str, str]]] = {}
        self.publications: dict[str, Publication | None] = {}
        self.fenced: list[str] = []
        self.cluster_levels: dict[str, str] = {}
        self.restarted: list[tuple[str, int]] = []
        self.connectors = _Connectors(self)
        self.plugins = _NoPlugins()
        self.offsets = self.dead_letters = self.previews = self.histories = self.versions = self.cluster = None
        self.timelines = None
        self.peers = _Peers(self)
        self.loggers = _Loggers(self)

    def ping(self) -> Request[None]:
        return answered(None) if self.broken is None else refused(self.broken)

    def troubles(self) -> list[Trouble]:
        return []

    def refusals(self) -> list[str]:
        return []

    def unready(self) -> Request[list[str]]:
        return answered(self.reasons)

    def not_leader(self) -> Request[Any]:
        """The error if it is not the leader."""
        return refused(NotLeaderError("Only the leader can do this", self.leader_url))


class _Connectors:
    """The connectors, which only the leader writes."""

    def __init__(self, herder: ClusterHerder) -> None:
        self._herder = herder

    def names(self) -> Request[list[str]]:
        return answered(sorted(self._herder.connectors_by_name))

    def config(self, name: str) -> Request[dict[str, str]]:
        if name not in self._herder.connectors_by_name:
            return refused(NotFoundError(f"Connector {name} not found"))
        return answered(self._herder.connectors_by_name[name])

    def status(self, name: str, *, refresh: bool = True) -> Request[dict[str, Any]]:
        return answered({"name": name, "connector": {}, "tasks": [], "type": "source"})

    def entry(self, name: str) -> Request[ConnectorEntry]:
        if name not in self._herder.connectors_by_name:
            return refused(NotFoundError(f"Connector {name} not found"))
        return answered(ConnectorEntry(self._herder.connectors_by_name[name], revision=1))

    def create(
        self,
        name: str,
        config: Mapping[str, str | None],
        target: TargetState | None = None,
        author: str | None = None,
    ) -> Request[dict[str, Any]]:
        if self._herder.hangs:
            return Request()
        if not self._herder.is_leader:
            return self._herder.not_leader()
        if name in self._herder.connectors_by_name:
            return refused(AlreadyExistsError(f"Connector {name} already exists"))
        self._herder.connectors_by_name[name] = {key: value for key, value in config.items() if value is not None}
        return answered({"name": name, "config": self._herder.connectors_by_name[name], "tasks": [], "type": "source"})

    def delete(self, name: str, author: str | None = None) -> Request[None]:
        if not self._herder.is_leader:
            return self._herder.not_leader()
        return (
            answered(None)
            if self._herder.connectors_by_name.pop(name, None)
            else refused(NotFoundError("there is none"))
        )

    def restart_task(self, name: str, task: int) -> Request[None]:
        if self._herder.owner_url is not None:
            return refused(NotAssignedError("it runs elsewhere", self._herder.owner_url))
        self._herder.restarted.append((name, task))
        return answered(None)


class _NoPlugins:
    """An interface without plugins."""

    def keys(self, name: str, version: str) -> Request[Any]:
        return refused(NotFoundError(f"Unknown plugin {name}."))


class _Peers:
    """The answers to other workers."""

    def __init__(self, herder: ClusterHerder) -> None:
        self._herder = herder
        self._nonces = Nonces()

    def put_task_configs(
        self,
        name: str,
        configs: list[dict[str, str]],
        signed: SignedRequest,
        publication: Publication | None = None,
    ) -> Request[None]:
        if (refusal := self._refusal(signed)) is not None:
            return refused(refusal)
        if not self._herder.is_leader:
            return self._herder.not_leader()
        self._herder.task_configs_by_name[name] = configs
        self._herder.publications[name] = publication
        return answered(None)

    def fence(self, name: str, signed: SignedRequest) -> Request[None]:
        if (refusal := self._refusal(signed)) is not None:
            return refused(refusal)
        self._herder.fenced.append(name)
        return answered(None)

    def session_key(self) -> Request[SessionKey | None]:
        return answered(self._herder.key)

    def verify(self, signed: SignedRequest) -> Request[None]:
        refusal = self._refusal(signed)
        return answered(None) if refusal is None else refused(refusal)

    def _refusal(self, signed: SignedRequest) -> ConnectError | None:
        try:
            verify(signed, self._herder.key, self._herder.accepted, self._nonces, int(time.time() * 1000))
        except ConnectError as error:
            return error
        return None


class _Loggers:
    """The log levels of the cluster."""

    def __init__(self, herder: ClusterHerder) -> None:
        self._herder = herder

    def set_cluster_level(self, name: str, level: str) -> Request[None]:
        self._herder.cluster_levels[name] = level
        return answered(None)


def answered(value: T) -> Request[T]:
    """A completed request."""
    request: Request[T] = Request()
    request.set_result(value)
    return request


def refused(error: ConnectError) -> Request[Any]:
    """A failed request."""
    request: Request[Any] = Request()
    request.set_exception(error)
    return request
