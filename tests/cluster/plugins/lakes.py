"""The Spark sink, watched. A module of its own, as only its tasks need what it imports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from watched import Watch, watch

from connect.bulk import BulkSinkTask
from connect.sink import SinkConnector
from connectors.spark.sink import SparkSinkTask
from connectors.spark.sink.config import SparkSinkConfig


class LakeConfig(SparkSinkConfig, Watch):
    """Where to write."""


class LakeTask(SparkSinkTask, BulkSinkTask[LakeConfig]):
    """The Spark sink, watched."""

    config: LakeConfig

    def start(self) -> None:
        watch(self.config)
        super().start()


class LakeConnector(SinkConnector[LakeConfig]):
    """Writes to Parquet with Spark."""

    task_class = LakeTask

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str | None]]:
        return [self.config.originals]
