"""Request paths in which a connector's name may contain an escaped slash (``%2F``)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final
from urllib.parse import quote, unquote, urlsplit

from werkzeug.routing import BaseConverter, Rule

__all__ = ["EscapedName", "MatchingRule", "RawPaths", "escaped", "raw_path", "sent_path"]

_PREFIX: Final = "sluice.prefix"

Wsgi = Callable[[dict[str, Any], Any], Iterable[bytes]]


class EscapedName(BaseConverter):
    """One path segment, in which any character may be escaped."""

    regex = "[^/]+"
    part_isolating = True

    def to_python(self, value: str) -> str:
        """Return the name that a segment encodes."""
        return unquote(value)

    def to_url(self, value: str) -> str:
        """Return a name encoded as a segment."""
        return escaped(value)


class MatchingRule(Rule):
    """A rule that matches paths, and compiles its URL builder only on demand.

    The application never builds URLs, and compiling the builders is most of the cost of creating it.
    """

    def _compile_builder(self, append_unknown: bool = True) -> Callable[..., tuple[str, str]]:
        compiled = super()._compile_builder

        def build(rule: Rule, **values: Any) -> tuple[str, str]:
            return compiled(append_unknown)(rule, **values)

        return build


class RawPaths:
    """Makes an application route by the path as it was sent, so that an escaped slash does not separate segments.

    A trailing slash makes no difference. ``prefix`` is an optional path under which a relay serves the application;
    requests may arrive with or without it.
    """

    def __init__(self, app: Wsgi, prefix: str = "") -> None:
        self._app = app
        self._prefix = prefix

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        """Answer a WSGI request."""
        raw = environ.get("REQUEST_URI") or environ["PATH_INFO"]
        path = raw.partition("?")[0]
        if not path.startswith("/"):
            # Clients of a proxy send the whole URL.
            path = urlsplit(path).path
        if self._prefix and f"{path}/".startswith(f"{self._prefix}/"):
            environ[_PREFIX] = self._prefix
            path = path.removeprefix(self._prefix)
        environ["PATH_INFO"] = path.rstrip("/") or "/"
        return self._app(environ, start_response)


def raw_path(environ: Mapping[str, Any]) -> str:
    """Return the path of a request behind :class:`RawPaths`, with its original escapes."""
    return str(environ["PATH_INFO"])


def sent_path(environ: Mapping[str, Any]) -> str:
    """Return the same path as :func:`raw_path`, including the prefix that the sender has put before it."""
    return f"{environ.get(_PREFIX, '')}{raw_path(environ)}"


def escaped(name: str) -> str:
    """Return a name escaped as one path segment."""
    return quote(name, safe="")
