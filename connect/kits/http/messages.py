"""Requests, responses, and the errors of an exchange. Their texts never show a query, a credential or a header."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

from connect.errors import ConnectError

__all__ = [
    "BrokenResponseError",
    "BusyError",
    "HttpError",
    "InvalidUrlError",
    "NoAnswerError",
    "RejectedError",
    "Request",
    "Response",
    "TimedOutError",
    "TokenError",
    "TooLargeError",
    "UnreadableBodyError",
    "UntrustedError",
    "origin",
    "shown_address",
]

_PORTS: Final = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Request:
    """A request as configured; credentials are added when it is sent."""

    method: str
    url: str = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: bytes | None = field(default=None, repr=False)

    @property
    def shown(self) -> str:
        """The request as shown in errors."""
        return f"{self.method} {shown_address(self.url)}"


@dataclass(frozen=True, slots=True)
class Response:
    """A response with its body; header names are in lower case."""

    status: int
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)
    url: str = field(repr=False)
    """The URL that has answered, after redirects."""


class HttpError(ConnectError):
    """An exchange failed. ``reason`` says why in few words, ``status`` is that of an answer which is an error."""

    is_of_token = False
    """Whether it was the exchange with a token endpoint, on the way to another one."""

    def __init__(self, message: str, reason: str = "", status: int | None = None) -> None:
        super().__init__(message)
        self.reason = reason
        self.status = status


class NoAnswerError(HttpError):
    """A server gave no answer, or only part of one; a retry may help."""


class BusyError(NoAnswerError):
    """A server asks to be tried again, after a ``pause`` of so many seconds if it says one."""

    def __init__(self, status: int, pause: float | None) -> None:
        super().__init__("", f"HTTP status {status}")
        self.pause = pause


class TimedOutError(NoAnswerError):
    """A server sent nothing for too long."""


class UntrustedError(HttpError):
    """The peer of a TLS connection is not trusted."""


class RejectedError(UntrustedError):
    """The peer of a TLS connection does not trust this client."""


class TokenError(HttpError):
    """A token endpoint issued no token: it refused with ``status``, or its answer contains none."""


class BrokenResponseError(HttpError):
    """A response is unusable: too large, or a redirect that may not be followed."""


class TooLargeError(BrokenResponseError):
    """The body of a response is larger than what is taken."""


class InvalidUrlError(BrokenResponseError):
    """A URL is invalid."""


class UnreadableBodyError(BrokenResponseError):
    """The body of a response is encoded in a way that was not asked for."""


def shown_address(url: str) -> str:
    """Return a URL without its query, fragment, user and password, which may be secret."""
    try:
        parts = urlsplit(url)
        place = parts.netloc.rpartition("@")[2]
    except ValueError:
        return "an invalid URL"
    return f"{parts.scheme}://{place}{parts.path}" if place else parts.path


def origin(url: str) -> tuple[str, str, int]:
    """Return scheme, host and port of a URL, which credentials belong to. Raises ``ValueError`` for other URLs."""
    parts = urlsplit(url)
    scheme = parts.scheme.lower()
    if scheme not in _PORTS or not parts.hostname:
        raise ValueError("it must begin with http:// or https://")
    return scheme, parts.hostname.lower().rstrip("."), parts.port or _PORTS[scheme]
