"""The URLs of a registry, of an issuer of tokens and of a proxy, as they are configured."""

from __future__ import annotations

import re
from typing import Final

from connect.config import HIDDEN, invalid_value
from connect.config.url import HttpUrl, http_url

__all__ = ["issuer_url", "proxy_url", "registry_url"]

_HOST: Final = re.compile(r"[^\s/@?#\\\[\]:]+|\[?[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*\]?")


def registry_url(key: str, text: str) -> HttpUrl:
    """The URL of a registry; a :class:`~connect.errors.ConfigError` that does not show it if it is none."""
    url = _usable(key, text)
    if url.query:
        raise invalid_value(key, HIDDEN, "A URL of a registry has no query: leave out the ? and what follows")
    return url


def issuer_url(key: str, text: str) -> HttpUrl:
    """The URL that gives tokens; errors as of :func:`registry_url`."""
    url = _usable(key, text)
    if url.user_info is not None:
        reason = "It has a user: set bearer.auth.client.id and bearer.auth.client.secret, and leave it out of the URL"
        raise invalid_value(key, HIDDEN, reason)
    return url


def proxy_url(host: str, port: int) -> str | None:
    """The URL of a proxy, ``None`` if there is none; errors as of :func:`registry_url`."""
    if not host or port <= 0:
        return None
    if not _HOST.fullmatch(host) or port > 65535:
        reason = "It must be the name or the address of a host alone; proxy.port is from 1 to 65535"
        raise invalid_value("proxy.host", HIDDEN, reason)
    place = f"[{host.strip('[]')}]" if ":" in host else host
    return _usable("proxy.host", f"http://{place}:{port}").address


def _usable(key: str, text: str) -> HttpUrl:
    try:
        return http_url(text)
    except ValueError as error:
        # The URL may hold a password, so it is not shown, and this error shows nothing of it.
        raise invalid_value(key, HIDDEN, f"This is no URL to ask: {error}") from error
