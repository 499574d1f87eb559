"""The config store of standalone mode tells of its changes at once."""

from __future__ import annotations

import pytest

from connect.errors import NotFoundError
from worker.stores.config.store import (
    ConfigChange,
    ConfigSnapshot,
    ConnectorChanged,
    ConnectorEntry,
    ConnectorRemoved,
    FencedTasksChanged,
    LoggerLevelChanged,
    MemoryConfigStore,
    RestartRequested,
    SessionKey,
    SessionKeyChanged,
    TargetState,
    TargetStateChanged,
    TasksChanged,
)


@pytest.fixture
def told() -> list[ConfigChange]:
    return []


@pytest.fixture
def store(told: list[ConfigChange]) -> MemoryConfigStore:
    store = MemoryConfigStore()
    store.start(told.append)
    return store


def test_changes_are_there_when_they_are_told(store: MemoryConfigStore, told: list[ConfigChange]) -> None:
    futures = [
        store.put_connector("c", {"a": "1"}, TargetState.PAUSED),
        store.put_connector("c", {"a": "2"}, TargetState.STARTED),
        store.put_task_configs("c", [{"n": "0"}]),
        store.put_target_state("c", TargetState.STOPPED),
    ]
    assert all(future.done() for future in futures)
    assert store.connectors() == {"c": ConnectorEntry({"a": "2"}, TargetState.STOPPED, ({"n": "0"},), {"a": "2"})}
    assert store.snapshot() == ConfigSnapshot(-1, {"c": 1})
    store.remove_connector("c").result(0)
    assert store.connectors() == {}
    assert told == [
        ConnectorChanged("c"),
        TargetStateChanged("c"),
        ConnectorChanged("c"),
        TasksChanged("c"),
        TargetStateChanged("c"),
        ConnectorRemoved("c"),
    ]


def test_what_is_for_the_whole_cluster_reaches_its_only_worker(
    store: MemoryConfigStore, told: list[ConfigChange]
) -> None:
    key = SessionKey(b"k", "HmacSHA256", 1)
    store.put_restart("c", include_tasks=True, only_failed=False).result(0)
    store.put_logger_level("root", "DEBUG").result(0)
    store.put_session_key(key).result(0)
    store.put_fenced_tasks("c", 2).result(0)
    store.claim_writes().result(0)
    store.read_to_end().result(0)
    assert told == [
        RestartRequested("c", include_tasks=True, only_failed=False),
        LoggerLevelChanged("root", "DEBUG"),
        SessionKeyChanged(),
        FencedTasksChanged("c"),
    ]
    assert store.session_key() == key
    assert store.fenced_tasks("c") == 2


def test_a_connector_that_is_not_there_has_no_tasks_and_no_state(store: MemoryConfigStore) -> None:
    assert isinstance(store.put_task_configs("c", []).exception(0), NotFoundError)
    assert isinstance(store.put_target_state("c", TargetState.PAUSED).exception(0), NotFoundError)


def test_after_the_end_nobody_is_told(store: MemoryConfigStore, told: list[ConfigChange]) -> None:
    store.close()
    store.put_connector("c", {}, None)
    assert told == []
