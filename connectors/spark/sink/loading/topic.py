"""The load of one topic, step by step: the passes over its records, and the decisions based on their reports."""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema

from connect.bulk import BulkSinkTaskContext, OffsetRange
from connect.data import Field, Schema
from connect.errors import ConnectError, DataError, RetriableError
from connect.internals.chain.tolerance import ErrorPolicy
from connect.offset_set import OffsetSet
from connectors.spark.arrow_types import table_type
from connectors.spark.cluster.code import is_local
from connectors.spark.decoding.decoder import DecodePlan, Mode
from connectors.spark.decoding.executor import Pass, Passes, survey_splits
from connectors.spark.decoding.failures import FAILURE_ROWS
from connectors.spark.decoding.kafka_reader import KafkaReader
from connectors.spark.decoding.part_files import PartFiles
from connectors.spark.decoding.placement import FOLDER_COLUMN
from connectors.spark.decoding.plugins import chain_properties, frame_headers, has_transformations
from connectors.spark.decoding.raw_batch import METADATA
from connectors.spark.decoding.report import MARKS, LoadStop, Reports
from connectors.spark.decoding.row_limits import RowLimits
from connectors.spark.jobs.jobs import Jobs, Work
from connectors.spark.jobs.progress import LoadProgress
from connectors.spark.schema import in_common
from connectors.spark.sink.config import SparkSinkConfig
from connectors.spark.sink.loading.bad_records import BadRecords
from connectors.spark.sink.loading.request import Loaded, LoadRequest, Output, split_numbers, tasks_for
from connectors.spark.sink.sql.query import QueryOutput
from connectors.spark.sink.sql.window_output import WindowOutput
from connectors.spark.sink.tables.upsert import with_key_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from connectors.spark.sink.sql.query import Query

__all__ = ["LoadSession", "TopicLoad", "TopicMemory"]

logger = logging.getLogger(__name__)

_TABLE_NAME: Final = re.compile(r"[A-Za-z0-9._-]+")
_EMPTY: Final = Schema.struct({})
_METADATA: Final = "_sluice_metadata"
_TRIES: Final = 5
_SAMPLE: Final = 1_000
"""How many records at the beginning of a range are surveyed for a guess, and for how many ranges at most. With a local
master, loads no larger than that are always surveyed in the driver.
"""
_SAMPLED: Final = 16
_AT_A_TIME: Final = 10_000
"""How many records are read at a time, unless the consumer's properties say otherwise."""
_WORTH: Final = 10
"""A guess is worthwhile if a load has at least this many times as many records as the sample: smaller loads are
surveyed just as quickly.
"""


class LoadSession:
    """What the loads of a connector's topics share: the Spark session, the configuration, the progress report."""

    def __init__(
        self,
        spark: SparkSession,
        config: SparkSinkConfig,
        context: BulkSinkTaskContext,
        progress: LoadProgress,
        width: int,
        packages: Sequence[str],
    ) -> None:
        self.spark = spark
        self.config = config
        self.context = context
        self.progress = progress
        self.jobs = Jobs(spark, context, progress, width, packages)
        self.props = chain_properties(context.connector_properties)
        tolerance = context.connector_properties.get("errors.tolerance", "none")
        self.policy = ErrorPolicy(tolerates_errors=tolerance.lower() == "all")
        self.transformed = has_transformations(self.props)
        self.frame_headers = frame_headers(self.props)
        self.passes = Passes(spark.sparkContext)
        self.is_local = is_local(str(spark.sparkContext.master))
        # Several threads survey topics, but user plugins are written for a single thread.
        self.surveying = Lock()

    def reader(self, splits: Sequence[OffsetRange], *, timed: bool = False, whole: bool = False) -> KafkaReader:
        """Return a reader for splits of one topic, with the parts of the records that the chain and the Kafka columns
        need.
        """
        whole = (
            whole or self.transformed or self.config.kafka_columns.need_whole_records or self.config.changes is not None
        )
        most = int(self.context.consumer_properties.get("max.poll.records", _AT_A_TIME))
        return KafkaReader(splits, self.context.consumer_settings, whole, timed, most, self.frame_headers)

    def examine(
        self,
        plan: DecodePlan,
        ranges: Sequence[OffsetRange],
        tables: Mapping[str, Schema],
        bad: Mapping[int, OffsetSet],
        budget: int,
    ) -> pa.Table:
        """Return rows that describe what is wrong with bad records; all other work waits for this."""
        examining = self.passes.examine(plan, self.reader(ranges, whole=True), tables, bad, budget)
        frame: Any = split_numbers(self.spark, len(ranges))
        rows: pa.Table = self.jobs.run(frame.mapInArrow(examining, from_arrow_schema(FAILURE_ROWS)).toArrow)
        return rows


