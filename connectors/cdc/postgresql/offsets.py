"""Positions in the write-ahead log, and source offsets in Debezium's format.

A position is the end of the last whole transaction, and how far the next one was sent: up to its event at an LSN,
and how many of the events at that LSN, since all rows of one COPY may have the same. The transaction is recognised
by its number; nothing is passed over in any other.

=====================  ==============================================================================
``lsn_commit``         end of the last whole transaction
``lsn_proc``           LSN of the last event
``lsn_events_processed``  how many of the events at this LSN in its transaction; absent after a commit
``lsn``                the same as ``lsn_proc``, or where the snapshot was taken
``txId``, ``ts_usec``  number and commit time of the event's transaction
``messageType``        the last event: INSERT, UPDATE, DELETE, TRUNCATE, MESSAGE or COMMIT
``snapshot``           INITIAL while the snapshot runs, and on its last record
``last_snapshot_record``, ``snapshot_completed``  whether this is its last record
``system_identifier``, ``timeline``  of the server; Debezium ignores them
=====================  ==============================================================================
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from connect.data import Offset
from connect.errors import ConnectError
from connect.kits.cdc.incremental_state import IncrementalState

__all__ = ["Position", "ServerIdentity", "format_lsn", "identity_of", "parse_lsn", "partial_offset"]

_PARTIAL: Final = "INSERT"
"""The last event of an offset within a transaction, where it is not known: any but those of a whole one will do."""

_WHOLE: Final = ("COMMIT", "BEGIN", None)


def format_lsn(lsn: int) -> str:
    """Return a position as PostgreSQL writes it, ``0/33E2FA0``."""
    return f"{lsn >> 32:X}/{lsn & 0xFFFFFFFF:X}"


def parse_lsn(text: str) -> int:
    """Return the number of a position."""
    high, low = text.split("/")
    return int(high, 16) << 32 | int(low, 16)


@dataclass(frozen=True, slots=True)
class ServerIdentity:
    """Which database cluster positions belong to."""

    system_identifier: str
    timeline: int


@dataclass(frozen=True, slots=True)
class Position:
    """How far a stream was sent.

    ``commit_lsn`` is the end of the last whole transaction, None if that is unknown. ``xid`` is set if the next was
    begun: then ``event_lsn`` is the LSN of its last event that was sent, and ``events`` counts those at that LSN.
    ``is_snapshot`` is set while the first snapshot is not complete, ``is_after_snapshot`` until a transaction was
    streamed after it.
    """

    commit_lsn: int | None
    event_lsn: int = 0
    events: int = 0
    xid: int | None = None
    is_snapshot: bool = False
    is_after_snapshot: bool = False
    is_resumed: bool = False
    identity: ServerIdentity | None = None

    @classmethod
    def from_offset(cls, offset: Offset) -> Position:
        """Read an offset, of this connector or of Debezium's."""
        try:
            return _read(offset)
        except (TypeError, ValueError) as error:
            raise ConnectError(
                f"The stored offset cannot be read: {dict(offset)}. Stop the connector and set or delete its offset by "
                "PATCH or DELETE /connectors/NAME/offsets."
            ) from error


def _number(offset: Offset, key: str) -> int | None:
    value = offset.get(key)
    return None if value is None else int(value)


def _read(offset: Offset) -> Position:
    identity = None
    if offset.get("system_identifier") is not None:
        identity = ServerIdentity(str(offset["system_identifier"]), int(offset.get("timeline") or 1))
    if offset.get("snapshot") is not None and offset["snapshot"] is not False:
        is_complete = bool(offset.get("snapshot_completed") or offset.get("last_snapshot_record"))
        # What is left of a snapshot under way is read as an incremental one, or as a blocking one.
        state = IncrementalState.of(offset)
        is_resumed = not is_complete and (state.is_running or bool(state.blocking)) and identity is not None
        is_over = is_complete or is_resumed
        return Position(
            _number(offset, "lsn"),
            is_snapshot=not is_over,
            is_after_snapshot=is_over,
            is_resumed=is_resumed,
            identity=identity,
        )
    commit_lsn = _number(offset, "lsn_commit")
    event_lsn = _number(offset, "lsn_proc")
    if offset.get("messageType") in _WHOLE or event_lsn is None:
        last = [lsn for lsn in (commit_lsn, event_lsn, _number(offset, "lsn")) if lsn is not None]
        if not last:
            raise ValueError("no LSN")
        return Position(commit_lsn if commit_lsn is not None else last[0], identity=identity)
    # Debezium counts the events of an LSN since 3.7; before, those of the last LSN are sent again.
    events = _number(offset, "lsn_events_processed") or 0
    return Position(commit_lsn, event_lsn, events, _number(offset, "txId"), identity=identity)


def identity_of(identity: ServerIdentity | None) -> Mapping[str, Any]:
    """Return the keys of an offset that name the server."""
    if identity is None:
        return {}
    return {"system_identifier": identity.system_identifier, "timeline": identity.timeline}


def partial_offset(position: Position) -> dict[str, Any]:
    """Return the offset of a position within a transaction."""
    return {
        "lsn_proc": position.event_lsn,
        "lsn_events_processed": position.events,
        "messageType": _PARTIAL,
        "lsn_commit": position.commit_lsn,
        "lsn": position.event_lsn,
        "txId": position.xid,
        **identity_of(position.identity),
    }
