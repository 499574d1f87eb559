"""The tasks of Spark's sources, each on a folder and a topic of its own."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from confluent_kafka import Message

from connect.bulk_source import BulkSourceTask
from connectors.spark.sources.files.config import SparkFileSourceConfig
from connectors.spark.sources.files.source import SparkFileSourceTask
from connectors.spark.sources.jdbc.config import SparkJdbcSourceConfig
from connectors.spark.sources.jdbc.source import SparkJdbcSourceTask
from connectors.spark.sources.tables.config import SparkTableSourceConfig
from connectors.spark.sources.tables.source import SparkTableSourceTask
from equipment.brokers.topics import create_topic, read_topic
from equipment.workers.bulk_source_context import BulkSourceContext
from equipment.workers.claimed_offsets import ClaimedOffsets
from equipment.workers.small_spark import SMALL_SPARK

__all__ = ["JSON", "SPARK", "Source", "drain"]

JSON = {
    **{f"{role}.converter": "converters.json.JsonConverter" for role in ("key", "value")},
    **{f"{role}.converter.schemas.enable": "false" for role in ("key", "value")},
    "header.converter": "converters.simple_header.SimpleHeaderConverter",
}
SPARK = {**SMALL_SPARK, "spark.sql.shuffle.partitions": "2", "spark.databricks.delta.snapshotPartitions": "1"}


class Source:
    """A topic, a folder, and the tasks that read the one from the other."""

    def __init__(self, bootstrap: str, topic: str, folder: Path) -> None:
        self.bootstrap = bootstrap
        self.topic = topic
        self.folder = folder
        self.offsets = folder.parent / "offsets.json"
        self.context: BulkSourceContext
        self._exactly: dict[str, Any] = {}
        self._offsets_topic = ""

    def exactly_once(self, lost_after: int | None = None) -> None:
        """Have the tasks to come publish in transactions, the next one until so many of them are committed."""
        if not self._offsets_topic:
            self._offsets_topic = f"{self.topic}-offsets"
            create_topic(self.bootstrap, self._offsets_topic, 1, **{"cleanup.policy": "compact"})
        heard = itertools.count(1)
        transactions = ClaimedOffsets(self.bootstrap, self.topic, self._offsets_topic)
        self._exactly = {"transactions": transactions, "is_lost": lambda _: next(heard) == lost_after}

    def at_least_once(self) -> None:
        """Have the next task go away before it stores offsets, and those after it not."""
        heard = itertools.count(1)
        self._exactly = {"is_lost": lambda _: next(heard) == 1}

    def stored(self) -> list[dict[str, Any]]:
        """The offsets and marks on the offsets topic."""
        transactions: ClaimedOffsets = self._exactly["transactions"]
        return list(transactions.stored().values())

    def files(self, **props: str) -> SparkFileSourceTask:
        task = SparkFileSourceTask(*self._made(SparkFileSourceConfig, {"store.url": str(self.folder)}, props))
        return self._started(task)

    def database(self, **props: str) -> SparkJdbcSourceTask:
        return self._started(SparkJdbcSourceTask(*self._made(SparkJdbcSourceConfig, {}, props)))

    def tables(self, **props: str) -> SparkTableSourceTask:
        task = SparkTableSourceTask(*self._made(SparkTableSourceConfig, {"store.url": str(self.folder)}, props))
        return self._started(task)

    def read(self, topic: str | None = None) -> list[Message]:
        """All records of a topic."""
        found: list[Message] = read_topic(self.bootstrap, topic or self.topic)
        return found

    def values(self, topic: str | None = None) -> list[Any]:
        return [None if (value := each.value()) is None else json.loads(value) for each in self.read(topic)]

    def _made(self, config: Any, more: Mapping[str, Any], props: Mapping[str, str]) -> tuple[Any, BulkSourceContext]:
        given = {key.replace("_", "."): value for key, value in props.items()}
        whole = {"name": "lake", "topic": self.topic, "file.age.ms": "0", **JSON, **SPARK, **more, **given}
        self.context = BulkSourceContext("lake", self.bootstrap, whole, self.offsets, **self._exactly)
        return config.parse(whole), self.context

    def _started(self, task: Any) -> Any:
        task.start()
        return task


def drain(task: BulkSourceTask[Any]) -> None:
    while task.load():
        pass
    assert task.drained()
