"""The memory and time that hostile and slow clients cost a REST server, over real sockets."""

from __future__ import annotations

import itertools
import random
import select
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
import requests
from flask import Flask, request

from equipment.brokers.certificates import Authority
from equipment.workers.rest_process import RestProcess
from rest.server.limits import LIMITS, Limits
from rest.server.server import RestServer
from rest.server.tls import TlsSettings

pytestmark = pytest.mark.integration

MEGABYTE = 1_000_000
SENT = 100 * MEGABYTE
MOST_MORE = 12 * MEGABYTE
SLOW = 100
POST = b"POST /connectors HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\n"
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n\r\n"

HOSTILE = {
    "a request line without end": (b"GET /", b"a" * MEGABYTE, 414),
    "a header without end": (b"GET / HTTP/1.1\r\nHost: ", b"a" * MEGABYTE, 431),
    "headers of a megabyte": (b"GET / HTTP/1.1\r\n", b"A: " + b"a" * MEGABYTE + b"\r\n", 431),
    "many headers": (b"GET / HTTP/1.1\r\n", b"A: a\r\n" * 10_000, 431),
    "a chunk above the limit": (CHUNKED + b"%x\r\n" % SENT, b"a" * MEGABYTE, 413),
    "chunks without end": (CHUNKED, b"f4240\r\n" + b"a" * MEGABYTE + b"\r\n", 413),
    "chunks of a byte": (CHUNKED, b"1\r\na\r\n" * 10_000, 400),
    "the line of a chunk without end": (CHUNKED + b"1;", b"a" * MEGABYTE, 431),
    "a trailer without end": (CHUNKED + b"0\r\nA: ", b"a" * MEGABYTE, 431),
    "a body that says it is too long": (POST + b"Content-Length: %d\r\n\r\n" % SENT, b"a" * MEGABYTE, 413),
}


@contextmanager
def running() -> Iterator[RestProcess]:
    """A server in a process of its own."""
    process = RestProcess()
    try:
        yield process
    finally:
        process.close()


@pytest.fixture(scope="module")
def server() -> Iterator[RestProcess]:
    """A server that tests use one after the other."""
    with running() as process:
        yield process


@pytest.fixture
def own_server() -> Iterator[RestProcess]:
    """A server that a test may leave with connections that hang."""
    with running() as process:
        yield process


@dataclass(frozen=True, slots=True)
class Attacked:
    """A server, and the memory that it takes before anybody attacks it: all attacks together must not take more."""

    server: RestProcess
    before: int


@pytest.fixture(scope="module")
def attacked() -> Iterator[Attacked]:
    """A server that has answered a request of a megabyte."""
    with running() as process:
        assert requests.post(f"http://127.0.0.1:{process.port}/x", data=b"a" * MEGABYTE, timeout=60).ok
        yield Attacked(process, process.peak())


