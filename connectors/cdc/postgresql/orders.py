"""What a split of ``engine=spark`` is told to do, and how far the pieces of a divided snapshot are read.

A snapshot that executors read is divided into pieces, each a table or a range of its keys. The offset of the server
holds all of them as a blocking snapshot; each piece has a source partition of its own, which says how far it is read.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, TypeAlias

from connect.data import Offset
from connect.kits.cdc.incremental_state import BlockingRequest, Collection, IncrementalState
from connect.kits.cdc.java_keys import Key, key_from_java, key_to_java
from connect.source import OffsetStorageReader
from connectors.cdc.postgresql.snapshot import SnapshotPoint

__all__ = [
    "INITIAL_REST",
    "OffsetSplit",
    "PieceProgress",
    "PieceSplit",
    "Split",
    "StreamSplit",
    "divided_name",
    "initial_rest",
    "piece_partition",
    "split_from",
    "split_to_text",
    "unread",
]

INITIAL_REST: Final = "initial-snapshot"
"""The name of the blocking snapshot that reads what is left of the first one; with a suffix it is divided."""

_DIVIDED: Final = f"{INITIAL_REST}@"


@dataclass(frozen=True, slots=True)
class OffsetSplit:
    """Stores an offset of the server, and tells that a snapshot of these tables has begun or is completed."""

    offset: Offset
    begun: str = ""
    is_completed: bool = False


@dataclass(frozen=True, slots=True)
class PieceSplit:
    """Reads a piece of a snapshot, in the view of a session that has exported it."""

    snapshot: str
    number: int
    exported: str
    point: SnapshotPoint
    collection: Collection


@dataclass(frozen=True, slots=True)
class StreamSplit:
    """Streams the transactions that were committed before a place in the log."""

    until: int


Split: TypeAlias = OffsetSplit | PieceSplit | StreamSplit


def split_to_text(split: Split) -> str:
    """Return a split as JSON."""
    return json.dumps({type(split).__name__: asdict(split)}, default=dict)


def split_from(text: str) -> Split | None:
    """Return the split in a text; ``None`` if there is none."""
    if not text:
        return None
    ((kind, given),) = json.loads(text).items()
    match kind:
        case "OffsetSplit":
            return OffsetSplit(**given)
        case "StreamSplit":
            return StreamSplit(given["until"])
    told = given["collection"]
    keys = {name: None if told[name] is None else tuple(told[name]) for name in ("after", "until")}
    return PieceSplit(**given | {"point": SnapshotPoint(**given["point"]), "collection": Collection(**told | keys)})


@dataclass(frozen=True, slots=True)
class PieceProgress:
    """How far a piece is read: so many rows, up to a key if it has an order."""

    rows: int = 0
    after: Key | None = None
    is_read: bool = False

    @classmethod
    def of(cls, offset: Offset | None) -> PieceProgress:
        """Read the progress in an offset."""
        found: Mapping[str, Any] = offset or {}
        after = found.get("after")
        key = None if after is None else key_from_java(after)
        return cls(found.get("rows", 0), key, bool(found.get("is_read")))

    def to_offset(self) -> Offset:
        """Return the progress as an offset."""
        offset: dict[str, Any] = {"rows": self.rows}
        if self.after is not None:
            offset["after"] = key_to_java(self.after)
        return offset | ({"is_read": True} if self.is_read else {})

    def left_of(self, collection: Collection) -> Collection:
        """Return what is left of a piece, for another view: all of one without an order."""
        return collection if self.after is None else replace(collection, after=self.after)


def piece_partition(partition: Offset, snapshot: str, number: int) -> Offset:
    """Return the source partition of a piece."""
    return {**partition, "snapshot": snapshot, "piece": number}


def divided_name(point: SnapshotPoint) -> str:
    """Return the name of the snapshot that is divided at a point; no other has it."""
    return f"{_DIVIDED}{point.lsn}-{point.at_us}"


def initial_rest(state: IncrementalState) -> BlockingRequest | None:
    """Return what is left of the first snapshot, if it is read as a blocking one."""
    first = state.blocking[0] if state.blocking else None
    return first if first is not None and first.signal_id.partition("@")[0] == INITIAL_REST else None


def unread(state: IncrementalState, partition: Offset, reader: OffsetStorageReader) -> IncrementalState:
    """Return a state with what executors have left of a snapshot that is divided."""
    request = initial_rest(state)
    if request is None or not request.signal_id.startswith(_DIVIDED):
        return state
    partitions = [piece_partition(partition, request.signal_id, each) for each in range(len(request.collections))]
    pieces = zip(request.collections, map(PieceProgress.of, reader.offsets(partitions)), strict=True)
    left = tuple(progress.left_of(collection) for collection, progress in pieces if not progress.is_read)
    rest = (BlockingRequest(INITIAL_REST, left),) if left else ()
    return replace(state, blocking=(*rest, *state.blocking[1:]))
