"""Connectors whose tasks tell when two processes run one of them at once.

Each task takes the lock of a file of its own when it starts and keeps it until its thread is gone, which is that of
its process unless others share that. One that finds
it taken says so in ``overlaps``, and goes on: that is what a task would do that nobody watches.
"""

from __future__ import annotations

import fcntl
import os
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Final

from connect.config import HIGH, LOW, Config, option
from connect.data import Schema, SinkBatch, SourceRecord
from connect.sink import SinkConnector, SinkTask
from connect.source import SourceConnector, SourceTask
from connectors.file.config import FileStreamSinkConfig, FileStreamTaskConfig
from connectors.file.sink import FileStreamSinkTask
from connectors.file.source import FileStreamSourceTask


class Watch(Config):
    """Where the tasks are watched."""

    name: str = option(importance=HIGH, doc="Name of the connector.")
    watch_folder: str = option(importance=HIGH, doc="Folder of the locks.")
    watch_task: int = option(default=0, importance=LOW, doc="Number of the task.")


class TicksConfig(Watch):
    """How much to do."""

    topic: str = option(importance=HIGH, doc="Topic to publish the ticks to.")
    ticks_tasks: int = option(default=1000, importance=LOW, doc="Most tasks.")
    ticks_seconds: float = option(default=0.25, importance=LOW, doc="Seconds between two ticks of a task.")


class LinesConfig(FileStreamTaskConfig, Watch):
    """What to read."""


class WriterConfig(FileStreamSinkConfig, Watch):
    """Where to write."""


_LOOK_SECONDS: Final = 0.02


class _Held(threading.local):
    """The lock of a task, held as long as the thread lives that runs it."""

    lock: IO[str] | None = None


_HELD: Final = _Held()


def watch(config: Watch) -> None:
    """Take the lock of this task, or tell that another process has it still."""
    folder, unit = Path(config.watch_folder), f"{config.name}-{config.watch_task}"
    lock = (folder / f"{unit}.lock").open("a+")
    _HELD.lock = lock
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.seek(0)
        _append(folder / "overlaps", f"{unit}: {lock.read().strip()} runs it, and now {os.getpid()} does, too")
    else:
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        _append(folder / "starts", f"{unit} {os.getpid()} {time.monotonic()}")


def _append(file: Path, line: str) -> None:
    with file.open("a") as stream:
        stream.write(line + "\n")


class TicksTask(SourceTask[TicksConfig]):
    """Publishes ``TASK NUMBER``, the numbers from 1 on, and goes on where it stopped."""

    def start(self) -> None:
        watch(self.config)
        self._partition = {"task": self.config.watch_task}
        last = self.context.offset_storage_reader.offset(self._partition)
        self._number = last["number"] if last else 0

    def poll(self) -> list[SourceRecord]:
        if not self.context.wait(self.config.ticks_seconds):
            return []
        self._number += 1
        value = f"{self.config.watch_task} {self._number}"
        record = SourceRecord(self.config.topic, value, Schema.string())
        return [record.replace(source_partition=self._partition, source_offset={"number": self._number})]


class TicksConnector(SourceConnector[TicksConfig]):
    """As many tasks as it may have."""

    task_class = TicksTask

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        return [
            {**self.config.originals, "watch.task": str(task)}
            for task in range(min(max_tasks, self.config.ticks_tasks))
        ]


class LinesTask(FileStreamSourceTask, SourceTask[LinesConfig]):
    """The file source, watched."""

    config: LinesConfig

    def start(self) -> None:
        watch(self.config)
        super().start()


class LinesConnector(SourceConnector[LinesConfig]):
    """Publishes the lines of a file."""

    task_class = LinesTask


class WriterTask(FileStreamSinkTask, SinkTask[WriterConfig]):
    """The file sink, watched."""

    config: WriterConfig

    def start(self) -> None:
        watch(self.config)
        super().start()


class WriterConnector(SinkConnector[WriterConfig]):
    """Appends values to a file."""

    task_class = WriterTask


class GatedConfig(WriterConfig):
    """When to write."""

    gate_file: str = option(importance=HIGH, doc="While there is this file, nothing is written.")


class GatedTask(WriterTask, SinkTask[GatedConfig]):
    """The file sink, watched, which waits at its gate with the records in its hands."""

    config: GatedConfig

    def put(self, records: SinkBatch) -> None:
        while os.path.exists(self.config.gate_file):  # noqa: PTH110 - asked often
            time.sleep(_LOOK_SECONDS)
        super().put(records)


class GatedConnector(SinkConnector[GatedConfig]):
    """Appends values to a file, when it may."""

    task_class = GatedTask
