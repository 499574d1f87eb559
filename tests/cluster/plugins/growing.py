"""A connector that has as many tasks as a file says, and has them computed again whenever that changes."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from watched import TicksConfig, TicksTask

from connect.config import HIGH, option
from connect.source import SourceConnector

_LOOK_SECONDS = 0.05


class GrowingConfig(TicksConfig):
    """How many tasks there are."""

    growing_file: str = option(importance=HIGH, doc="File with the number of tasks.")


class GrowingConnector(SourceConnector[GrowingConfig]):
    """Looks at its file from a thread of its own."""

    task_class = TicksTask

    def start(self) -> None:
        threading.Thread(target=self._look, args=(self._number(),), daemon=True).start()

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        return [{**self.config.originals, "watch.task": str(task)} for task in range(self._number())]

    def _look(self, known: int) -> None:
        while self.context.wait(_LOOK_SECONDS):
            if self._number() != known:
                known = self._number()
                self.context.request_task_reconfiguration()

    def _number(self) -> int:
        return int(Path(self.config.growing_file).read_text())
