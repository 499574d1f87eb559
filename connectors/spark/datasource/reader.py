"""``spark.read``: the records that a source has now, in partitions that are read in parallel."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from connect.data import SourceBatch, SourceRecord
from connect.errors import ConnectError
from connectors.spark.datasource.chain import RecordChain, logging_tolerance
from connectors.spark.datasource.contexts import KnownOffsets, PlainConnectorContext
from connectors.spark.datasource.deployment import Deployment
from connectors.spark.datasource.options import secrets_hidden
from connectors.spark.datasource.rows import RowShape
from connectors.spark.datasource.source_tasks import connector_started, polled_to_the_end, task_started

__all__ = ["Piece", "SourceReader", "first_shape", "joined"]

_ROWS: Final = 10_000
_BYTES: Final = 16 * 1024 * 1024


class Piece(InputPartition):
    """One partition of a read: the config of the task that reads it, with references in place of secrets."""

    def __init__(self, number: int, task_config: Mapping[str, str]) -> None:
        super().__init__(number)
        self.task_config = dict(task_config)

    def __repr__(self) -> str:
        return f"Piece({self.value})"


class SourceReader(DataSourceReader):
    """Divides the work as the connector does, and reads each piece with the connector's own task."""

    def __init__(self, options: Mapping[str, str], shape: RowShape) -> None:
        self._options = dict(options)
        self._shape = shape

    def partitions(self) -> list[InputPartition]:
        """Return the pieces; runs in the process that plans the query."""
        deployment = Deployment.of_source(self._options)
        with secrets_hidden(deployment.secrets()):
            return [Piece(number, config) for number, config in enumerate(_task_configs(deployment))]

    def read(self, partition: InputPartition | None) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one piece; runs in an executor's Python worker. Without a piece there are no rows."""
        if isinstance(partition, Piece):
            deployment = Deployment.of_source(self._options)
            with secrets_hidden(deployment.secrets()):
                yield from joined(_rows(deployment, partition.task_config, self._shape))


def first_shape(options: Mapping[str, str]) -> RowShape:
    """Return the columns of the first records, from the first piece that has any."""
    deployment = Deployment.of_source(options)
    with secrets_hidden(deployment.secrets()):
        for task_config in _task_configs(deployment):
            for batches in _transformed(deployment, task_config):
                if batches:
                    return RowShape.seen(batches, deployment.config)
    raise ConnectError(
        f"{deployment.config.connector_class} has no records now that show the columns: declare them with .schema(...)."
    )


def joined(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Join rows into larger batches."""
    held: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        held.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows >= _ROWS or size >= _BYTES:
            yield from _one(held)
            held, rows, size = [], 0, 0
    yield from _one(held)


def _one(batches: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    if len(batches) < 2:
        return batches
    return pa.Table.from_batches(batches).combine_chunks().to_batches()


def _task_configs(deployment: Deployment) -> list[dict[str, str]]:
    """Return the bounded splits of a source that supports them, otherwise its task configs."""
    context, most = PlainConnectorContext(), deployment.config.tasks_max
    with connector_started(deployment, context) as connector:
        configs = connector.splits(most or os.cpu_count() or 1)
        if configs is None:
            configs = connector.task_configs(most or 1)
        context.check()
        return [deployment.storable(config) for config in configs]


def _rows(deployment: Deployment, task_config: Mapping[str, str], shape: RowShape) -> Iterator[pa.RecordBatch]:
    tolerance = logging_tolerance(deployment.config.policy)
    for batches in _transformed(deployment, task_config, tolerance):
        for batch in batches:
            yield shape.rows(batch, tolerance, deployment.task_class)


def _transformed(
    deployment: Deployment, task_config: Mapping[str, str], tolerance: Any = None
) -> Iterator[list[SourceBatch]]:
    """Yield each of a task's batches after the transformations."""
    tolerance = tolerance or logging_tolerance(deployment.config.policy)
    chain: RecordChain[SourceBatch, SourceRecord] = RecordChain(deployment.steps(), tolerance)
    try:
        with task_started(deployment, task_config, KnownOffsets(), tolerance) as task:
            for batch in polled_to_the_end(task):
                yield chain.process(batch)
    finally:
        chain.close()
