"""The request log."""

from __future__ import annotations

import logging
import re

import pytest
from flask import Flask, Response, abort, request

from rest.access.caller import Caller
from rest.http.paths import RawPaths
from rest.http.request_log import log_requests
from worker.security.principals import Principal


@pytest.fixture
def app() -> Flask:
    app = Flask("t", static_folder=None)
    app.add_url_rule("/connectors/<name>", view_func=lambda name: Response(str(name)))
    app.before_request(_sign_in)
    log_requests(app)
    app.wsgi_app = RawPaths(app.wsgi_app)  # type: ignore[method-assign]
    return app


def _sign_in() -> None:
    if "X-Refused" in request.headers:
        abort(401)
    if (name := request.headers.get("X-Signed-In")) is not None:
        Caller(Principal(name, "BASIC"), address="10.0.0.7").become_current()


@pytest.mark.parametrize(
    ("path", "headers", "line"),
    [
        ("/connectors/a%2Fb?secret=1", {}, '127.0.0.1 - "GET /connectors/a%2Fb" 200 N ms'),
        ("/connectors/a", {"Authorization": "Basic dTo1cA=="}, '127.0.0.1 u "GET /connectors/a" 200 N ms'),
        ("/connectors/a", {"Authorization": "Basic dQo1Ojo="}, '127.0.0.1 u?5 "GET /connectors/a" 200 N ms'),
        ("/connectors/a", {"X-Refused": "1"}, '127.0.0.1 - "GET /connectors/a" 401 N ms'),
        ("/connectors/a", {"X-Signed-In": "ann"}, '10.0.0.7 ann "GET /connectors/a" 200 N ms'),
        ("/nothing", {}, '127.0.0.1 - "GET /nothing" 404 N ms'),
    ],
)
def test_each_request_is_a_line(
    app: Flask, caplog: pytest.LogCaptureFixture, path: str, headers: dict[str, str], line: str
) -> None:
    with caplog.at_level(logging.INFO, "rest.requests"):
        app.test_client().get(path, headers=headers)
    assert [re.sub(r"\d+ ms", "N ms", text) for text in caplog.messages] == [line]
