"""The request log: one line for each answered request."""

from __future__ import annotations

import logging
import time
from typing import Final

from flask import Flask, Response, g, request

from rest.access.caller import caller
from rest.http.paths import raw_path

__all__ = ["log_requests"]

logger = logging.getLogger("rest.requests")

_MOST_CHARACTERS: Final = 2_000


def log_requests(app: Flask) -> None:
    """Log each request of an application with its user, method, path, status and duration.

    Queries, headers and bodies are left out, since they may contain confidential data.
    """

    app.before_request_funcs.setdefault(None, []).insert(0, _begin)
    # The first after_request hook is called last.
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
    """Return the authenticated user, or else the user name that the client claims."""
    principal = caller().principal
    if principal is not None:
        return principal.name
    return request.authorization.username if request.authorization is not None else None


def _shown(text: str) -> str:
    """Return a text sent by a client on one line."""
    printable = "".join(character if character.isprintable() else "?" for character in text[:_MOST_CHARACTERS])
    return printable.replace('"', "'").replace(" ", "_")
