"""Loads: Spark reads the records of topics, decodes them, and writes their rows to the target."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeVar

from connect.bulk import BulkSinkTaskContext, OffsetRange
from connect.data import Schema
from connect.errors import ConnectError
from connectors.spark.config import SparkSinkConfig
from connectors.spark.decoding.placement import Placement
from connectors.spark.errors import load_error
from connectors.spark.loading.jobs import width_for
from connectors.spark.loading.progress import LoadProgress
from connectors.spark.loading.request import Loaded, LoadRequest, Output
from connectors.spark.loading.shared_tables import agreed_tables, disagreeing_loads
from connectors.spark.loading.splits import splits_of
from connectors.spark.loading.topic import LoadSession, TopicLoad, TopicMemory
from connectors.spark.sql.query import Query

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Loader"]

logger = logging.getLogger(__name__)

T = TypeVar("T")

_AGAIN: Final = 3
"""The first attempt of a repeated load."""


class Loader:
    """Loads the records of offset ranges with a connector's Spark session. Used only by the task's thread."""

    def __init__(self, spark: SparkSession, config: SparkSinkConfig, context: BulkSinkTaskContext) -> None:
        self.progress = LoadProgress(spark, context)
        width = width_for(spark.sparkContext.defaultParallelism)
        self._session = LoadSession(spark, config, context, self.progress, width)
        self._query = Query(spark, config, config.evolution) if config.has_query else None
        self._topics: dict[str, TopicMemory] = {}

    def load(
        self,
        ranges: Sequence[OffsetRange],
        known: Mapping[str, Schema],
        output: Output,
        placement: Placement | None = None,
        records: Mapping[str, Schema] | None = None,
    ) -> Loaded:
        """Load one topic; like :meth:`load_topics` for a single request."""
        return self.load_topics([LoadRequest(ranges, known, output, placement, records or {})])[0]

    def load_topics(self, requests: Sequence[LoadRequest]) -> list[Loaded]:
        """Load several topics into the same known tables, some of them in parallel.

        If transformations send topics to the same table and these change it in different ways, they are loaded one
        after the
        other. If one load fails, all fail: the others are cancelled, and their outputs may have received rows. Raises
        :class:`~connect.errors.DataError` naming the first bad record of a topic, unless ``errors.tolerance`` is
        ``all``.
        """
        self.progress.expect(len(requests))
        try:
            loads = [self._load_of(request) for request in requests]
            loaded = self._session.jobs.run_all([load.steps() for load in loads])
            if len(requests) > 1:
                loaded = self._agreed(requests, loads, loaded)
            for load, done in zip(loads, loaded, strict=True):
                load.give_up(done)
        except ConnectError:
            raise
        except Exception as error:
            raise load_error(error) from error
        return loaded

    def splits(self, ranges: Sequence[OffsetRange]) -> list[OffsetRange]:
        """Return the ranges as Spark's tasks would read them now."""
        return splits_of(ranges, self._session.spark.sparkContext.defaultParallelism)

    def run(self, job: Callable[[], T]) -> T:
        """Run another Spark job that belongs to a load; it is cancelled when the task is to stop."""
        return self._session.jobs.run(job)

    def _load_of(self, request: LoadRequest, attempt: int = 1) -> TopicLoad:
        memory = self._topics.setdefault(request.topic, TopicMemory())
        if not request.splits:
            request = replace(request, splits=self.splits(request.ranges))
        return TopicLoad(self._session, request, memory, self._query, attempt)

    def _agreed(
        self, requests: Sequence[LoadRequest], loads: list[TopicLoad], loaded: Sequence[Loaded]
    ) -> list[Loaded]:
        """Return the loads with the schemas that tables have after all of them; conflicting loads are repeated, and
        replaced in ``loads``.
        """
        known, records, found = requests[0].known, requests[0].records, list(loaded)
        again = disagreeing_loads(known, [each.tables for each in found])
        again = sorted({*again, *disagreeing_loads(records, [each.records for each in found])})
        order = [place for place in range(len(found)) if place not in again]
        tables = agreed_tables(known, [found[place].tables for place in order])
        kept = agreed_tables(records, [found[place].records for place in order])
        for place in again:
            logger.info(
                "Loading topic %s again: another topic has changed a table that both write to.", requests[place].topic
            )
            request = replace(requests[place], known={**known, **tables}, records={**records, **kept})
            loads[place] = self._load_of(request, _AGAIN)
            found[place] = self._session.jobs.run_all([loads[place].steps()])[0]
            tables |= found[place].tables
            kept |= found[place].records
        return [
            replace(
                each, tables={name: tables[name] for name in each.tables}, records={n: kept[n] for n in each.records}
            )
            for each in found
        ]
