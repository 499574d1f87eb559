"""Delta tables as a target: a connector's offsets are in the logs of its tables."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING

from connect.bulk import OffsetRange
from connect.data import Schema, TopicPartition
from connect.errors import ConnectError, SchemaError
from connect.sink import CompactedTable
from connectors.spark.decoding.changes import ChangePlan, key_columns
from connectors.spark.decoding.plugins import has_transformations
from connectors.spark.decoding.row_limits import RowLimits
from connectors.spark.delta.log import table_names
from connectors.spark.folder_fields import FolderField
from connectors.spark.folders import shown_by_folders
from connectors.spark.sink.config import SparkSinkConfig
from connectors.spark.sink.delta.operations import compact_table, merge_changes
from connectors.spark.sink.delta.positions import latest_ids
from connectors.spark.sink.delta.table import DeltaTable
from connectors.spark.sink.loading.request import LoadRequest
from connectors.spark.sink.sql.windows import lost_query
from connectors.spark.sink.tables.held_rows import NO_STATE, HeldRows, TopicWindows
from connectors.spark.sink.tables.upsert import last_changes, with_change, without_change
from connectors.spark.sink.target import TargetContents
from connectors.spark.stores.factory import open_store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from connectors.spark.jobs.progress import LoadProgress
    from connectors.spark.sink.loading.loader import Loader

__all__ = ["DeltaTarget"]


class DeltaTarget:
    """The Delta tables of a connector, one folder each; a :class:`~connectors.spark.sink.target.Target`.

    If transformations may route the records of a topic to several tables, a load is committed in each of them, and
    finally recorded as complete in one of them for all. If a load was interrupted, some tables are ahead of the others
    and have their part of its records: the same ranges are loaded again, but only into the others.
    """

    packages: Sequence[str] = ()
    """Spark writes the files."""

    def __init__(self, config: SparkSinkConfig, connector: str, spark: Callable[[], SparkSession]) -> None:
        self._config = config
        self._connector = connector
        self._session = spark
        self._routed = has_transformations({key: value for key, value in config.originals.items() if value is not None})
        self._divided_by = config.partition_field_name if config.partitioner == "FieldPartitioner" else ()
        self._tables = _Tables(config, connector, spark)
        self._offsets: dict[TopicPartition, int] = {}
        self._topics: dict[str, str] = {}
        self._changes: dict[str, Schema] = {}
        self._failed = False
        self._held: HeldRows | None = None

    @property
    def offsets(self) -> Mapping[TopicPartition, int]:
        """The offsets up to which all tables have the records."""
        return self._offsets

    @property
    def topics(self) -> Mapping[str, str]:
        """The topic ids known at the last load of each topic."""
        return self._topics

    def peek(self) -> TargetContents:
        """Return the tables as they are in their logs, without taking them over."""
        self._tables.find()
        self._read()
        schemas = self._schemas()
        return TargetContents(schemas, offsets=self._offsets, place=self._tables.path, limits=self._limits)

    def open(self) -> None:
        """Read the logs of the tables, and take over those that the connector has written to."""
        # Those of an earlier session belong to its Java process, which may have ended.
        self._tables = _Tables(self._config, self._connector, self._session)
        self._held = None
        self._tables.find()
        for table in self._tables:
            table.take_over()
        self._read()
        if numbers := self._states():
            self._rows.clear(numbers, self._check_owner)

    def recover(self) -> None:
        """Find out what a failed load has committed."""
        if self._failed:
            self._check_owner()
            self._read()
            self._failed = False

    def load(self, ranges: Sequence[OffsetRange], loader: Loader) -> None:
        """Load the records of each topic into its tables; all topics in parallel if each has its own table."""
        self._failed = True
        groups = [list(group) for _, group in groupby(ranges, key=lambda item: item.topic)]
        if self._routed or self._config.changes is not None:
            for group in groups:
                for part in self._parts(group):
                    self._load([part], loader)
        else:
            self._load(groups, loader)
        self._failed = False

    def skip(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Write the offsets into the logs of tables with offsets of their partitions, or else of any table."""
        written = self._tables.written()
        concerned = [table for table in written if table.positions.complete.keys() & offsets.keys()]
        for table in concerned or written[:1]:
            table.skip(offsets)
        self._offsets |= offsets

    def compact(self, tables: Collection[str] | None, stopping: Callable[[], bool]) -> Iterator[CompactedTable]:
        """Merge the small files of the tables that the connector has written to, one table after the other."""
        for table in self._tables.written():
            if stopping():
                return
            if tables is None or table.name in tables:
                done = compact_table(self._session(), table.name, table.path, self._config.target_file_size_bytes)
                if done is not None:
                    yield done

    def _read(self) -> None:
        self._offsets = {}
        ids: dict[tuple[str, str], int] = {}
        for table in self._tables:
            positions = table.positions
            ids |= {key: max(at, ids.get(key, at)) for key, at in positions.ids.items()}
            for tp, offset in positions.complete.items():
                self._offsets[tp] = max(offset, self._offsets.get(tp, 0))
        self._topics = latest_ids(ids)

    def _schemas(self) -> _Schemas:
        return _Schemas(self._tables, self._config.changes, self._changes)

    def _parts(self, ranges: Sequence[OffsetRange]) -> Iterator[Sequence[OffsetRange]]:
        """Yield the ranges, starting with those of an interrupted load, exactly as they were."""
        ahead: dict[TopicPartition, int] = {}
        for table in self._tables if self._routed else ():
            for tp, offset in table.positions.offsets.items():
                ahead[tp] = max(offset, ahead.get(tp, 0))
        halves = [item for item in ranges if ahead.get(item.topic_partition, 0) > item.first]
        if halves:
            yield [replace(item, end=ahead[item.topic_partition]) for item in halves]
        firsts = {item: min(item.end, ahead[item.topic_partition]) for item in halves}
        rest = [replace(item, first=firsts.get(item, item.first)) for item in ranges]
        if left := [item for item in rest if len(item)]:
            yield left

    def _load(self, groups: Sequence[Sequence[OffsetRange]], loader: Loader) -> None:
        known = self._schemas()
        requests = []
        for ranges in groups:
            windows = self._windows_of(ranges)
            output = _Output(self, ranges, loader.progress, {} if windows is None else windows.numbers)
            request = LoadRequest(ranges, known, output, check=self._check, limits=self._limits)
            if windows is not None:
                request = replace(request, records=windows.records, windows=windows.state(self._config.windows))
            requests.append(request)
        loader.load_topics(requests)
        for ranges in groups:
            ends = {item.topic_partition: item.end for item in ranges}
            topics = {item.topic: item.topic_id for item in ranges if item.topic_id is not None}
            written = self._tables.written()
            if written and all(_behind(table.positions.complete, ends) for table in written):
                _most_advanced(written, ends).finish(ends)
            self._offsets |= ends
            self._topics |= topics
        if any(request.windows is not None for request in requests):
            self._rows.tidy(self._states())

    def write(
        self, frame: DataFrame, name: str, schema: Schema, ranges: Sequence[OffsetRange], windows: int | None = None
    ) -> tuple[int, int]:
        """Commit the rows of a table with the offsets of the load; return the bytes and files written.

        ``windows`` is the number of the state in which the load leaves the topic's windows, if there are any.
        """
        columns = without_change(schema)
        _check_division(columns, self._divided_by)
        table = self._tables[name]
        ends = {item.topic_partition: item.end for item in ranges}
        if not _behind(table.positions.offsets, ends):
            return 0, 0  # an attempt at this load has committed it
        if self._config.changes is not None and not key_columns(schema):
            # No change can have this schema: the first record that is a change stops this job.
            if frame.count():
                raise ConnectError(f"The key of the changes for table {name} is unknown: set upsert.keys.")
            return 0, 0
        table.prepare(columns, self._divided_by, key_columns(schema))
        if self._config.has_query:
            frame = shown_by_folders(frame, table.partition_columns)
        if self._config.changes is None:
            write = partial(table.append, frame)
        else:
            write = partial(merge_changes, last_changes(frame), table.path, schema)
            self._changes[name] = schema
        return table.load(
            {item.topic_partition: item.first for item in ranges},
            ends,
            routed=self._routed,
            ids={item.topic: item.topic_id for item in ranges if item.topic_id is not None},
            windows={} if windows is None else {ranges[0].topic: windows},
            write=write,
            is_merge=self._config.changes is not None,
        )

    def _check(self, _table: str, schema: Schema) -> None:
        """Raise :class:`~connect.errors.SchemaError` if there can be no table for these rows."""
        _check_division(without_change(schema), self._divided_by)

    def _limits(self, name: str, _schema: Schema) -> RowLimits:
        """Return what rows may not have: Delta takes the empty text in a partition column for null, for one."""
        table = self._tables[name]
        columns = table.partition_columns if table.exists else self._divided_by
        fields = [FolderField((each,), each) for each in columns]
        longest = self._config.location.longest_folder
        return RowLimits(fields, longest=longest, required=table.required, required_always=True)

    # -- windows ---------------------------------------------------------------------------------------------

    @property
    def _rows(self) -> HeldRows:
        """The rows held by windows, stored beside the tables."""
        if self._held is None:
            self._held = HeldRows(open_store(self._config, self._session), self._connector)
        return self._held

    def _states(self) -> list[int]:
        """Return the numbers of the states to which tables refer."""
        return [number for table in self._tables for number in table.positions.windows.values()]

    def _windows_of(self, ranges: Sequence[OffsetRange]) -> TopicWindows | None:
        """Return the windows of a topic, if the query has windows, or left some open earlier."""
        topic, ends = ranges[0].topic, {item.topic_partition: item.end for item in ranges}
        numbers = {table.name: table.positions.windows.get(topic, NO_STATE) for table in self._tables}
        before = {name: self._rows.read(number, name) for name, number in numbers.items() if number != NO_STATE}
        if before and not self._config.has_query:
            raise lost_query(topic)
        if self._config.windows is None and not before:
            return None
        return TopicWindows(
            self._rows, before, lambda name: name, lambda name: not _behind(self._tables[name].positions.offsets, ends)
        )

    def _check_owner(self) -> None:
        for table in self._tables:
            table.check_owner()


