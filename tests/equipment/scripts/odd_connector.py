"""A connector whose task configs the test sets as Python literals, valid or not."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any

from connect.config import HIGH, Config, option
from connect.source import SourceConnector, SourceRecord, SourceTask

__all__ = ["OddConnector"]


class OddConfig(Config):
    """The result of ``task_configs``: a literal, or the name of an exception to raise."""

    gives: str = option(importance=HIGH, doc="A literal, or an exception.")


class OddTask(SourceTask[OddConfig]):
    """Never runs."""

    def poll(self) -> list[SourceRecord]:
        return []


class OddConnector(SourceConnector[OddConfig]):
    """Returns the configured result; the second time an empty list."""

    task_class = OddTask

    def start(self) -> None:
        self._times = 0

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        self._times += 1
        if self.config.gives == "at last a number":
            self.context.request_task_reconfiguration()
            return [] if self._times == 1 else [{"n": self._times}]  # type: ignore[dict-item]
        if self.config.gives == "SystemExit":
            raise SystemExit(3)
        if self.config.gives == "generator":
            return (config for config in [{}])  # type: ignore[return-value]
        given: Any = ast.literal_eval(self.config.gives)
        return given  # type: ignore[no-any-return]
