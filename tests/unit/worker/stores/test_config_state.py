"""What the config topic says when it was compacted, when connectors come and go, and when it holds nonsense."""

from __future__ import annotations

import pytest

from connect.errors import DataError
from worker.stores.config import records
from worker.stores.config.state import ConfigState
from worker.stores.config.store import (
    ConnectorEntry,
    FencedTasksChanged,
    RestartRequested,
    SessionKey,
    TargetState,
    TargetStateChanged,
    TasksChanged,
)

CONFIG = {"name": "c", "tasks.max": "2"}
TASKS = [{"n": "0"}, {"n": "1"}]


def applied(state: ConfigState, *pairs: tuple[bytes, bytes | None]) -> list[object]:
    return [state.apply(records.parse(*pair)) for pair in pairs]


def test_task_configs_count_when_they_are_committed() -> None:
    state = ConfigState()
    applied(state, records.connector_record("c", CONFIG))
    first, second, commit = records.task_records("c", TASKS)
    assert applied(state, first, second) == [None, None]
    assert state.connectors["c"].task_configs == ()
    assert applied(state, commit) == [TasksChanged("c")]
    assert state.connectors["c"] == ConnectorEntry(CONFIG, TargetState.STARTED, tuple(TASKS), CONFIG)
    assert state.tasks == {"c": 2}


def test_what_is_applied_stays_when_the_connector_changes() -> None:
    state = ConfigState()
    applied(state, records.connector_record("c", CONFIG), *records.task_records("c", TASKS))
    applied(state, records.connector_record("c", {**CONFIG, "more": "x"}))
    assert state.connectors["c"].applied == CONFIG


def test_a_commit_without_all_of_its_tasks_leaves_none() -> None:
    state = ConfigState()
    _, second, commit = records.task_records("c", TASKS)
    applied(state, records.connector_record("c", CONFIG), *records.task_records("c", TASKS), second, commit)
    assert state.inconsistent == {"c"}
    assert state.connectors["c"].task_configs == ()
    assert state.tasks == {"c": 0}
    applied(state, *records.task_records("c", TASKS[:1]))
    assert state.inconsistent == frozenset()
    assert state.connectors["c"].task_configs == ({"n": "0"},)


def test_more_tasks_than_are_committed_do_no_harm() -> None:
    state = ConfigState()
    tasks, (_, commit_one) = records.task_records("c", TASKS)[:-1], records.task_records("c", TASKS[:1])
    applied(state, records.connector_record("c", CONFIG), *tasks, commit_one)
    assert state.connectors["c"].task_configs == ({"n": "0"},)


def test_tasks_of_a_connector_that_is_not_there_are_forgotten() -> None:
    state = ConfigState()
    first, second, commit = records.task_records("c", TASKS)
    assert applied(state, first, second, commit) == [None, None, None]
    applied(state, records.connector_record("c", CONFIG), commit)
    assert state.connectors["c"].task_configs == ()
    assert state.inconsistent == {"c"}


def test_no_tasks_are_committed_without_any() -> None:
    state = ConfigState()
    applied(state, records.connector_record("c", CONFIG), *records.task_records("c", TASKS))
    assert applied(state, *records.task_records("c", [])) == [TasksChanged("c")]
    assert state.tasks == {"c": 0}
    assert state.inconsistent == frozenset()


def test_a_connector_that_is_made_again_has_no_old_tasks() -> None:
    state = ConfigState()
    applied(
        state,
        records.target_state_record("c", TargetState.PAUSED),
        records.connector_record("c", CONFIG),
        *records.task_records("c", TASKS),
        *records.removal_records("c"),
    )
    assert state.connectors == {}
    applied(state, records.connector_record("c", CONFIG))
    assert state.connectors["c"] == ConnectorEntry(CONFIG)


