"""Requests of a running source task to its worker and of the worker to the task, and the answers.

They are part of :mod:`worker.messages.messages`, which encodes and decodes all messages.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from worker.messages.offsets import OffsetPairs

__all__ = [
    "CommitOffsets",
    "ConfirmOwnership",
    "OffsetsCommitted",
    "OffsetsRead",
    "OwnershipConfirmed",
    "ReadOffsets",
    "SignalTaken",
    "TakeSignal",
]


@dataclass(frozen=True, slots=True)
class ReadOffsets:
    """Read the offsets of some source partitions."""

    request: int
    partitions: list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class OffsetsRead:
    """The answer to :class:`ReadOffsets`; ``error`` is set if the store could not be read."""

    request: int
    offsets: list[dict[str, Any] | None]
    error: str | None


@dataclass(frozen=True, slots=True)
class CommitOffsets:
    """Store source offsets whose records Kafka has acknowledged (invariant I1)."""

    request: int
    offsets: OffsetPairs


@dataclass(frozen=True, slots=True)
class OffsetsCommitted:
    """The answer to :class:`CommitOffsets`; ``error`` is set if nothing was committed."""

    request: int
    error: str | None


@dataclass(frozen=True, slots=True)
class ConfirmOwnership:
    """Confirm that this process still owns its task, with this configuration."""

    request: int


@dataclass(frozen=True, slots=True)
class OwnershipConfirmed:
    """The answer to :class:`ConfirmOwnership` if it does; otherwise the task is stopped."""

    request: int


@dataclass(frozen=True, slots=True)
class TakeSignal:
    """Take over a signal of a user; the answer is :class:`SignalTaken`."""

    request: int
    id: str
    type: str
    data: dict[str, Any]


@dataclass(frozen=True, slots=True)
class SignalTaken:
    """The answer to :class:`TakeSignal`: the task has the signal, or why it was ``refused``."""

    request: int
    refused: str | None
