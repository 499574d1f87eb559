"""The request log: a line for each request that was answered."""

from __future__ import annotations

import logging
import time
from typing import Final

from flask import Flask, Response, g, request

from rest.access.caller import caller
from rest.http.paths import raw_path

__all__ = ["log_requests"]

logger = logging.getLogger("rest.requests")

_LONGEST: Final = 2_000


def log_requests(app: Flask) -> None:
    """Have an application log each request with its user, method, path, status and duration.

    A query is left out, for it may hold what is nobody's business; so are headers and bodies.
    """

    app.before_request_funcs.setdefault(None, []).insert(0, _begin)
    # The first of the hooks after a request is the last to be called.
    app.after_request_funcs.setdefault(None, []).insert(0, _log)


def _begin() -> None:
    g.begun = time.monotonic()


def _log(response: Response) -> Response:
    seconds = time.monotonic() - g.begun
    logger.info(
        '%s %s "%s %s" %d %.0f ms',
        caller().address or request.remote_addr or "-",
        _shown(_user() or "-"),
        request.method,
        _shown(raw_path(request.environ)),
        response.status_code,
        seconds * 1000,
    )
    return response


def _user() -> str | None:
    """Who asked: who has signed in, or else whom the client claims to be."""
    principal = caller().principal
    if principal is not None:
        return principal.name
    return request.authorization.username if request.authorization is not None else None


def _shown(text: str) -> str:
    """The text in one line, whatever a client has sent."""
    printable = "".join(character if character.isprintable() else "?" for character in text[:_LONGEST])
    return printable.replace('"', "'").replace(" ", "_")
