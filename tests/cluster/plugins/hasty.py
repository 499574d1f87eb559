"""A connector that changes its mind: whenever its file says another number of tasks, it wants one more first."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from growing import GrowingConfig
from watched import TicksTask

from connect.source import SourceConnector

_LOOK_SECONDS = 0.02


class HastyConnector(SourceConnector[GrowingConfig]):
    """Asks for the second reconfiguration as soon as the first is computed."""

    task_class = TicksTask

    def start(self) -> None:
        self._computed = threading.Event()
        self._wanted = self._said()
        threading.Thread(target=self._look, args=(self._wanted,), daemon=True).start()

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        configs = [{**self.config.originals, "watch.task": str(task)} for task in range(self._wanted)]
        self._computed.set()
        return configs

    def _look(self, known: int) -> None:
        while self.context.wait(_LOOK_SECONDS):
            if (number := self._said()) == known:
                continue
            known = number
            for wanted in (number + 1, number):
                self._wanted = wanted
                self._computed.clear()
                self.context.request_task_reconfiguration()
                self._computed.wait()

    def _said(self) -> int:
        return int(Path(self.config.growing_file).read_text())
