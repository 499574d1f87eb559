"""Requests for log levels: of this worker and its child processes, or of all workers in the cluster (KIP-976)."""

from __future__ import annotations

from typing import Any, TypeAlias

from worker.herder.inbox import Request, Requests
from worker.loggers import LoggerLevels, level_named
from worker.stores.config.store import ConfigStore

__all__ = ["LoggerRequests"]

Document: TypeAlias = dict[str, Any]


class LoggerRequests:
    """Shows and sets log levels. Methods may be called from any thread."""

    def __init__(self, requests: Requests, levels: LoggerLevels, configs: ConfigStore) -> None:
        self._requests = requests
        self._levels = levels
        self._configs = configs

    def levels(self) -> Request[dict[str, Document]]:
        """Return the level of every logger in this process."""
        return self._requests.ask(self._levels.all)

    def level(self, name: str) -> Request[Document]:
        """Return the level of one logger."""
        return self._requests.ask(lambda: self._levels.one(name))

    def set_level(self, name: str, level: str) -> Request[list[str]]:
        """Set the level of a logger and its children, in child processes too; return the changed loggers."""
        return self._requests.ask(lambda: self._levels.set(name, level_named(level)))

    def set_cluster_level(self, name: str, level: str) -> Request[None]:
        """Set a logger's level on every worker in the cluster. Any worker accepts this request."""
        return self._requests.begin(lambda request: self._set_cluster_level(request, name, level))

    def _set_cluster_level(self, request: Request[None], name: str, level: str) -> None:
        level_named(level)
        request.enter("writing the level of a logger")
        written = self._configs.put_logger_level(name, level.upper())
        self._requests.answer_when_written(request, written, lambda: None)
