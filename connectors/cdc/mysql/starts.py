"""What a task does first, decided from its mode, its offset, and whether the log still continues it."""

from __future__ import annotations

from enum import Enum, auto

from connect.errors import ConnectError
from connectors.cdc.mysql.position import Position

__all__ = ["Start", "start_of"]


class Start(Enum):
    """How a task begins."""

    SNAPSHOT = auto()
    STREAM = auto()
    NOTHING = auto()


def start_of(mode: str, position: Position | None, lost: str | None) -> Start:
    """Return how to begin. Raises :class:`~connect.errors.ConnectError` if the log does not continue the offset.

    ``lost`` says why it does not, if so.
    """
    mode = mode.lower()
    is_new = position is None or position.snapshot is not None
    if mode == "always":
        return Start.SNAPSHOT
    if mode in ("initial", "initial_only", "when_needed"):
        if is_new:
            return Start.SNAPSHOT
        if mode == "initial_only":
            return Start.NOTHING
        if lost and mode == "when_needed":
            return Start.SNAPSHOT
    if lost and not is_new:
        raise ConnectError(lost)
    return Start.STREAM
