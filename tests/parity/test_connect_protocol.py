"""The bytes of the ``connect`` group protocol are Kafka Connect's."""

from __future__ import annotations

import json
from typing import Any

import pytest

from equipment.vectors import DATA
from worker.membership.protocol import (
    PROTOCOL_TYPE,
    Assignment,
    MemberMetadata,
    decode_assignment,
    decode_metadata,
    encode_assignment,
    encode_metadata,
    offered,
)
from worker.unit import Unit

SUITE = json.loads((DATA / "vectors" / "connect_protocol.json").read_text())
CASES: list[dict[str, Any]] = SUITE["cases"]


def _of_kind(kind: str) -> list[Any]:
    return [pytest.param(case, id=case["name"]) for case in CASES if case["kind"] == kind]


def _units(case: dict[str, Any], prefix: str) -> frozenset[Unit]:
    tasks = [task.rpartition("-") for task in case.get(f"{prefix}tasks", ())]
    return frozenset(
        [Unit(name) for name in case.get(f"{prefix}connectors", ())]
        + [Unit(name, int(task)) for name, _, task in tasks]
    )


def _assignment(case: dict[str, Any]) -> Assignment:
    return Assignment(
        leader=case["leader"],
        leader_url=case["leader_url"],
        config_offset=case["config_offset"],
        assigned=_units(case, ""),
        revoked=_units(case, "revoked_"),
        delay=case.get("delay", 0),
        error=case["error"],
    )


def _metadata(case: dict[str, Any]) -> MemberMetadata:
    held = None
    if case["name"].endswith("carrying that assignment"):
        held = _assignment(
            next(c for c in CASES if c["kind"] == "assignment" and c["version"] == case["version"] and c["tasks"])
        )
    return MemberMetadata(case["url"], case["config_offset"], held)


@pytest.mark.parametrize("case", _of_kind("assignment"))
def test_assignments(case: dict[str, Any]) -> None:
    data, assignment = bytes.fromhex(case["hex"]), _assignment(case)
    assert decode_assignment(data) == assignment
    assert encode_assignment(assignment, case["version"]) == data


@pytest.mark.parametrize("case", _of_kind("metadata"))
def test_metadata(case: dict[str, Any]) -> None:
    data, metadata = bytes.fromhex(case["hex"]), _metadata(case)
    assert decode_metadata(data) == metadata
    assert encode_metadata(metadata, case["version"]) == data


def test_names_and_their_order() -> None:
    assert SUITE["protocol_type"] == PROTOCOL_TYPE
    for connect_protocol, names in SUITE["join_group_protocol_names"].items():
        assert list(offered(connect_protocol)) == names
