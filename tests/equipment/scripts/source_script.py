"""A source task that follows a test's script."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, ClassVar

from connect.config import Config
from connect.data import SourceBatch, SourceRecord
from connect.source import SourceConnector, SourceTask

__all__ = ["LastingConnector", "LastingTask", "Polled", "Script", "ScriptedConnector", "ScriptedTask"]

Polled = Iterable[SourceRecord] | SourceBatch | None


class Script:
    """The script of the task of one test, and the calls that it got."""

    def __init__(self) -> None:
        self.polls: list[Callable[[ScriptedTask], Polled]] = []
        self.last: Callable[[ScriptedTask], Polled] = lambda task: None
        """The last poll, for tasks that have one."""
        self.found: list[Any] = []
        """The offset of the partition ``p`` at each start."""
        self.acknowledged: list[Any] = []
        self.commits = 0
        self.on_commit: Callable[[], None] = lambda: None
        self.stopped = 0
        self.done = True


class ScriptedTask(SourceTask[Config]):
    """Returns each poll of the script once, and then no more records."""

    script: ClassVar[Script]

    def start(self) -> None:
        self.script.found.append(self.context.offset_storage_reader.offset({"p": "p"}))

    def poll(self) -> Polled:
        if not self.script.polls:
            self.context.wait(0.01)
            return None
        return self.script.polls.pop(0)(self)

    def drained(self) -> bool:
        return self.script.done

    def commit_record(self, record: SourceRecord) -> None:
        self.script.acknowledged.append(record.value)

    def commit(self) -> None:
        self.script.commits += 1
        self.script.on_commit()

    def stop(self) -> None:
        self.script.stopped += 1


class ScriptedConnector(SourceConnector[Config]):
    """A connector whose task follows the script."""

    task_class = ScriptedTask


class LastingTask(ScriptedTask):
    """A task that has something left when it is told to stop."""

    def last_poll(self) -> Polled:
        return self.script.last(self)


class LastingConnector(ScriptedConnector):
    """Its task has something left."""

    task_class = LastingTask
