"""Watches for new and deleted indexes and data streams whose names match."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final
from urllib.parse import quote

import orjson

from connect.errors import ConnectError, RetriableError
from connect.kits.http.client import HttpClient
from connect.kits.http.messages import NoAnswerError, Request
from connect.source import SourceConnectorContext
from connectors.elasticsearch.cluster import is_passing, refusal
from connectors.elasticsearch.source_config import SearchSourceConfig

__all__ = ["IndexMonitor", "matching"]

_log = logging.getLogger(__name__)
_JOIN_SECONDS: Final = 5.0
_RETRY_SECONDS: Final = 1.0
_FIRST_SECONDS: Final = 10.0
_NOT_FOUND: Final = 404
Look = Callable[[str], Any]
"""Sends a request for a path, and returns the JSON of the answer; None if there is nothing there."""


def matching(patterns: Iterable[str], look: Look) -> set[str]:
    """Return the names of the open indexes and the data streams that match; not those that data streams consist of."""
    found: set[str] = set()
    for pattern in patterns:
        told = look(f"/_resolve/index/{quote(pattern, safe='*')}") or {}
        found |= {each["name"] for each in told.get("indices", ()) if _is_read(each, pattern)}
        found |= {each["name"] for each in told.get("data_streams", ())}
    return found


def _is_read(told: Mapping[str, Any], pattern: str) -> bool:
    is_hidden = told["name"].startswith(".") and not pattern.startswith(".")
    return "data_stream" not in told and "open" in told.get("attributes", ("open",)) and not is_hidden


class IndexMonitor:
    """Looks names up in its own thread, every ``index.poll.interval.ms``.

    When the list changes, it requests new task configs. If the cluster refuses the first look, the connector fails;
    later it only warns, since the tasks continue on their own.
    """

    def __init__(self, config: SearchSourceConfig, context: SourceConnectorContext) -> None:
        self._config = config
        self._context = context
        self._client = HttpClient(config.client_settings(1), config.credentials)
        self._stopped = threading.Event()
        self._answered = threading.Event()
        self._names: tuple[str, ...] = ()
        self._is_listed = False
        self._node = 0
        self._thread = threading.Thread(target=self._run, name="search-indexes", daemon=True)

    def start(self) -> None:
        """Start watching."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread; one that waits for the cluster is aborted."""
        self._stopped.set()
        self._client.abort()
        if self._thread.ident is not None:
            self._thread.join(_JOIN_SECONDS)

    def names(self) -> tuple[str, ...]:
        """Wait for the first list, and return the latest; empty if the cluster did not answer in time."""
        self._answered.wait(_FIRST_SECONDS)
        return self._names

    def _run(self) -> None:
        while not self._stopped.is_set():
            is_known = self._look()
            self._stopped.wait(self._config.index_poll_interval_ms / 1000 if is_known else _RETRY_SECONDS)

    def _look(self) -> bool:
        try:
            self._note(matching(self._config.patterns, self._told))
        except RetriableError as error:
            self._context.show_wait(self._client.hide(str(error)))
            return False
        except Exception as error:
            text = self._client.hide(str(error))
            if self._is_listed:
                self._context.show_wait(f"{text} The tasks keep their indexes.")
            elif not self._stopped.is_set():
                self._context.raise_error(ConnectError(text))
                self._stopped.set()
            self._answered.set()
        return True

    def _note(self, found: set[str]) -> None:
        names = tuple(sorted(found))
        is_new = not self._is_listed or names != self._names
        was_listed, self._names, self._is_listed = self._is_listed, names, True
        self._answered.set()
        self._context.show_wait(
            None
            if names or self._config.names
            else f"No index matches {','.join(self._config.patterns)} yet: the source waits until one does. Create "
            "one, or correct index."
        )
        if is_new:
            if was_listed:
                _log.info("The list of indexes has changed: %s.", ", ".join(names) or "none")
            self._context.request_task_reconfiguration()

    def _told(self, path: str) -> Any:
        nodes = self._config.nodes
        node = nodes[self._node % len(nodes)]
        try:
            answer = self._client.send(Request("GET", node + path))
        except NoAnswerError as error:
            self._node += 1
            raise RetriableError(str(error)) from error
        if is_passing(answer):
            raise RetriableError(f"The cluster does not list its indexes: {refusal(answer)}")
        if answer.status == _NOT_FOUND:
            return None
        if not 200 <= answer.status < 300:
            raise ConnectError(
                f"The cluster refuses to list its indexes: {refusal(answer)}. Grant the right view_index_metadata, or "
                "give names without * in index."
            )
        return orjson.loads(answer.body)
