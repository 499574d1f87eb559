"""The two loopback ports of an embedded broker: one for clients, one for its controller."""

from __future__ import annotations

from dataclasses import dataclass

from connect.errors import ConfigError
from worker.embedded.ports import HOST, any_port, is_free

__all__ = ["DEFAULT_PORT", "HOST", "Ports", "choose_ports", "is_free"]

DEFAULT_PORT = 9092


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
        broker = any_port(taken=0)
    if last is not None and last.controller != broker and is_free(last.controller):
        return Ports(broker, last.controller)
    return Ports(broker, any_port(taken=broker))
