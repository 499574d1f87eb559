"""Requests of a worker to the workers that run tasks, for the tasks' metrics, loads and histories.

They change nothing and are repeated: a crash on either side loses nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from http import HTTPStatus
from typing import Any, Final, NamedTuple, TypeVar
from urllib.parse import quote

import orjson

from connect.errors import ConnectError
from worker.metrics.history import Part, Series
from worker.peers.client import PeerClient
from worker.security.request_signatures import worker_headers
from worker.stores.config.store import SessionKey

__all__ = ["OwnerClient", "TaskMeasured", "history_part", "own_numbers", "tasks_measured"]

T = TypeVar("T")
_THREADS: Final = 4


class TaskMeasured(NamedTuple):
    """The latest measurements of a task: its values, and its loads if it is a bulk sink.

    ``old`` are those values that were true only at ``at``, in ISO 8601: the rates and the lag of a task that has ended,
    hangs, or has not reported for a while.
    """

    values: Mapping[str, float] | None
    loads: Mapping[str, Any] | None
    old: Mapping[str, float] | None = None
    at: str | None = None


class OwnerClient:
    """Queries other workers from its own threads; futures fail with a :class:`~connect.errors.ConnectError`.

    ``key`` returns the session key and is called in the thread of the caller; ``algorithm`` is
    ``inter.worker.signature.algorithm``.
    """

    def __init__(
        self,
        peers: PeerClient,
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
        """Query the metrics and loads of a connector's tasks at the worker at ``url``."""
        path = f"{url}connectors/{quote(connector, safe='')}/status?forward=false"
        return self._threads.submit(self._ask, path, self._key(), tasks_measured)

    def history(self, url: str, connector: str | None, step: int, seconds: int) -> Future[Part]:
        """Query the history of the tasks of one connector, or of all, at the worker at ``url``."""
        path = "history" if connector is None else f"connectors/{quote(connector, safe='')}/history"
        path += f"?step={step}&last={seconds}&forward=false"
        return self._threads.submit(self._ask, f"{url}{path}", self._key(), history_part)

    def own_numbers(self, url: str, connector: str) -> Future[list[dict[str, Any]]]:
        """Query the measurements that plugins make in a connector's tasks at the worker at ``url``."""
        path = f"{url}connectors/{quote(connector, safe='')}/measurements?forward=false"
        return self._threads.submit(self._ask, path, self._key(), own_numbers)

    def close(self) -> None:
        """Cancel the requests that have not begun; those under way finish on their own."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _ask(self, url: str, key: SessionKey | None, read: Callable[[Any], T]) -> T:
        signed = {} if key is None else worker_headers(key, self._algorithm, self._worker_id, "GET", url, b"")
        answer = self._peers.ask("GET", url, {"Accept": "application/json", **signed}, b"")
        if answer.status != HTTPStatus.OK:
            raise ConnectError(f"The worker answered GET {url} with {answer.status}")
        try:
            return read(orjson.loads(answer.body))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ConnectError(f"The worker answered GET {url} with an unexpected document") from error


def tasks_measured(status: Mapping[str, Any]) -> dict[int, TaskMeasured]:
    """Return the metrics and loads of another worker's tasks from its answer to a status request."""
    found: dict[int, TaskMeasured] = {}
    for task in status["tasks"]:
        last = task.get("last_metrics") or {}
        found[task["id"]] = TaskMeasured(task.get("metrics"), task.get("loads"), last.get("values"), last.get("at"))
    return found


def own_numbers(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the measurements of another worker's plugins from its answer."""
    return [
        {
            "id": int(task["id"]),
            "worker_id": str(task["worker_id"]),
            "measurements": [
                {name: each[name] for name in ("name", "labels", "value", "help")} for each in task["measurements"]
            ],
        }
        for task in document["tasks"]
    ]


def history_part(histories: Mapping[str, Any]) -> Part:
    """Return the history of another worker's tasks from its answer."""
    series = {
        name: Series(shown["unit"], list(shown["rate"]), list(shown["lag"]))
        for name, shown in histories["connectors"].items()
        if len(shown["rate"]) == len(shown["lag"])
    }
    return Part(histories["end"] // histories["step"], series)