@pytest.mark.parametrize("attack", HOSTILE)
def test_hostile_requests_take_no_memory(attacked: Attacked, attack: str) -> None:
    head, piece, status = HOSTILE[attack]
    answer = send(attacked.server.port, itertools.chain([head], itertools.repeat(piece, SENT // len(piece))))
    assert attacked.server.peak() - attacked.before < MOST_MORE
    assert answer.startswith(b"HTTP/1.1 %d " % status)


def test_twice_as_many_chunks_take_twice_the_time(server: RestProcess) -> None:
    def cost(chunks: int) -> float:
        began = server.cpu()
        assert send(server.port, iter([CHUNKED, (b"c8\r\n" + b"a" * 200 + b"\r\n") * chunks, b"0\r\n\r\n"])).startswith(
            b"HTTP/1.1 200 "
        )
        return server.cpu() - began

    assert min(cost(40_000) for _ in range(3)) < 3 * min(cost(20_000) for _ in range(3))


def test_small_bodies_may_come_in_small_chunks(server: RestProcess) -> None:
    """Some clients write JSON piece by piece."""
    answer = send(server.port, iter([CHUNKED, b"1\r\na\r\n" * 10_000, b"0\r\n\r\n"]))
    assert answer.endswith(b'{"bytes":10000,"path":"connectors"}\n')


def test_slow_clients_keep_nobody_waiting(own_server: RestProcess) -> None:
    """Clients that do not finish heads or bodies, and answers that do not come, hold up no other request."""
    url = f"http://127.0.0.1:{own_server.port}"
    unfinished = [
        b"GET /connectors HTTP/1.1\r\nHost: ",
        POST + b"Content-Length: 100\r\n\r\n{",
        CHUNKED + b"64\r\n{",
        b"GET /connectors/hang HTTP/1.1\r\nHost: x\r\n\r\n",
        b"PUT /connectors/hang HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n",
        b"PUT /connectors/hang?forward=true HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n",
    ]
    with ExitStack() as stack:
        for sent in [one for one in unfinished for _ in range(SLOW // 2)]:
            client = stack.enter_context(socket.create_connection(("127.0.0.1", own_server.port), 30))
            client.sendall(sent)
        began = time.monotonic()
        assert requests.get(f"{url}/health", timeout=30).ok
        assert requests.post(f"{url}/connectors/a/tasks", data=b"[]", timeout=30).ok
        assert requests.put(f"{url}/connectors/a/fence", timeout=30).ok
        assert requests.get(f"{url}/connectors/a/status?forward=false", timeout=30).ok
        assert time.monotonic() - began < 8, "before any of the slow clients was given up"


def test_answers_come_in_order_although_requests_come_at_once(server: RestProcess) -> None:
    wanted = [b"/health", b"/connectors/a/lag", b"/connectors", b"/connectors/a/status?forward=true"]
    sent = b"".join(b"GET %s HTTP/1.1\r\nHost: x\r\n\r\n" % path for path in wanted)
    with socket.create_connection(("127.0.0.1", server.port), 30) as client:
        client.sendall(sent + b"GET /last HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        answer = b"".join(iter(lambda: client.recv(65536), b""))
    shown = [line for line in answer.splitlines() if line.startswith(b'{"bytes"')]
    paths = [path.partition(b"?")[0].decode().removeprefix("/") for path in wanted]
    assert shown == [b'{"bytes":0,"path":"%s"}' % path.encode() for path in [*paths, "last"]]


@pytest.mark.parametrize(
    "opening",
    [b"GET / HTTP/1.1\r\nA: ", POST + b"Content-Length: 1000000\r\n\r\n", CHUNKED + b"f4240\r\n"],
    ids=["head", "body", "chunk"],
)
def test_a_byte_now_and_then_is_not_enough(opening: bytes) -> None:
    server = RestServer(["http://127.0.0.1:0"], limits=Limits(patience_seconds=1.0))
    with socket.create_connection(("127.0.0.1", server.port), 0.1) as client:
        client.sendall(opening)
        deadline = time.monotonic() + 60
        answer = b""
        while not answer:
            assert time.monotonic() < deadline
            with suppress(TimeoutError):
                answer = client.recv(65536)
            client.send(b"a")
        client.settimeout(60)
        while not answer.endswith(b"}"):
            part = client.recv(65536)
            assert part, answer
            answer += part
    server.close()
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert answer.endswith(b'{"error_code":408,"message":"HTTP 408 Request Timeout: Send the request faster."}')


def test_bodies_have_a_limit_together() -> None:
    limits = Limits(all_bodies_bytes=3 * MEGABYTE)
    server = RestServer(["http://127.0.0.1:0"], limits=limits)
    with ExitStack() as stack:
        clients = [stack.enter_context(socket.create_connection(("127.0.0.1", server.port), 60)) for _ in range(4)]
        for client in clients:
            client.sendall(POST + b"Content-Length: 2000000\r\n\r\n" + b"a" * MEGABYTE)
        ready, _, _ = select.select(clients, [], [], 60)
        answers = [client.recv(65536) for client in ready]
    server.close()
    assert answers[0].startswith(b"HTTP/1.1 503 ")


def test_connections_that_ask_nothing_give_way(server: RestProcess) -> None:
    """A connection is closed soon when there are as many as there may be."""
    with ExitStack() as stack:
        for _ in range(LIMITS.connections + 50):
            stack.enter_context(socket.create_connection(("127.0.0.1", server.port), 30))
        began = time.monotonic()
        assert requests.get(f"http://127.0.0.1:{server.port}/health", timeout=60).ok
        assert time.monotonic() - began < LIMITS.idle_seconds / 2


def test_large_bodies_and_answers_come_whole_by_tls(tmp_path: Path) -> None:
    authority = Authority()
    identity = authority.sign("127.0.0.1")
    settings = {
        "listeners.https.ssl.keystore.key": identity.key_pem(),
        "listeners.https.ssl.keystore.certificate.chain": identity.certificate_pem,
    }
    trusted = tmp_path / "authority.pem"
    trusted.write_text(authority.pem)
    server = RestServer(["https://127.0.0.1:0"], TlsSettings(settings))
    echo = Flask("echo")
    echo.add_url_rule("/", view_func=lambda: request.get_data() * 3, methods=["POST"])
    server.answer_with(echo)
    sent = random.Random(1).randbytes(15 * MEGABYTE)

    def ask(session: requests.Session) -> bytes:
        url = f"https://127.0.0.1:{server.port}/"
        return session.post(url, data=sent, verify=str(trusted), timeout=120).content

    with requests.Session() as session:
        assert [ask(session) == sent * 3 for _ in range(3)] == [True] * 3
    server.close()


def send(port: int, pieces: Iterator[bytes]) -> bytes:
    """Send until the server refuses to read on; return its answer."""
    with socket.create_connection(("127.0.0.1", port), 60) as client:
        try:
            for piece in pieces:
                client.sendall(piece)
        except OSError:
            pass
        try:
            return b"".join(iter(lambda: client.recv(65536), b""))
        except ConnectionResetError:
            return b""


def test_connections_leave_the_worker_half_of_its_files(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with closing(RestProcess(open_files=256, log=log)) as server, ExitStack() as idle:
        for _ in range(222):
            idle.enter_context(closing(socket.create_connection(("127.0.0.1", server.port), 10)))
        assert requests.get(f"http://127.0.0.1:{server.port}/health/live", timeout=30).status_code == 200
    assert "The REST API has as many connections as it may have (128)" in log.read_text()
