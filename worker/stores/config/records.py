"""The records of the config topic, in Kafka Connect's bytes.

Values are written by the ``*_record`` functions as a key and a value (``None`` is a tombstone), and read by
:func:`parse`.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from connect.errors import DataError
from worker.stores.config.store import LoggerLevelChanged, RestartRequested, SessionKey, TargetState
from worker.stores.java_json import dump, load_object, text, whole

__all__ = [
    "ConfigRecord",
    "ConnectorRecord",
    "FencedTasksRecord",
    "TargetStateRecord",
    "TaskRecord",
    "TasksCommitRecord",
    "claim_record",
    "connector_record",
    "fenced_tasks_record",
    "logger_level_record",
    "parse",
    "removal_records",
    "restart_record",
    "session_key_record",
    "target_state_record",
    "task_records",
]

_TARGET_STATE: Final = "target-state-"
_CONNECTOR: Final = "connector-"
_TASK: Final = "task-"
_COMMIT: Final = "commit-"
_RESTART: Final = "restart-connector-"
_FENCING: Final = "tasks-fencing-"
_SESSION_KEY: Final = "session-key"
_LOGGER: Final = "logger-cluster-"

_DRAINED: Final = "drained"
_TYPE: Final = "type"
_AUTHOR: Final = "author"
_TYPES: Final = ("source", "sink")

KeyAndValue: TypeAlias = tuple[bytes, bytes | None]


@dataclass(frozen=True, slots=True)
class ConnectorRecord:
    """A connector's configuration (``None`` removes the connector), its type and author as in ``ConnectorEntry``."""

    name: str
    config: Mapping[str, str] | None
    type: str | None = None
    author: str | None = None


@dataclass(frozen=True, slots=True)
class TaskRecord:
    """The configuration of one task, which takes effect when it is committed."""

    name: str
    task: int
    config: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class TasksCommitRecord:
    """The commit that makes the task records before it the ``count`` task configs of a connector."""

    name: str
    count: int


@dataclass(frozen=True, slots=True)
class TargetStateRecord:
    """The target state of a connector, ``None`` once it is removed; ``drained`` as in ``ConnectorEntry``."""

    name: str
    target: TargetState | None
    drained: int | None = None


@dataclass(frozen=True, slots=True)
class FencedTasksRecord:
    """The former producers of a connector's tasks were fenced, and it will have ``count`` tasks."""

    name: str
    count: int


ConfigRecord: TypeAlias = (
    ConnectorRecord
    | TaskRecord
    | TasksCommitRecord
    | TargetStateRecord
    | FencedTasksRecord
    | SessionKey
    | RestartRequested
    | LoggerLevelChanged
)


def claim_record() -> KeyAndValue:
    """Make the first record of a new leader.

    It changes nothing, also in Java, because no connector has an empty name.
    """
    return _pair(_TARGET_STATE, None)


def connector_record(
    name: str, config: Mapping[str, str], plugin_type: str | None = None, author: str | None = None
) -> KeyAndValue:
    """Make the record of a connector's configuration. Java skips ``type`` and ``author``."""
    more = {key: value for key, value in ((_TYPE, plugin_type), (_AUTHOR, author)) if value is not None}
    return _pair(_CONNECTOR + name, {"properties": dict(config), **more})


def removal_records(name: str) -> list[KeyAndValue]:
    """Make the records that remove a connector. Its task records remain but have no meaning without it."""
    return [_pair(_CONNECTOR + name, None), _pair(_TARGET_STATE + name, None)]


def task_records(name: str, configs: Sequence[Mapping[str, str]]) -> list[KeyAndValue]:
    """Make the records of all task configs of a connector, with the commit that puts them into effect."""
    tasks = [_pair(f"{_TASK}{name}-{task}", {"properties": dict(config)}) for task, config in enumerate(configs)]
    return [*tasks, _pair(_COMMIT + name, {"tasks": len(configs)})]


def target_state_record(name: str, target: TargetState, drained: int | None = None) -> KeyAndValue:
    """Make a target state record. Workers that do not know STOPPED read PAUSED (KIP-875); Java skips ``drained``."""
    known = TargetState.PAUSED if target is TargetState.STOPPED else target
    since = {} if drained is None else {_DRAINED: drained}
    return _pair(_TARGET_STATE + name, {"state": known.value, "state.v2": target.value, **since})


def fenced_tasks_record(name: str, count: int) -> KeyAndValue:
    """Make the record of how many tasks a connector will have, after its former tasks were fenced."""
    return _pair(_FENCING + name, {"task-count": count})


def session_key_record(key: SessionKey) -> KeyAndValue:
    """Make the record of the cluster's session key."""
    encoded = base64.b64encode(key.key).decode("ascii")
    return _pair(_SESSION_KEY, {"key": encoded, "algorithm": key.algorithm, "creation-timestamp": key.created})


