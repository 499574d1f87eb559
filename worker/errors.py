"""The errors of the worker beside those of the plugin API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from connect.errors import ConnectError

__all__ = [
    "BadRequestError",
    "ConflictError",
    "FencedError",
    "ForbiddenError",
    "ForwardingError",
    "InvalidConnectorError",
    "NotAssignedError",
    "NotLeaderError",
    "RebalanceInProgressError",
    "UnavailableError",
]


class NotLeaderError(ConnectError):
    """Only the leader may do this; ``url`` is where it listens, if it is known."""

    def __init__(self, message: str, url: str | None) -> None:
        super().__init__(message)
        self.url = url


class NotAssignedError(ConnectError):
    """Only the worker that runs this may do it; ``url`` is where that one listens, if it is known."""

    def __init__(self, message: str, url: str | None) -> None:
        super().__init__(message)
        self.url = url


class RebalanceInProgressError(ConnectError):
    """The cluster is changing hands; ask again in a moment (REST: 409)."""


class FencedError(ConnectError):
    """A newer generation has taken over; this one may write nothing any more (invariant I6)."""


class BadRequestError(ConnectError):
    """What was asked for is wrong, and why (REST: 400)."""


class ForbiddenError(ConnectError):
    """The worker's configuration does not allow this (REST: 403)."""


class UnavailableError(ConnectError):
    """This worker cannot do it yet, or not now; ask again in a moment (REST: 503)."""


class ForwardingError(ConnectError):
    """Another worker, which this was passed on to, gave no answer; whether it did it is not known (REST: 500)."""


class ConflictError(ConnectError):
    """Something else is being done that this would disturb; ask again in a moment (REST: 409)."""


class InvalidConnectorError(BadRequestError):
    """A connector's configuration is refused; ``infos`` has everything that was found (REST: 400)."""

    def __init__(self, message: str, infos: Mapping[str, Any]) -> None:
        super().__init__(message)
        self.infos = infos
