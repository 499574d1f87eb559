"""Requests for log levels: of this worker and its children, or of every worker of the cluster (KIP-976)."""

from __future__ import annotations

from typing import Any, TypeAlias

from worker.herder.inbox import Request, Requests
from worker.loggers import LoggerLevels, level_named
from worker.stores.config.store import ConfigStore

__all__ = ["LoggerRequests"]

Document: TypeAlias = dict[str, Any]


class LoggerRequests:
    """Has the herder show and set log levels. Any thread may make the requests."""

    def __init__(self, requests: Requests, levels: LoggerLevels, configs: ConfigStore) -> None:
        self._requests = requests
        self._levels = levels
        self._configs = configs

    def levels(self) -> Request[dict[str, Document]]:
        """The level of every logger of this process."""
        return self._requests.ask(self._levels.all)

    def level(self, name: str) -> Request[Document]:
        """The level of one logger."""
        return self._requests.ask(lambda: self._levels.one(name))

    def set_level(self, name: str, level: str) -> Request[list[str]]:
        """Set the level of a logger and all below it, in the children too; the names of those changed."""
        return self._requests.ask(lambda: self._levels.set(name, level_named(level)))

    def set_cluster_level(self, name: str, level: str) -> Request[None]:
        """Have every worker of the cluster set the level of a logger. Any worker may ask for that."""
        return self._requests.begin(lambda request: self._set_cluster_level(request, name, level))

    def _set_cluster_level(self, request: Request[None], name: str, level: str) -> None:
        level_named(level)
        request.enter("writing the level of a logger")
        written = self._configs.put_logger_level(name, level.upper())
        self._requests.answer_when_written(request, written, lambda: None)
