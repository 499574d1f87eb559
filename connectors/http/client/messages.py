"""Requests, responses, and the errors of an exchange. None of their texts shows a query, a credential or a header."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

from connect.errors import ConnectError

__all__ = [
    "BrokenResponseError",
    "NoAnswerError",
    "Request",
    "Response",
    "TimedOutError",
    "UntrustedError",
    "origin",
    "shown_address",
]

_PORTS: Final = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Request:
    """A request as it is configured; credentials are added when it is sent."""

    method: str
    url: str = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: bytes | None = field(default=None, repr=False)

    @property
    def shown(self) -> str:
        """The request as errors show it."""
        return f"{self.method} {shown_address(self.url)}"


@dataclass(frozen=True, slots=True)
class Response:
    """A response whose body has been read; the names of its headers are in lower case."""

    status: int
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)
    url: str = field(repr=False)
    """The URL that has answered, after redirects."""


class NoAnswerError(ConnectError):
    """A server gave no answer, or only a part of one; another try may help."""


class TimedOutError(NoAnswerError):
    """A server said nothing for too long."""


class UntrustedError(ConnectError):
    """The other side of a TLS connection is not trusted, or does not trust this one."""


class BrokenResponseError(ConnectError):
    """A response cannot be used: it is too large, or redirects where no request may go."""


def shown_address(url: str) -> str:
    """A URL without what may be secret: the query, the fragment, and the user and password."""
    try:
        parts = urlsplit(url)
        place = parts.netloc.rpartition("@")[2]
    except ValueError:
        return "an invalid URL"
    return f"{parts.scheme}://{place}{parts.path}" if place else parts.path


def origin(url: str) -> tuple[str, str, int]:
    """Scheme, host and port of a URL: what credentials belong to. Raises ``ValueError`` if it is no URL of HTTP."""
    parts = urlsplit(url)
    scheme = parts.scheme.lower()
    if scheme not in _PORTS or not parts.hostname:
        raise ValueError("it is no URL that begins with http:// or https://")
    return scheme, parts.hostname.lower().rstrip("."), parts.port or _PORTS[scheme]
