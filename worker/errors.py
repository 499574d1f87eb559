"""The worker's errors, in addition to those of the plugin API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from connect.errors import ConnectError, NotFoundError

__all__ = [
    "BadRequestError",
    "ChangedMeanwhileError",
    "ConflictError",
    "FencedError",
    "ForbiddenError",
    "ForwardingError",
    "InvalidConnectorError",
    "JavaError",
    "NotAssignedError",
    "NotLeaderError",
    "RebalanceInProgressError",
    "UnavailableError",
    "UnknownConnectorError",
]


class NotLeaderError(ConnectError):
    """Only the leader may do this; ``url`` is the leader's address, if known."""

    def __init__(self, message: str, url: str | None) -> None:
        super().__init__(message)
        self.url = url


class NotAssignedError(ConnectError):
    """Only the worker that runs this may do it; ``url`` is that worker's address, if known."""

    def __init__(self, message: str, url: str | None) -> None:
        super().__init__(message)
        self.url = url


class RebalanceInProgressError(ConnectError):
    """A rebalance is under way; try again in a moment (REST: 409)."""


class FencedError(ConnectError):
    """A newer generation has taken over; this one must not write any more (invariant I6)."""


class BadRequestError(ConnectError):
    """The request is invalid; the message says why (REST: 400)."""


class ForbiddenError(ConnectError):
    """The worker's configuration does not allow this (REST: 403)."""


class UnavailableError(ConnectError):
    """This worker cannot answer yet; try again in a moment, or in ``retry_after`` seconds (REST: 503)."""

    def __init__(self, message: str, retry_after: int | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class UnknownConnectorError(NotFoundError):
    """There is no connector of this name, as far as this worker has read the config topic (REST: 404)."""


class ForwardingError(ConnectError):
    """The worker that a request was forwarded to did not answer; it may have acted on it (REST: 500)."""


class ConflictError(ConnectError):
    """Another operation conflicts with this one; try again in a moment (REST: 409)."""


class ChangedMeanwhileError(ConnectError):
    """The target of a change has changed since the client read it; read it again (REST: 412)."""


class InvalidConnectorError(BadRequestError):
    """A connector's configuration is invalid; ``infos`` has the result of the validation, which warned (REST: 400)."""

    def __init__(self, message: str, infos: Mapping[str, Any], warnings: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.infos = infos
        self.warnings = warnings


class JavaError(ConnectError):
    """A Java plugin, or Kafka Connect's runtime, has thrown an exception; ``trace`` is its stack trace."""

    def __init__(self, message: str, trace: str) -> None:
        super().__init__(message)
        self.trace = trace
