"""Limits on the size and duration of requests, and the answers to requests that exceed them."""

from __future__ import annotations

import resource
import time
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Any, Final

import orjson
from waitress.parser import HTTPRequestParser
from waitress.task import ErrorTask
from waitress.utilities import RequestEntityTooLarge, RequestHeaderFieldsTooLarge

__all__ = ["LIMITS", "BoundedRequest", "Limits", "Refusal", "is_late"]


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a server."""

    head_bytes: int = 8 * 1024
    """For the request line with all headers, as in Kafka Connect's server; also for the lines between chunks."""
    body_bytes: int = 16 * 1024 * 1024
    body_bytes_in_memory: int = 64 * 1024
    """The part of a body beyond this is kept in a file until a thread answers the request."""
    all_bodies_bytes: int = 128 * 1024 * 1024
    """For all bodies that a listener holds at once."""
    connections: int = 512
    """Each connection takes a file descriptor; see :meth:`within_open_files`."""
    patience_seconds: float = 10.0
    """For a whole head, and for a body in addition to the time that its size allows."""
    body_bytes_per_second: int = 4096
    idle_seconds: float = 30.0
    idle_seconds_when_full: float = 1.0
    """For idle connections while there are as many as allowed."""

    def within_open_files(self) -> Limits:
        """Return the limits with at most half as many connections as files that the process may open."""
        most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        if most == resource.RLIM_INFINITY:
            return self
        return replace(self, connections=min(self.connections, max(most // 2, _FEWEST_CONNECTIONS)))


LIMITS: Final = Limits()
_FEWEST_CONNECTIONS: Final = 16
_FRAMING_BYTES: Final = 64 * 1024
_CONTENT_PER_FRAMING: Final = 16
"""Each chunk takes time, however small: 16 MiB in chunks of a byte would hold up all clients for half a minute."""


class BoundedRequest(HTTPRequestParser):  # type: ignore[misc]
    """A request that is being received. ``adj`` holds the limits of heads and bodies."""

    def __init__(self, adj: Any) -> None:
        super().__init__(adj)
        self.began = time.monotonic()

    def received(self, data: bytes) -> int:
        """Take the bytes that belong to this request, and return their number."""
        consumed: int = super().received(data)
        if isinstance(self.error, RequestHeaderFieldsTooLarge):
            is_line = b"\n" not in self.header_plus + data
            most = f"The request line and the headers may have {self.adj.max_request_header_size - 1} bytes together."
            too_large = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
            self.refuse(HTTPStatus.REQUEST_URI_TOO_LONG if is_line else too_large, most)
        elif isinstance(self.error, RequestEntityTooLarge):
            most = f"A body has at most {self.adj.max_request_body_size - 1} bytes."
            self.refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, most)
        elif self.chunked and self._framing_bytes() > _FRAMING_BYTES + len(self.body_rcv) // _CONTENT_PER_FRAMING:
            self.refuse(HTTPStatus.BAD_REQUEST, "Send the body in larger chunks.")
        elif self.chunked and not self.completed and self._line_bytes() >= self.adj.max_request_header_size:
            # Waitress searches the whole line again with each piece that arrives.
            self.refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "Shorten the lines between chunks.")
        if self.error is not None:
            self.expect_continue = False
        return consumed

    def refuse(self, status: HTTPStatus, reason: str) -> None:
        """Stop receiving, and answer the client with this status and reason."""
        self.error = _Refused(status, reason)
        self.version = "1.1"
        self.completed = True

    def _framing_bytes(self) -> int:
        return int(self.body_bytes_received) - len(self.body_rcv)

    def _line_bytes(self) -> int:
        return max(len(self.body_rcv.control_line), len(self.body_rcv.trailer))


@dataclass(frozen=True, slots=True)
class _Refused:
    code: HTTPStatus
    body: str


class Refusal(ErrorTask):  # type: ignore[misc]
    """Answers a malformed or oversized request before any app sees it, and closes the connection."""

    def execute(self) -> None:
        """Write the answer."""
        error = self.request.error
        phrase = HTTPStatus(error.code).phrase
        message = f"HTTP {int(error.code)} {phrase}: {error.body}"
        body = orjson.dumps({"error_code": int(error.code), "message": message})
        self.version = "1.1"
        self.status = f"{int(error.code)} {phrase}"
        self.response_headers.append(("Content-Type", "application/json"))
        self.set_close_on_finish()
        self.content_length = len(body)
        self.write(body)


def is_late(seconds: float, body_bytes: int, limits: Limits) -> bool:
    """Return whether an incomplete request is too slow, given the body bytes received and the seconds passed.

    The average counts, not the last piece: a client that sends one byte now and then would never be late.
    """
    return seconds > limits.patience_seconds + body_bytes / limits.body_bytes_per_second
