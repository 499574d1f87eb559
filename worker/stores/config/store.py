"""The store of connectors, their target states and their task configs, and its standalone implementation."""

from __future__ import annotations

import enum
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from connect.errors import NotFoundError
from worker.stores.config.generations import Generations

__all__ = [
    "ConfigChange",
    "ConfigSnapshot",
    "ConfigStore",
    "ConnectorChanged",
    "ConnectorEntry",
    "ConnectorRemoved",
    "FencedTasksChanged",
    "LoggerLevelChanged",
    "MemoryConfigStore",
    "RestartRequested",
    "SessionKey",
    "SessionKeyChanged",
    "TargetState",
    "TargetStateChanged",
    "TasksChanged",
    "WritesLost",
]


class TargetState(enum.Enum):
    """The state in which a user wants a connector to be (KIP-875)."""

    STARTED = "STARTED"
    PAUSED = "PAUSED"
    STOPPED = "STOPPED"


@dataclass(frozen=True, slots=True)
class ConnectorEntry:
    """The desired state of a connector. Configurations are as written, with unresolved references.

    ``applied`` is the configuration from which the task configs were made: tasks use it, so a change reaches them only
    with the task configs that result from it. ``drained`` is set if a connector was stopped because it was drained and
    not by a user; it is the time of that, in milliseconds since 1970. ``type`` is ``source`` or ``sink``, as found by
    the leader; a leader of Kafka Connect stores none. ``revision`` grows whenever the configuration is written, and is
    the same on every worker. ``changed`` is when it was last written, in milliseconds since 1970, and ``author`` is the
    signed-in user who wrote it. ``since`` has a number for each task that stays the same while the task keeps running
    (:class:`Generations`).
    """

    config: Mapping[str, str]
    target: TargetState = TargetState.STARTED
    task_configs: tuple[Mapping[str, str], ...] = ()
    applied: Mapping[str, str] = field(default_factory=dict)
    drained: int | None = None
    type: str | None = None
    revision: int = field(default=0, compare=False)
    changed: int = field(default=0, compare=False)
    author: str | None = field(default=None, compare=False)
    since: tuple[int, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class ConfigSnapshot:
    """The part of the configurations that the assignor needs, and how new it is.

    ``offset`` is the config topic's offset after the last record that was applied, -1 if none was. ``tasks`` has the
    number of tasks of each connector, 0 while its task configs are incomplete.
    """

    offset: int
    tasks: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class SessionKey:
    """The key by which workers sign requests to each other (KIP-507); ``created`` in milliseconds since 1970."""

    key: bytes = field(repr=False)
    algorithm: str
    created: int


@dataclass(frozen=True, slots=True)
class ConnectorChanged:
    """A connector was created, or its configuration was changed."""

    name: str


@dataclass(frozen=True, slots=True)
class ConnectorRemoved:
    """A connector was removed."""

    name: str


@dataclass(frozen=True, slots=True)
class TasksChanged:
    """A connector has new task configs, made from its present configuration."""

    name: str


@dataclass(frozen=True, slots=True)
class TargetStateChanged:
    """The target state of a connector was written, and may have changed."""

    name: str


@dataclass(frozen=True, slots=True)
class RestartRequested:
    """Workers that run a part of this connector should restart it (KIP-745)."""

    name: str
    include_tasks: bool
    only_failed: bool


@dataclass(frozen=True, slots=True)
class LoggerLevelChanged:
    """Every worker should log this namespace at this level (KIP-976)."""

    namespace: str
    level: str


@dataclass(frozen=True, slots=True)
class SessionKeyChanged:
    """There is a new session key."""


@dataclass(frozen=True, slots=True)
class FencedTasksChanged:
    """The task producers of a connector were fenced for its present task configs (KIP-618)."""

    name: str


@dataclass(frozen=True, slots=True)
class WritesLost:
    """The topic refuses this worker's writes as leader until it claims the topic again."""


ConfigChange: TypeAlias = (
    ConnectorChanged
    | ConnectorRemoved
    | TasksChanged
    | TargetStateChanged
    | RestartRequested
    | LoggerLevelChanged
    | SessionKeyChanged
    | FencedTasksChanged
    | WritesLost
)


class ConfigStore(ABC):
    """Stores the configuration of the cluster. Only the leader writes (invariant I6).

    The view belongs to one thread, the herder's: there the listener is called with each change after the view has it.
    The future that a ``put`` returns is done when this store's own view has the change; it fails with a
    :class:`~connect.errors.ConnectError` that says what to do.
    """

    @abstractmethod
    def start(self, listener: Callable[[ConfigChange], None]) -> None:
        """Read everything stored so far without calling the listener; then call it with every change."""

    @property
    def refusal(self) -> str | None:
        """The access that the brokers currently deny to the store. May be called by any thread."""
        return None

    @abstractmethod
    def close(self) -> None:
        """Close the store; pending writes fail."""

    @abstractmethod
    def connectors(self) -> Mapping[str, ConnectorEntry]:
        """Return every connector by name."""

    @abstractmethod
    def snapshot(self) -> ConfigSnapshot:
        """Return the part of the view that the assignor needs."""

    @abstractmethod
    def session_key(self) -> SessionKey | None:
        """Return the newest session key."""

    @abstractmethod
    def fenced_tasks(self, name: str) -> int | None:
        """Return how many tasks of a connector may have live producers, as recorded by the last fencing."""

    @abstractmethod
    def pending_fencing(self, name: str) -> bool:
        """Return whether a connector has task configs for which no fencing was recorded since they were written."""

    @abstractmethod
    def unfenced_tasks(self, name: str) -> frozenset[int] | None:
        """Return the tasks that ended or restarted since the last fencing, or ``None`` if that may be any task."""

    @abstractmethod
    def put_connector(
        self,
        name: str,
        config: Mapping[str, str],
        target: TargetState | None,
        drained: int | None = None,
        plugin_type: str | None = None,
        author: str | None = None,
    ) -> Future[None]:
        """Create a connector or change its configuration, after writing its target state if one is given.

        ``plugin_type`` is the ``type`` of :class:`ConnectorEntry`, and ``author`` its ``author``.
        """

    @abstractmethod
    def remove_connector(self, name: str) -> Future[None]:
        """Delete a connector."""

    @abstractmethod
    def put_task_configs(self, name: str, configs: Sequence[Mapping[str, str]]) -> Future[None]:
        """Set all task configs of a connector at once; they are made from its present configuration."""

    @abstractmethod
    def put_target_state(self, name: str, target: TargetState, drained: int | None = None) -> Future[None]:
        """Set the target state of a connector. ``drained`` is the time of its draining if that is why it is stopped."""

    @abstractmethod
    def put_restart(self, name: str, *, include_tasks: bool, only_failed: bool) -> Future[None]:
        """Ask every worker to restart its part of a connector."""

    @abstractmethod
    def put_logger_level(self, namespace: str, level: str) -> Future[None]:
        """Ask every worker to log a namespace at a level."""

    @abstractmethod
    def put_session_key(self, key: SessionKey) -> Future[None]:
        """Give every worker a new session key."""

    @abstractmethod
    def put_fenced_tasks(self, name: str, count: int) -> Future[None]:
        """Record that the former producers of a connector were fenced and that it will have ``count`` tasks."""

    @abstractmethod
    def read_to_end(self, seconds: float = 30.0) -> Future[None]:
        """Return a future that is done when the view has everything written before this call.

        It fails with :class:`~connect.errors.RetriableError` if this takes longer than ``seconds``.
        """

    @abstractmethod
    def cease_writes(self) -> None:
        """Stop retrying writes that were not delivered yet: this worker no longer leads."""

    @abstractmethod
    def claim_writes(self) -> Future[None]:
        """Claim the right to write, as a new leader: with exactly-once support this fences the former leader."""


class MemoryConfigStore(ConfigStore):
    """The store of standalone mode, which reads its files at every start. Used only in the herder's thread.

    Returned futures are already done, and the listener has already been called.
    """

    def __init__(self) -> None:
        self._connectors: dict[str, ConnectorEntry] = {}
        self._generations = Generations()
        # Greater than in any earlier run, so that outdated results are not taken for current ones.
        self._revision = time.time_ns() // 1000
        self._session_key: SessionKey | None = None
        self._fenced_tasks: dict[str, int] = {}
        self._pending_fencing: set[str] = set()
        self._listener: Callable[[ConfigChange], None] = _tell_nobody

    def start(self, listener: Callable[[ConfigChange], None]) -> None:
        self._listener = listener

    def close(self) -> None:
        self._listener = _tell_nobody

    def connectors(self) -> Mapping[str, ConnectorEntry]:
        return dict(self._connectors)

    def snapshot(self) -> ConfigSnapshot:
        return ConfigSnapshot(-1, {name: len(entry.task_configs) for name, entry in self._connectors.items()})

    def session_key(self) -> SessionKey | None:
        return self._session_key

    def fenced_tasks(self, name: str) -> int | None:
        return self._fenced_tasks.get(name)

    def pending_fencing(self, name: str) -> bool:
        return name in self._pending_fencing

    def unfenced_tasks(self, name: str) -> frozenset[int] | None:
        return self._generations.unfenced(name)

    def put_connector(
        self,
        name: str,
        config: Mapping[str, str],
        target: TargetState | None,
        drained: int | None = None,
        plugin_type: str | None = None,
        author: str | None = None,
    ) -> Future[None]:
        entry = self._connectors.get(name)
        self._revision += 1
        if entry is None:
            entry = ConnectorEntry({}, target or TargetState.STARTED, drained=drained)
        elif target is not None:
            self._connectors[name] = replace(entry, target=target, drained=drained)
            self._listener(TargetStateChanged(name))
        self._connectors[name] = replace(
            self._connectors.get(name, entry),
            config=dict(config),
            type=plugin_type,
            revision=self._revision,
            changed=time.time_ns() // 1_000_000,
            author=author,
        )
        return self._done(ConnectorChanged(name))

    def remove_connector(self, name: str) -> Future[None]:
        self._revision += 1
        self._connectors.pop(name, None)
        self._generations.lose(name)
        return self._done(ConnectorRemoved(name))

    def put_task_configs(self, name: str, configs: Sequence[Mapping[str, str]]) -> Future[None]:
        entry = self._connectors.get(name)
        if entry is None:
            return _unknown(name)
        since = self._generations.follow(name, entry.config, configs)
        self._connectors[name] = replace(entry, task_configs=tuple(configs), applied=entry.config, since=since)
        self._pending_fencing.add(name)
        return self._done(TasksChanged(name))

    def put_target_state(self, name: str, target: TargetState, drained: int | None = None) -> Future[None]:
        entry = self._connectors.get(name)
        if entry is None:
            return _unknown(name)
        self._connectors[name] = replace(entry, target=target, drained=drained)
        return self._done(TargetStateChanged(name))

    def put_restart(self, name: str, *, include_tasks: bool, only_failed: bool) -> Future[None]:
        return self._done(RestartRequested(name, include_tasks, only_failed))

    def put_logger_level(self, namespace: str, level: str) -> Future[None]:
        return self._done(LoggerLevelChanged(namespace, level))

    def put_session_key(self, key: SessionKey) -> Future[None]:
        self._session_key = key
        return self._done(SessionKeyChanged())

    def put_fenced_tasks(self, name: str, count: int) -> Future[None]:
        self._fenced_tasks[name] = count
        self._pending_fencing.discard(name)
        self._generations.fenced(name, count)
        return self._done(FencedTasksChanged(name))

    def read_to_end(self, seconds: float = 30.0) -> Future[None]:  # noqa: ARG002
        return _done()

    def cease_writes(self) -> None:
        """Do nothing: no writes are pending."""

    def claim_writes(self) -> Future[None]:
        return _done()

    def _done(self, change: ConfigChange) -> Future[None]:
        self._listener(change)
        return _done()


def _tell_nobody(change: ConfigChange) -> None:
    """Do nothing: there is no listener before the start and after the end."""


def _done() -> Future[None]:
    future: Future[None] = Future()
    future.set_result(None)
    return future


def _unknown(name: str) -> Future[None]:
    future: Future[None] = Future()
    future.set_exception(NotFoundError(f"Connector {name} not found"))
    return future
