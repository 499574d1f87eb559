"""The log of a connector, from all workers that run its units."""

from __future__ import annotations

import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit

import click

from rest.client import RestClient, RestError
from worker.cli.options import client_of

__all__ = ["ConnectorLogs"]

_EVERY_SECONDS: Final = 1.0
_MOST_LINES: Final = 10_000


@dataclass(frozen=True, slots=True)
class _Worker:
    """A worker whose log is read, and the position reached."""

    client: RestClient
    position: int = 0
    answers: bool = True


class ConnectorLogs:
    """Prints what workers have logged for one connector. Other workers are contacted with the scheme of ``client``."""

    def __init__(self, client: RestClient, connector: str) -> None:
        self._client = client
        self._connector = connector
        self._workers: dict[str, _Worker] = {}

    def print(self, lines: int, *, follow: bool) -> None:
        """Print the last ``lines``; with ``follow``, also new ones until Ctrl-C.

        Without ``follow``, say on the standard error stream if there are none.
        """
        if not follow:
            if not self._print_new(lines) and lines:
                answering = ", ".join(worker_id for worker_id, worker in self._workers.items() if worker.answers)
                click.echo(f"{self._connector} has logged nothing on {answering}.", err=True)
            return
        with suppress(KeyboardInterrupt):
            self._print_new(lines)
            while True:
                time.sleep(_EVERY_SECONDS)
                self._print_new(_MOST_LINES)

    def _print_new(self, most: int) -> int:
        """Print new lines, at most so many; return how many there are."""
        first = self._lines(self._client, self._position_of(self._client), most)
        self._workers[first["worker_id"]] = _Worker(self._client, first["next"])
        found = list(first["lines"])
        for worker_id in self._others():
            found += self._lines_of(worker_id, most)
        # Each line begins with its time.
        for line in sorted(found, key=lambda line: line.partition("]")[0])[-most:] if most else ():
            click.echo(line)
        return len(found)

    def _lines_of(self, worker_id: str, most: int) -> list[str]:
        worker = self._workers.get(worker_id) or _Worker(client_of(self._url_of(worker_id)))
        try:
            answer = self._lines(worker.client, worker.position, most)
        except RestError as error:
            if worker.answers:
                click.echo(f"Worker {worker_id} does not tell its lines: {error}", err=True)
            self._workers[worker_id] = replace(worker, answers=False)
            return []
        self._workers[worker_id] = replace(worker, position=answer["next"], answers=True)
        return list(answer["lines"])

    def _lines(self, client: RestClient, position: int, most: int) -> dict[str, Any]:
        path = client.connector_path(self._connector, "logs")
        answer: dict[str, Any] = client.get(path, after=position, lines=most)
        return answer

    def _position_of(self, client: RestClient) -> int:
        return next((worker.position for worker in self._workers.values() if worker.client is client), 0)

    def _others(self) -> Iterable[str]:
        """Return the other workers that run units of the connector now, or ran them before."""
        status = self._client.get(self._client.connector_path(self._connector, "status"))
        running = {part["worker_id"] for part in (status["connector"], *status["tasks"])} - {""}
        asked = {worker_id for worker_id, worker in self._workers.items() if worker.client is self._client}
        return sorted((running | self._workers.keys()) - asked)

    def _url_of(self, worker_id: str) -> str:
        return urlunsplit((urlsplit(self._client.url).scheme, worker_id, "", "", ""))
