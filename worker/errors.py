"""The errors of the worker beside those of the plugin API."""

from __future__ import annotations

from connect.errors import ConnectError

__all__ = ["FencedError", "NotLeaderError", "RebalanceInProgressError"]


class NotLeaderError(ConnectError):
    """Only the leader may do this; ``url`` is where it listens, if it is known."""

    def __init__(self, message: str, url: str | None) -> None:
        super().__init__(message)
        self.url = url


class RebalanceInProgressError(ConnectError):
    """The cluster is changing hands; ask again in a moment (REST: 409)."""


class FencedError(ConnectError):
    """A newer generation has taken over; this one may write nothing any more (invariant I6)."""
