"""Whether a stream can go on from a stored position, and what a start does."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from connect.errors import ConnectError
from connectors.cdc.postgresql.config import PostgresConfig
from connectors.cdc.postgresql.offsets import Position, ServerIdentity, format_lsn, parse_lsn
from connectors.cdc.postgresql.slots import Gap, Plan, SlotState, check_slot, gap, plan

SLOT = SlotState("s", "pgoutput", "shop", False, False, 90, False, False, None, 0, 200)
HERE = ServerIdentity("1", 2)
AT = Position(100, identity=HERE)
HISTORY = f"1\t{format_lsn(150)}\tno recovery target specified\n"


def reason(position: Position, slot: SlotState | None, identity: ServerIdentity = HERE) -> str | None:
    found = gap(position, slot, identity, "s", lambda _: HISTORY)
    return None if found is None else found.reason


def config(**keys: str) -> PostgresConfig:
    needed = {"topic.prefix": "p", "database.hostname": "h", "database.user": "u", "database.dbname": "shop"}
    return PostgresConfig.parse(needed | {key.replace("_", "."): value for key, value in keys.items()})


def test_a_slot_at_or_before_the_offset_has_all() -> None:
    assert reason(AT, SLOT) is None
    assert reason(AT, replace(SLOT, confirmed_lsn=100)) is None


@pytest.mark.parametrize(
    ("position", "slot", "identity", "told"),
    [
        (AT, None, HERE, "does not exist any more"),
        (AT, replace(SLOT, is_lost=True), HERE, "has invalidated"),
        (AT, replace(SLOT, confirmed_lsn=101), HERE, "created anew"),
        (AT, SLOT, ServerIdentity("2", 2), "another cluster"),
        (AT, SLOT, ServerIdentity("1", 1), "was restored"),
        (Position(151, identity=ServerIdentity("1", 1)), SLOT, HERE, "was promoted at 0/96"),
        (Position(100, 150, 1, 7, identity=ServerIdentity("1", 1)), SLOT, HERE, "was promoted at 0/96"),
        (Position(151, identity=ServerIdentity("1", 3)), SLOT, ServerIdentity("1", 4), "does not come from timeline 3"),
    ],
)
def test_gaps(position: Position, slot: SlotState | None, identity: ServerIdentity, told: str) -> None:
    assert told in (reason(position, slot, identity) or "")


def test_a_promoted_standby_that_has_the_position_goes_on() -> None:
    assert reason(Position(150, identity=ServerIdentity("1", 1)), SLOT) is None
    assert reason(Position(100, 149, 1, 7, identity=ServerIdentity("1", 1)), SLOT) is None


@pytest.mark.parametrize(
    ("keys", "position", "missing", "does"),
    [
        ({}, None, None, Plan(reads_rows=True, streams=True)),
        ({}, Position(1, is_snapshot=True), None, Plan(reads_rows=True, streams=True)),
        ({}, AT, None, Plan(reads_rows=False, streams=True)),
        ({"snapshot_mode": "no_data"}, None, None, Plan(reads_rows=False, streams=True)),
        ({"snapshot_mode": "initial_only"}, None, None, Plan(reads_rows=True, streams=False)),
        ({"snapshot_mode": "initial_only"}, AT, None, Plan(reads_rows=False, streams=False)),
        ({"snapshot_mode": "always"}, AT, None, Plan(reads_rows=True, streams=True)),
        ({"snapshot_mode": "when_needed"}, AT, Gap("x"), Plan(reads_rows=True, streams=True, missing="x")),
        (
            {"offset_mismatch_strategy": "trust_slot"},
            AT,
            Gap("x", is_passable=True),
            Plan(reads_rows=False, streams=True, missing="x"),
        ),
        ({"snapshot_mode": "configuration_based"}, None, None, Plan(reads_rows=False, streams=False)),
    ],
)
def test_plans(keys: dict[str, str], position: Position | None, missing: Gap | None, does: Plan) -> None:
    assert plan(config(**keys), position, missing) == does


def test_lost_changes_are_an_error_by_default() -> None:
    with pytest.raises(ConnectError, match=r"lost: x.*snapshot.mode=when_needed"):
        plan(config(), AT, Gap("x"))
    with pytest.raises(ConnectError, match="lost: x"):
        plan(config(offset_mismatch_strategy="trust_slot"), AT, Gap("x"))


@pytest.mark.parametrize("changes", [{"plugin": None}, {"plugin": "wal2json"}, {"database": "other"}])
def test_a_slot_of_another_kind_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ConnectError, match=r"SELECT pg_drop_replication_slot\('s'\)"):
        check_slot(replace(SLOT, **changes), "shop")


def test_lsns() -> None:
    assert parse_lsn("1/A") == (1 << 32) + 10
    assert format_lsn((1 << 32) + 10) == "1/A"


@pytest.mark.parametrize(
    ("offset", "position"),
    [
        (
            {"last_snapshot_record": True, "lsn": 5, "txId": 1, "snapshot": "INITIAL", "snapshot_completed": True},
            Position(5, is_after_snapshot=True),
        ),
        ({"lsn": 5, "snapshot": "INITIAL", "last_snapshot_record": False}, Position(5, is_snapshot=True)),
        ({"lsn_proc": 9, "messageType": "COMMIT", "lsn_commit": 9, "lsn": 9}, Position(9)),
        (
            {"lsn_proc": 12, "lsn_events_processed": 3, "messageType": "INSERT", "lsn_commit": 9, "lsn": 12, "txId": 4},
            Position(9, 12, 3, 4),
        ),
        ({"lsn_proc": 12, "messageType": "UPDATE", "lsn_commit": 9, "txId": 4}, Position(9, 12, 0, 4)),
    ],
)
def test_debeziums_offsets(offset: dict[str, Any], position: Position) -> None:
    assert Position.from_offset(offset) == position


@pytest.mark.parametrize("offset", [{}, {"lsn": "here"}, {"messageType": "COMMIT"}])
def test_an_offset_that_says_nothing_is_refused(offset: dict[str, Any]) -> None:
    with pytest.raises(ConnectError, match="The stored offset cannot be read"):
        Position.from_offset(offset)
