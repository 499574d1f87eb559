"""A unit: a connector or one of its tasks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["Unit"]

_CONNECTOR: Final = -1


@dataclass(frozen=True, slots=True, order=True)
class Unit:
    """A connector, or one of its tasks. The connector itself is task -1, as in the group protocol."""

    connector: str
    task: int = _CONNECTOR

    @property
    def is_task(self) -> bool:
        """Whether this is a task."""
        return self.task != _CONNECTOR

    def __str__(self) -> str:
        return f"{self.connector}|task-{self.task}" if self.is_task else f"{self.connector}|worker"
