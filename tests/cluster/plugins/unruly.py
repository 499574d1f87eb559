"""Connectors that do what they should not."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from connect.config import HIGH, Config, option
from connect.data import SourceRecord
from connect.errors import ConfigError
from connect.source import SourceConnector, SourceTask

_FOR_EVER = 10_000.0


class UnrulyConfig(Config):
    """Nothing of interest."""

    topic: str = option(importance=HIGH, doc="Topic to publish to.")


class QuietTask(SourceTask[UnrulyConfig]):
    """Does nothing."""

    def poll(self) -> Sequence[SourceRecord]:
        self.context.wait(1)
        return []


class BlocksInStartConnector(SourceConnector[UnrulyConfig]):
    """Never gets to its tasks."""

    task_class = QuietTask

    def start(self) -> None:
        time.sleep(_FOR_EVER)


class BlockingConfig(UnrulyConfig):
    """Takes for ever to be checked."""

    def check(self) -> Iterable[ConfigError]:
        time.sleep(_FOR_EVER)
        return []


class BlocksInValidateConnector(SourceConnector[BlockingConfig]):
    """Never says whether its configuration is good."""

    task_class = QuietTask


class RaisesTask(SourceTask[UnrulyConfig]):
    """Fails at once."""

    def poll(self) -> Sequence[SourceRecord]:
        raise RuntimeError("this task was made to fail")


class RaisesConnector(SourceConnector[UnrulyConfig]):
    """Has a task that fails."""

    task_class = RaisesTask


class FailsWhileConfig(UnrulyConfig):
    """When to fail."""

    fails_while: str = option(importance=HIGH, doc="File during whose existence the task fails.")


class FailsWhileTask(SourceTask[FailsWhileConfig]):
    """Fails as long as a file is there."""

    def poll(self) -> Sequence[SourceRecord]:
        if Path(self.config.fails_while).exists():
            raise RuntimeError("this task was made to fail")
        self.context.wait(1)
        return []


class FailsWhileConnector(SourceConnector[FailsWhileConfig]):
    """Has a task that fails for a while."""

    task_class = FailsWhileTask
