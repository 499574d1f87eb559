"""Requests of a worker's own to the workers that run tasks, for the metrics and loads of these.

They change nothing and are repeated: a crash on either side loses nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from http import HTTPStatus
from typing import Any, Final

import orjson

from connect.errors import ConnectError
from rest.http.paths import escaped
from rest.peers.forwarding import Peers
from rest.peers.identities import worker_headers
from worker.metrics.measurements import TaskMeasured
from worker.stores.config.store import SessionKey

__all__ = ["OwnerClient", "tasks_measured"]

_THREADS: Final = 4


class OwnerClient:
    """Asks other workers in threads of its own; futures fail with a :class:`~connect.errors.ConnectError`.

    ``key`` is called by whoever asks, and gives the session key; ``algorithm`` is ``inter.worker.signature.algorithm``.
    """

    def __init__(
        self,
        peers: Peers,
        key: Callable[[], SessionKey | None] = lambda: None,
        algorithm: str = "HmacSHA256",
        worker_id: str = "",
    ) -> None:
        self._peers = peers
        self._key = key
        self._algorithm = algorithm
        self._worker_id = worker_id
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="owner-client")

    def measured(self, url: str, connector: str) -> Future[Mapping[int, TaskMeasured]]:
        """Ask the worker at ``url`` for what it knows of a connector's tasks."""
        path = f"{url}connectors/{escaped(connector)}/status?forward=false"
        return self._threads.submit(self._ask, path, self._key())

    def close(self) -> None:
        """Cancel the requests that have not begun; the others end by themselves."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _ask(self, url: str, key: SessionKey | None) -> Mapping[int, TaskMeasured]:
        signed = {} if key is None else worker_headers(key, self._algorithm, self._worker_id, "GET", url, b"")
        answer = self._peers.ask("GET", url, {"Accept": "application/json", **signed}, b"")
        if answer.status != HTTPStatus.OK:
            raise ConnectError(f"The worker answered GET {url} with {answer.status}")
        try:
            return tasks_measured(orjson.loads(answer.body))
        except (orjson.JSONDecodeError, KeyError, TypeError) as error:
            raise ConnectError(f"The worker answered GET {url} with something other than a status") from error


def tasks_measured(status: Mapping[str, Any]) -> dict[int, TaskMeasured]:
    """What another worker knows of its tasks, by its answer to the request for a status."""
    return {task["id"]: TaskMeasured(task.get("metrics"), task.get("loads")) for task in status["tasks"]}
