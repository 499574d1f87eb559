"""What the process of a source task asks of its worker while it runs, and the answers.

They are part of :mod:`worker.supervisor.messages.messages`, which encodes and decodes all messages.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from worker.supervisor.messages.offsets import OffsetPairs

__all__ = [
    "CommitOffsets",
    "ConfirmOwnership",
    "OffsetsCommitted",
    "OffsetsRead",
    "OwnershipConfirmed",
    "ReadOffsets",
]


@dataclass(frozen=True, slots=True)
class ReadOffsets:
    """A request for the offsets of some source partitions."""

    request: int
    partitions: list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class OffsetsRead:
    """The answer to :class:`ReadOffsets`; ``error`` is set when the store could not be read."""

    request: int
    offsets: list[dict[str, Any] | None]
    error: str | None


@dataclass(frozen=True, slots=True)
class CommitOffsets:
    """A request to keep source offsets whose records Kafka has acknowledged (invariant I1)."""

    request: int
    offsets: OffsetPairs


@dataclass(frozen=True, slots=True)
class OffsetsCommitted:
    """The answer to :class:`CommitOffsets`; ``error`` is set when nothing was committed."""

    request: int
    error: str | None


@dataclass(frozen=True, slots=True)
class ConfirmOwnership:
    """A question: is this process still the one that is to run its task, with this configuration?"""

    request: int


@dataclass(frozen=True, slots=True)
class OwnershipConfirmed:
    """The answer to :class:`ConfirmOwnership`, if it is so; if not, :class:`Stop` comes."""

    request: int