class _Tables:
    """The Delta tables in a connector's folder of the store, by name."""

    def __init__(self, config: SparkSinkConfig, connector: str, spark: Callable[[], SparkSession]) -> None:
        place = config.location
        # Hadoop takes a path literally, where Spark would parse it as a URL.
        root = f"file:{place.path}" if place.kind == "local" else place.uri
        self._root = "/".join(filter(None, (root, config.topics_dir)))
        self._connector = connector
        self._session = spark
        self._found: dict[str, DeltaTable] = {}

    def find(self) -> None:
        """Read the logs of all existing tables."""
        for name in table_names(self._session(), self._root):
            self[name]

    def __iter__(self) -> Iterator[DeltaTable]:
        return iter(self._found.values())

    def __getitem__(self, name: str) -> DeltaTable:
        """The table of this name, which may not exist yet."""
        if name not in self._found:
            self._found[name] = DeltaTable(self._session(), name, self.path(name), self._connector)
        return self._found[name]

    def path(self, name: str) -> str:
        """Return the location of the table with that name."""
        return f"{self._root}/{name}"

    def written(self) -> list[DeltaTable]:
        """Return the tables that the connector has planned to write to."""
        return [table for table in self if table.positions.number >= 0]


class _Schemas(Mapping[str, Schema]):
    """The schemas of tables, as they are in their logs now, or of the changes for them, once these are known."""

    def __init__(self, tables: _Tables, plan: ChangePlan | None, changes: Mapping[str, Schema]) -> None:
        self._tables = tables
        self._plan = plan
        self._changes = changes

    def __getitem__(self, name: str) -> Schema:
        table = self._tables[name]
        schema = table.schema()
        if schema is None:
            raise KeyError(name)
        if self._plan is None:
            return schema
        seen = self._changes.get(name)
        return with_change(schema, seen, (self._plan.keys or table.keys()) if seen is None else ())

    def __iter__(self) -> Iterator[str]:
        return (table.name for table in self._tables if table.exists)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _check_division(table: Schema, columns: Sequence[str]) -> None:
    for name in columns:
        if table.field(name) is None:
            raise SchemaError(
                f"partition.field.name={name} is not a field of the records. Use one of their fields: "
                f"{', '.join(table.field_names)}."
            )
    if columns and set(table.field_names) <= set(columns):
        raise SchemaError("partition.field.name lists every field of the records: remove at least one.")


def _behind(offsets: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]) -> bool:
    return any(offsets.get(tp, 0) < end for tp, end in ends.items())


def _most_advanced(tables: Sequence[DeltaTable], ends: Mapping[TopicPartition, int]) -> DeltaTable:
    """Return a table that has the records of the load, if there is one."""
    return min(tables, key=lambda table: _behind(table.positions.offsets, ends))


class _Output:
    """The :class:`~connectors.spark.sink.loading.request.Output` of a load of one topic: writing rows commits them."""

    commits = True

    def __init__(
        self,
        target: DeltaTarget,
        ranges: Sequence[OffsetRange],
        progress: LoadProgress,
        windows: Mapping[str, int],
    ) -> None:
        self._target = target
        self._ranges = ranges
        self._progress = progress
        self._windows = windows

    def write(self, frame: DataFrame, table: str, schema: Schema, attempt: int) -> None:  # noqa: ARG002
        """Commit the rows of a table, unless an earlier attempt has done so."""
        size, files = self._target.write(frame, table, schema, self._ranges, self._windows.get(table))
        self._progress.wrote(size=size, files=files)
