"""Messages about offsets: inquiries of a worker to a child process, and the answers.

They are part of :mod:`worker.messages.messages`, which encodes and decodes all messages.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

__all__ = [
    "AlterSinkOffsets",
    "AlterSourceOffsets",
    "DedicatedOffsets",
    "OffsetPairs",
    "OffsetsAltered",
    "ReadDedicatedOffsets",
    "ReadSinkLag",
    "ReadSinkOffsets",
    "ResetSinkOffsets",
    "SinkLag",
    "SinkOffsets",
    "SinkOffsetsReset",
    "SourceOffsetsAllowed",
    "SourceOffsetsWritten",
    "WriteSourceOffsets",
]

OffsetPairs: TypeAlias = list[tuple[dict[str, Any], dict[str, Any] | None]]
"""Source partitions, each with its offset."""


@dataclass(frozen=True, slots=True)
class AlterSourceOffsets:
    """Ask a source connector whether these offsets may be set; the answer is :class:`SourceOffsetsAllowed`."""

    config: dict[str, str]
    worker: dict[str, str]
    offsets: OffsetPairs


@dataclass(frozen=True, slots=True)
class ReadDedicatedOffsets:
    """Read the offsets in a source connector's own offsets topic; the answer is :class:`DedicatedOffsets`."""

    config: dict[str, str]
    worker: dict[str, str]


@dataclass(frozen=True, slots=True)
class WriteSourceOffsets:
    """Write offsets to the topic to which the tasks of a source connector write them themselves.

    ``None`` removes an offset. None of the tasks may be running. The answer is :class:`SourceOffsetsWritten`.
    """

    config: dict[str, str]
    worker: dict[str, str]
    offsets: OffsetPairs


@dataclass(frozen=True, slots=True)
class AlterSinkOffsets:
    """Set offsets of a sink connector's consumer group if the connector agrees; see :class:`OffsetsAltered`.

    Each of ``offsets`` is a topic, a partition and the next offset to consume, or ``None`` to remove it. Without
    ``offsets`` the whole group is reset.
    """

    config: dict[str, str]
    worker: dict[str, str]
    offsets: list[tuple[str, int, int | None]] | None


@dataclass(frozen=True, slots=True)
class ReadSinkOffsets:
    """Read the offsets of a sink connector's consumer group; the answer is :class:`SinkOffsets`."""

    config: dict[str, str]
    worker: dict[str, str]


@dataclass(frozen=True, slots=True)
class ResetSinkOffsets:
    """Move a sink connector's consumer group; the answer is :class:`SinkOffsetsReset`.

    ``to`` and ``number`` are those of :func:`worker.runtime.inquiries.offsets.reset_offset`; for ``timestamp`` the
    number is ms since 1970. ``topics`` has the partitions of each topic, or ``None`` for all of them.
    """

    config: dict[str, str]
    worker: dict[str, str]
    to: str
    number: int
    topics: dict[str, list[int] | None] | None
    dry_run: bool


@dataclass(frozen=True, slots=True)
class ReadSinkLag:
    """Read the lag of a sink connector's consumer group; the answer is :class:`SinkLag`."""

    config: dict[str, str]
    worker: dict[str, str]


@dataclass(frozen=True, slots=True)
class SourceOffsetsAllowed:
    """The answer to :class:`AlterSourceOffsets`, and where to write them; ``managed`` as in :class:`OffsetsAltered`.

    ``own_topic`` says that they are in the connector's own topic, of which the worker has only a copy.
    ``transactional`` says that the tasks write them in transactions (KIP-618).
    """

    managed: bool
    own_topic: bool
    transactional: bool


@dataclass(frozen=True, slots=True)
class DedicatedOffsets:
    """The answer to :class:`ReadDedicatedOffsets`; empty if the connector has no topic of its own."""

    offsets: OffsetPairs


@dataclass(frozen=True, slots=True)
class SourceOffsetsWritten:
    """The answer to :class:`WriteSourceOffsets`: all of them are stored."""


@dataclass(frozen=True, slots=True)
class OffsetsAltered:
    """Offsets are altered. ``managed`` says whether the connector keeps no offsets elsewhere."""

    managed: bool


@dataclass(frozen=True, slots=True)
class SinkOffsets:
    """The answer to :class:`ReadSinkOffsets`: topics, partitions and next offsets."""

    offsets: list[tuple[str, int, int]]


@dataclass(frozen=True, slots=True)
class SinkOffsetsReset:
    """The answer to :class:`ResetSinkOffsets`: topics, partitions, and the next offsets before and after."""

    offsets: list[tuple[str, int, int | None, int]]


@dataclass(frozen=True, slots=True)
class SinkLag:
    """The answer to :class:`ReadSinkLag`: topics, partitions, the group's offset, the end, and the lag.

    Where the group has no offset, the lag is what it would consume if it started now.
    """

    partitions: list[tuple[str, int, int | None, int, int]]
