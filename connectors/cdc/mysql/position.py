"""Positions in the log, in Debezium's form, which is taken over and given back.

A position is what precedes the next transaction (the set of GTIDs, and a place in a file), and how much of that
transaction was sent: the number of its events, and of the rows of the event after those; and, beside Debezium's keys,
the transaction's id and the number of its captured rows.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from connect.errors import ConnectError

__all__ = ["PARTIAL_GTID", "PREPARED", "SENT_ROWS", "Position", "PreparedPlace", "is_after", "prepared_text"]

PARTIAL_GTID: Final = "gtid"
"""The key, unknown to Debezium, that names the transaction of which a part was sent."""
SENT_ROWS: Final = "sent_rows"
"""The key, unknown to Debezium, that counts the captured rows of this transaction that were sent.

A replica may log the same rows in other events, so that Debezium's own counts do not hold after a failover.
"""
PREPARED: Final = "xa_prepared"
"""The key, unknown to Debezium, that has the places of distributed transactions which were prepared and not ended."""
_COUNTS: Final = ("pos", "ts_sec", "server_id", "event", "row", SENT_ROWS)


@dataclass(frozen=True, slots=True)
class PreparedPlace:
    """Where the log has the changes of a distributed transaction that was prepared, and not committed or rolled back
    yet."""

    xid: str
    file: str
    position: int
    gtid: str | None
    """The transaction that prepared it."""
    gtids: str | None
    """The transactions before that one."""


def prepared_text(places: Iterable[PreparedPlace]) -> str:
    """Return what an offset says of prepared transactions."""
    found = [[each.xid, each.file, each.position, each.gtid, each.gtids] for each in places]
    return json.dumps(found, separators=(",", ":"))


def _prepared(text: object) -> tuple[PreparedPlace, ...]:
    if not text:
        return ()
    places = tuple(PreparedPlace(*each) for each in json.loads(str(text)))
    if not all(isinstance(each.file, str) and isinstance(each.position, int) for each in places):
        raise ValueError("places have a file and a position")
    return places


@dataclass(frozen=True, slots=True)
class Position:
    """A place in the log."""

    file: str
    position: int
    gtids: str | None
    ts_sec: int = 0
    server_id: int = 0
    event: int = 0
    row: int = 0
    partial_gtid: str | None = None
    """The transaction that ``event`` and ``row`` count in, if known."""
    sent_rows: int | None = None
    """How many of its captured rows were sent; ``None`` in Debezium's own offsets."""
    snapshot: str | None = None
    """Set while a snapshot is under way."""
    prepared: tuple[PreparedPlace, ...] = ()
    """The distributed transactions before the position that are not ended."""

    @classmethod
    def from_offset(cls, offset: Mapping[str, Any]) -> Position:
        """Read an offset. Raises :class:`~connect.errors.ConnectError` for one that is no position."""
        try:
            counts = {name: int(offset.get(name) or 0) for name in _COUNTS}
            prepared = _prepared(offset.get(PREPARED))
        except (TypeError, ValueError) as error:
            raise _unreadable(offset) from error
        file = offset.get("file")
        if not isinstance(file, str) or not file or min(counts.values()) < 0:
            raise _unreadable(offset)
        gtids = offset.get("gtids")
        partial = offset.get(PARTIAL_GTID) or offset.get("transaction_id")
        return cls(
            file,
            counts["pos"],
            str(gtids) if gtids else None,
            counts["ts_sec"],
            counts["server_id"],
            counts["event"],
            counts["row"],
            str(partial) if partial and (counts["event"] or counts["row"]) else None,
            counts[SENT_ROWS] if SENT_ROWS in offset else None,
            str(offset["snapshot"]) if offset.get("snapshot") not in (None, False) else None,
            prepared,
        )

    def to_offset(self) -> dict[str, Any]:
        """Return the offset, with the keys that Debezium has."""
        offset: dict[str, Any] = {"ts_sec": self.ts_sec, "file": self.file, "pos": self.position}
        if self.gtids:
            offset["gtids"] = self.gtids
        if self.snapshot:
            offset["snapshot"] = self.snapshot
            return offset
        if self.server_id:
            offset["server_id"] = self.server_id
        if self.event:
            offset["event"] = self.event
        if self.row:
            offset["row"] = self.row
        if self.partial_gtid and (self.event or self.row):
            offset[PARTIAL_GTID] = self.partial_gtid
        if self.sent_rows is not None:
            offset[SENT_ROWS] = self.sent_rows
        if self.prepared:
            offset[PREPARED] = prepared_text(self.prepared)
        return offset

    def whole(self) -> Position:
        """Return the position without the part of a transaction."""
        return replace(self, event=0, row=0, partial_gtid=None, sent_rows=None)


def is_after(stored: Mapping[str, Any], offset: Mapping[str, Any]) -> bool:
    """Return whether a stored offset is that one, or a later one of the same log."""
    return (stored.get("file", ""), stored.get("pos", 0)) >= (offset["file"], offset["pos"])


def _unreadable(offset: Mapping[str, Any]) -> ConnectError:
    return ConnectError(
        f"The offset {dict(offset)} is no position in a log of MySQL or MariaDB: it needs file and pos, and gtids if "
        "the server has them. Correct it (PATCH /connectors/NAME/offsets), or delete it to begin anew."
    )
