"""Waiting for the herder, for as long as a client is to wait."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TypeVar

from connect.errors import ConnectError
from worker.herder.inbox import Request

__all__ = ["Patience", "RequestTimeoutError"]

T = TypeVar("T")


class RequestTimeoutError(ConnectError):
    """The worker did not come to an answer in time (REST: 500)."""


class Patience:
    """Waits for so many seconds."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def wait(self, request: Request[T]) -> T:
        """The result of a request; :class:`RequestTimeoutError` when there is none in time."""
        try:
            return request.result(self._seconds)
        except TimeoutError:
            stage, since = request.stage
            began = datetime.fromtimestamp(since, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
            raise RequestTimeoutError(
                f"Request timed out. The worker is currently {stage}, which began at {began}"
            ) from None
