"""The options of the mirror connectors are MirrorMaker's, with its answers when they are validated."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from connect.config import Config, format_value
from connect.internals.kafka.settings.client import ClientKind
from connectors.mirror.clients import Cluster, Role, java_settings
from connectors.mirror.config.checkpoint import MirrorCheckpointConfig, MirrorCheckpointTaskConfig
from connectors.mirror.config.source import MirrorSourceConfig, MirrorSourceTaskConfig
from connectors.mirror.heartbeat import MirrorHeartbeatConfig
from equipment.vectors import DATA

MIRROR: Final = DATA / "mirror"
CONFIGS: Final[dict[str, type[Config]]] = {
    "MirrorSourceConnector": MirrorSourceConfig,
    "MirrorCheckpointConnector": MirrorCheckpointConfig,
    "MirrorHeartbeatConnector": MirrorHeartbeatConfig,
}
JAVA: Final = json.loads((MIRROR / "configs.json").read_text())
VECTORS: Final = json.loads((MIRROR / "vectors.json").read_text())
VALIDATIONS: Final = [json.loads(line) for line in (MIRROR / "validate.jsonl").read_text().splitlines()]
OF_FRAMEWORK: Final = frozenset({"exactly.once.support"})
"""What the framework checks; its part of the answer is tested with the running worker."""


def _java_keys(connector: str) -> list[dict[str, Any]]:
    return [key for key in JAVA[connector] if key["group"] is None]


@pytest.mark.parametrize("connector", CONFIGS)
def test_keys_are_javas(connector: str) -> None:
    java = {
        key["name"]: (key["type"], key["default"], key["importance"], key["required"]) for key in _java_keys(connector)
    }
    ours = {
        key.name: (
            key.type.value,
            None if key.default is None else format_value(key.default),
            key.importance.value,
            key.required,
        )
        for key in CONFIGS[connector].definitions()
        if not key.name.startswith("mirror.") and not key.internal
    }
    assert ours == java


@pytest.mark.parametrize("connector", CONFIGS)
def test_closed_choices_are_javas(connector: str) -> None:
    rules = {
        key["name"]: key["validator"] for key in _java_keys(connector) if (key["validator"] or "")[:1] in ("[", "(")
    }
    ours = {key.name: str(key.validator) for key in CONFIGS[connector].definitions() if key.name in rules}
    lists = {"metric.names.formats": "list of [legacy, new], non-empty list, list without duplicates or empty items"}
    assert ours == {key: lists.get(key, rule) for key, rule in rules.items()}


@pytest.mark.parametrize("case", VALIDATIONS, ids=lambda case: f"{case['class']}: {case['label']}")
def test_validation_answers_as_javas(case: dict[str, Any]) -> None:
    values = CONFIGS[case["class"]].validate(case["config"])
    refused = {value.name: len(value.errors) for value in values if value.errors}
    assert refused == {key: count for key, count in case["errors_on"].items() if key not in OF_FRAMEWORK}


@pytest.mark.parametrize("task", [MirrorSourceTaskConfig, MirrorCheckpointTaskConfig])
def test_tasks_have_keys_of_their_own(task: type[Config]) -> None:
    share = {"MirrorSourceTaskConfig": "task.assigned.partitions", "MirrorCheckpointTaskConfig": "task.assigned.groups"}
    config = task.parse({"source.cluster.alias": "A", share[task.__name__]: "a-b-0,c-1", "task.index": "2"})
    assert vars(config)[share[task.__name__].replace(".", "_")] == ("a-b-0", "c-1")
    assert vars(config)["task_index"] == 2


@pytest.mark.parametrize("case", VECTORS["client_configs"], ids=lambda case: json.dumps(case["config"]))
def test_clients_have_javas_settings(case: dict[str, Any]) -> None:
    props = {
        "name": "c",
        "source.cluster.alias": "A",
        "target.cluster.alias": "B",
        "source.cluster.bootstrap.servers": "a:1",
        "target.cluster.bootstrap.servers": "b:1",
        **case["config"],
    }
    syncs = Cluster(props.get("offset-syncs.topic.location", "source"))
    roles = {
        "source_consumer": Role(Cluster.SOURCE, ClientKind.CONSUMER, "replication-consumer"),
        "source_admin": Role(Cluster.SOURCE, ClientKind.ADMIN, "replication-source-admin"),
        "target_admin": Role(Cluster.TARGET, ClientKind.ADMIN, "replication-target-admin"),
        "offset_syncs_producer": Role(syncs, ClientKind.PRODUCER, f"offset-syncs-{syncs}-producer"),
        "offset_syncs_admin": Role(syncs, ClientKind.ADMIN, f"offset-syncs-{syncs}-admin"),
    }
    assert {name: java_settings(props, role) for name, role in roles.items()} == {name: case[name] for name in roles}


@pytest.mark.parametrize("option", ["consumer.poll.timeout.ms", "admin.timeout.ms"])
def test_options_of_the_connectors_are_no_settings_of_clients(option: str) -> None:
    kind = ClientKind(option.partition(".")[0])
    props = {"name": "c", "source.cluster.alias": "A", option: "3000", f"{kind.value}.client.id": "own"}
    assert java_settings(props, Role(Cluster.SOURCE, kind, "x")).keys() & {"poll.timeout.ms", "timeout.ms"} == set()
    assert java_settings(props, Role(Cluster.SOURCE, kind, "x"))["client.id"] == "own|A->target|c|x"