def test_a_target_state_may_come_before_its_connector_and_be_taken_back() -> None:
    state = ConfigState()
    assert applied(state, records.target_state_record("c", TargetState.STOPPED)) == [None]
    applied(state, records.connector_record("c", CONFIG))
    assert state.connectors["c"].target is TargetState.STOPPED
    assert applied(state, (b"target-state-c", None)) == [None]
    assert state.connectors["c"].target is TargetState.STARTED


@pytest.mark.parametrize(
    ("value", "target"),
    [
        (b'{"state":"PAUSED"}', TargetState.PAUSED),
        (b'{"state":"PAUSED","state.v2":"STOPPED"}', TargetState.STOPPED),
        (b'{"state":"PAUSED","state.v2":"ASLEEP"}', TargetState.PAUSED),
        (b'{"state":"STARTED","state.v2":null}', TargetState.STARTED),
    ],
)
def test_target_states_of_older_and_newer_workers_are_understood(value: bytes, target: TargetState) -> None:
    state = ConfigState()
    applied(state, records.connector_record("c", CONFIG))
    assert applied(state, (b"target-state-c", value)) == [TargetStateChanged("c")]
    assert state.connectors["c"].target is target


def test_fencing_and_restarts_are_told() -> None:
    state = ConfigState()
    restart = records.restart_record("a/b-ü", include_tasks=True, only_failed=False)
    assert applied(state, records.fenced_tasks_record("c", 3), restart) == [
        FencedTasksChanged("c"),
        RestartRequested("a/b-ü", include_tasks=True, only_failed=False),
    ]
    assert state.fenced_tasks("c") == 3
    assert state.fenced_tasks("d") is None


@pytest.mark.parametrize("name", ["c", "c-1", "task-2", "a/b", "ü:x-0", "connector-connector-"])
def test_any_name_survives_the_keys(name: str) -> None:
    state = ConfigState()
    applied(state, records.connector_record(name, CONFIG), *records.task_records(name, TASKS))
    assert state.connectors[name].task_configs == tuple(TASKS)


def test_control_characters_are_escaped_as_in_java() -> None:
    _, value = records.connector_record("c", {"a": '\x00\x1f\\u001f"/é'})
    assert value == '{"properties":{"a":"\\u0000\\u001F\\\\u001f\\"/é"}}'.encode()


def test_properties_without_a_value_are_not_set() -> None:
    record = records.parse(b"connector-c", b'{"properties":{"a":null,"b":"1"}}')
    assert record == records.ConnectorRecord("c", {"b": "1"})


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, b"{}"),
        (b"\xff", b"{}"),
        (b"unheard-of", b"{}"),
        (b"session-key-2", b"{}"),
        (b"connector-c", b"not json"),
        (b"connector-c", b"[]"),
        (b"connector-c", b'{"properties":[]}'),
        (b"connector-c", b'{"properties":{"a":1}}'),
        (b"task-c", b'{"properties":{}}'),
        (b"task-c-x", b'{"properties":{}}'),
        (b"task-c-0", None),
        (b"commit-c", None),
        (b"commit-c", b'{"tasks":"1"}'),
        (b"commit-c", b'{"tasks":true}'),
        (b"commit-c", b'{"tasks":-1}'),
        (b"target-state-c", b'{"state":7}'),
        (b"session-key", None),
        (b"session-key", b'{"key":"secret","algorithm":"HmacSHA256","creation-timestamp":1}'),
        (b"tasks-fencing-c", b"{}"),
        (b"logger-cluster-x", None),
    ],
)
def test_what_cannot_be_understood_is_refused_and_not_shown(key: bytes | None, value: bytes | None) -> None:
    with pytest.raises(DataError) as refused:
        records.parse(key, value)
    assert "secret" not in str(refused.value)


def test_a_session_key_is_not_shown() -> None:
    key = SessionKey(b"0123456789", "HmacSHA256", 1)
    assert records.parse(*records.session_key_record(key)) == key
    assert "0123" not in repr(key)
