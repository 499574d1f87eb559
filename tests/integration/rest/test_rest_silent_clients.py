"""Clients that send nothing, or what nobody reads, over real sockets."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import requests

from equipment.brokers.certificates import Authority
from equipment.workers.standalone import StandaloneWorker
from rest.server.limits import LIMITS
from rest.server.server import RestServer
from rest.server.tls import TlsSettings

pytestmark = pytest.mark.integration

CLOSE = b"Connection: close\r\n\r\n"


@pytest.fixture
def trusted() -> Authority:
    return Authority()


@pytest.fixture(params=["http", "https"])
def server(request: pytest.FixtureRequest, trusted: Authority) -> Iterator[RestServer]:
    """A worker's server that is not ready yet, and says so."""
    identity = trusted.sign("127.0.0.1")
    settings = {
        "listeners.https.ssl.keystore.key": identity.key_pem(),
        "listeners.https.ssl.keystore.certificate.chain": identity.certificate_pem,
    }
    made = RestServer([f"{request.param}://127.0.0.1:0"], TlsSettings(settings))
    yield made
    made.close()


@pytest.fixture
def worker(bootstrap: str, tmp_path: Path) -> Iterator[StandaloneWorker]:
    """A worker without connectors."""
    made = StandaloneWorker(tmp_path / "worker", bootstrap).start()
    yield made
    made.close()


def test_silent_connections_keep_nobody_waiting(
    server: RestServer, trusted: Authority, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Browsers and load balancers open them in advance."""
    authority = tmp_path_factory.mktemp("trust") / "authority.pem"
    authority.write_text(trusted.pem)
    with ExitStack() as stack:
        for _ in range(LIMITS.connections // 2):
            stack.enter_context(socket.create_connection(("127.0.0.1", server.port), 5))
        url = f"{server.listeners[0].scheme}://127.0.0.1:{server.port}/health"
        answer = requests.get(url, timeout=5, verify=str(authority))
    assert answer.status_code == 503


def test_a_body_in_chunks_that_nobody_reads_is_not_taken_for_the_next_request(worker: StandaloneWorker) -> None:
    """Java's clients send such a body where another would send none."""
    port = urlsplit(worker.url()).port
    unread = (
        b"PUT /connectors/none/pause HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n0\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", port or 0), 30) as connection:
        connection.sendall(unread + unread + b"GET /connectors HTTP/1.1\r\nHost: x\r\n" + CLOSE)
        answer = b"".join(iter(lambda: connection.recv(65536), b""))
    assert answer.count(b"HTTP/1.1 404") == 2
    assert answer.endswith(b"[]")
