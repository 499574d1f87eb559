"""Verdicts on the connectors of a Java cluster, and the changes that carry offsets over."""

from __future__ import annotations

from typing import Any

import pytest

from connect.errors import ConnectError
from worker.cli.migrate.move import Cluster, altered_offsets, move
from worker.cli.migrate.verdicts import Place, Verdict, verdict_of

CONFIG = {"connector.class": "org.x.Source", "key.converter": "K", "value.converter": "V"}
RIGHT: dict[str, Any] = {"configs": []}


def place(state: str = "RUNNING", **config: str) -> Place:
    return Place({**CONFIG, **config}, state)


def test_what_is_valid_is_ready_and_warnings_are_differences() -> None:
    assert verdict_of("a", place(), None, "ours.Source", RIGHT).verdict is Verdict.READY
    warned = {**RIGHT, "warnings": [{"key": "k", "message": "k has no effect."}]}
    found = verdict_of("a", place(), None, "ours.Source", warned)
    assert (found.verdict, list(found.reasons)) == (Verdict.DIFFERS, ["k has no effect."])


def test_a_class_that_nothing_stands_for_is_named() -> None:
    found = verdict_of("a", place(), None, None, None)
    assert found.verdict is Verdict.MISSING
    assert found.reasons[0].startswith("org.x.Source: nothing stands for it here")


def test_mistakes_are_missing() -> None:
    wrong = {"configs": [{"definition": None, "value": {"name": "k", "errors": ["no"]}}]}
    assert list(verdict_of("a", place(), None, "ours.Source", wrong).reasons) == ["k: no"]


def test_converters_of_the_java_worker_have_to_be_given() -> None:
    found = verdict_of("a", Place({"connector.class": "org.x.Source"}, "RUNNING"), None, "ours.Source", RIGHT)
    assert found.verdict is Verdict.MISSING
    assert "--default key.converter=CLASS" in found.reasons[0]


def test_what_runs_here_is_not_taken_again() -> None:
    assert verdict_of("a", place("STOPPED"), place("RUNNING"), "ours.Source", RIGHT).verdict is Verdict.HERE
    both = verdict_of("a", place("RUNNING"), place("RUNNING"), "ours.Source", RIGHT)
    assert (both.verdict, list(both.reasons)) == (
        Verdict.MISSING,
        ["It is RUNNING here. It runs in both clusters: stop one."],
    )
    assert verdict_of("a", place(), place("STOPPED"), "ours.Source", RIGHT).verdict is Verdict.READY


def test_offsets_become_exactly_those_of_the_other_cluster() -> None:
    def at(partition: str, offset: int | None) -> dict[str, Any]:
        return {"partition": {"file": partition}, "offset": None if offset is None else {"position": offset}}

    assert altered_offsets([at("a", 1), at("b", 2), at("c", 3)], [at("a", 1), at("b", 5), at("d", 4)]) == [
        at("b", 5),
        at("d", 4),
        at("c", None),
    ]
    assert altered_offsets([at("a", 1)], [at("a", 1)]) == []


class Remembered(Cluster):
    """A cluster with one connector, which fails when it is asked for ``fault``."""

    def __init__(self, state: str, fault: str = "") -> None:
        self.state = state
        self.held: list[dict[str, Any]] = []
        self._fault = fault

    def states(self, connector: str) -> tuple[str, int]:
        return self.state, 0

    def stopped(self, connector: str) -> list[dict[str, Any]]:
        self.state = "STOPPED"
        return [{"partition": {"file": "a"}, "offset": {"position": 7}}]

    def set_offsets(self, connector: str, offsets: list[dict[str, Any]]) -> None:
        if self._fault == "offsets":
            raise ConnectError("refused")
        self.held = offsets

    def change(self, connector: str, change: str) -> None:
        self.state = {"resume": "RUNNING", "pause": "PAUSED", "stop": "STOPPED"}[change]
        if self._fault == change:
            raise ConnectError("no answer came")


@pytest.mark.parametrize("state", ["RUNNING", "PAUSED", "STOPPED"])
def test_a_moved_connector_has_its_offsets_and_its_state_and_is_stopped_where_it_was(state: str) -> None:
    source, target = Remembered(state), Remembered("STOPPED")
    assert move("a", source, target, lambda: None) == state
    assert (source.state, target.state) == ("STOPPED", state)
    assert target.held[0]["offset"] == {"position": 7}


def test_one_whose_offsets_are_refused_runs_where_it_was() -> None:
    source, target = Remembered("RUNNING"), Remembered("STOPPED", "offsets")
    with pytest.raises(ConnectError, match="refused"):
        move("a", source, target, lambda: None)
    assert (source.state, target.state) == ("RUNNING", "STOPPED")


def test_one_that_may_have_started_does_not_start_again_where_it_was() -> None:
    source, target = Remembered("RUNNING"), Remembered("STOPPED", "resume")
    with pytest.raises(ConnectError, match="no answer came"):
        move("a", source, target, lambda: None)
    assert (source.state, target.state) == ("STOPPED", "RUNNING")
