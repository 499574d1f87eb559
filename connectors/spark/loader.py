"""One load of one topic: Spark reads the records, decodes them and writes files into a staging folder."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.pandas.types import from_arrow_schema

from connect.bulk import BulkSinkTaskContext, OffsetRange
from connect.chain.tolerance import ErrorPolicy
from connect.data import Schema
from connect.errors import ConnectError, DataError, RetriableError
from connectors.spark.config import SparkSinkConfig
from connectors.spark.decoding.decoder import DecodePlan, Mode
from connectors.spark.decoding.executor import Passes
from connectors.spark.decoding.plugins import chain_properties, has_transformations
from connectors.spark.decoding.report import Reports
from connectors.spark.failure import root_cause
from connectors.spark.ledger.filesystem import LocalFileSystem
from connectors.spark.ledger.manifest import Move
from connectors.spark.ledger.staging import FileNames, staged_moves
from connectors.spark.partitioner import make_partitioner
from connectors.spark.reader import read_ranges
from connectors.spark.schema import in_common, widen_where_possible
from connectors.spark.types import table_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Loader", "Staged"]

logger = logging.getLogger(__name__)

_TABLE_NAME: Final = re.compile(r"[A-Za-z0-9._-]+")
_EMPTY: Final = Schema.struct({})
_WAIT: Final = 0.2
_TOLD: Final = 10


@dataclass(slots=True)
class Staged:
    """The files that a load of one topic has staged, and the schemas its tables have with them."""

    moves: list[Move] = field(default_factory=list)
    tables: dict[str, Schema] = field(default_factory=dict)


class Loader:
    """Stages the records of offset ranges with the Spark session of a connector."""

    def __init__(
        self, spark: SparkSession, files: LocalFileSystem, config: SparkSinkConfig, context: BulkSinkTaskContext
    ) -> None:
        self._spark = spark
        self._files = files
        self._config = config
        self._context = context
        self._props = chain_properties(context.connector_properties)
        tolerance = context.connector_properties.get("errors.tolerance", "none")
        self._policy = ErrorPolicy(tolerates_errors=tolerance.lower() == "all")
        self._transformed = has_transformations(self._props)
        self._partitioner = make_partitioner(config)
        self._names = FileNames(config.topics_dir, self._partitioner, config.filename_offset_zero_pad_width)
        self._passes = Passes(spark.sparkContext)
        self._routes: dict[str, frozenset[str]] = {}

    def stage(self, ranges: Sequence[OffsetRange], known: Mapping[str, Schema], folder: str) -> Staged:
        """Stage the records of ranges of one topic below ``folder``; ``known`` are the tables there are.

        Raises :class:`~connect.errors.DataError` that names the first bad record, unless ``errors.tolerance``
        is ``all``.
        """
        try:
            return self._stage(ranges, known, folder)
        except ConnectError:
            raise
        except Exception as error:
            raise self._spark_error(error) from error

    def _stage(self, ranges: Sequence[OffsetRange], known: Mapping[str, Schema], folder: str) -> Staged:
        topic = ranges[0].topic
        tables = self._tables_of(topic, known)
        if tables is not None:
            staged = self._write(ranges, tables, Mode.WRITE, f"{folder}/{topic}")
            if staged is not None:
                return staged
            logger.info("The records of topic %s have changed; looking through them for their schema.", topic)
        tables = self._survey(ranges, known)
        staged = self._write(ranges, tables, Mode.FINAL, f"{folder}/{topic}-surveyed")
        assert staged is not None
        return staged

    def _tables_of(self, topic: str, known: Mapping[str, Schema]) -> dict[str, Schema] | None:
        """The tables that the topic's records go to, with their schemas, if that is known without looking."""
        names = self._routes.get(topic) if self._transformed else frozenset({topic})
        if names is None:
            return None
        tables: dict[str, Schema] = {}
        for name in names:
            schema = known.get(name, self._config.first_schema)
            if schema is None:
                return None
            tables[name] = schema
        return tables

    # -- passes ----------------------------------------------------------------------------------------------

    def _survey(self, ranges: Sequence[OffsetRange], known: Mapping[str, Schema]) -> dict[str, Schema]:
        """The tables that the records go to, with schemas that hold all of them as far as any can."""
        topic = ranges[0].topic
        surveying = self._passes.begin(self._plan(topic, Mode.SURVEY))
        frame: Any = self._read(ranges).mapInArrow(surveying, "nothing int")
        self._run(lambda: frame.write.format("noop").mode("overwrite").save())
        reports = self._passes.reports
        self._check_rejections(reports)
        seen: dict[str, Schema] = {}
        for report in reports:
            for table, schema in report.seen.items():
                seen[table] = in_common(seen.get(table, _EMPTY), schema)
        first = self._config.first_schema or _EMPTY
        tables = {name: widen_where_possible(known.get(name, first), schema) for name, schema in seen.items()}
        self._check_tables(topic, tables)
        self._routes[topic] = frozenset(tables) | self._routes.get(topic, frozenset())
        return tables

    def _check_tables(self, topic: str, tables: Mapping[str, Schema]) -> None:
        for name, schema in tables.items():
            if not _TABLE_NAME.fullmatch(name):
                raise DataError(
                    f"A transformation sends records of topic {topic} to {name!r}, which cannot name a table: only "
                    "letters, digits, '.', '_' and '-' can."
                )
            if not schema.fields:
                raise DataError(
                    f"The records of topic {topic} have no field with a value that shows its type: declare their "
                    "schema with value.schema."
                )

    def _write(
        self, ranges: Sequence[OffsetRange], tables: Mapping[str, Schema], mode: Mode, folder: str
    ) -> Staged | None:
        """Write the rows of each table; ``None`` if rows were found that need another schema."""
        staged = Staged(tables=dict(tables))
        untyped: set[str] = set()
        rejected: list[Reports] = []
        for place, (name, schema) in enumerate(sorted(tables.items())):
            self._partitioner.check(schema)
            plan = self._plan(ranges[0].topic, mode)
            plan = replace(plan, tables=frozenset(tables), table=name, schema=schema, accounts=place == 0)
            where = f"{folder}/{name}"
            reports = self._write_table(ranges, plan, where)
            if any(report.grown for report in reports):
                return None
            self._check_rejections(reports)
            rejected.append(reports)
            untyped |= {path for report in reports for path in report.untyped}
            staged.moves += staged_moves(self._files, where, name, reports, self._names)
        for reports in rejected:
            _log_rejections(reports)
        if untyped:
            logger.warning(
                "Fields of topic %s that hold only empty arrays or objects have no column yet: %s",
                ranges[0].topic,
                ", ".join(sorted(untyped)),
            )
        return staged

    def _write_table(self, ranges: Sequence[OffsetRange], plan: DecodePlan, folder: str) -> Reports:
        assert plan.schema is not None
        writing = self._passes.begin(plan)
        columns = from_arrow_schema(table_type(plan.schema).columns)
        frame: Any = self._read(ranges).mapInArrow(writing, columns)
        writer = frame.write.option("compression", self._config.parquet_codec)
        if self._partitioner.columns:
            writer = writer.partitionBy(*self._partitioner.columns)
        self._run(lambda: writer.parquet((self._files.root / folder).as_uri()))
        return self._passes.reports

    def _check_rejections(self, reports: Reports) -> None:
        """Refuse the load for its first bad record, unless bad ones are left out."""
        rejections = reports.rejections()
        if rejections and not self._policy.tolerates_errors:
            raise DataError(
                f"Bad record in {rejections[0]}. Correct it at its source, or set errors.tolerance=all to leave "
                "such records out."
            )

    def _plan(self, topic: str, mode: Mode) -> DecodePlan:
        config = self._config
        return DecodePlan(topic, mode, self._props, config.behavior_on_null_values, config.store_kafka_keys)

    def _read(self, ranges: Sequence[OffsetRange]) -> DataFrame:
        whole = self._transformed or self._config.store_kafka_keys
        return read_ranges(self._spark, ranges, self._context.consumer_properties, whole=whole)

    def _run(self, job: Callable[[], object]) -> None:
        """Run a Spark job, and cancel it when the task is to stop."""
        with ThreadPoolExecutor(1) as thread:
            running = thread.submit(job)
            while not wait([running], timeout=_WAIT).done:
                if self._context.stopping():
                    self._spark.sparkContext.cancelAllJobs()
                    raise RetriableError(
                        "The load was given up because the task stops; its records are loaded when it starts."
                    )
            running.result()

    def _spark_error(self, error: Exception) -> ConnectError:
        if not self._java_runs():
            return ConnectError(
                "Spark's Java process has ended: it was killed, or had too little memory (spark.driver.memory). "
                "Nothing is lost; restart the task to go on."
            )
        text = str(error)
        if "failOnDataLoss" in text or "data may have been lost" in text:
            return ConnectError(
                "Kafka no longer has all of the records that were to be loaded: retention has removed some, or the "
                "topic was deleted and made again. Set the connector's offsets to where it is to go on "
                f"({root_cause(error)})."
            )
        return ConnectError(f"Spark failed to load the records: {root_cause(error)}")

    def _java_runs(self) -> bool:
        try:
            return bool(self._spark.version)
        except Exception:
            return False


def _log_rejections(reports: Reports) -> None:
    count = sum(report.rejected for report in reports)
    if not count:
        return
    read = sum(report.read for report in reports)
    first = "; ".join(map(str, reports.rejections()[:_TOLD]))
    logger.warning("%d of %d records are left out (errors.tolerance=all), the first: %s", count, read, first)
