"""The connectors, target states and keys that the records of the config topic add up to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from worker.stores.config.generations import Generations
from worker.stores.config.records import (
    ConfigRecord,
    ConnectorRecord,
    FencedTasksRecord,
    TargetStateRecord,
    TaskRecord,
    TasksCommitRecord,
)
from worker.stores.config.store import (
    ConfigChange,
    ConnectorChanged,
    ConnectorEntry,
    ConnectorRemoved,
    FencedTasksChanged,
    SessionKey,
    SessionKeyChanged,
    TargetState,
    TargetStateChanged,
    TasksChanged,
)

__all__ = ["ConfigState"]


class ConfigState:
    """The connectors, session key and fenced tasks as of the records applied so far. Used by one thread.

    Compaction leaves the last record of each key, so a commit may come without all of its tasks, and before the
    connector that it belongs to. A commit without all of its tasks makes the connector *inconsistent*: it has no task
    configs until the next commit. A commit without its connector is ignored, with its tasks. ``fences`` says whether
    former producers are fenced.
    """

    def __init__(self, *, fences: bool = True) -> None:
        self._connectors: dict[str, ConnectorEntry] = {}
        self._copy: Mapping[str, ConnectorEntry] | None = None
        self._targets: dict[str, TargetStateRecord] = {}
        self._staged: dict[str, dict[int, Mapping[str, str]]] = {}
        self._fenced_tasks: dict[str, int] = {}
        self._pending_fencing: set[str] = set()
        self._inconsistent: set[str] = set()
        self._generations = Generations(fences=fences)
        self._session_key: SessionKey | None = None
        self._offset = 0
        self._timestamp = 0

    @property
    def connectors(self) -> Mapping[str, ConnectorEntry]:
        """Every connector by name: a mapping that does not change, and is the same one until a record is applied."""
        if self._copy is None:
            self._copy = dict(self._connectors)
        return self._copy

    @property
    def tasks(self) -> Mapping[str, int]:
        """The number of tasks of each connector."""
        return {name: len(entry.task_configs) for name, entry in self._connectors.items()}

    @property
    def session_key(self) -> SessionKey | None:
        """The newest session key."""
        return self._session_key

    @property
    def inconsistent(self) -> frozenset[str]:
        """The connectors whose last commit came without all of its tasks."""
        return frozenset(self._inconsistent)

    def fenced_tasks(self, name: str) -> int | None:
        """Return the number of tasks in the last fencing record of a connector."""
        return self._fenced_tasks.get(name)

    def pending_fencing(self, name: str) -> bool:
        """Return whether a connector's task configs are newer than its last fencing record."""
        return name in self._pending_fencing

    def unfenced_tasks(self, name: str) -> frozenset[int] | None:
        """Return the tasks that ended or restarted since the last fencing, or ``None`` if that may be any task."""
        return self._generations.unfenced(name)

    def apply(self, record: ConfigRecord, offset: int = 0, timestamp: int = 0) -> ConfigChange | None:
        """Apply the record at an offset. Return the resulting change, or ``None`` if nothing noticeable changed.

        ``timestamp`` is the time at which it was written, in milliseconds since 1970.
        """
        self._offset, self._timestamp = offset, timestamp
        self._copy = None
        match record:
            case ConnectorRecord():
                return self._connector(record)
            case TasksCommitRecord():
                return self._commit(record)
            case TargetStateRecord():
                return self._target_state(record)
            case TaskRecord() | FencedTasksRecord() | SessionKey():
                return self._keep(record)
        return record

    def _keep(self, record: TaskRecord | FencedTasksRecord | SessionKey) -> ConfigChange | None:
        match record:
            case TaskRecord(name, task, config):
                self._staged.setdefault(name, {})[task] = config
                return None
            case FencedTasksRecord(name, count):
                self._fenced_tasks[name] = count
                self._pending_fencing.discard(name)
                self._generations.fenced(name, count)
                return FencedTasksChanged(name)
            case SessionKey():
                self._session_key = record
                return SessionKeyChanged()

    def _connector(self, record: ConnectorRecord) -> ConfigChange | None:
        if record.config is None:
            return self._remove(record.name)
        entry = self._connectors.get(record.name)
        made = replace(
            entry or ConnectorEntry(record.config),
            config=record.config,
            type=record.type,
            revision=self._offset,
            changed=self._timestamp,
            author=record.author,
        )
        self._connectors[record.name] = made if entry is not None else self._with_target(record.name, made)
        return ConnectorChanged(record.name)

    def _remove(self, name: str) -> ConfigChange | None:
        self._staged.pop(name, None)
        self._inconsistent.discard(name)
        self._generations.lose(name)
        return None if self._connectors.pop(name, None) is None else ConnectorRemoved(name)

    def _commit(self, record: TasksCommitRecord) -> ConfigChange | None:
        staged = self._staged.pop(record.name, {})
        entry = self._connectors.get(record.name)
        if entry is None:
            return None
        if all(task in staged for task in range(record.count)):
            configs = tuple(staged[task] for task in range(record.count))
            since = self._generations.follow(record.name, entry.config, configs)
            self._connectors[record.name] = replace(entry, task_configs=configs, applied=entry.config, since=since)
            self._inconsistent.discard(record.name)
            self._pending_fencing.add(record.name)
        else:
            self._generations.lose(record.name)
            self._connectors[record.name] = replace(entry, task_configs=(), applied={}, since=())
            self._inconsistent.add(record.name)
        return TasksChanged(record.name)

    def _target_state(self, record: TargetStateRecord) -> ConfigChange | None:
        entry = self._connectors.get(record.name)
        if record.target is None:
            self._targets.pop(record.name, None)
        else:
            self._targets[record.name] = record
        if entry is None:
            return None
        self._connectors[record.name] = self._with_target(record.name, entry)
        return None if record.target is None else TargetStateChanged(record.name)

    def _with_target(self, name: str, entry: ConnectorEntry) -> ConnectorEntry:
        said = self._targets.get(name)
        if said is None or said.target is None:
            return replace(entry, target=TargetState.STARTED, drained=None)
        return replace(entry, target=said.target, drained=said.drained)
