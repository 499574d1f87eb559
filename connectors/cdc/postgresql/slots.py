"""Replication slots: their state, and whether a stream can go on from a stored position without a gap."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from connect.errors import ConnectError
from connectors.cdc.postgresql.config import OffsetMismatch, PostgresConfig, SnapshotMode
from connectors.cdc.postgresql.offsets import Position, ServerIdentity, format_lsn, parse_lsn

if TYPE_CHECKING:
    import psycopg

__all__ = ["Gap", "Plan", "SlotState", "check_slot", "gap", "plan", "read_slot"]

_STATE = """
SELECT to_jsonb(s), pg_wal_lsn_diff(w.lsn, s.restart_lsn)::bigint, w.lsn::text
FROM pg_replication_slots s,
     (SELECT CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_lsn() END) AS w(lsn)
WHERE s.slot_name = %s
"""


@dataclass(frozen=True, slots=True)
class SlotState:
    """A slot as the catalog has it; ``retained_bytes`` is the log that it keeps the server from removing."""

    name: str
    plugin: str | None
    database: str | None
    is_active: bool
    is_temporary: bool
    confirmed_lsn: int | None
    is_lost: bool
    is_failover: bool
    xmin: int | None
    retained_bytes: int | None
    server_lsn: int | None


def read_slot(session: psycopg.Connection[Any], name: str) -> SlotState | None:
    """Return the state of a slot; None if it does not exist."""
    row = session.execute(_STATE, (name,)).fetchone()
    if row is None:
        return None
    state, retained, server_lsn = row
    confirmed, xmin = state.get("confirmed_flush_lsn"), state.get("catalog_xmin")
    return SlotState(
        name,
        state.get("plugin"),
        state.get("database"),
        bool(state.get("active")),
        bool(state.get("temporary")),
        None if confirmed is None else parse_lsn(confirmed),
        state.get("wal_status") == "lost" or bool(state.get("invalidation_reason")),
        bool(state.get("failover")),
        None if xmin is None else int(xmin),
        retained,
        None if server_lsn is None else parse_lsn(server_lsn),
    )


def check_slot(slot: SlotState, database: str) -> None:
    """Raise an error if the slot cannot be read by pgoutput for this database."""
    remedy = "Name another slot by slot.name, or drop this one when nobody needs it: "
    drop = f"SELECT pg_drop_replication_slot('{slot.name}');"
    if slot.plugin != "pgoutput":
        kind = "a physical slot" if slot.plugin is None else f"a slot of the plugin {slot.plugin}"
        raise ConnectError(f"{slot.name} is {kind}; this connector reads pgoutput. {remedy}{drop}")
    if slot.database != database:
        raise ConnectError(f"Slot {slot.name} belongs to database {slot.database}, not {database}. {remedy}{drop}")


@dataclass(frozen=True, slots=True)
class Gap:
    """Why changes after a stored position are missing. ``is_passable`` says whether the stream could go on behind
    them."""

    reason: str
    is_passable: bool = False


def gap(
    position: Position,
    slot: SlotState | None,
    identity: ServerIdentity,
    name: str,
    history: Callable[[int], str],
) -> Gap | None:
    """Return what is missing between a stored position and the slot; None if nothing is."""
    kept = position.identity
    if kept is not None and kept.system_identifier != identity.system_identifier:
        return Gap(
            f"the server is another cluster than the one that the stored offset belongs to (system identifier "
            f"{identity.system_identifier}, not {kept.system_identifier}): positions in its log mean something else"
        )
    if kept is not None and (told := _diverged(position, kept.timeline, identity.timeline, history)) is not None:
        return Gap(told)
    if slot is None:
        return Gap(
            f"the replication slot {name} does not exist any more: the server no longer keeps the changes for it"
        )
    if slot.is_lost:
        return Gap(
            f"the server has invalidated the replication slot {name}, since it kept more log than "
            "max_slot_wal_keep_size, was not used for too long, or a standby's log was removed"
        )
    if position.commit_lsn is None or slot.confirmed_lsn is None or slot.confirmed_lsn <= position.commit_lsn:
        return None
    return Gap(
        f"the replication slot {name} starts at {format_lsn(slot.confirmed_lsn)}, behind the stored offset "
        f"{format_lsn(position.commit_lsn)}: it was created anew, or somebody else has moved it on",
        is_passable=True,
    )


def _diverged(position: Position, kept: int, now: int, history: Callable[[int], str]) -> str | None:
    """Return why a timeline does not contain the position; None if it does."""
    if now == kept:
        return None
    if now < kept:
        return f"the server is on timeline {now}, and the stored offset on the later timeline {kept}: it was restored"
    for line in history(now).splitlines():
        number, _, rest = line.strip().partition("\t")
        if number == str(kept):
            end = parse_lsn(rest.split("\t")[0].strip())
            sent = max(position.commit_lsn or 0, position.event_lsn + 1)
            if sent > end:
                return (
                    f"the server was promoted at {format_lsn(end)}, before the stored offset "
                    f"{format_lsn(sent)}: changes that were sent are not part of it"
                )
            return None
    return f"the server's timeline {now} does not come from timeline {kept} of the stored offset"


@dataclass(frozen=True, slots=True)
class Plan:
    """What a start does: whether rows are read, and changes streamed; ``missing`` is to be logged."""

    reads_rows: bool
    streams: bool
    missing: str | None = None


def plan(config: PostgresConfig, position: Position | None, missing: Gap | None) -> Plan:
    """Decide what to do at a start with a stored position, or none; ``missing`` is the gap behind it.

    Raises an error if the changes behind the position are lost, and the configuration does not say to go on.
    """
    mode = config.snapshot_mode
    if position is None or position.is_snapshot:
        return _first_start(config)
    if mode is SnapshotMode.INITIAL_ONLY:
        return Plan(reads_rows=False, streams=False)
    streams = mode is not SnapshotMode.CONFIGURATION_BASED or config.snapshot_mode_configuration_based_start_stream
    if mode is SnapshotMode.ALWAYS:
        return Plan(reads_rows=True, streams=True, missing=missing.reason if missing else None)
    if missing is None or not streams:
        return Plan(reads_rows=False, streams=streams)
    again = mode is SnapshotMode.WHEN_NEEDED or (
        mode is SnapshotMode.CONFIGURATION_BASED and config.snapshot_mode_configuration_based_snapshot_on_data_error
    )
    if again:
        return Plan(reads_rows=True, streams=streams, missing=missing.reason)
    if missing.is_passable and config.offset_mismatch_strategy is not OffsetMismatch.TRUST_OFFSET:
        return Plan(reads_rows=False, streams=streams, missing=missing.reason)
    raise ConnectError(
        f"Changes since the stored offset are lost: {missing.reason}. To read all rows again and go on from there, "
        "set snapshot.mode=when_needed; rows deleted meanwhile are then not told. To go on without the lost changes, "
        "stop the connector, delete its offset (DELETE /connectors/NAME/offsets) and set snapshot.mode=no_data"
        + (", or set offset.mismatch.strategy=trust_slot." if missing.is_passable else ".")
    )


def _first_start(config: PostgresConfig) -> Plan:
    match config.snapshot_mode:
        case SnapshotMode.NO_DATA | SnapshotMode.NEVER:
            return Plan(reads_rows=False, streams=True)
        case SnapshotMode.INITIAL_ONLY:
            return Plan(reads_rows=True, streams=False)
        case SnapshotMode.CONFIGURATION_BASED:
            return Plan(
                reads_rows=config.snapshot_mode_configuration_based_snapshot_data,
                streams=config.snapshot_mode_configuration_based_start_stream,
            )
        case _:
            return Plan(reads_rows=True, streams=True)
