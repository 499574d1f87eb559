"""Requests for log levels: of this worker and its child processes, or of all workers in the cluster (KIP-976)."""

from __future__ import annotations

from typing import Any, TypeAlias

from worker.herder.requests import Request, Requests, Steps, answered, asked
from worker.loggers import LoggerLevels, level_named
from worker.stores.config.store import ConfigStore

__all__ = ["Loggers"]

Document: TypeAlias = dict[str, Any]


class Loggers:
    """Shows and sets log levels. Methods may be called from any thread."""

    def __init__(self, requests: Requests, levels: LoggerLevels, configs: ConfigStore) -> None:
        self._requests = requests
        self._levels = levels
        self._configs = configs

    @answered
    def levels(self) -> dict[str, Document]:
        """Return the level of every logger in this process."""
        return self._levels.all()

    @answered
    def level(self, name: str) -> Document:
        """Return the level of one logger."""
        return self._levels.one(name)

    @answered
    def set_level(self, name: str, level: str) -> list[str]:
        """Set the level of a logger and its children, in child processes too; return the changed loggers."""
        return self._levels.set(name, level_named(level))

    @asked
    def set_cluster_level(self, request: Request[None], name: str, level: str) -> Steps[None]:
        """Set a logger's level on every worker in the cluster. Any worker accepts this request."""
        level_named(level)
        request.enter("writing the level of a logger")
        yield self._configs.put_logger_level(name, level.upper())
