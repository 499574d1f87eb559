"""Ports of embedded servers: on the loopback address, and free."""

from __future__ import annotations

import secrets
import socket

from connect.errors import ConnectError

__all__ = ["HOST", "any_port", "is_free"]

HOST = "127.0.0.1"

# Below the range that systems hand to outgoing connections: no client of anything takes the port of a server
# that is down for a moment.
_LOWEST, _HIGHEST = 20000, 32767
_TRIES = 100


def is_free(port: int) -> bool:
    """Whether a server could listen on ``port`` of the loopback address."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            server.bind((HOST, port))
        except OSError:
            return False
    return True


def any_port(taken: int) -> int:
    """A free port other than ``taken``."""
    for _ in range(_TRIES):
        port = _LOWEST + secrets.randbelow(_HIGHEST - _LOWEST + 1)
        if port != taken and is_free(port):
            return port
    raise ConnectError(
        f"No free port was found on {HOST} between {_LOWEST} and {_HIGHEST} in {_TRIES} tries; give the port to use."
    )
