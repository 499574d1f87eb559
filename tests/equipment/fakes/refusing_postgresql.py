"""A server of PostgreSQL that refuses every connection, as one that starts or has no such user."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["refusing"]

NEGOTIATIONS = (80877103, 80877104)
"""Requests for TLS and for GSSAPI."""


@contextmanager
def refusing(state: str, severity: str = "FATAL", text: str = "nein", answers: int = 1000) -> Iterator[int]:
    """A server that answers whoever wants to log in with an error, so many times; yields its port."""
    fields = {"S": severity, "V": "FATAL", "C": state, "M": text}
    body = b"".join(f"{kind}{value}".encode() + b"\0" for kind, value in fields.items()) + b"\0"
    answer = b"E" + struct.pack("!i", 4 + len(body)) + body
    with socket.create_server(("127.0.0.1", 0)) as server:
        serving = threading.Thread(target=_serve, args=(server, [answer] * answers))
        serving.start()
        try:
            yield server.getsockname()[1]
        finally:
            server.shutdown(socket.SHUT_RDWR)
            serving.join(30)
            assert not serving.is_alive()


def _serve(server: socket.socket, answers: list[bytes]) -> None:
    while True:
        try:
            connection, _ = server.accept()
        except OSError:
            return
        with connection, connection.makefile("rb") as sent:
            while head := sent.read(8):
                size, code = struct.unpack("!ii", head)
                sent.read(size - 8)
                if code not in NEGOTIATIONS:
                    connection.sendall(answers.pop() if answers else b"")
                    break
                connection.sendall(b"N")
