"""Asking a broker whether it is ready, with one hand-made Metadata request."""

from __future__ import annotations

import socket
import struct

from worker.embedded.broker.ports import HOST

__all__ = ["is_ready"]

_TIMEOUT_SECONDS = 1.0
_METADATA, _VERSION, _CORRELATION = 3, 4, 1
_LARGEST_ANSWER = 1 << 20


def is_ready(port: int, *, plaintext: bool = True) -> bool:
    """Whether the broker on ``port`` lists itself as alive, or accepts connections if not ``plaintext``."""
    try:
        with socket.create_connection((HOST, port), _TIMEOUT_SECONDS) as connection:
            return not plaintext or _count_brokers(connection) > 0
    except OSError:
        return False


def _count_brokers(connection: socket.socket) -> int:
    header = struct.pack(">hhih", _METADATA, _VERSION, _CORRELATION, -1)
    no_topics_and_create_none = struct.pack(">ib", 0, 0)
    request = header + no_topics_and_create_none
    connection.sendall(struct.pack(">i", len(request)) + request)
    (size,) = struct.unpack(">i", _receive(connection, 4))
    if not 12 <= size <= _LARGEST_ANSWER:
        raise ConnectionError(f"an answer of {size} bytes is not a Kafka broker's")
    _correlation, _throttle, brokers = struct.unpack_from(">iii", _receive(connection, size))
    return int(brokers)


def _receive(connection: socket.socket, size: int) -> bytes:
    answer = bytearray()
    while len(answer) < size:
        part = connection.recv(size - len(answer))
        if not part:
            raise ConnectionError("the connection was closed")
        answer += part
    return bytes(answer)
