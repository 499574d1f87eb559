"""HTTP URLs whose user and password are separated from the address and never shown."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import SplitResult, unquote, urlsplit

from connect.config.password import HIDDEN, Password

__all__ = ["HttpUrl", "http_url", "shown_url"]

_ENCODED: Final = "write / ? # @ [ ] and , in a user or a password as %2F %3F %23 %40 %5B %5D and %2C"
_OUT_OF_PLACE: Final = re.compile(r"[\s\x00-\x20\x7f\\]")


@dataclass(frozen=True, slots=True)
class HttpUrl:
    """A URL that shows neither user and password nor its query."""

    address: str
    """Scheme, host, port and path, without a slash at the end: shown to users, and the base of other paths."""
    query: str = ""
    """The part after ``?``; it may hold a secret and is not shown."""
    user_info: Password | None = None
    """``<user>:<password>``, decoded."""

    def __repr__(self) -> str:
        return f"HttpUrl({self.address!r})"

    @property
    def full(self) -> str:
        """The address with the query."""
        return f"{self.address}?{self.query}" if self.query else self.address


def http_url(text: str) -> HttpUrl:
    """Parse a URL.

    Raises ``ValueError`` for text that is not a URL. The error gives the reason; like its cause, it shows nothing of
    the text.
    """
    text = text.strip()
    if _OUT_OF_PLACE.search(text):
        raise ValueError("it holds a space, a backslash or a control character")
    try:
        parts = urlsplit(text)
        host, _port = parts.hostname, parts.port
        if host and ":" not in host:
            host.encode("idna")  # refuses what no resolver takes
    except ValueError:
        # The reason quotes what it does not understand, which may be the password: it is not chained.
        raise ValueError(f"its host or port is invalid: {_ENCODED}") from None
    if parts.scheme not in ("http", "https"):
        raise ValueError("it must begin with http:// or https://")
    if not host:
        raise ValueError("it names no host")
    if host.startswith("*"):
        raise ValueError("its host is a pattern")
    if "@" in parts.path + parts.query + parts.fragment:
        raise ValueError(f"it has an @ after its host: {_ENCODED}")
    if parts.fragment or text.endswith("#"):
        raise ValueError(f"it has a #: {_ENCODED}")
    place = parts.netloc.rpartition("@")[2]
    return HttpUrl(f"{parts.scheme}://{place}{parts.path.rstrip('/')}", parts.query, _user_info(parts))


def _user_info(parts: SplitResult) -> Password | None:
    if parts.username is None:
        return None
    try:
        return Password(":".join(unquote(part, errors="strict") for part in (parts.username, parts.password or "")))
    except UnicodeDecodeError:
        raise ValueError("its user or password is not UTF-8 after percent decoding") from None


def shown_url(text: str) -> str:
    """Return the text of a URL, valid or not, with its user and password hidden."""
    head, at, tail = text.rpartition("@")
    if not at:
        return text
    scheme, separator, _ = head.partition("://")
    return f"{scheme}://{HIDDEN}@{tail}" if separator else f"{HIDDEN}@{tail}"