def restart_record(name: str, *, include_tasks: bool, only_failed: bool) -> KeyAndValue:
    """Make the record that asks for the restart of a connector."""
    return _pair(_RESTART + name, {"include-tasks": include_tasks, "only-failed": only_failed})


def logger_level_record(namespace: str, level: str) -> KeyAndValue:
    """Make the record of a logger's level in all workers."""
    return _pair(_LOGGER + namespace, {"level": level})


def parse(key: bytes | None, value: bytes | None) -> ConfigRecord:
    """Parse a record of the topic. Raises :class:`~connect.errors.DataError` if it is not a valid one."""
    try:
        name = (key or b"").decode("utf-8")
    except UnicodeDecodeError:
        raise DataError("its key is not UTF-8") from None
    for prefix, read in _READERS:
        if name.startswith(prefix):
            return read(name.removeprefix(prefix), value)
    raise DataError("its key is of no known kind")


def _read_target_state(name: str, value: bytes | None) -> ConfigRecord:
    if value is None:
        return TargetStateRecord(name, None)
    document = load_object(value)
    return TargetStateRecord(name, _target_state(document), whole(document, _DRAINED) if _DRAINED in document else None)


def _read_connector(name: str, value: bytes | None) -> ConfigRecord:
    if value is None:
        return ConnectorRecord(name, None)
    document = load_object(value)
    found, author = document.get(_TYPE), document.get(_AUTHOR)
    known = author if isinstance(author, str) else None
    return ConnectorRecord(name, _properties(value), found if found in _TYPES else None, known)


def _read_task(name: str, value: bytes | None) -> ConfigRecord:
    connector, _, number = name.rpartition("-")
    if not connector or not (number.isascii() and number.isdigit()):
        raise DataError("its key does not end with a connector and the number of a task")
    return TaskRecord(connector, int(number), _properties(value))


def _read_commit(name: str, value: bytes | None) -> ConfigRecord:
    return TasksCommitRecord(name, _count(value, "tasks"))


def _read_restart(name: str, value: bytes | None) -> ConfigRecord:
    document = _document(value)
    return RestartRequested(name, document.get("include-tasks") is True, document.get("only-failed") is True)


def _read_fencing(name: str, value: bytes | None) -> ConfigRecord:
    return FencedTasksRecord(name, _count(value, "task-count"))


def _read_session_key(rest: str, value: bytes | None) -> ConfigRecord:
    if rest:
        raise DataError("its key is of no known kind")
    document = _document(value)
    try:
        key = base64.b64decode(text(document, "key"), validate=True)
    except binascii.Error:
        raise DataError("'key' is not base64") from None  # I8: the original contains the record
    return SessionKey(key, text(document, "algorithm"), whole(document, "creation-timestamp"))


def _read_logger_level(name: str, value: bytes | None) -> ConfigRecord:
    return LoggerLevelChanged(name, text(_document(value), "level"))


# In Java's order: the first matching prefix decides.
_READERS: Final[tuple[tuple[str, Callable[[str, bytes | None], ConfigRecord]], ...]] = (
    (_TARGET_STATE, _read_target_state),
    (_CONNECTOR, _read_connector),
    (_TASK, _read_task),
    (_COMMIT, _read_commit),
    (_RESTART, _read_restart),
    (_FENCING, _read_fencing),
    (_SESSION_KEY, _read_session_key),
    (_LOGGER, _read_logger_level),
)


def _pair(key: str, value: dict[str, Any] | None) -> KeyAndValue:
    return key.encode("utf-8"), None if value is None else dump(value)


def _document(value: bytes | None) -> dict[str, Any]:
    if value is None:
        raise DataError("it is a tombstone, which has no meaning for such a key")
    return load_object(value)


def _properties(value: bytes | None) -> dict[str, str]:
    properties = _document(value).get("properties")
    if not isinstance(properties, dict):
        raise DataError(f"'properties' should be an object but is {type(properties).__name__}")
    for name, item in properties.items():
        if not (item is None or isinstance(item, str)):
            raise DataError(f"property '{name}' should be a string but is {type(item).__name__}")
    # A property that is null counts as absent.
    return {name: item for name, item in properties.items() if item is not None}


def _count(value: bytes | None, member: str) -> int:
    count = whole(_document(value), member)
    if count < 0:
        raise DataError(f"'{member}' is {count} but cannot be negative")
    return count


def _target_state(document: dict[str, Any]) -> TargetState:
    for member in ("state.v2", "state"):
        state = document.get(member)
        if isinstance(state, str) and state in TargetState.__members__:
            return TargetState[state]
    raise DataError("neither 'state.v2' nor 'state' is a target state")
