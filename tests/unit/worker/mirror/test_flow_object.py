"""A flow compiled to connectors, read back from them, and how it is."""

from __future__ import annotations

from typing import Any

import pytest

from connect.errors import ConfigError
from connectors.mirror.flows import CONNECTORS
from worker.errors import BadRequestError, ConflictError
from worker.mirror.flow import KINDS, FlowName, compiled, config_of_flow, differing, flows_of, parts_of
from worker.mirror.flow_view import figures, flow_view

FLOW = FlowName("A", "B")
CONFIG = {"topics": "orders", "source.cluster.bootstrap.servers": "a:1", "target.cluster.bootstrap.servers": "b:1"}
BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"


def views(configs: dict[str, Any], state: str = "RUNNING") -> dict[str, dict[str, Any]]:
    running = {"state": state, "worker_id": "w:1"}
    return {
        name: {"info": {"config": config}, "status": {"connector": running, "tasks": [{"id": 0, **running}]}}
        for name, config in configs.items()
    }


def made(config: dict[str, str | None] | None = None, flow: FlowName = FLOW) -> dict[str, Any]:
    return compiled(flow, parts_of(flow, {}), CONFIG if config is None else config)


def test_the_kinds_are_those_of_a_file_of_flows() -> None:
    assert list(KINDS.items()) == list(CONNECTORS.items())


def test_a_flow_is_compiled_to_three_connectors_and_read_back() -> None:
    configs = made()
    assert list(configs) == [f"A-B-{kind}" for kind in KINDS]
    assert configs["A-B-MirrorSourceConnector"] == {
        **CONFIG,
        "name": "A-B-MirrorSourceConnector",
        "connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector",
        "source.cluster.alias": "A",
        "target.cluster.alias": "B",
        "key.converter": BYTES,
        "value.converter": BYTES,
        "header.converter": BYTES,
    }
    found = flows_of(views({**configs, "lines": {"topic": "t"}}))
    assert list(found) == [FLOW]
    assert config_of_flow(found[FLOW]) == CONFIG
    assert differing(found[FLOW]) == []


def test_a_converter_of_its_own_stays() -> None:
    configs = made({**CONFIG, "header.converter": "SimpleHeaderConverter", "config.providers": "env"})
    assert {config["header.converter"] for config in configs.values()} == {"SimpleHeaderConverter"}
    assert config_of_flow(parts_of(FLOW, views(configs))) == {**CONFIG, "header.converter": "SimpleHeaderConverter"}


def test_connectors_of_the_names_of_mirrormaker_are_a_flow_and_stay_it() -> None:
    plain = {config["connector.class"].rpartition(".")[2]: config for config in made().values()}
    parts = parts_of(FLOW, views(plain))
    assert [part.name for part in parts.values()] == list(KINDS)
    assert list(compiled(FLOW, parts, CONFIG)) == list(KINDS)


@pytest.mark.parametrize("text", ["", "A", "A->", "->B", "A->A", "A->B->C", "A-B"])
def test_what_names_no_flow_is_refused(text: str) -> None:
    with pytest.raises(BadRequestError, match="SOURCE->TARGET"):
        FlowName.parse(text)


@pytest.mark.parametrize("key", ["name", "connector.class", "source.cluster.alias", "target.cluster.alias"])
def test_what_names_another_flow_or_one_connector_is_refused(key: str) -> None:
    with pytest.raises(ConfigError, match=key) as caught:
        made({**CONFIG, key: "other"})
    assert caught.value.key == key
    assert made({**CONFIG, "source.cluster.alias": "A"})


def test_two_flows_whose_connectors_would_be_called_the_same_are_refused() -> None:
    there = views(made(flow=FlowName("a-b", "c")))
    with pytest.raises(ConflictError, match="from 'a-b' to 'c' instead of a->b-c"):
        parts_of(FlowName("a", "b-c"), there)


def test_a_flow_of_which_a_connector_is_missing_or_another_is_incomplete() -> None:
    configs = made()
    del configs["A-B-MirrorCheckpointConnector"]
    configs["A-B-MirrorHeartbeatConnector"]["topics"] = "other"
    there = views(configs)
    shown = flow_view(FLOW, parts_of(FLOW, there), there)
    assert (shown["name"], shown["state"]) == ("A->B", "INCOMPLETE")
    assert [(part["state"], part["as_flow"]) for part in shown["connectors"]] == [
        ("RUNNING", True),
        ("RUNNING", False),
        ("MISSING", False),
    ]


@pytest.mark.parametrize(("one", "state"), [("PAUSED", "PAUSED"), ("FAILED", "FAILED"), ("RUNNING", "RUNNING")])
def test_the_state_of_a_flow_is_the_worst_of_its_parts(one: str, state: str) -> None:
    there = views(made())
    there["A-B-MirrorCheckpointConnector"]["status"]["tasks"][0]["state"] = one
    assert flow_view(FLOW, parts_of(FLOW, there), there)["state"] == state


def test_figures_are_of_the_flow_alone_and_of_all_its_partitions() -> None:
    ours, other = {"source": "A", "target": "B"}, {"source": "C", "target": "B"}
    values = [
        ("mirror_lag_records", 3.0, ours),
        ("mirror_lag_records", 4.0, ours),
        ("mirror_lag_records", 100.0, other),
        ("mirror_lag_seconds", 0.5, ours),
        ("mirror_lag_seconds", None, ours),
        ("mirror_replication_latency_avg_seconds", 0.002, ours),
        ("mirror_replication_latency_avg_seconds", 0.004, ours),
        ("mirror_failover_read_again", 5.0, {**ours, "group": "g"}),
        ("mirror_failover_read_again", 0.0, {**ours, "group": "h"}),
        ("mirror_failover_unknown_partitions", 1.0, {**ours, "group": "g"}),
        ("mirror_verified_timestamp_seconds", 60.0, ours),
        ("mirror_verified_timestamp_seconds", 120.0, ours),
        ("mirror_verified_records", 7.0, ours),
        ("mirror_verified_differs", 1.0, ours),
    ]
    measured = {"tasks": [{"measurements": [{"name": n, "value": v, "labels": labels}]} for n, v, labels in values]}
    assert figures(measured, ours) == {
        "lag": {"records": 7, "seconds": 0.5, "partitions": 2},
        "latency": {"seconds": 0.004},
        "failover": {"groups": 2, "read_again": 5, "unknown_partitions": 1},
        "verified": {"at": "1970-01-01T00:01:00Z", "partitions": 2, "equal": 7, "differing": 1},
    }
    assert figures({"tasks": []}, ours) == {}
