"""``spark.readStream``: reads the records of a source in micro-batches, from offset to offset."""

from __future__ import annotations

import atexit
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import SimpleDataSourceStreamReader

from connect.data import SourceBatch, SourceRecord
from connect.internals.chain.tolerance import Tolerance
from connectors.spark.datasource.chain import RecordChain, logging_tolerance
from connectors.spark.datasource.contexts import KnownOffsets
from connectors.spark.datasource.deployment import Deployment
from connectors.spark.datasource.options import secrets_hidden
from connectors.spark.datasource.pollers import Pollers
from connectors.spark.datasource.reader import joined
from connectors.spark.datasource.rows import RowShape
from connectors.spark.datasource.source_tasks import PATIENCE_SECONDS
from connectors.spark.datasource.stream_offsets import Replay, StreamOffset, advanced, known_offsets

__all__ = ["SourceStream"]


class SourceStream(SimpleDataSourceStreamReader):
    """Reads a source from one stream offset to the next; its tasks keep running between micro-batches."""

    def __init__(self, options: Mapping[str, str], shape: RowShape) -> None:
        self._options = dict(options)
        self._shape = shape
        self._reading: _Reading | None = None

    def initialOffset(self) -> StreamOffset:  # noqa: N802 - Spark's name
        """Return the offset before all records."""
        return {}

    def read(self, start: StreamOffset) -> tuple[Iterator[Any], StreamOffset]:
        """Return the next rows after a stream offset, and the offset after them."""
        if self._reading is None or not self._reading.continues(start):
            self.stop()
            self._reading = _Reading(self._options, self._shape, start)
            # Spark ends the process without notifying this object.
            atexit.register(self.stop)
        return self._reading.next()

    def readBetweenOffsets(self, start: StreamOffset, end: StreamOffset) -> Iterator[Any]:  # noqa: N802 - as above
        """Read the rows between two stream offsets again."""
        reading = _Reading(self._options, self._shape, start)
        try:
            yield from reading.replay(start, end)
        finally:
            reading.close()

    def stop(self) -> None:
        """Stop the tasks, if any are running."""
        reading, self._reading = self._reading, None
        if reading is not None:
            atexit.unregister(self.stop)
            reading.close()


class _Reading:
    """The running tasks, and the stream offset they have reached."""

    def __init__(self, options: Mapping[str, str], shape: RowShape, start: StreamOffset) -> None:
        self._deployment = Deployment.of_source(options)
        self._shape = shape
        self._place = dict(start)
        self._tolerance: Tolerance = logging_tolerance(self._deployment.config.policy)
        with secrets_hidden(self._deployment.secrets()):
            self._chain: RecordChain[SourceBatch, SourceRecord] = RecordChain(self._deployment.steps(), self._tolerance)
            self._pollers = Pollers(self._deployment, KnownOffsets(known_offsets(start)))

    def continues(self, start: StreamOffset) -> bool:
        """Return whether reading is at this offset, with the tasks the connector currently wants."""
        return self._place == start and self._pollers.is_current

    def next(self) -> tuple[Iterator[pa.RecordBatch], StreamOffset]:
        """Return the next rows, and the stream offset after them."""
        with secrets_hidden(self._deployment.secrets()):
            found = self._pollers.gather(self._deployment.config.max_records_per_trigger)
            self._place = advanced(self._place, found)
            # A list, because Spark iterates over it more than once.
            return iter(list(self._rows(found))), dict(self._place)

    def replay(self, start: StreamOffset, end: StreamOffset) -> Iterator[pa.RecordBatch]:
        """Yield the rows between two stream offsets."""
        with secrets_hidden(self._deployment.secrets()):
            replay = Replay(start, end)
            until = time.monotonic() + PATIENCE_SECONDS
            while not replay.done and not self._pollers.at_end and time.monotonic() < until:
                if found := self._pollers.gather(self._deployment.config.max_records_per_trigger):
                    replay.take(found)
                    until = time.monotonic() + PATIENCE_SECONDS
            yield from self._rows(replay.records())

    def close(self) -> None:
        """Stop the tasks."""
        self._pollers.close()
        self._chain.close()

    def _rows(self, batches: Iterable[SourceBatch]) -> Iterator[pa.RecordBatch]:
        transformed = (part for batch in batches for part in self._chain.process(batch))
        rows = (self._shape.rows(part, self._tolerance, self._deployment.task_class) for part in transformed)
        return joined(batch for batch in rows if batch.num_rows)
