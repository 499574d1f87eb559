"""The internal topics are read and written as by Kafka Connect: its vectors, and everything a worker of it wrote."""

from __future__ import annotations

import json
from typing import Any

import pytest

from equipment.vectors import DATA, cases
from worker.kafka.topics.compacted import TopicRecord
from worker.stores.config import records as config_records
from worker.stores.config.state import ConfigState
from worker.stores.config.store import (
    ConnectorChanged,
    ConnectorRemoved,
    LoggerLevelChanged,
    RestartRequested,
    SessionKey,
    TargetState,
    TasksChanged,
)
from worker.stores.offset.kafka import OffsetView
from worker.stores.offset.store import offset_key, offset_value, parse_offset, parse_offset_key
from worker.stores.status import records as status_records
from worker.stores.status.kafka import StatusView
from worker.stores.status.store import State, Status
from worker.unit import Unit

DUMPS = ("internal-topics", "internal-topics-2")
EXPECTED = {case["name"]: case["expect"]["bytes"].encode() for case in cases("internal_topics")}


def dump(name: str, topic: str) -> list[dict[str, Any]]:
    """The records of one of a Java worker's topics."""
    lines = (DATA / "topics" / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return [row for row in map(json.loads, lines) if row["topic"] == topic]


def value_of(row: dict[str, Any]) -> bytes | None:
    return None if row["value"] is None else row["value"].encode()


def written(record: config_records.ConfigRecord) -> bytes | None:
    """The value we write for what was read."""
    match record:
        case config_records.ConnectorRecord(name, config, found):
            return None if config is None else config_records.connector_record(name, config, found)[1]
        case config_records.TaskRecord(name, _, config):
            return config_records.task_records(name, [config])[0][1]
        case config_records.TasksCommitRecord(name, count):
            return config_records.task_records(name, [{}] * count)[-1][1]
        case config_records.TargetStateRecord(name, target):
            return None if target is None else config_records.target_state_record(name, target)[1]
        case config_records.FencedTasksRecord(name, count):
            return config_records.fenced_tasks_record(name, count)[1]
        case SessionKey():
            return config_records.session_key_record(record)[1]
        case RestartRequested(name, include_tasks, only_failed):
            return config_records.restart_record(name, include_tasks=include_tasks, only_failed=only_failed)[1]
        case LoggerLevelChanged(namespace, level):
            return config_records.logger_level_record(namespace, level)[1]


def test_the_values_of_the_config_topic_are_those_of_the_vectors() -> None:
    tasks = config_records.task_records("x", [{"task.class": "T", "file": "f"}, {}])
    key = config_records.parse(b"session-key", EXPECTED["config topic: session-key"])
    assert isinstance(key, SessionKey)
    ours = {
        "connector-<name>": config_records.connector_record(
            "x", {"name": "x", "connector.class": "C", "tasks.max": "1"}
        ),
        "task-<name>-<n>": tasks[0],
        "commit-<name>": tasks[-1],
        "target-state-<name> STARTED": config_records.target_state_record("x", TargetState.STARTED),
        "target-state-<name> PAUSED": config_records.target_state_record("x", TargetState.PAUSED),
        "target-state-<name> STOPPED": config_records.target_state_record("x", TargetState.STOPPED),
        "tasks-fencing-<name>": config_records.fenced_tasks_record("x", 3),
        "session-key": config_records.session_key_record(key),
        "restart-connector-<name>": config_records.restart_record("x", include_tasks=True, only_failed=False),
        "logger-cluster-<ns>": config_records.logger_level_record("x", "DEBUG"),
    }
    for name, (_, value) in ours.items():
        assert value == EXPECTED[f"config topic: {name}"], name
    assert key.created == 1700000000123


def test_the_values_of_the_status_topic_are_those_of_the_vectors() -> None:
    running = Status(State.RUNNING, "127.0.0.1:8083", 3, version="4.3.1")
    failed = Status(State.FAILED, "127.0.0.1:8083", 3, trace="java.lang.RuntimeException: x\n\tat a\n")
    assert (
        status_records.status_value(running)
        == EXPECTED["status topic: status-connector-<name> / status-task-<name>-<n>"]
    )
    assert status_records.status_value(failed) == EXPECTED["status topic: FAILED with trace"]
    use = status_records.topic_use_value(Unit("c", 0), "foo", 1700000000123)
    assert use == EXPECTED["status topic: status-topic-<topic>:connector-<name>"]


def test_the_bytes_of_the_offsets_topic_are_those_of_the_vectors() -> None:
    assert offset_key("my-connector", {"filename": "/tmp/a"}) == EXPECTED["offset topic key"]
    assert offset_value({"position": 12}) == EXPECTED["offset topic value"]


@pytest.mark.parametrize("name", DUMPS)
def test_every_record_of_a_java_worker_s_config_topic_is_understood_and_written_the_same(name: str) -> None:
    rows = dump(name, "truth-configs")
    assert len(rows) > 100
    for row in rows:
        record = config_records.parse(row["key"].encode(), value_of(row))
        assert written(record) == value_of(row), row["key"]


@pytest.mark.parametrize("name", DUMPS)
def test_a_java_worker_s_config_topic_is_followed_record_by_record(name: str) -> None:
    """After each record there are the connectors, states and tasks that the topic's history says."""
    state = ConfigState()
    configs: dict[str, Any] = {}
    targets: dict[str, str] = {}
    tasks: dict[str, list[Any]] = {}
    latest: dict[str, Any] = {}
    for row in dump(name, "truth-configs"):
        kind, value = row["key"], json.loads(row["value"] or "null")
        change = state.apply(config_records.parse(kind.encode(), value_of(row)))
        latest[kind] = value
        if kind.startswith("connector-"):
            connector = kind.removeprefix("connector-")
            configs[connector] = value and value["properties"]
            if value is None:
                tasks.pop(connector, None)
            assert change == (ConnectorRemoved(connector) if value is None else ConnectorChanged(connector))
        if kind.startswith("target-state-"):
            targets[kind.removeprefix("target-state-")] = "STARTED" if value is None else value["state.v2"]
        if kind.startswith("commit-"):
            connector = kind.removeprefix("commit-")
            tasks[connector] = [latest[f"task-{connector}-{task}"]["properties"] for task in range(value["tasks"])]
            assert change == TasksChanged(connector)
            assert state.connectors[connector].applied == configs[connector]
        live = {connector: config for connector, config in configs.items() if config is not None}
        assert {connector: entry.config for connector, entry in state.connectors.items()} == live
        for connector, entry in state.connectors.items():
            assert entry.target.value == targets.get(connector, "STARTED")
            assert list(entry.task_configs) == tasks.get(connector, [])
    assert state.session_key is not None
    assert state.inconsistent == frozenset()


@pytest.mark.parametrize("name", DUMPS)
def test_a_java_worker_s_status_topic_is_followed_record_by_record(name: str) -> None:
    view = StatusView()
    expected: dict[Unit, Any] = {}
    uses: set[tuple[str, str]] = set()
    for row in dump(name, "truth-status"):
        record = status_records.parse(row["key"].encode(), value_of(row))
        view.read(row["key"].encode(), record)
        value = json.loads(row["value"] or "null")
        if isinstance(record, status_records.StatusRecord):
            assert status_records.status_key(record.unit).decode() == row["key"]
            assert (record.status and status_records.status_value(record.status)) == value_of(row)
            expected[record.unit] = value
        else:
            assert status_records.topic_use_key(record.connector, record.topic).decode() == row["key"]
            use = (record.connector, record.topic)
            uses = uses - {use} if value is None else uses | {use}
            if value is not None:
                assert (value["topic"]["connector"], value["topic"]["name"]) == use
                unit, discovered = Unit(use[0], value["topic"]["task"]), value["topic"]["discoverTimestamp"]
                assert status_records.topic_use_value(unit, use[1], discovered) == value_of(row)
        known = {unit: status.state.value for unit, status in view.statuses().items()}
        assert known == {unit: status["state"] for unit, status in expected.items() if status is not None}
        for connector in {connector for connector, _ in uses}:
            assert view.topics(connector) == sorted(topic for owner, topic in uses if owner == connector)


@pytest.mark.parametrize("name", DUMPS)
def test_a_java_worker_s_offsets_topic_is_followed_record_by_record(name: str) -> None:
    view = OffsetView()
    expected: dict[bytes, bytes] = {}
    for row in dump(name, "truth-offsets"):
        key, value = row["key"].encode(), value_of(row)
        view.read(TopicRecord(row["partition"], row["offset"], key, value, row["timestamp"]))
        connector, partition = parse_offset_key(key)
        assert offset_key(connector, partition) == key
        assert offset_value(parse_offset(value)) == value
        expected.pop(key, None)
        if value is not None:
            expected[key] = value
        assert view.items() == expected
