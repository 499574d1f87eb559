"""Connectors: they check a configuration and divide the work into task configurations."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from connect.config import Config
from connect.plugin import Plugin

__all__ = ["Connector", "ConnectorContext", "Task"]

C = TypeVar("C", bound=Config)


class ConnectorContext(Protocol):
    """What the runtime offers a connector."""

    def request_task_reconfiguration(self) -> None:
        """Ask the runtime to call ``task_configs`` again, because what there is to do has changed."""

    def raise_error(self, error: Exception) -> None:
        """Fail the connector because of something noticed outside of the runtime's own calls."""

    def wait(self, seconds: float) -> bool:
        """Wait, unless the connector is stopped first; whether it may go on."""


class Task(Plugin[C], Generic[C]):
    """A piece of a connector's work. All methods of one task are called from one thread."""

    def start(self) -> None:
        """Open what the task needs. ``self.config`` and ``self.context`` are there."""

    def stop(self) -> None:
        """Release what :meth:`start` opened; called once, also after a failure."""


class Connector(Plugin[C], Generic[C]):
    """Checks a configuration and divides the work into task configurations; it moves no data itself.

    Subclass :class:`~connect.source.SourceConnector` or :class:`~connect.sink.SinkConnector`.
    """

    task_class: ClassVar[type[Task[Any]]]

    def __init__(self, config: C, context: ConnectorContext) -> None:
        self.config = config
        self.context = context

    def start(self) -> None:
        """Start what watches the outside world for a change of the task configurations, if anything does."""

    @abstractmethod
    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str | None]]:
        """The configurations of the tasks, at most ``max_tasks`` of them; none when there is nothing to do."""

    def stop(self) -> None:
        """Release what :meth:`start` opened."""
