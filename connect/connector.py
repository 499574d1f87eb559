"""The base classes of connectors, which check configurations and divide work, and of their tasks."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from connect.config import Config
from connect.plugin import Plugin

__all__ = ["Connector", "ConnectorContext", "Task"]

C = TypeVar("C", bound=Config)


class ConnectorContext(Protocol):
    """Services of the runtime that a connector can use."""

    def request_task_reconfiguration(self) -> None:
        """Ask the runtime to call ``task_configs`` again because the work to divide has changed."""

    def raise_error(self, error: Exception) -> None:
        """Fail the connector with an error noticed outside a call by the runtime, for example in a thread."""

    def wait(self, seconds: float) -> bool:
        """Wait up to ``seconds``. Return ``False`` as soon as the connector must stop, otherwise ``True``."""

    def show_wait(self, reason: str | None) -> None:
        """Show in the status, and in the log once a minute, what the connector waits for; ``None`` for nothing more.

        For what is missing and may come, such as a table or a cluster that does not answer: the reason says what that
        is and what to do. Call it at each look, from one thread.
        """


class Task(Plugin[C], Generic[C]):
    """Does a share of a connector's work. All methods of a task are called from the same thread."""

    needs_process: ClassVar[bool] = False
    """Whether the task cannot share a process with others, whatever ``task.isolation`` says: because it handles
    signals, changes the environment or the locale, starts programs that must end with it, or keeps a core busy."""

    def start(self) -> None:
        """Open connections and files. ``self.config`` and ``self.context`` are already set."""

    def stop(self) -> None:
        """Close what :meth:`start` opened. Called once, also after a failure."""


class Connector(Plugin[C], Generic[C]):
    """Checks a configuration and divides the work into task configs. It does not move data itself.

    Subclass :class:`~connect.source.SourceConnector` or :class:`~connect.sink.SinkConnector`.
    """

    task_class: ClassVar[type[Task[Any]]]
    needs_process: ClassVar[bool] = False
    """Whether the connector itself, without its tasks, cannot share a process; see :attr:`Task.needs_process`."""

    default_converter: ClassVar[str | None] = None
    """The converter of keys, values and headers where the configuration names none; ``None`` for the worker's."""

    watches: bool = True
    """Whether the connector looks for changes after :meth:`start`, such as in a thread.

    One that does not, and says so, need not be there between two calls: the runtime may call :meth:`stop` once it has
    the task configurations, and make the connector anew when it needs them again.
    """

    def __init__(self, config: C, context: ConnectorContext) -> None:
        self.config = config
        self.context = context

    def start(self) -> None:
        """Prepare the connector, for example start a thread that watches for changes in the work to divide."""

    @abstractmethod
    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str | None]]:
        """Return the configs of the tasks, at most ``max_tasks``; an empty list if there is nothing to do."""

    def stop(self) -> None:
        """Close what :meth:`start` opened."""
