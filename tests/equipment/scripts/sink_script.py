"""Sink tasks that follow a test's script."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, ClassVar

from connect.config import Config
from connect.data import SinkBatch, TopicPartition
from connect.sink import SinkConnector, SinkTask

__all__ = ["Script", "ScriptedConnector", "ScriptedTask"]


class Script:
    """The script of the tasks of one test, and the calls that they got."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str, Any]] = []
        self.put: Callable[[ScriptedTask, SinkBatch], None] = lambda task, records: None
        self.open: Callable[[ScriptedTask, Collection[TopicPartition]], None] = lambda task, partitions: None
        self.flush: Callable[[ScriptedTask, Mapping[TopicPartition, int]], None] = lambda task, offsets: None
        self.durable: Callable[[Mapping[TopicPartition, int]], Any] = lambda offsets: offsets

    def note(self, task: ScriptedTask, call: str, what: Any = None) -> None:
        self.calls.append((task.label, call, what))

    def values(self, label: str | None = None) -> list[Any]:
        """The values that were put and kept, in order."""
        return [
            value
            for who, call, values in list(self.calls)
            if call == "kept" and label in (None, who)
            for value in values
        ]

    def names(self) -> list[str]:
        return [call for _, call, _ in list(self.calls)]


class ScriptedTask(SinkTask[Config]):
    """Records every call, and follows the script."""

    script: ClassVar[Script]
    label: str

    def start(self) -> None:
        self.label = str(self.config.originals["label"])

    def open(self, partitions: Collection[TopicPartition]) -> None:
        self.script.note(self, "open", sorted(partitions))
        self.script.open(self, partitions)

    def put(self, records: SinkBatch) -> None:
        values = list(records.value)
        self.script.note(self, "put", values)
        self.script.put(self, records)
        self.script.note(self, "kept", values)

    def flush(self, offsets: Mapping[TopicPartition, int]) -> None:
        self.script.note(self, "flush", dict(offsets))
        self.script.flush(self, offsets)

    def pre_commit(self, offsets: Mapping[TopicPartition, int]) -> Any:
        self.flush(offsets)
        return self.script.durable(offsets)

    def close(self, partitions: Collection[TopicPartition]) -> None:
        self.script.note(self, "close", sorted(partitions))

    def stop(self) -> None:
        self.script.note(self, "stop")


class ScriptedConnector(SinkConnector[Config]):
    """A connector whose tasks follow the script."""

    task_class = ScriptedTask
