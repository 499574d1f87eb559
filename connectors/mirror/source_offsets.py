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
"""The offset of a partition whose topic was made anew and is not mirrored yet. To MirrorMaker it is none."""
_INT_MAX: Final = 2**31 - 1


def source_partition(alias: str, partition: TopicPartition) -> dict[str, Any]:
    """The source partition of a partition of the cluster ``alias``; its members are in Java's order."""
    return {"cluster": alias, "partition": partition.partition, "topic": partition.topic}


def source_offset(offset: int) -> dict[str, int]:
    """The source offset of a record."""
    return {"offset": offset}


class RecordOffsets(Sequence[Offset]):
    """The source offsets of records, made of their ``numbers`` when they are looked at: mostly only the last one is."""

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
    """Where reading continues after a stored offset; ``None`` if none is stored."""
    return None if stored is None else int(stored["offset"]) + 1


def check_offset(partition: Any, offset: Any) -> None:
    """Refuse, with a :class:`~connect.errors.ConnectError`, an offset that a user wants to set and nobody could read.

    To forget one is always allowed.
    """
    if offset is None:
        return
    if not isinstance(partition, dict):
        raise ConnectError("The partition of an offset is missing: give its cluster, topic and partition.")
    for key in ("cluster", "topic"):
        if not isinstance(partition.get(key), str):
            raise ConnectError(f"The partition has no {key}: give its name as text, not {partition.get(key)!r}.")
    _check_number("partition", partition.get("partition"), _INT_MAX)
    _check_number("offset", offset.get("offset"), None)


def _check_number(name: str, number: Any, most: int | None) -> None:
    if not isinstance(number, int) or isinstance(number, bool) or number < 0 or (most is not None and number > most):
        limit = "" if most is None else f" up to {most}"
        raise ConnectError(f"The {name} is {number!r}: give a whole number from 0{limit}.")


NO_OFFSET: Final[Mapping[str, int]] = {"offset": 0}
"""The offset of every record of the two."""

CHECKPOINT_MEMBERS: Final[Mapping[str, type]] = {"group": str, "topic": str, "partition": int}
HEARTBEAT_MEMBERS: Final[Mapping[str, type]] = {"sourceClusterAlias": str, "targetClusterAlias": str}
"""What a source partition must have."""

_NAMES: Final = {str: "text", int: f"a whole number from 0 to {_INT_MAX}"}


def checkpoint_partition(checkpoint: Checkpoint) -> Offset:
    """The source partition of a checkpoint; its members are in Java's order."""
    return {"partition": checkpoint.partition, "topic": checkpoint.topic, "group": checkpoint.group}


def heartbeat_partition(heartbeat: Heartbeat) -> Offset:
    """The source partition of a heartbeat; its members are in Java's order."""
    return {"sourceClusterAlias": heartbeat.source_alias, "targetClusterAlias": heartbeat.target_alias}


def check_own_offset(partition: Any, offset: Any, members: Mapping[str, type]) -> None:
    """Refuse, with a :class:`~connect.errors.ConnectError`, an offset that a user wants to set and could not be stored.

    To forget one is always allowed.
    """
    if offset is None:
        return
    for name, kind in members.items():
        found = partition.get(name) if isinstance(partition, dict) else None
        if not _is(kind, found):
            raise ConnectError(f"The partition has the {name} {found!r}: give {_NAMES[kind]}.")
    found = offset.get("offset")
    if not _is(int, found) or found != 0:
        raise ConnectError(f"The offset is {found!r}: it can be 0 alone, because this connector resumes nowhere.")


def _is(kind: type, found: Any) -> bool:
    if not isinstance(found, kind) or isinstance(found, bool):
        return False
    return not isinstance(found, int) or 0 <= found <= _INT_MAX
