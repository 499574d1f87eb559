"""A unit: a connector or one of its tasks."""

from __future__ import annotations

from typing import Final, NamedTuple

__all__ = ["Unit"]

_CONNECTOR: Final = -1


class Unit(NamedTuple):
    """A connector, or one of its tasks. The connector itself is task -1, as in the group protocol.

    A tuple, because nearly everything that a worker knows is kept by unit, and hashing a tuple runs no Python code.
    """

    connector: str
    task: int = _CONNECTOR

    @property
    def is_task(self) -> bool:
        """Whether this is a task."""
        return self.task != _CONNECTOR

    def __str__(self) -> str:
        return f"{self.connector}|task-{self.task}" if self.is_task else f"{self.connector}|worker"
