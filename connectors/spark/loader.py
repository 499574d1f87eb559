"""One load of one topic: Spark reads the records, decodes them and writes their rows into the target."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.pandas.types import from_arrow_schema

from connect.bulk import BulkSinkTaskContext, OffsetRange
from connect.chain.tolerance import ErrorPolicy, Failure
from connect.data import Schema, TopicPartition
from connect.errors import ConnectError, DataError, RetriableError
from connect.offset_set import OffsetSet
from connectors.spark.config import SparkSinkConfig
from connectors.spark.decoding.decoder import DecodePlan, Mode
from connectors.spark.decoding.executor import Passes
from connectors.spark.decoding.failures import FAILURE_ROWS, failures_of
from connectors.spark.decoding.placement import FOLDER_COLUMN, Placement
from connectors.spark.decoding.plugins import chain_properties, has_transformations
from connectors.spark.decoding.report import LoadStop, Rejection, Reports
from connectors.spark.failure import missing_right, root_cause
from connectors.spark.progress import LoadProgress
from connectors.spark.reader import read_ranges
from connectors.spark.schema import in_common
from connectors.spark.sql.output import QueryOutput
from connectors.spark.sql.query import Query, Result
from connectors.spark.types import table_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Loaded", "Loader", "Output"]

logger = logging.getLogger(__name__)

_TABLE_NAME: Final = re.compile(r"[A-Za-z0-9._-]+")
_EMPTY: Final = Schema.struct({})
_WAIT: Final = 0.2
_TOLD: Final = 3
_TRIES: Final = 5
_PORTION: Final = 10_000
_BYTES: Final = 32 * 1024 * 1024
_END: Final = 2**63 - 1

T = TypeVar("T")


class Output(Protocol):
    """Takes the rows of a load of one topic, table by table."""

    @property
    def commits(self) -> bool:
        """Whether :meth:`write` shows the rows to readers at once.

        Then Spark's job must fail at the first record that forbids the load; otherwise the load is judged by the
        reports of a job that has ended.
        """

    def write(self, frame: DataFrame, table: str, schema: Schema, attempt: int) -> None:
        """Run the Spark job that writes the rows of a table, whose schema is to be ``schema``.

        ``attempt`` is 2 when rows of the first one needed another schema: what that has written does not count.
        """


@dataclass(frozen=True, slots=True)
class Loaded:
    """A load of one topic: the schemas of its tables, what the executors reported of each, and which attempt counts.

    With a query, the tables hold ``results``, and ``records`` are the schemas of the rows that these were made from.
    """

    tables: Mapping[str, Schema]
    reports: Mapping[str, Reports]
    attempt: int
    records: Mapping[str, Schema] = field(default_factory=dict)
    results: Mapping[str, Result] = field(default_factory=dict)


class Loader:
    """Loads the records of offset ranges with the Spark session of a connector."""

    def __init__(self, spark: SparkSession, config: SparkSinkConfig, context: BulkSinkTaskContext) -> None:
        self._spark = spark
        self._config = config
        self._context = context
        self._props = chain_properties(context.connector_properties)
        tolerance = context.connector_properties.get("errors.tolerance", "none")
        self._policy = ErrorPolicy(tolerates_errors=tolerance.lower() == "all")
        self._transformed = has_transformations(self._props)
        self._passes = Passes(spark.sparkContext)
        self.progress = LoadProgress(spark, context)
        self._routes: dict[str, frozenset[str]] = {}
        self._query = Query(spark, config, config.evolution) if config.has_query else None
        self._records: dict[str, Schema] = {}
        self._placement: Placement | None = None

    def load(
        self,
        ranges: Sequence[OffsetRange],
        known: Mapping[str, Schema],
        output: Output,
        placement: Placement | None = None,
        records: Mapping[str, Schema] | None = None,
    ) -> Loaded:
        """Write the records of ranges of one topic to ``output``; ``known`` are the tables there are.

        With a ``placement`` the frames that are written have the column of the folders besides. ``records`` are the
        schemas of the rows before the query, as a target has kept them for a connector that has one; a target that
        keeps none has the first load of a driver look through its records for them. Raises
        :class:`~connect.errors.DataError` that names the first bad record, unless ``errors.tolerance`` is ``all``.
        """
        try:
            self._placement = placement if self._query is None else None
            if self._query is None:
                return self._load(ranges, known, output)
            return self._load_result(self._query, ranges, known, output, records or {})
        except ConnectError:
            raise
        except Exception as error:
            raise self._spark_error(error) from error

    def _load_result(
        self,
        query: Query,
        ranges: Sequence[OffsetRange],
        known: Mapping[str, Schema],
        output: Output,
        records: Mapping[str, Schema],
    ) -> Loaded:
        """Write what the query makes of the rows; these have schemas of their own."""
        answering = QueryOutput(query, known, output)
        loaded = self._load(ranges, {**records, **self._records}, answering)
        self._records |= loaded.tables
        tables = {table: result.schema for table, result in answering.results.items()}
        return replace(loaded, tables=tables, records=loaded.tables, results=answering.results)

    def _load(self, ranges: Sequence[OffsetRange], known: Mapping[str, Schema], output: Output) -> Loaded:
        topic = ranges[0].topic
        tables, mode, attempt = self._tables_of(topic, known), Mode.WRITE, 1
        given_up: Mapping[int, OffsetSet] = {}
        for _ in range(_TRIES):
            if tables is None:
                tables, mode, attempt = self._survey(ranges, known), Mode.FINAL, 2
            try:
                loaded = self._write(ranges, tables, mode, output, attempt, given_up)
            except LoadStop as stop:
                # The target shows rows at once: what is left out has to be known, and told, before they are written.
                self._refuse([stop.rejection] if stop.rejection else [], ranges, tables)
                loaded = self._write(ranges, tables, mode, _Nowhere(), attempt, given_up)
                if loaded is not None:
                    given_up = self._give_up(loaded, ranges)
                    continue
            if loaded is not None:
                if not output.commits:
                    self._give_up(loaded, ranges)
                return loaded
            logger.info("The records of topic %s have changed; looking through them for their schema.", topic)
            tables = None
        raise ConnectError(
            f"The records of topic {topic} are bad in another way each time they are read: a converter or "
            "transformation does not always give the same answer. Nothing of the load is committed."
        )

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
        self.progress.stage(f"looking for the schema of {topic}")
        surveying = self._passes.begin(self._plan(topic, Mode.SURVEY))
        frame: Any = self._read(ranges).mapInArrow(surveying, "nothing int")
        self._run(lambda: frame.write.format("noop").mode("overwrite").save())
        reports = self._passes.reports
        self._refuse(reports.rejections(), ranges, {})
        seen: dict[str, Schema] = {}
        evolution = self._config.evolution
        for report in reports:
            for table, schema in report.seen.items():
                seen[table] = in_common(seen.get(table, _EMPTY), schema, branches=evolution.branches)
        first = self._config.first_schema or _EMPTY
        tables = {name: evolution.grown(known.get(name, first), schema) for name, schema in seen.items()}
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
        self,
        ranges: Sequence[OffsetRange],
        tables: Mapping[str, Schema],
        mode: Mode,
        output: Output,
        attempt: int,
        given_up: Mapping[int, OffsetSet],
    ) -> Loaded | None:
        """Write the rows of each table; ``None`` if rows were found that need another schema.

        Raises :class:`LoadStop` if the output commits and there is a bad record that is not ``given_up``.
        """
        found: dict[str, Reports] = {}
        for place, (name, schema) in enumerate(sorted(tables.items())):
            plan = self._plan(ranges[0].topic, mode)
            plan = replace(plan, tables=frozenset(tables), table=name, schema=schema, accounts=place == 0)
            plan = replace(plan, stops=output.commits, left_out=given_up)
            reports = self._write_table(ranges, plan, output, attempt)
            if reports is None or any(report.grown for report in reports):
                return None
            self._refuse(reports.rejections(), ranges, tables)
            found[name] = reports
        _log_unknown(ranges[0].topic, {path for reports in found.values() for item in reports for path in item.unknown})
        for reports in found.values():
            self.progress.wrote(rows=sum(report.written for report in reports))
        _log_untyped(ranges[0].topic, {path for reports in found.values() for item in reports for path in item.untyped})
        return Loaded(tables, found, attempt)

    def _write_table(
        self, ranges: Sequence[OffsetRange], plan: DecodePlan, output: Output, attempt: int
    ) -> Reports | None:
        assert plan.schema is not None
        self.progress.stage(f"writing {plan.table}")
        schema = plan.schema
        writing = self._passes.begin(plan)
        columns = table_type(schema).columns
        if plan.placement is not None:
            columns = columns.append(pa.field(FOLDER_COLUMN, pa.string()))
        timed = plan.placement is not None and plan.placement.reads_timestamps
        frame: Any = self._read(ranges, timed=timed).mapInArrow(writing, from_arrow_schema(columns))
        try:
            self._run(lambda: output.write(frame, plan.table, schema, attempt))
        except Exception as error:
            stop = LoadStop.found_in(error)
            if stop is None:
                raise
            if stop.rejection is not None:
                raise stop from None
            return None
        return self._passes.reports

    # -- bad records -----------------------------------------------------------------------------------------

    def _refuse(
        self,
        rejections: Sequence[Rejection],
        ranges: Sequence[OffsetRange],
        tables: Mapping[str, Schema],
    ) -> None:
        """Refuse the load for its first bad record, unless bad ones are left out."""
        if not rejections or self._policy.tolerates_errors:
            return
        first = rejections[0]
        bad = {TopicPartition(first.topic, first.partition): OffsetSet.of([first.offset])}
        refusal = DataError(
            f"Bad record in {first}. Correct it at its source, or set errors.tolerance=all to leave such records out."
        )
        try:
            self._context.leave_out(bad, partial(self._failures, ranges, tables))
        except RetriableError:
            raise
        except ConnectError as error:
            raise refusal from error
        raise refusal

    def _give_up(self, loaded: Loaded, ranges: Sequence[OffsetRange]) -> Mapping[int, OffsetSet]:
        """Leave the bad records of a load out: log, dead letter queue and tolerance have them when this returns."""
        topic = ranges[0].topic
        bad: dict[int, OffsetSet] = {}
        for reports in loaded.reports.values():
            for partition, offsets in reports.rejected.items():
                bad[partition] = bad.get(partition, OffsetSet()) | offsets
        if bad:
            self.progress.stage(f"telling of bad records of {topic}")
            _log_rejections(loaded, bad)
            named = {TopicPartition(topic, partition): offsets for partition, offsets in sorted(bad.items())}
            self._context.leave_out(named, partial(self._failures, ranges, loaded.tables))
        return bad

    def _failures(
        self,
        ranges: Sequence[OffsetRange],
        tables: Mapping[str, Schema],
        asked: Mapping[TopicPartition, OffsetSet],
    ) -> Iterator[Failure]:
        """What is wrong with each of these records; so many at a time as memory allows (invariant I9)."""
        left = {tp.partition: offsets for tp, offsets in asked.items()}
        topic = ranges[0].topic
        while left:
            portion = {partition: offsets.least(_PORTION // len(left) + 1) for partition, offsets in left.items()}
            rows = self._examined(ranges, tables, portion)
            yield from failures_of(topic, rows)
            for partition in portion:
                told = rows.filter(pc.equal(rows["partition"], pa.scalar(partition, pa.int32())))["offset"]
                if not len(told):
                    raise ConnectError(
                        f"Bad records of topic {topic}, partition {partition} are no longer there to be told: "
                        "retention or compaction has removed them meanwhile. Nothing of the load is committed."
                    )
                left[partition] = left[partition].between(told[-1].as_py() + 1, _END)
            left = {partition: offsets for partition, offsets in left.items() if len(offsets)}

    def _examined(
        self,
        ranges: Sequence[OffsetRange],
        tables: Mapping[str, Schema],
        offsets: Mapping[int, OffsetSet],
    ) -> pa.Table:
        """Rows that tell of some records, of each partition in the order of its offsets."""
        spans = {partition: list(asked.spans()) for partition, asked in offsets.items()}
        asked = [
            replace(item, first=spans[item.partition][0][0], end=spans[item.partition][-1][1])
            for item in ranges
            if item.partition in spans
        ]
        plan = self._plan(ranges[0].topic, Mode.FINAL)
        examining = self._passes.examine(plan, tables, offsets, _BYTES // len(asked))
        frame: Any = read_ranges(self._spark, asked, self._context.consumer_properties, whole=True, split=False)
        frame = frame.mapInArrow(examining, from_arrow_schema(FAILURE_ROWS))
        rows: pa.Table = self._run(frame.toArrow)
        return rows

    def _plan(self, topic: str, mode: Mode) -> DecodePlan:
        config = self._config
        plan = DecodePlan(
            topic,
            mode,
            self._props,
            config.behavior_on_null_values,
            config.beside,
            config.evolution,
            config.field_name_adjustment_mode,
        )
        return replace(plan, changes=config.changes, placement=self._placement)

    def _read(self, ranges: Sequence[OffsetRange], *, timed: bool = False) -> DataFrame:
        whole = self._transformed or self._config.beside.need_whole_records or self._config.changes is not None
        return read_ranges(self._spark, ranges, self._context.consumer_properties, whole=whole, timed=timed)

    def _run(self, job: Callable[[], T]) -> T:
        """Run a Spark job, and cancel it when the task is to stop."""
        with ThreadPoolExecutor(1) as thread:
            running = thread.submit(job)
            while not wait([running], timeout=_WAIT).done:
                self.progress.look()
                if self._context.stopping():
                    self._spark.sparkContext.cancelAllJobs()
                    raise RetriableError(
                        "The load was given up because the task stops; its records are loaded when it starts."
                    )
            return running.result()

    @staticmethod
    def _spark_error(error: Exception) -> ConnectError:
        text = str(error)
        if "failOnDataLoss" in text or "data may have been lost" in text:
            return ConnectError(
                "Kafka no longer has all of the records that were to be loaded: retention has removed some, or the "
                "topic was deleted and made again. Set the connector's offsets to where it is to go on "
                f"({root_cause(error)})."
            )
        cause = root_cause(error)
        if (remedy := missing_right(cause)) is not None:
            cause = f"{cause}. {remedy}"
        return ConnectError(f"Spark failed to load the records: {cause}")


def _log_unknown(topic: str, paths: set[str]) -> None:
    if paths:
        logger.warning(
            "Fields of topic %s that have no column are left out (schema.compatibility=FORWARD): %s",
            topic,
            ", ".join(sorted(paths)),
        )


def _log_untyped(topic: str, paths: set[str]) -> None:
    if paths:
        logger.warning(
            "Fields of topic %s that hold only empty arrays or objects have no column yet: %s",
            topic,
            ", ".join(sorted(paths)),
        )


def _log_rejections(loaded: Loaded, bad: Mapping[int, OffsetSet]) -> None:
    every = [rejection for reports in loaded.reports.values() for rejection in reports.rejections()]
    read = max(sum(report.read for report in reports) for reports in loaded.reports.values())
    first = "; ".join(map(str, every[:_TOLD]))
    count = sum(map(len, bad.values()))
    logger.warning("%d of %d records are left out (errors.tolerance=all), the first: %s", count, read, first)


class _Nowhere:
    """An :class:`Output` that keeps no rows: what counts are the reports."""

    commits = False

    def write(self, frame: DataFrame, table: str, schema: Schema, attempt: int) -> None:  # noqa: ARG002
        """Decode the rows."""
        frame.write.format("noop").mode("overwrite").save()
