"""Loads: Spark reads the records of topics, decodes them, and writes their rows to the target."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeVar

from connect.bulk import BulkSinkTaskContext, OffsetRange
from connect.data import Schema
from connect.errors import ConnectError
from connectors.spark.errors import load_error
from connectors.spark.jobs.jobs import width_for
from connectors.spark.jobs.progress import LoadProgress
from connectors.spark.sink.config import SparkSinkConfig
from connectors.spark.sink.loading.request import Loaded, LoadRequest, splits_of
from connectors.spark.sink.loading.topic import LoadSession, TopicLoad, TopicMemory
from connectors.spark.sink.sql.query import Query

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Loader", "agreed_tables", "disagreeing_loads"]

logger = logging.getLogger(__name__)

T = TypeVar("T")

_REPEATED_ATTEMPT: Final = 3
"""The first attempt of a repeated load."""


class Loader:
    """Loads the records of offset ranges with a connector's Spark session. Used only by the task's thread."""

    def __init__(
        self, spark: SparkSession, config: SparkSinkConfig, context: BulkSinkTaskContext, packages: Sequence[str]
    ) -> None:
        """``packages`` are what executors need in addition to what every load needs."""
        self.progress = LoadProgress(spark, context)
        width = width_for(spark.sparkContext.defaultParallelism)
        self._session = LoadSession(spark, config, context, self.progress, width, packages)
        self._query = Query(spark, config, config.evolution) if config.has_query else None
        self._topics: dict[str, TopicMemory] = {}

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
            loads[place] = self._load_of(request, _REPEATED_ATTEMPT)
            found[place] = self._session.jobs.run_all([loads[place].steps()])[0]
            tables |= found[place].tables
            kept |= found[place].records
        return [
            replace(
                each, tables={name: tables[name] for name in each.tables}, records={n: kept[n] for n in each.records}
            )
            for each in found
        ]


def disagreeing_loads(known: Mapping[str, Schema], loads: Sequence[Mapping[str, Schema]]) -> list[int]:
    """Return the indexes of loads that gave a table a different new schema than an earlier load did.

    ``known`` are the tables before, ``loads`` those that each load has written on its own. When repeated with the
    others' tables known, a load adds to their schemas or finds that its records do not fit.
    """
    changed: dict[str, Schema] = {}
    found: list[int] = []
    for place, tables in enumerate(loads):
        own = _changes(known, tables)
        if any(changed.get(name, schema) != schema for name, schema in own.items()):
            found.append(place)
        else:
            changed |= own
    return found


def agreed_tables(known: Mapping[str, Schema], loads: Sequence[Mapping[str, Schema]]) -> dict[str, Schema]:
    """Return the schemas of all tables of loads that agree: the new schema where any load changed a table."""
    written = {name: schema for tables in loads for name, schema in tables.items()}
    changed = {name: schema for tables in loads for name, schema in _changes(known, tables).items()}
    return written | changed


def _changes(known: Mapping[str, Schema], tables: Mapping[str, Schema]) -> dict[str, Schema]:
    return {name: schema for name, schema in tables.items() if known.get(name) != schema}
