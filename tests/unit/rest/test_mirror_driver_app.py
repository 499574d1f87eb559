"""The REST API of a mirror's driver."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from flask.testing import FlaskClient

from rest.mirror_driver import FlowState, create_flows_app


class _Echo(BaseHTTPRequestHandler):
    """Answers with what it was asked."""

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        text = f"{self.command} {self.path} {self.headers.get('X-Mark')} {body.decode()}".encode()
        self.send_response(201)
        self.send_header("Content-Length", str(len(text)))
        self.send_header("Set-Cookie", "a=b")
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_POST = do_PUT = do_DELETE = _answer  # noqa: N815

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@pytest.fixture(scope="module")
def worker() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Echo)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def _client(url: str | None, *, public: bool) -> FlaskClient:
    return create_flows_app(lambda: [FlowState("A", "B", "/A/B", url, 0)], public=public).test_client()


def test_requests_are_passed_on_whole(worker: str) -> None:
    client = _client(worker, public=True)
    answer = client.put("/A/B/connectors/a%2Fb/config?x=1", data=b"{}", headers={"X-Mark": "m"})
    assert (answer.status_code, answer.text) == (201, "PUT /A/B/connectors/a%2Fb/config?x=1 m {}")
    assert answer.headers["Set-Cookie"] == "a=b"
    assert client.get("/flows").json == [{"flow": "A->B", "path": "/A/B", "state": "RUNNING", "failures": 0}]


def test_without_a_public_api_only_workers_are_answered(worker: str) -> None:
    client = _client(worker, public=False)
    assert client.post("/A/B/connectors/c/tasks", data=b"[]").status_code == 201
    assert client.put("/A/B/connectors/c/fence").status_code == 201
    for method, path in (
        ("GET", "/"),
        ("GET", "/flows"),
        ("GET", "/A/B/connectors"),
        ("GET", "/A/B/connectors/c/tasks"),
        ("PUT", "/X/Y/connectors/c/fence"),
        ("PUT", "/A/Bx/connectors/c/fence"),
        ("DELETE", "/A/B/connectors/c"),
        ("GET", "/health"),
    ):
        answer = client.open(path, method=method)
        assert (answer.status_code, answer.json["error_code"]) == (404, 404), path


def test_a_flow_that_is_not_up_says_so(worker: str) -> None:
    assert _client(None, public=True).get("/A/B/").status_code == 503
    assert _client("http://127.0.0.1:1", public=True).get("/A/B/").status_code == 502
