"""The principal of a request: who makes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["WORKER_MECHANISM", "Principal"]

WORKER_MECHANISM: Final = "worker"
"""The mechanism of requests made by another worker of the cluster on its own behalf."""


@dataclass(frozen=True, slots=True)
class Principal:
    """A user, service or worker with its groups; ``mechanism`` is how it was authenticated."""

    name: str
    mechanism: str
    groups: tuple[str, ...] = ()
