"""Waiting for the herder's answers, up to the request timeout."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TypeVar

from connect.errors import ConnectError
from worker.herder.requests import Request

__all__ = ["Patience", "RequestTimeoutError"]

T = TypeVar("T")


class RequestTimeoutError(ConnectError):
    """The worker did not answer in time (REST: 500)."""


class Patience:
    """Waits for results, each up to a number of seconds."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def wait(self, request: Request[T]) -> T:
        """Return the result of a request. Raises :class:`RequestTimeoutError` if it does not arrive in time."""
        try:
            return request.result(self._seconds)
        except TimeoutError:
            stage, since = request.stage
            began = datetime.fromtimestamp(since, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
            raise RequestTimeoutError(
                f"Request timed out. The worker is currently {stage}, which began at {began}"
            ) from None
