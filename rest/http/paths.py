"""Paths of requests, in which a connector's name may hold an escaped slash (``%2F``)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final
from urllib.parse import quote, unquote, urlsplit

from werkzeug.routing import BaseConverter, Rule

__all__ = ["EscapedName", "MatchingRule", "RawPaths", "escaped", "raw_path", "sent_path"]

_PREFIX: Final = "sluice.prefix"

Wsgi = Callable[[dict[str, Any], Any], Iterable[bytes]]


class EscapedName(BaseConverter):
    """One segment of a path, in which any character may be escaped."""

    regex = "[^/]+"
    part_isolating = True

    def to_python(self, value: str) -> str:
        """Return the name that a segment stands for."""
        return unquote(value)

    def to_url(self, value: str) -> str:
        """Return the segment that stands for a name."""
        return escaped(value)


class MatchingRule(Rule):
    """A rule that matches paths, and compiles what builds them only where somebody asks for a URL.

    The application never does so, and the code of all builders is most of what it costs to make one.
    """

    def _compile_builder(self, append_unknown: bool = True) -> Callable[..., tuple[str, str]]:
        compiled = super()._compile_builder

        def build(rule: Rule, **values: Any) -> tuple[str, str]:
            return compiled(append_unknown)(rule, **values)

        return build


class RawPaths:
    """Makes an application route by the path as it was sent, so that an escaped slash does not divide a segment.

    A slash at the end makes no difference. ``prefix`` is a path below which others reach the application through a
    relay: it may be there or not.
    """

    def __init__(self, app: Wsgi, prefix: str = "") -> None:
        self._app = app
        self._prefix = prefix

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        """Answer a request (WSGI)."""
        raw = environ.get("REQUEST_URI") or environ["PATH_INFO"]
        path = raw.partition("?")[0]
        if not path.startswith("/"):
            # A proxy's client sends the whole URL.
            path = urlsplit(path).path
        if self._prefix and f"{path}/".startswith(f"{self._prefix}/"):
            environ[_PREFIX] = self._prefix
            path = path.removeprefix(self._prefix)
        environ["PATH_INFO"] = path.rstrip("/") or "/"
        return self._app(environ, start_response)


def raw_path(environ: Mapping[str, Any]) -> str:
    """Return the path of a request behind :class:`RawPaths`, with its escapes as they were sent."""
    return str(environ["PATH_INFO"])


def sent_path(environ: Mapping[str, Any]) -> str:
    """Return the path as :func:`raw_path` does, below the prefix that its sender has put before it."""
    return f"{environ.get(_PREFIX, '')}{raw_path(environ)}"


def escaped(name: str) -> str:
    """Return a name escaped as one segment of a path."""
    return quote(name, safe="")
