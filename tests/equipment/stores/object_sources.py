"""Sources of objects that tests run, and records as sinks get them."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any, Final

from connect.data import Header, Headers, Schema, SinkRecord, SourceRecord, TimestampType
from connect.testing import ConnectorTestContext, SourceTaskTestContext, StoredOffsets
from connectors.objects.source import AzureBlobSourceConnector, GcsSourceConnector, S3SourceConnector

__all__ = ["CONNECTORS", "Source", "read", "records_of"]

CONNECTORS: Final = {"s3": S3SourceConnector, "gcs": GcsSourceConnector, "azure": AzureBlobSourceConnector}
TIME: Final = 1_700_000_000_123


class Source:
    """Tasks of a source that share what is committed."""

    def __init__(self, connector: Any, props: dict[str, str], **context: Any) -> None:
        self.offsets = StoredOffsets()
        self._class, self._props, self._context = connector, props, context
        self._stack = ExitStack()
        self.context = SourceTaskTestContext(self.offsets, **context)

    def start(self, **props: str) -> Any:
        self.context = SourceTaskTestContext(self.offsets, **self._context)
        (config, *_) = self._configs({**self._props, **props}, 1)
        task = self._class.task_class(self._class.task_class.config_class.parse(config), self.context)
        task.start()
        self._stack.callback(task.stop)
        return task

    def _configs(self, props: dict[str, str], count: int) -> list[dict[str, str]]:
        config = self._class.config_class.parse(props)
        return list(self._class(config, ConnectorTestContext(self.offsets)).task_configs(count))

    def shares(self, count: int) -> list[list[SourceRecord]]:
        """What each of several tasks reads."""
        return [self.of(config, StoredOffsets()) for config in self._configs(self._props, count)]

    def of(self, config: Mapping[str, str | None], offsets: StoredOffsets | None = None) -> list[SourceRecord]:
        """What a task reads."""
        context = SourceTaskTestContext(self.offsets if offsets is None else offsets)
        task = self._class.task_class(self._class.task_class.config_class.parse(config), context)
        task.start()
        self._stack.callback(task.stop)
        found = read(task)
        assert task.drained()
        return found

    def commit(self, task: Any, records: list[SourceRecord]) -> None:
        self.offsets.keep(records)
        for partition, offset in self.context.take_passed():
            self.offsets.put(partition, offset)
        task.commit()

    def close(self) -> None:
        self._stack.close()


def read(task: Any) -> list[SourceRecord]:
    records: list[SourceRecord] = []
    while (batch := task.poll()) is not None:
        records.extend(batch)
    return records


def records_of(
    values: list[Any], keys: list[Any], schema: Schema | None, key_schema: Schema | None
) -> list[SinkRecord]:
    """Records of two partitions, with headers and timestamps."""
    made = []
    for at, (value, key) in enumerate(zip(values, keys, strict=True)):
        headers = Headers([Header("n", str(at), Schema.string()), Header("n", None, Schema.string(optional=True))])
        made.append(
            SinkRecord(
                "orders",
                value,
                None if value is None else schema,
                key,
                key_schema,
                at % 2,
                TIME + at,
                headers,
                at // 2,
                TimestampType.CREATE_TIME,
                "orders",
                at % 2,
                at // 2,
            )
        )
    return made
