"""Source partitions and offsets as MirrorMaker 2 stores them, so that either continues where the other has ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from connect.data import Offset, TopicPartition
from connect.errors import ConnectError
from connectors.mirror.records import Checkpoint, Heartbeat

__all__ = [
    "CHECKPOINT_MEMBERS",
    "HEARTBEAT_MEMBERS",
    "NO_OFFSET",
    "RESET",
    "RecordOffsets",
    "check_offset",
    "check_own_offset",
    "checkpoint_partition",
    "heartbeat_partition",
    "position",
    "source_offset",
    "source_partition",
]

RESET: Final = -1
"""The offset of a partition whose topic was recreated and is not mirrored yet. To MirrorMaker it means no offset."""
_INT_MAX: Final = 2**31 - 1


def source_partition(alias: str, partition: TopicPartition) -> dict[str, Any]:
    """Return the source partition of a partition of the cluster ``alias``, with its members in Java's order."""
    return {"cluster": alias, "partition": partition.partition, "topic": partition.topic}


def source_offset(offset: int) -> dict[str, int]:
    """Return the source offset of a record."""
    return {"offset": offset}


class RecordOffsets(Sequence[Offset]):
    """The source offsets of records, created from ``numbers`` on access, since mostly only the last one is used."""

    __slots__ = ("numbers",)

    def __init__(self, numbers: Sequence[int]) -> None:
        self.numbers = numbers

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return RecordOffsets(self.numbers[index])
        return source_offset(self.numbers[index])


def position(stored: Offset | None) -> int | None:
    """Return the offset at which to continue after a stored offset; ``None`` if none is stored."""
    return None if stored is None else int(stored["offset"]) + 1


def check_offset(partition: Any, offset: Any) -> None:
    """Refuse an offset set by a user, with a :class:`~connect.errors.ConnectError`, if it could not be read.

    Deleting an offset is always allowed.
    """
    if offset is None:
        return
    if not isinstance(partition, dict):
        raise ConnectError("The offset has no partition: give its cluster, topic and partition.")
    for key in ("cluster", "topic"):
        if not isinstance(partition.get(key), str):
            raise ConnectError(f"The {key} of the partition is {partition.get(key)!r}: give its name as a string.")
    _check_number("partition", partition.get("partition"), _INT_MAX)
    _check_number("offset", offset.get("offset"), None)


def _check_number(name: str, number: Any, most: int | None) -> None:
    if not isinstance(number, int) or isinstance(number, bool) or number < 0 or (most is not None and number > most):
        limit = "" if most is None else f" up to {most}"
        raise ConnectError(f"The {name} is {number!r}: give an integer from 0{limit}.")


NO_OFFSET: Final[Mapping[str, int]] = {"offset": 0}
"""The offset of every checkpoint and heartbeat."""

CHECKPOINT_MEMBERS: Final[Mapping[str, type]] = {"group": str, "topic": str, "partition": int}
HEARTBEAT_MEMBERS: Final[Mapping[str, type]] = {"sourceClusterAlias": str, "targetClusterAlias": str}
"""The members that a source partition must have, with their types."""

_NAMES: Final = {str: "a string", int: f"an integer from 0 to {_INT_MAX}"}


def checkpoint_partition(checkpoint: Checkpoint) -> Offset:
    """Return the source partition of a checkpoint, with its members in Java's order."""
    return {"partition": checkpoint.partition, "topic": checkpoint.topic, "group": checkpoint.group}


def heartbeat_partition(heartbeat: Heartbeat) -> Offset:
    """Return the source partition of a heartbeat, with its members in Java's order."""
    return {"sourceClusterAlias": heartbeat.source_alias, "targetClusterAlias": heartbeat.target_alias}


def check_own_offset(partition: Any, offset: Any, members: Mapping[str, type]) -> None:
    """Refuse an offset of a checkpoint or heartbeat set by a user, with a :class:`~connect.errors.ConnectError`.

    Deleting an offset is always allowed.
    """
    if offset is None:
        return
    for name, kind in members.items():
        found = partition.get(name) if isinstance(partition, dict) else None
        if not _is(kind, found):
            raise ConnectError(f"The {name} of the partition is {found!r}: give {_NAMES[kind]}.")
    found = offset.get("offset")
    if not _is(int, found) or found != 0:
        raise ConnectError(f"The offset is {found!r}: give 0, because this connector never resumes from an offset.")


def _is(kind: type, found: Any) -> bool:
    if not isinstance(found, kind) or isinstance(found, bool):
        return False
    return not isinstance(found, int) or 0 <= found <= _INT_MAX
