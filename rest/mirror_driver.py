"""The REST API of a mirror's driver: its flows, and the REST API of each flow's worker below the flow's path.

A flow's worker is a process of its own that listens on the loopback interface; requests are relayed unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from typing import Any, Final
from urllib.parse import urlsplit

from flask import Flask, Response, jsonify, request

from rest.http.paths import RawPaths, raw_path

__all__ = ["FlowState", "create_flows_app"]

_TIMEOUT_SECONDS: Final = 120.0
_METHODS: Final = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
_OF_WORKERS: Final = (
    ("POST", re.compile(r"/connectors/[^/]+/tasks")),
    ("PUT", re.compile(r"/connectors/[^/]+/fence")),
)
"""Requests that the workers of a flow send each other."""

_HOP_BY_HOP: Final = frozenset(
    ("connection", "keep-alive", "te", "trailers", "transfer-encoding", "upgrade", "content-length", "date", "server")
)


@dataclass(frozen=True, slots=True)
class FlowState:
    """The path below which a flow is served, the URL of its worker while that is up, and its number of failures."""

    source: str
    target: str
    path: str
    url: str | None
    failures: int

    def document(self) -> dict[str, Any]:
        """Return the state as users see it."""
        return {
            "flow": f"{self.source}->{self.target}",
            "path": self.path,
            "state": "STARTING" if self.url is None else "RUNNING",
            "failures": self.failures,
        }


def create_flows_app(states: Callable[[], Sequence[FlowState]], *, public: bool) -> Flask:
    """Return the application of a driver; unless it is ``public``, it answers only the workers of other nodes."""
    app = Flask("sluice-mirror", static_folder=None)
    app.wsgi_app = RawPaths(app.wsgi_app)  # type: ignore[method-assign]

    @app.get("/flows")
    def flows() -> Response | tuple[Response, int]:
        return jsonify([state.document() for state in states()]) if public else _nothing()

    @app.route("/<path:_>", methods=_METHODS)
    def relay(_: str) -> Response | tuple[Response, int]:
        asked = raw_path(request.environ)
        found = next((state for state in states() if f"{asked}/".startswith(f"{state.path}/")), None)
        if found is None or not (public or _is_of_workers(request.method, asked.removeprefix(found.path))):
            return _nothing()
        if found.url is None:
            return _refused(
                HTTPStatus.SERVICE_UNAVAILABLE, "The worker of this flow is starting. Try again in a moment."
            )
        return _passed_on(found.url, asked)

    app.register_error_handler(HTTPStatus.NOT_FOUND, lambda _: _nothing())
    app.register_error_handler(HTTPStatus.METHOD_NOT_ALLOWED, lambda _: _nothing())
    return app


def _is_of_workers(method: str, path: str) -> bool:
    return any(method == verb and pattern.fullmatch(path) for verb, pattern in _OF_WORKERS)


def _passed_on(url: str, path: str) -> Response | tuple[Response, int]:
    place = urlsplit(url)
    connection = HTTPConnection(place.hostname or "", place.port, timeout=_TIMEOUT_SECONDS)
    query = request.query_string.decode("latin-1")
    headers = {name: value for name, value in request.headers if name.lower() not in _HOP_BY_HOP}
    try:
        connection.request(request.method, f"{path}?{query}" if query else path, request.get_data(), headers)
        answer = connection.getresponse()
        body = answer.read()
    except (OSError, HTTPException):
        return _refused(
            HTTPStatus.BAD_GATEWAY,
            "The worker of this flow ended. The request may have succeeded: check before you retry.",
        )
    finally:
        connection.close()
    kept = [(name, value) for name, value in answer.getheaders() if name.lower() not in _HOP_BY_HOP]
    return Response(body, answer.status, kept)


def _nothing() -> tuple[Response, int]:
    return _refused(HTTPStatus.NOT_FOUND, "HTTP 404 Not Found")


def _refused(status: HTTPStatus, message: str) -> tuple[Response, int]:
    return jsonify({"error_code": status.value, "message": message}), status.value
