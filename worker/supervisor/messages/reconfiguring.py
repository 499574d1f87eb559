"""The messages about a running task that takes a new configuration, and may decline to."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Declined", "TakeConfig"]


@dataclass(frozen=True, slots=True)
class TakeConfig:
    """Go on with this task config, which has a larger share; a task that cannot says :class:`Declined`."""

    config: dict[str, str]


@dataclass(frozen=True, slots=True)
class Declined:
    """The task does not take a new configuration while it runs, and is to be started anew with it."""
