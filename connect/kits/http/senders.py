"""Threads that send requests and hand over the answers."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Generic, TypeVar

from connect.kits.http.client import HttpClient
from connect.kits.http.messages import Request, Response

__all__ = ["Answered", "Senders"]

J = TypeVar("J")


@dataclass(frozen=True, slots=True)
class Answered(Generic[J]):
    """What became of a job's request: a response, or an error."""

    job: J
    response: Response | None
    error: Exception | None


class Senders(Generic[J]):
    """Sends the requests of jobs by several threads. One thread gives the jobs and takes the answers."""

    def __init__(self, client: HttpClient, count: int, name: str, keep_bytes: int | None = None) -> None:
        self._client = client
        self._keep_bytes = keep_bytes
        self._jobs: SimpleQueue[tuple[J, Request] | None] = SimpleQueue()
        self._answers: SimpleQueue[Answered[J]] = SimpleQueue()
        self._threads = [threading.Thread(target=self._run, name=f"{name} {n}", daemon=True) for n in range(count)]
        for thread in self._threads:
            thread.start()

    def send(self, job: J, request: Request) -> None:
        """Have a request sent; of its answer only ``keep_bytes`` are kept, if that was given."""
        self._jobs.put((job, request))

    def take(self, seconds: float) -> Answered[J] | None:
        """Return the next answer, or None if there is none in time."""
        try:
            return self._answers.get(timeout=seconds) if seconds > 0 else self._answers.get_nowait()
        except Empty:
            return None

    def close(self) -> None:
        """Let the threads end; what is under way is up to the client."""
        for _ in self._threads:
            self._jobs.put(None)

    def _run(self) -> None:
        while (given := self._jobs.get()) is not None:
            job, request = given
            try:
                self._answers.put(Answered(job, self._client.send(request, keep=self._keep_bytes), None))
            except Exception as error:
                self._answers.put(Answered(job, None, error))
