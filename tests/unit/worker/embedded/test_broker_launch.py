from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from worker.embedded.broker.launch import is_ready
from worker.embedded.ports import HOST


@contextmanager
def answering(answer: bytes) -> Iterator[int]:
    """A server that reads one request and gives ``answer``."""

    def serve(server: socket.socket) -> None:
        connection, _ = server.accept()
        with connection:
            connection.recv(4096)
            connection.sendall(answer)

    with socket.create_server((HOST, 0)) as server:
        thread = threading.Thread(target=serve, args=(server,))
        thread.start()
        yield server.getsockname()[1]
        thread.join()


def framed(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


def test_a_broker_that_lists_itself_is_ready() -> None:
    with answering(framed(struct.pack(">iii", 1, 0, 1) + b"rest")) as port:
        assert is_ready(port)


@pytest.mark.parametrize(
    "answer",
    [
        framed(struct.pack(">iii", 1, 0, 0)),
        b"",
        b"\0\0",
        framed(b"short"),
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
    ],
)
def test_another_answer_is_not_ready(answer: bytes) -> None:
    with answering(answer) as port:
        assert not is_ready(port)


def test_nobody_there_is_not_ready() -> None:
    with socket.create_server((HOST, 0)) as server:
        port = server.getsockname()[1]
    assert not is_ready(port)


def test_without_plaintext_a_connection_is_enough() -> None:
    with socket.create_server((HOST, 0)) as server:
        assert is_ready(server.getsockname()[1], plaintext=False)
