"""Who asks: the principal of a request."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["WORKER_MECHANISM", "Principal"]

WORKER_MECHANISM: Final = "worker"
"""The mechanism of requests that another worker of the cluster makes of its own."""


@dataclass(frozen=True, slots=True)
class Principal:
    """A user, a service or a worker, by the ``mechanism`` that has proved it, with the groups that it belongs to."""

    name: str
    mechanism: str
    groups: tuple[str, ...] = ()
