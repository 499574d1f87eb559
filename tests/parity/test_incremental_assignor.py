"""Rounds of the incremental cooperative assignor go as Kafka Connect's: how much moves, how long it waits."""

from __future__ import annotations

import json
from typing import Any

import pytest

from equipment.vectors import DATA
from worker.membership.assignor import AssignorState, assign, units_of
from worker.unit import Unit

SCENARIOS = json.loads((DATA / "vectors" / "incremental_assignor.json").read_text())["scenarios"]


class Cluster:
    """Workers that do as they are told, and their leader's state."""

    def __init__(self, max_delay: int) -> None:
        self.max_delay = max_delay
        self.now = 0
        self.generation = 0
        self.state = AssignorState()
        self.connectors: dict[str, int] = {}
        self.held: dict[str, frozenset[Unit]] = {}

    def do(self, what: str, *arguments: Any) -> None:
        match what, arguments:
            case "join", (worker,):
                self.held[worker] = frozenset()
            case "leave", (worker,):
                del self.held[worker]
            case "conn", (name, tasks):
                self.connectors[name] = tasks
            case "del", (name,):
                del self.connectors[name]
            case "time", (milliseconds,):
                self.now += milliseconds
            case "dup", (worker, other):
                self.held[other] |= self.held[worker]

    def round(self) -> dict[str, Any]:
        self.generation += 1
        outcome = assign(
            self.state,
            units_of(self.connectors),
            self.held,
            now=self.now,
            max_delay=self.max_delay,
            generation=self.generation,
            last_generation=self.state.generation,
        )
        self.state = outcome.state
        workers = {}
        for worker, increments in outcome.increments.items():
            self.held[worker] = (self.held[worker] - increments.revoked) | increments.assigned
            workers[worker] = (
                _counts("added", increments.assigned)
                | _counts("revoked", increments.revoked)
                | _counts("held", self.held[worker])
            )
        owned = [unit for units in self.held.values() for unit in units]
        assert len(owned) == len(set(owned))
        assert set(owned) == outcome.owners.keys()
        return {
            "delay": outcome.delay,
            "workers": workers,
            "followup_rebalance_needed": any(item.revoked for item in outcome.increments.values()),
        }


def _counts(what: str, units: frozenset[Unit]) -> dict[str, int]:
    tasks = sum(unit.is_task for unit in units)
    return {f"connectors_{what}": len(units) - tasks, f"tasks_{what}": tasks}


@pytest.mark.parametrize("scenario", [pytest.param(scenario, id=scenario["name"]) for scenario in SCENARIOS])
def test_scenarios(scenario: dict[str, Any]) -> None:
    cluster = Cluster(scenario["scheduled.rebalance.max.delay.ms"])
    for number, step in enumerate(scenario["steps"]):
        if step["do"] == ["round"]:
            assert cluster.round() == step["result"], f"step {number}"
        else:
            cluster.do(*step["do"])
