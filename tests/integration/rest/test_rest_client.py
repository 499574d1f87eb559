"""The command line's client of the REST API: users and passwords, and answers that are none."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from socketserver import BaseRequestHandler, StreamRequestHandler, TCPServer
from threading import Thread

import pytest
from click.testing import CliRunner, Result

from worker.cli.main import main

pytestmark = pytest.mark.integration

PAGE = b"<html>a proxy</html>"
OFFSETS = b'{"offsets":[]}'


class Guarded(BaseHTTPRequestHandler):
    """Lets in who is ``ann``, and answers others as a proxy does."""

    def do_GET(self) -> None:
        known = base64.b64encode(b"ann:secret").decode()
        allowed = self.headers.get("Authorization") == f"Basic {known}"
        self.send_response(200 if allowed and self.path == "/connectors/a%2Fb/offsets" else 401)
        self.end_headers()
        self.wfile.write(OFFSETS if allowed else PAGE)

    def do_PUT(self) -> None:
        self.send_response(405)
        self.end_headers()
        self.wfile.write(PAGE)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def url() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), Guarded) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def export(url: str, **environ: str) -> Result:
    return CliRunner().invoke(
        main, ["offsets", "export", "a/b"], env={"SLUICE_URL": url, "NETRC": "/dev/null"} | environ
    )


def test_the_user_comes_from_the_environment(url: str) -> None:
    assert export(url, SLUICE_USER="ann", SLUICE_PASSWORD="secret").output == '{\n  "offsets": []\n}\n'


def test_the_user_comes_from_the_netrc_file(url: str, tmp_path: Path) -> None:
    file = tmp_path / "netrc"
    file.write_text("machine 127.0.0.1 login ann password secret\n")
    assert export(url, NETRC=str(file)).exit_code == 0


def test_what_is_no_worker_is_told(url: str) -> None:
    refused = export(url, SLUICE_USER="ann", SLUICE_PASSWORD="wrong")
    assert refused.exit_code == 1
    assert "is not the REST API of a worker: status 401" in refused.output
    assert "wrong" not in refused.output


def test_a_proxy_that_lets_only_some_methods_through_is_told_with_what_to_do(url: str) -> None:
    refused = CliRunner().invoke(main, ["connectors", "stop", "a/b", "--url", url], env={"NETRC": "/dev/null"})
    assert refused.exit_code == 1
    assert f"What answers at {url} does not take this request (405, the method is not allowed)." in refused.output
    assert "give the address of the worker itself with --url" in " ".join(refused.output.split())


class Closing(StreamRequestHandler):
    """Closes a connection without an answer, as a broker does that is sent HTTP, or says something else first."""

    said = b""

    def handle(self) -> None:
        self.rfile.readline()
        self.wfile.write(self.said)


class Greeting(Closing):
    said = b"220 mail.example.com ESMTP\r\n"


class Registry(BaseHTTPRequestHandler):
    """A web service that answers in JSON, and is no worker."""

    def do_GET(self) -> None:
        self.send_response(200 if self.path == "/" else 404)
        self.end_headers()
        self.wfile.write(b"{}" if self.path == "/" else b'{"error_code":404,"message":"HTTP 404 Not Found"}')

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.mark.parametrize("other", [Closing, Greeting, Registry, Guarded])
@pytest.mark.parametrize("command", [["status"], ["connectors", "list"]], ids=" ".join)
def test_what_is_no_worker_is_called_so(other: type[BaseRequestHandler], command: list[str]) -> None:
    with TCPServer(("127.0.0.1", 0), other) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            url = f"127.0.0.1:{server.server_address[1]}"
            told = CliRunner().invoke(main, [*command, "--url", url], env={"NETRC": "/dev/null"})
        finally:
            server.shutdown()
            thread.join()
    assert told.exit_code == 1
    kind = "the REST API of a worker: status 401" if other is Guarded else "a Sluice or Kafka Connect worker"
    assert told.output.startswith(f"Error: What answers at http://{url} is not {kind}")


def test_an_address_needs_no_scheme(url: str) -> None:
    bare = url.removeprefix("http://")
    assert export(bare, SLUICE_USER="ann", SLUICE_PASSWORD="secret").output == '{\n  "offsets": []\n}\n'
