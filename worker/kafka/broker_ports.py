"""The two loopback ports of an embedded broker: one for clients, one for its controller."""

from __future__ import annotations

import secrets
import socket
from dataclasses import dataclass

from connect.errors import ConfigError, ConnectError

__all__ = ["DEFAULT_PORT", "HOST", "Ports", "choose_ports", "is_free"]

HOST = "127.0.0.1"
DEFAULT_PORT = 9092

# Below the range that systems hand to outgoing connections: no client of anything takes the port of a broker
# that is down for a moment.
_LOWEST, _HIGHEST = 20000, 32767
_TRIES = 100


@dataclass(frozen=True, slots=True)
class Ports:
    """Where clients connect, and where the broker finds its own controller."""

    broker: int
    controller: int

    @property
    def bootstrap_servers(self) -> str:
        """The address that clients are given."""
        return f"{HOST}:{self.broker}"


def choose_ports(wanted: int | None, last: Ports | None) -> Ports:
    """Ports that are free now.

    ``wanted`` is a port that must be had, 0 for any, ``None`` for Kafka's 9092 if it is free. The ``last``
    ports of the same broker come first, unless one must be had.
    """
    if wanted:
        if not is_free(wanted):
            raise ConfigError("port", wanted, "in use by another process; stop it or give port 0")
        broker = wanted
    elif last is not None and is_free(last.broker):
        broker = last.broker
    elif wanted is None and is_free(DEFAULT_PORT):
        broker = DEFAULT_PORT
    else:
        broker = _any_port(taken=0)
    if last is not None and last.controller != broker and is_free(last.controller):
        return Ports(broker, last.controller)
    return Ports(broker, _any_port(taken=broker))


def is_free(port: int) -> bool:
    """Whether a server could listen on ``port`` of the loopback address."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            server.bind((HOST, port))
        except OSError:
            return False
    return True


def _any_port(taken: int) -> int:
    for _ in range(_TRIES):
        port = _LOWEST + secrets.randbelow(_HIGHEST - _LOWEST + 1)
        if port != taken and is_free(port):
            return port
    raise ConnectError(
        f"No free port was found on {HOST} between {_LOWEST} and {_HIGHEST} in {_TRIES} tries; give the port to use."
    )
