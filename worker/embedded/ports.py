"""Finds free ports on the loopback address for embedded servers."""

from __future__ import annotations

import secrets
import socket

from connect.errors import ConfigError, ConnectError

__all__ = ["HOST", "any_port", "choose_port", "is_free"]

HOST = "127.0.0.1"

# Below the range of ports for outgoing connections, so that no client takes the port of a server that is briefly down.
_LOWEST, _HIGHEST = 20000, 32767
_TRIES = 100


def is_free(port: int) -> bool:
    """Return whether a server could listen on ``port`` of the loopback address."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            server.bind((HOST, port))
        except OSError:
            return False
    return True


def any_port(taken: int) -> int:
    """Return a free port other than ``taken``."""
    for _ in range(_TRIES):
        port = _LOWEST + secrets.randbelow(_HIGHEST - _LOWEST + 1)
        if port != taken and is_free(port):
            return port
    raise ConnectError(
        f"No free port was found on {HOST} between {_LOWEST} and {_HIGHEST} in {_TRIES} tries. Set a port."
    )


def choose_port(wanted: int | None, last: int | None, default: int) -> int:
    """Return a port that is free now.

    ``wanted`` is a required port, 0 for any, or ``None`` for the ``default`` if it is free. The ``last`` port of the
    same server is preferred unless a port is required.
    """
    if wanted:
        if not is_free(wanted):
            raise ConfigError("port", wanted, "in use by another process; stop it or give port 0")
        return wanted
    if last is not None and is_free(last):
        return last
    return default if wanted is None and is_free(default) else any_port(taken=0)