@dataclass(slots=True)
class TopicMemory:
    """What a driver has learned about a topic in its loads."""

    tables: frozenset[str] | None = None
    """The tables to which transformations send the topic's records, as far as they are known."""
    records: Mapping[str, Schema] = field(default_factory=dict)
    """The schemas of the topic's rows before the query, by table."""


class TopicLoad:
    """The load of one request. With a query, its output receives the query's result."""

    def __init__(
        self, session: LoadSession, request: LoadRequest, memory: TopicMemory, query: Query | None, attempt: int
    ) -> None:
        self._session = session
        of_records = replace(request, placement=None, files=None, check=None, limits=None)
        self._request = request if query is None else of_records
        self._memory = memory
        self._query = query
        self._attempt = attempt
        self._refused: Mapping[str, str] = {}
        self._topic = request.topic
        self._splits = request.splits or request.ranges
        self._bad = BadRecords(request, session.context, session.policy, self._examine)

    def steps(self) -> Work[Loaded]:
        """Write the records; bad ones are only noted, unless they must be given up before others are written.

        Raises :class:`~connect.errors.DataError` naming the first bad record, unless ``errors.tolerance`` is ``all``.
        """
        request, query = self._request, self._query
        if query is None:
            loaded = yield from self._steps(request.known, request.output)
        else:
            loaded = yield from self._querying(query)
        self._session.progress.loaded(self._topic)
        return loaded

    def give_up(self, loaded: Loaded) -> None:
        """Leave out the bad records that have not been given up yet."""
        if not self._request.output.commits:
            self._give_up(loaded)

    def _querying(self, query: Query) -> Work[Loaded]:
        """Write the result of the query; the rows before it have their own schemas."""
        request, memory = self._request, self._memory
        known = {**memory.records, **request.records}
        if request.windows is not None:
            output = WindowOutput(self._session.spark, query, request, request.windows)
            loaded = yield from self._holding(output, known)
            results = output.results
        else:
            answering = QueryOutput(query, request.known, request.output)
            loaded = replace((yield from self._steps(known, answering)), results=answering.results)
            results = answering.results
        memory.records = {**memory.records, **loaded.tables}
        tables = {table: result.schema for table, result in results.items()}
        return replace(loaded, tables=tables, records=loaded.tables)

    def _holding(self, output: WindowOutput, known: Mapping[str, Schema]) -> Work[Loaded]:
        """Hold the rows, and write the query's result for those in complete windows."""
        loaded = yield from self._steps(known, output)
        late: dict[int, OffsetSet] = {}
        for table, schema in output.refused.items():
            for partition, offsets in (yield from self._late_offsets(output, table, schema, loaded)).items():
                late[partition] = late.get(partition, OffsetSet()) | offsets
        loaded = replace(loaded, late=late)
        if self._request.output.commits:
            self._give_up(loaded)
        self._session.progress.stage(f"looking for complete windows of {self._topic}")
        yield lambda: output.finish(loaded)
        return replace(loaded, results=output.results, held=output.held)

    def _late_offsets(
        self, output: WindowOutput, table: str, schema: Schema, loaded: Loaded
    ) -> Work[Mapping[int, OffsetSet]]:
        """Read the records of a table again to find the offsets of late ones."""
        session, kafka_columns = self._session, self._session.config.kafka_columns
        session.progress.stage(f"looking for late records of {self._topic}")
        if kafka_columns.metadata is None:
            kafka_columns = replace(kafka_columns, metadata=_METADATA)
            schema = Schema.struct([*schema.fields, Field(_METADATA, METADATA, len(schema.fields))])
        assert kafka_columns.metadata is not None
        metadata, fields = kafka_columns.metadata, from_arrow_schema(table_type(schema).columns)
        plan = replace(self._plan(Mode.FINAL), tables=frozenset(loaded.tables), table=table, schema=schema)
        plan = replace(plan, kafka_columns=kafka_columns)
        looking = session.passes.begin(plan, self._reader(plan, whole=True))
        try:
            found: Mapping[int, OffsetSet] = yield lambda: output.late_offsets(
                self._rows(looking, fields), table, metadata
            )
        finally:
            session.passes.end(looking)
        return found

    def _steps(self, known: Mapping[str, Schema], output: Output) -> Work[Loaded]:
        """Write the records to ``output``; ``known`` are the existing tables for the rows it takes."""
        tables, mode, attempt = self._tables_of(known), Mode.WRITE, self._attempt
        if tables is None and not output.commits and self._session.config.changes is None:
            tables, mode = (yield from self._guess(known)), Mode.GUESS
        # What was written with a guess does not count, nor do the columns that the output added to its tables for it.
        before = _Without(known, tables or {}) if mode is Mode.GUESS else known
        given_up: Mapping[int, OffsetSet] = {}
        for _ in range(_TRIES):
            if tables is None:
                reports = yield from self._survey()
                surveyed, mode = self._surveyed(before, reports), Mode.FINAL
                self._refused = self._refusals(before, surveyed)
                tables = {name: schema for name, schema in surveyed.items() if name not in self._refused}
                attempt = self._attempt + 1
                if not tables:
                    if self._refused:
                        reports = yield from self._survey()
                        self._bad.refuse(reports.rejections(), {})
                    return self._without_rows(reports, output, attempt)
            try:
                loaded = yield from self._write(tables, mode, output, attempt, given_up)
            except LoadStop as stop:
                # The target shows rows at once, so what is left out has to be known and reported before they are
                # written.
                self._bad.refuse([stop.rejection] if stop.rejection else [], tables)
                loaded = yield from self._write(tables, mode, _Nowhere(), attempt, given_up)
                if loaded is not None:
                    given_up = self._give_up(loaded)
                    continue
            if loaded is not None:
                return loaded
            logger.info("Records of topic %s differ from earlier ones; inspecting all of them first.", self._topic)
            tables = None
        raise ConnectError(
            f"Each time the records of topic {self._topic} are read, different ones are bad, so a converter or "
            "transformation does not always give the same result. Make it deterministic. Nothing of the load "
            "is committed."
        )

    def _without_rows(self, reports: Reports, output: Output, attempt: int) -> Loaded:
        """Account for records none of which is a row (invariant I4): no pass that writes reports them."""
        loaded = Loaded({}, {self._topic: reports}, attempt)
        if output.commits:
            self._give_up(loaded)
        return loaded

    def _tables_of(self, known: Mapping[str, Schema]) -> dict[str, Schema] | None:
        """Return the tables that the topic's records go to, with their schemas, if known without reading the
        records.
        """
        names = self._memory.tables if self._session.transformed else frozenset({self._topic})
        if not names:
            return None
        tables: dict[str, Schema] = {}
        for name in names:
            schema = known.get(name, self._session.config.first_schema)
            if schema is None:
                return None
            tables[name] = schema
        return tables

    # -- passes ----------------------------------------------------------------------------------------------

    def _guess(self, known: Mapping[str, Schema]) -> Work[dict[str, Schema] | None]:
        """Guess the tables from the first records of a large load, if none of its tables exists yet.

        Most topics have records of one kind, which are then read only once. If the guess is wrong, all records are
        surveyed.
        """
        sampled = [
            replace(item, end=min(item.end, item.first + _SAMPLE))
            for item in self._splits[:: -(-len(self._splits) // _SAMPLED)]
        ]
        if sum(map(len, self._splits)) < _WORTH * sum(map(len, sampled)):
            return None
        plan, reader = self._plan(Mode.SURVEY), self._session.reader(sampled)
        self._session.progress.stage(f"looking for the schema of {self._topic}")
        reports = yield from self._survey_here(plan, reader)
        tables = self._surveyed(known, reports)
        if not tables or any(name in known for name in tables) or self._refusals(known, tables):
            return None
        return tables

    def _refusals(self, known: Mapping[str, Schema], tables: Mapping[str, Schema]) -> dict[str, str]:
        """Return why there cannot be some of the tables, which do not exist yet: all of their records are bad."""
        found: dict[str, str] = {}
        for name, schema in tables.items():
            if name in known:
                continue
            try:
                _check_table(name, schema)
                if self._request.check is not None:
                    self._request.check(name, schema)
            except DataError as error:
                found[name] = str(error)
        return found

    def _survey_here(self, plan: DecodePlan, reader: KafkaReader) -> Work[Reports]:
        """Survey a few records without a Spark job, which would take longer to plan than the records take to read."""

        def survey() -> Reports:
            with self._session.surveying:
                if self._session.jobs.ending:
                    raise RetriableError(f"The load was cancelled before topic {self._topic} was inspected.")
                return survey_splits(plan, reader)

        reports: Reports = yield survey
        return reports

    def _survey(self) -> Work[Reports]:
        """Inspect all the records, without writing anything."""
        session = self._session
        session.progress.stage(f"looking for the schema of {self._topic}")
        plan = self._plan(Mode.SURVEY)
        is_small = sum(map(len, self._splits)) <= _SAMPLE * _SAMPLED and len(self._splits) <= _SAMPLED
        if is_small and session.is_local:
            # On a cluster, plugins run in executors, where a plugin that crashes or uses too much memory does not end
            # the driver.
            return (yield from self._survey_here(plan, self._reader(plan)))
        surveying = session.passes.begin(plan, self._reader(plan))
        try:
            yield lambda: _written_nowhere(self._rows(surveying, from_arrow_schema(MARKS), tasks_for(self._splits)))
        finally:
            reports = session.passes.end(surveying)
        return reports

    def _surveyed(self, known: Mapping[str, Schema], reports: Reports) -> dict[str, Schema]:
        """Return the tables of the surveyed records, with schemas that hold them all as far as possible."""
        self._bad.refuse(reports.rejections(), {})
        evolution = self._session.config.evolution
        seen: dict[str, Schema] = {}
        for report in reports:
            for table, schema in report.seen.items():
                seen[table] = in_common(seen.get(table, _EMPTY), schema, branches=evolution.branches)
        first = self._session.config.first_schema or _EMPTY
        tables = {
            name: with_key_of(known.get(name, first), evolution.grown(known.get(name, first), schema))
            for name, schema in seen.items()
        }
        self._memory.tables = frozenset(tables) | (self._memory.tables or frozenset())
        return tables

    def _write(
        self,
        tables: Mapping[str, Schema],
        mode: Mode,
        output: Output,
        attempt: int,
        given_up: Mapping[int, OffsetSet],
    ) -> Work[Loaded | None]:
        """Write the rows of each table; return ``None`` if rows were found that need another schema.

        Raises :class:`LoadStop` if the output commits and there is a bad record that is not in ``given_up``.
        """
        found: dict[str, Reports] = {}
        for place, (name, schema) in enumerate(sorted(tables.items())):
            plan = replace(self._plan(mode), tables=frozenset(tables), table=name, schema=schema, accounts=place == 0)
            plan = replace(plan, stops=output.commits, left_out=given_up, limits=self._limits({name: schema}))
            reports = yield from self._write_table(plan, schema, output, attempt)
            if reports is None or any(report.grown for report in reports):
                return None
            if mode is Mode.GUESS and reports.rejections():
                return None
            self._bad.refuse(reports.rejections(), tables)
            found[name] = reports
        _log_unknown(self._topic, {path for reports in found.values() for item in reports for path in item.unknown})
        _log_untyped(self._topic, {path for reports in found.values() for item in reports for path in item.untyped})
        for reports in found.values():
            self._session.progress.wrote(rows=sum(report.written for report in reports))
        return Loaded(tables, found, attempt)

    def _write_table(self, plan: DecodePlan, schema: Schema, output: Output, attempt: int) -> Work[Reports | None]:
        session = self._session
        session.progress.stage(f"writing {plan.table}")
        columns = _columns(plan, schema)
        files: PartFiles | None = None
        if (make := self._request.files) is not None:
            files = yield lambda: make(plan.table, schema, attempt)
        fields = from_arrow_schema(columns if files is None else MARKS)
        writing = session.passes.begin(plan, self._reader(plan), files)
        try:
            if files is not None:
                yield lambda: _written_nowhere(self._rows(writing, fields, tasks_for(self._splits)))
            else:
                yield lambda: output.write(self._rows(writing, fields), plan.table, schema, attempt)
        except Exception as error:
            stop = LoadStop.found_in(error)
            if stop is None:
                raise
            if stop.rejection is not None:
                raise stop from None
            return None
        finally:
            reports = session.passes.end(writing)
        return reports

    def _reader(self, plan: DecodePlan, *, whole: bool = False) -> KafkaReader:
        timed = plan.placement is not None and plan.placement.reads_timestamps
        return self._session.reader(self._splits, timed=timed, whole=whole)

    def _rows(self, running: Pass, fields: Any, tasks: int | None = None) -> DataFrame:
        """Return the output of a pass as a frame with these columns, computed by ``tasks`` tasks, or by one for each
        split.
        """
        numbers: Any = split_numbers(self._session.spark, len(self._splits), tasks)
        rows: DataFrame = numbers.mapInArrow(running.function, fields)
        return rows

    # -- bad records -----------------------------------------------------------------------------------------

    def _give_up(self, loaded: Loaded) -> Mapping[int, OffsetSet]:
        if loaded.late or any(reports.rejected for reports in loaded.reports.values()):
            self._session.progress.stage(f"telling of bad records of {self._topic}")
        return self._bad.give_up(loaded)

    def _examine(
        self, ranges: Sequence[OffsetRange], tables: Mapping[str, Schema], bad: Mapping[int, OffsetSet], budget: int
    ) -> pa.Table:
        plan = replace(self._plan(Mode.FINAL), limits=self._limits(tables))
        return self._session.examine(plan, ranges, tables, bad, budget)

    def _limits(self, tables: Mapping[str, Schema]) -> dict[str, RowLimits]:
        """Return what the rows of these tables may not have."""
        if self._request.limits is None:
            return {}
        found = {name: self._request.limits(name, schema) for name, schema in tables.items()}
        return {name: limits for name, limits in found.items() if limits is not None}

    def _plan(self, mode: Mode) -> DecodePlan:
        config = self._session.config
        plan = DecodePlan(
            self._topic,
            mode,
            self._session.props,
            config.behavior_on_null_values,
            config.kafka_columns,
            config.evolution,
            config.field_name_adjustment_mode,
        )
        return replace(plan, changes=config.changes, placement=self._request.placement, refused=self._refused)


def _columns(plan: DecodePlan, schema: Schema) -> pa.Schema:
    """Return the columns of the rows of a pass."""
    columns = table_type(schema).columns
    if plan.placement is None:
        return columns
    return columns.append(pa.field(FOLDER_COLUMN, pa.string()))


def _check_table(name: str, schema: Schema) -> None:
    if not _TABLE_NAME.fullmatch(name):
        raise DataError(
            f"A transformation sends the record to {name!r}, which is not a valid table name: use only letters, "
            "digits, '.', '_' and '-'."
        )
    if not schema.fields:
        raise DataError(
            "No field of the records has a value that shows its type: declare their schema with value.schema."
        )


def _log_unknown(topic: str, paths: set[str]) -> None:
    if paths:
        logger.warning(
            "Leaving out fields of topic %s that have no column, because the tables are not to change "
            "(schema.compatibility=FORWARD, iceberg.tables.evolve-schema-enabled=false): %s",
            topic,
            ", ".join(sorted(paths)),
        )


def _log_untyped(topic: str, paths: set[str]) -> None:
    if paths:
        logger.warning(
            "Fields of topic %s that hold only empty arrays or objects do not have a column yet: %s",
            topic,
            ", ".join(sorted(paths)),
        )


def _written_nowhere(frame: DataFrame) -> None:
    """Decode the rows for the sake of their reports alone."""
    frame.write.format("noop").mode("overwrite").save()


class _Without(Mapping[str, Schema]):
    """The existing tables without some of them."""

    def __init__(self, known: Mapping[str, Schema], left_out: Collection[str]) -> None:
        self._known = known
        self._left_out = frozenset(left_out)

    def __getitem__(self, name: str) -> Schema:
        if name in self._left_out:
            raise KeyError(name)
        return self._known[name]

    def __iter__(self) -> Iterator[str]:
        return (name for name in self._known if name not in self._left_out)

    def __len__(self) -> int:
        return sum(1 for _ in self)


class _Nowhere:
    """An :class:`Output` that discards rows; only the reports count."""

    commits = False

    def write(self, frame: DataFrame, table: str, schema: Schema, attempt: int) -> None:  # noqa: ARG002
        """Decode the rows."""
        _written_nowhere(frame)
