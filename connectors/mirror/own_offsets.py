"""The source offsets of checkpoints and heartbeats: stored as by MirrorMaker 2, though nothing is resumed from them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from connect.data import Offset
from connect.errors import ConnectError
from connectors.mirror.records import Checkpoint, Heartbeat

__all__ = [
    "CHECKPOINT_MEMBERS",
    "HEARTBEAT_MEMBERS",
    "NO_OFFSET",
    "check_own_offset",
    "checkpoint_partition",
    "heartbeat_partition",
]

NO_OFFSET: Final[Mapping[str, int]] = {"offset": 0}
"""The offset of every record of the two."""

CHECKPOINT_MEMBERS: Final[Mapping[str, type]] = {"group": str, "topic": str, "partition": int}
HEARTBEAT_MEMBERS: Final[Mapping[str, type]] = {"sourceClusterAlias": str, "targetClusterAlias": str}
"""What a source partition must have."""

_INT_MAX: Final = 2**31 - 1
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
