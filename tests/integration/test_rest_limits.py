"""What hostile and slow clients cost a REST server, over real sockets."""

from __future__ import annotations

import itertools
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
import requests

from equipment.rest_process import RestProcess

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
    "the line of a chunk without end": (CHUNKED + b"1;", b"a" * MEGABYTE, 431),
    "a trailer without end": (CHUNKED + b"0\r\nA: ", b"a" * MEGABYTE, 431),
    "a body that says it is too long": (POST + b"Content-Length: %d\r\n\r\n" % SENT, b"a" * MEGABYTE, 413),
}


@pytest.fixture
def server() -> Iterator[RestProcess]:
    process = RestProcess()
    yield process
    process.close()


@pytest.mark.parametrize("attack", HOSTILE)
def test_what_a_client_sends_takes_no_memory(server: RestProcess, attack: str) -> None:
    head, piece, status = HOSTILE[attack]
    assert requests.post(f"http://127.0.0.1:{server.port}/x", data=b"a" * MEGABYTE, timeout=60).ok
    before = server.peak()
    answer = send(server.port, itertools.chain([head], itertools.repeat(piece, SENT // len(piece))))
    assert server.peak() - before < MOST_MORE
    assert answer.startswith(b"HTTP/1.1 %d " % status)


def test_twice_as_many_chunks_take_twice_the_time(server: RestProcess) -> None:
    def cost(chunks: int) -> float:
        began = server.cpu()
        assert send(server.port, iter([CHUNKED, b"1\r\na\r\n" * chunks, b"0\r\n\r\n"])).startswith(b"HTTP/1.1 200 ")
        return server.cpu() - began

    cost(10_000)
    assert min(cost(120_000) for _ in range(3)) < 3 * min(cost(60_000) for _ in range(3))


def test_slow_clients_keep_nobody_waiting(server: RestProcess) -> None:
    """Heads and bodies that do not come, and answers that do not either."""
    url = f"http://127.0.0.1:{server.port}"
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
            client = stack.enter_context(socket.create_connection(("127.0.0.1", server.port), 30))
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


def send(port: int, pieces: Iterator[bytes]) -> bytes:
    """Send until the server has had enough of it, and what it answers."""
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
