"""The file of MirrorMaker 2 compiled to workers and connectors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest

from connect.errors import ConfigError
from connectors.mirror.flows import CONNECTORS, Flows
from equipment.mirror_recordings import mirror_vectors

_CONFIGS: Final = Path(__file__).parents[3] / "parity" / "data" / "mirror" / "configs.json"
_OF_SOURCES: Final = {
    "topic.creation.groups",
    "exactly.once.support",
    "transaction.boundary",
    "transaction.boundary.interval.ms",
    "offsets.storage.topic",
}
"""Keys that the framework adds to every source: MirrorMaker does not take them for keys of its connectors."""


def _keys() -> set[str]:
    definitions = json.loads(_CONFIGS.read_text(encoding="utf-8"))
    return {entry["name"] for name in CONNECTORS for entry in definitions[name]} - _OF_SOURCES


KEYS: Final = _keys()
TWO: Final = {"clusters": "A, B", "A.bootstrap.servers": "a:1", "B.bootstrap.servers": "b:1"}


@pytest.mark.parametrize("case", mirror_vectors("mm2_properties"))
def test_files_compile_as_in_java(case: dict[str, Any]) -> None:
    flows = Flows(case["mm2.properties"], KEYS)
    for expected in case["flows"]:
        flow = flows.flow(*expected["flow"].split("->"))
        assert flow.worker == expected["worker"]
        assert flow.connectors == {name: expected[name] for name in CONNECTORS}


def _names(props: dict[str, str], *targets: str) -> list[str]:
    return [flow.name for flow in Flows({**TWO, **props}, KEYS).running(targets)]


def test_only_enabled_flows_and_heartbeats_that_are_asked_for_run() -> None:
    assert _names({"A->B.enabled": "true"}) == ["A->B"]
    assert _names({"A->B.enabled": "true", "B->A.emit.heartbeats.enabled": "true"}) == ["A->B", "B->A"]
    assert _names({"A->B.enabled": "TRUE", "emit.heartbeats.enabled": "true"}) == ["A->B", "B->A"]
    assert _names({"A->B.enabled": "true", "B->A.enabled": "true"}, "A") == ["B->A"]


def test_keys_of_our_own_are_for_every_flow_unless_a_flow_has_others() -> None:
    props = {**TWO, "mirror.gap": "fail", "A->B.mirror.gap": "mark"}
    flows = Flows(props, KEYS)
    assert flows.flow("A", "B").connectors["MirrorSourceConnector"]["mirror.gap"] == "mark"
    assert flows.flow("B", "A").connectors["MirrorSourceConnector"]["mirror.gap"] == "fail"


@pytest.mark.parametrize(
    ("props", "key"),
    [
        ({}, "A->B.enabled"),
        ({"clusters": ""}, "clusters"),
        ({"clusters": "A"}, "clusters"),
        ({"clusters": "A,,B"}, "clusters"),
        ({"clusters": "A,B,A"}, "clusters"),
        ({"A->C.enabled": "true"}, "A->C.enabled"),
        ({"A->A.enabled": "true"}, "A->A.enabled"),
        ({"A->B.enabled": "true", "A.bootstrap.servers": " "}, "A.bootstrap.servers"),
    ],
)
def test_mistakes_name_their_key(props: dict[str, str], key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Flows({**TWO, **props}, KEYS).running()
    assert caught.value.key == key


def test_clusters_that_the_command_names_are_those_of_the_file() -> None:
    with pytest.raises(ConfigError, match="A, B"):
        Flows({**TWO, "A->B.enabled": "true"}, KEYS).running(["nope"])


def test_old_names_are_for_every_flow_unless_a_flow_has_others() -> None:
    props = {**TWO, "topics.blacklist": "a", "groups.blacklist": "b", "A->B.topics.blacklist": "c"}
    flows = Flows({**props, "config.properties.blacklist": "d"}, KEYS)
    for flow, topics in (("A", "B"), "c"), (("B", "A"), "a"):
        for config in flows.flow(*flow).connectors.values():
            assert config["topics.blacklist"] == topics
            assert (config["groups.blacklist"], config["config.properties.blacklist"]) == ("b", "d")
