"""A connector whose tasks print what is written into a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from watched import Watch, watch

from connect.config import HIGH, option
from connect.data import SourceRecord
from connect.source import SourceConnector, SourceTask


class TalkativeConfig(Watch):
    """What to print."""

    talkative_file: str = option(importance=HIGH, doc="File with what to print, a line each.")


class TalkativeTask(SourceTask[TalkativeConfig]):
    """Prints each line that comes while it runs, and produces nothing."""

    def start(self) -> None:
        self._file = Path(self.config.talkative_file)
        self._known = len(self._lines())
        watch(self.config)

    def poll(self) -> list[SourceRecord]:
        for line in self._lines()[self._known :]:
            print(f"task {self.config.watch_task} says {line}", end="")
            self._known += 1
        self.context.wait(0.02)
        return []

    def _lines(self) -> list[str]:
        return [line for line in self._file.read_text().splitlines(keepends=True) if line.endswith("\n")]


class TalkativeConnector(SourceConnector[TalkativeConfig]):
    """As many tasks as it may have."""

    task_class = TalkativeTask

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        return [{**self.config.originals, "watch.task": str(task)} for task in range(max_tasks)]
