"""What a client may send and how long it may take for it, and what it is told when it goes beyond that."""

from __future__ import annotations

import time
from dataclasses import dataclass
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
    """Of the request line with all headers, as in Kafka Connect's server; also of the lines between chunks."""
    body_bytes: int = 16 * 1024 * 1024
    body_bytes_in_memory: int = 64 * 1024
    """What a body has beyond that is in a file until a thread answers the request."""
    all_bodies_bytes: int = 128 * 1024 * 1024
    """Of the bodies that a listener holds at once."""
    connections: int = 512
    """Files are open for them, and the usual limit of a process is 1024."""
    patience_seconds: float = 10.0
    """For a whole head, and for a body beside the time that its size takes."""
    body_bytes_per_second: int = 4096
    idle_seconds: float = 30.0
    idle_seconds_when_full: float = 1.0
    """Of connections that send and take nothing, if there are as many as there may be."""


LIMITS: Final = Limits()
_FRAMING_BYTES: Final = 64 * 1024
_CONTENT_PER_FRAMING: Final = 16
"""Each chunk takes time, however small it is: 16 MiB in chunks of a byte, half a minute of all clients' thread."""


class BoundedRequest(HTTPRequestParser):  # type: ignore[misc]
    """What has come of a request. ``adj`` has the limits of heads and bodies."""

    def __init__(self, adj: Any) -> None:
        super().__init__(adj)
        self.began = time.monotonic()

    def received(self, data: bytes) -> int:
        """Take what belongs to this request; how many bytes."""
        consumed: int = super().received(data)
        if isinstance(self.error, RequestHeaderFieldsTooLarge):
            is_line = b"\n" not in self.header_plus + data
            most = (
                f"The request line and the headers have at most {self.adj.max_request_header_size - 1} bytes together."
            )
            too_large = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
            self.refuse(HTTPStatus.REQUEST_URI_TOO_LONG if is_line else too_large, most)
        elif isinstance(self.error, RequestEntityTooLarge):
            most = f"A body has at most {self.adj.max_request_body_size - 1} bytes."
            self.refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, most)
        elif self.chunked and self._framing_bytes() > _FRAMING_BYTES + len(self.body_rcv) // _CONTENT_PER_FRAMING:
            self.refuse(HTTPStatus.BAD_REQUEST, "Send the body in larger chunks.")
        elif self.chunked and not self.completed and self._line_bytes() >= self.adj.max_request_header_size:
            # Each piece of such a line is searched together with all before it.
            self.refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "Shorten the lines between chunks.")
        if self.error is not None:
            self.expect_continue = False
        return consumed

    def refuse(self, status: HTTPStatus, reason: str) -> None:
        """Wait for no more of it; the client is told why."""
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
    """Answers what is no request, or too much of one, before any app sees it. The connection ends with it."""

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
    """Whether a request that is not complete after so many seconds, and has so many bytes of its body, is given up.

    The whole counts, not the last piece: a client that sends a byte now and then would never be late.
    """
    return seconds > limits.patience_seconds + body_bytes / limits.body_bytes_per_second
