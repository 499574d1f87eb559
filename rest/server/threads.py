"""Thread pools for requests: each kind has threads reserved, so that no kind can block another."""

from __future__ import annotations

import time
from collections.abc import Mapping
from enum import Enum
from typing import Any, Final
from urllib.parse import parse_qs

from waitress.task import ThreadedTaskDispatcher

__all__ = ["THREADS", "RequestKind", "RequestThreads", "kind_of"]


class RequestKind(Enum):
    """A kind of request."""

    HEALTH = "health"
    """Health probes, and requests that are refused."""
    PEER = "peer"
    """Requests of other workers: without them tasks are not started, and statuses lack their metrics."""
    PASSED_ON = "passed on"
    """Requests of users, forwarded by another worker."""
    READ = "read"
    """Requests that the worker answers from memory."""
    OTHER = "other"
    """All other requests: they may wait for a plugin, Kafka or another worker, for up to 90 s."""


THREADS: Final[Mapping[RequestKind, int]] = {
    RequestKind.HEALTH: 2,
    RequestKind.PEER: 4,
    RequestKind.PASSED_ON: 16,
    RequestKind.READ: 6,
    RequestKind.OTHER: 32,
}
_PROBED: Final = ("", "/health", "/health/live", "/health/ready")
_OF_PEERS: Final = (("POST", "tasks"), ("PUT", "fence"))
_READS: Final = ("GET", "HEAD", "OPTIONS")
_SLOW_READS: Final = ("offsets", "lag", "dlq", "history", "measurements")
_PLUGIN_KEYS: Final = ("connector-plugins", "config")
_HISTORY: Final = ["history"]
_SEGMENTS: Final = 3
_PAGES: Final = "ui"
_FILES: Final = "static"


class RequestThreads:
    """Answers the requests of channels, each kind in its own threads."""

    def __init__(self) -> None:
        self._pools = {kind: ThreadedTaskDispatcher() for kind in RequestKind}
        for kind, pool in self._pools.items():
            # Waitress would log each waiting request.
            pool.queue_logger.disabled = True
            pool.set_thread_count(THREADS[kind])

    def add_task(self, channel: Any) -> None:
        """Answer the first request of a channel."""
        request = channel.requests[0]
        refused = request.error is not None
        kind = RequestKind.HEALTH if refused else kind_of(request.command, request.request_uri)
        self._pools[kind].add_task(channel)

    def shutdown(self, seconds: float) -> None:
        """Start no more requests, and wait up to the timeout for those being answered."""
        deadline = time.monotonic() + seconds
        for pool in self._pools.values():
            pool.set_thread_count(0)
        for pool in self._pools.values():
            pool.shutdown(timeout=max(0.0, deadline - time.monotonic()))


def kind_of(method: str, uri: str) -> RequestKind:
    """Return the kind of a request."""
    path, _, query = uri.partition("?")
    segments = path.strip("/").split("/")
    forward = parse_qs(query).get("forward", [""])[0]
    if path.rstrip("/") in _PROBED:
        return RequestKind.HEALTH
    is_from_peer = (method, forward) == ("GET", "false") and (len(segments) == _SEGMENTS or segments == _HISTORY)
    if is_from_peer or (len(segments) == _SEGMENTS and (method, segments[-1]) in _OF_PEERS):
        return RequestKind.PEER
    if forward:
        return RequestKind.PASSED_ON
    is_page = segments[0] == _PAGES and segments[1:2] != [_FILES]
    is_slow = is_page or segments[-1] in _SLOW_READS or (segments[0], segments[-1]) == _PLUGIN_KEYS
    return RequestKind.READ if method in _READS and not is_slow else RequestKind.OTHER
