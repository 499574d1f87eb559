"""Connectors to be killed at random moments: they are watched, take their time, or keep offsets in their target."""

from __future__ import annotations

import sqlite3
import time
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from typing import Any, Final

from watched import LinesConfig, LinesTask, Watch, WriterConfig, WriterTask, watch

from connect.config import HIGH, Config, option
from connect.converter import Converter
from connect.data import Schema, SchemaAndValue, SinkBatch, TopicPartition
from connect.errors import RetriableError
from connect.sink import SinkConnector, SinkTask
from connect.source import ExactlyOnceSupport, SourceConnector

_TEXT: Final = Schema.string(optional=True)
_RECORD_SECONDS: Final = 0.001
_LOCK_SECONDS: Final = 30.0
_TABLES: Final = """
    CREATE TABLE IF NOT EXISTS lines (topic TEXT, partition INTEGER, offset INTEGER, line TEXT);
    CREATE TABLE IF NOT EXISTS offsets (
        topic TEXT, partition INTEGER, next INTEGER NOT NULL, PRIMARY KEY (topic, partition)
    );
"""


class TardyConverter(Converter[Config]):
    """Text. Each record takes a moment, as with converters that ask somebody."""

    def from_connect(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        time.sleep(_RECORD_SECONDS)
        return None if value is None else str(value).encode()

    def to_connect(self, topic: str, data: bytes | None) -> SchemaAndValue:
        time.sleep(_RECORD_SECONDS)
        return SchemaAndValue(_TEXT, None if data is None else data.decode())


def _numbered(config: Config, tasks: int, *suffixed: str) -> list[Mapping[str, str | None]]:
    """A configuration for each task, with its number, also at the end of the values of some keys."""
    props = config.originals
    return [
        {**props, "watch.task": str(task), **{key: f"{props[key]}-{task}" for key in suffixed}} for task in range(tasks)
    ]


class FilesConnector(SourceConnector[LinesConfig]):
    """The file source, once for each task: from ``file`` to ``topic``, both with the number of the task."""

    task_class = LinesTask

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str | None]]:
        return _numbered(self.config, max_tasks, "file", "topic")

    @classmethod
    def exactly_once_support(cls, config: LinesConfig) -> ExactlyOnceSupport:
        return ExactlyOnceSupport.SUPPORTED


class WritersConnector(SinkConnector[WriterConfig]):
    """The file sink, with tasks that share a file."""

    task_class = WriterTask

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str | None]]:
        return _numbered(self.config, max_tasks)


class TableConfig(Watch):
    """Where to write."""

    database: str = option(importance=HIGH, doc="File of the SQLite database.")


class TableTask(SinkTask[TableConfig]):
    """Writes lines and the offsets after them in one transaction, and begins where these say.

    Crash points: killed before SQLite has committed, neither counts and the lines are consumed again; killed after
    that and before Kafka has the offsets, those of the table count. Another process may have the partition meanwhile:
    the transaction is made only if the offset is the one this task knows.
    """

    def start(self) -> None:
        watch(self.config)
        self._database = sqlite3.connect(self.config.database, timeout=_LOCK_SECONDS, isolation_level=None)
        self._database.executescript(_TABLES)
        self._next: dict[TopicPartition, int | None] = {}
        self._waiting: defaultdict[TopicPartition, list[tuple[int, str]]] = defaultdict(list)

    def open(self, partitions: Collection[TopicPartition]) -> None:
        for partition in partitions:
            self._begin_at_kept(partition)

    def put(self, records: SinkBatch) -> None:
        for record in records:
            partition = TopicPartition(record.original_topic, record.original_partition)
            self._waiting[partition].append((record.original_offset, record.value))

    def pre_commit(self, offsets: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
        for partition in offsets.keys() & self._waiting.keys():
            self._write(partition, self._waiting.pop(partition))
        return {partition: kept for partition in offsets if (kept := self._next.get(partition)) is not None}

    def close(self, partitions: Collection[TopicPartition]) -> None:
        for partition in partitions:
            self._waiting.pop(partition, None)
            self._next.pop(partition, None)

    def stop(self) -> None:
        self._database.close()

    def _begin_at_kept(self, partition: TopicPartition) -> None:
        query = "SELECT next FROM offsets WHERE topic = ? AND partition = ?"
        kept = self._database.execute(query, partition).fetchone()
        self._next[partition] = kept[0] if kept else None
        if kept:
            self.context.offset({partition: kept[0]})

    def _write(self, partition: TopicPartition, lines: Sequence[tuple[int, str]]) -> None:
        following = lines[-1][0] + 1
        with closing(self._database.cursor()) as cursor:
            cursor.execute("BEGIN IMMEDIATE")
            if not self._move(cursor, partition, following):
                cursor.execute("ROLLBACK")
                self._begin_at_kept(partition)
                raise RetriableError(f"Another task has written {partition} meanwhile")
            cursor.executemany("INSERT INTO lines VALUES (?, ?, ?, ?)", [(*partition, *line) for line in lines])
            cursor.execute("COMMIT")
        self._next[partition] = following

    def _move(self, cursor: sqlite3.Cursor, partition: TopicPartition, following: int) -> bool:
        """Set the offset of a partition; whether it was the one that this task knows."""
        known = self._next.get(partition)
        if known is None:
            statement, values = "INSERT OR IGNORE INTO offsets VALUES (?, ?, ?)", (*partition, following)
        else:
            statement = "UPDATE offsets SET next = ? WHERE topic = ? AND partition = ? AND next = ?"
            values = (following, *partition, known)
        return cursor.execute(statement, values).rowcount == 1


class TableConnector(SinkConnector[TableConfig]):
    """Writes to a table, exactly once."""

    task_class = TableTask

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str | None]]:
        return _numbered(self.config, max_tasks)
