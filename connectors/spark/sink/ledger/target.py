"""Tables that are folders of files: Spark stages the files of a load, the ledger publishes them."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING, Final

from connect.bulk import OffsetRange
from connect.data import Schema, TopicPartition
from connect.internals.crash import crash_point
from connect.sink import CompactedTable
from connectors.spark.decoding.part_files import PartFiles
from connectors.spark.decoding.report import Report
from connectors.spark.decoding.row_limits import RowLimits
from connectors.spark.formats import make_format
from connectors.spark.options.layout import DEFAULT_FILE_SIZE
from connectors.spark.partitioner import make_partitioner, make_result_partitioner
from connectors.spark.schema import rewritten_columns
from connectors.spark.sink.config import SparkSinkConfig
from connectors.spark.sink.ledger.ledger import Ledger
from connectors.spark.sink.ledger.manifest import Move
from connectors.spark.sink.ledger.staging import FileNames, gathered_moves, result_moves, staged_moves
from connectors.spark.sink.loading.request import LoadRequest
from connectors.spark.sink.sql.windows import OpenWindows, WindowState, lost_query
from connectors.spark.sink.target import CLIENTS, TargetContents
from connectors.spark.stores.factory import open_store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from connectors.spark.folders import FolderWriter
    from connectors.spark.sink.hive.registration import HiveRegistration
    from connectors.spark.sink.ledger.files_merger import FilesMerger
    from connectors.spark.sink.ledger.table_rewrite import Rewritten
    from connectors.spark.sink.loading.loader import Loader
    from connectors.spark.sink.loading.request import Loaded

__all__ = ["FilesTarget"]

logger = logging.getLogger(__name__)

_OF_SPARK: Final = ("spark.sql.parquet.", "spark.hadoop.parquet.", "spark.hadoop.fs.s3a.", "spark.hadoop.fs.gs.")


class FilesTarget:
    """Folders of files with a ledger beside them; a :class:`~connectors.spark.sink.target.Target`."""

    def __init__(self, config: SparkSinkConfig, connector: str, spark: Callable[[], SparkSession]) -> None:
        self._config = config
        self._files = open_store(config, spark)
        self._ledger = Ledger(self._files, connector)
        self._partitioner = make_result_partitioner(config) if config.has_query else make_partitioner(config)
        self._format = make_format(config)
        self._names = FileNames(config.topics_dir, self._partitioner, config.filename_offset_zero_pad_width)
        self._spark = spark
        self._hive = self._registration(connector) if config.hive_integration else None
        self._row_bytes: dict[str, float] = {}
        """The average size of a row of each table in the last load, from which the number of rows per file follows."""

    @property
    def packages(self) -> Sequence[str]:
        """The client of the store, with which executors write files of Parquet themselves."""
        return CLIENTS.get(self._config.location.kind, ())

    @property
    def offsets(self) -> Mapping[TopicPartition, int]:
        """The offsets of the last manifest."""
        return self._ledger.offsets

    @property
    def topics(self) -> Mapping[str, str]:
        """The topic ids of the last manifest."""
        return self._ledger.topics

    def peek(self) -> TargetContents:
        """Return the tables as of the last manifest, without adding one."""
        self._ledger.peek()
        root = "/".join(filter(None, (self._files.url, self._config.topics_dir)))
        return TargetContents(
            self._ledger.tables,
            self._ledger.records,
            self._ledger.offsets,
            self._partitioner,
            lambda table: f"{root}/{table}",
            self._limits,
        )

    def open(self) -> None:
        """Take over the ledger from its previous owner."""
        self._ledger.open()
        if self._hive is not None and self._ledger.tables:
            tables = self._ledger.tables
            folders = {name: map(_folder_of, self._files.files(self._place(name))) for name in tables}
            self._hive.register(self._spark(), tables, folders)

    def recover(self) -> None:
        """Roll the last manifest forward and delete what was staged in vain."""
        self._ledger.recover()

    def load(self, ranges: Sequence[OffsetRange], loader: Loader) -> None:
        """Stage the records, commit them in the ledger, and give their files the final names."""
        staging = self._ledger.new_staging()
        crash_point("before-staging-write")
        try:
            moves, tables, records, windows = self._stage(ranges, loader, staging)
            rewritten = self._rewrite(tables, loader, staging)
        except Exception:
            # A driver that takes over deletes this driver's staging folder, which would surface as a misleading error.
            self._ledger.check_fence()
            raise
        crash_point("after-staging-write")
        loader.progress.stage("committing")
        ends = {item.topic_partition: item.end for item in ranges}
        topics = {item.topic: item.topic_id for item in ranges if item.topic_id is not None}
        topics = {**self._ledger.topics, **topics}
        moves += rewritten.moves
        self._ledger.commit(staging, moves, ends, tables, topics, records, rewritten.removals, windows)
        if self._hive is not None:
            self._hive.register(self._spark(), tables, self._folders(moves, tables))

    def skip(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Commit a manifest with these offsets and no files."""
        self._ledger.commit(self._ledger.new_staging(), (), offsets, {})

    def compact(self, tables: Collection[str] | None, stopping: Callable[[], bool]) -> Iterator[CompactedTable]:
        """Merge the small files of each folder, one table after the other."""
        from connectors.spark.sink.ledger.compaction import FilesCompaction  # noqa: PLC0415 - it brings pyspark

        self._ledger.recover()
        yield from FilesCompaction(self._ledger, self._format, self._merger(), self._file_size).run(tables, stopping)

    def _stage(
        self, ranges: Sequence[OffsetRange], loader: Loader, staging: str
    ) -> tuple[list[Move], dict[str, Schema], dict[str, Schema], dict[str, OpenWindows]]:
        outputs: list[_StagingFolder] = []
        requests: list[LoadRequest] = []
        for topic, group in groupby(ranges, key=lambda item: item.topic):
            wanted = list(group)
            splits = loader.splits(wanted)
            output = _StagingFolder(self, f"{staging}/{topic}", splits)
            placement, known = self._partitioner.placement(), self._ledger
            before, files = self._windows_of(topic), output.files if self._executors_write else None
            request = LoadRequest(wanted, known.tables, output, placement, known.records, before, splits, files)
            request = replace(request, check=lambda _table, schema: self._checked(schema), limits=self._limits)
            requests.append(request)
            outputs.append(output)
        loads = loader.load_topics(requests)
        moves: list[Move] = []
        windows = dict(self._ledger.windows)
        for request, output, loaded in zip(requests, outputs, loads, strict=True):
            for table in loaded.records or loaded.tables:
                staged = self._moves(output.folder(table, loaded.attempt), table, loaded, request.ranges)
                loader.progress.wrote(size=sum(move.size for move in staged), files=len(staged))
                self._note_size(table, staged)
                moves += staged
            for table, held in loaded.held.items():
                windows[f"{request.topic}/{table}"] = held
        tables = {name: schema for loaded in loads for name, schema in loaded.tables.items()}
        new = tables.keys() - self._ledger.tables.keys()
        for table in new:
            _warn_of_hidden(table, tables[table], self._partitioner.parts or ())
        for request, loaded in zip(requests, loads, strict=True):
            if (
                request.topic.startswith(("_", "."))
                and new & loaded.tables.keys()
                and not self._files.names_when_staging
            ):
                _warn_of_hidden_files(request.topic)
        records = {name: schema for loaded in loads for name, schema in loaded.records.items()}
        return moves, tables, records, {name: each for name, each in windows.items() if each != OpenWindows()}

    def _limits(self, _table: str, schema: Schema) -> RowLimits:
        """Return what rows may not have, so that files and the names of their folders tell it."""
        fields = self._partitioner.folder_fields(schema)
        single = self._format.name if self._format.fills_single else None
        longest = self._config.location.longest_folder
        return RowLimits(fields, longest=longest, single=single, lines=self._format.holds_lines)

    def _windows_of(self, topic: str) -> WindowState | None:
        """Return the windows of a topic, if the query has windows, or left some open earlier."""
        known, policy, start = self._ledger.windows, self._config.windows, f"{topic}/"
        before = {name.removeprefix(start): each for name, each in known.items() if name.startswith(start)}
        if before and not self._config.has_query:
            raise lost_query(topic)
        if policy is None and not before:
            return None
        return WindowState(policy, before, self._ledger.new_windows, self._files.uri)

    def _rewrite(self, tables: Mapping[str, Schema], loader: Loader, staging: str) -> Rewritten:
        """Stage all files of tables again whose new column types cannot be read from the existing files."""
        from connectors.spark.sink.ledger.table_rewrite import Rewritten, rewrite  # noqa: PLC0415 - it brings pyspark

        known = self._ledger.tables
        if self._format.field_paths is None or not any(
            name in known and rewritten_columns(known[name], schema) for name, schema in tables.items()
        ):
            return Rewritten()
        loader.progress.stage("rewriting files with wider columns")
        number, divided_by = self._ledger.next_number, self._partitioner.columns
        merger = self._merger()
        return loader.run(lambda: rewrite(merger, known, tables, staging, number, self._file_size, divided_by))

    def _merger(self) -> FilesMerger:
        from connectors.spark.sink.ledger.files_merger import FilesMerger  # noqa: PLC0415 - it brings pyspark

        return FilesMerger(self._config, self._files, self._format, self._spark())

    @property
    def _file_size(self) -> int:
        return self._config.target_file_size_bytes or DEFAULT_FILE_SIZE

    def _note_size(self, table: str, moves: Sequence[Move]) -> None:
        rows = sum(move.rows or 0 for move in moves)
        if rows:
            self._row_bytes[table] = sum(move.size for move in moves if move.rows) / rows

    def _moves(self, folder: str, table: str, loaded: Loaded, ranges: Sequence[OffsetRange]) -> list[Move]:
        count_rows, number, reports = self._format.count_rows, self._ledger.next_number, loaded.reports[table]
        if table in loaded.held and table not in loaded.results:
            return []
        if (result := loaded.results.get(table)) is not None:
            origins = [Report(item.topic, item.partition, item.first, item.end - 1) for item in ranges]
            return result_moves(self._files, folder, table, result.rows, origins, self._names, count_rows, number)
        if self._partitioner.gathers:
            return gathered_moves(self._files, folder, table, reports, self._names, count_rows, number)
        return staged_moves(self._files, folder, table, reports, self._names, count_rows)

    @property
    def _executors_write(self) -> bool:
        """Whether the executors write the files themselves: if each task's rows go into one folder that they can reach.

        Only Spark follows keys that configure its Parquet writer or its access to an object store.
        """
        config, kind = self._config, self._config.location.kind
        plain = not self._partitioner.columns and self._files.part_place("", "", {}) is not None
        own = any(key.startswith(_OF_SPARK) for key in config.originals)
        own = own or (kind != "local" and config.hadoop_conf_dir is not None)
        return plain and not own and self._format.source == "parquet" and not config.has_query

    def files(self, schema: Schema, table: str, folder: str, splits: Sequence[OffsetRange]) -> PartFiles:
        """Return the files that executors are to write into a folder for the rows of a table."""
        self._checked(schema)
        place = self._place(table)
        self._files.begin(folder, place)
        parts = self._files.part_place(folder, place, self._folders_of(splits))
        assert parts is not None
        return PartFiles(parts, str(uuid.uuid4()), self._config.parquet_codec, self._rows_of_a_file(table))

    def _checked(self, schema: Schema) -> FolderWriter:
        """Return the writer for the rows of a table, after checking that the files and Hive can hold them."""
        from connectors.spark.folders import FolderWriter  # noqa: PLC0415 - it brings pyspark

        folders_of = FolderWriter(self._format, self._partitioner, self._config.target_file_size_bytes)
        folders_of.check(schema)
        if self._hive is not None:
            self._hive.check(schema)
        return folders_of

    def write(self, frame: DataFrame, schema: Schema, table: str, folder: str, splits: Sequence[OffsetRange]) -> None:
        """Let Spark write the rows of a table into a folder; each of Spark's partitions holds the rows of one split."""
        folders_of = self._checked(schema)
        frame, columns = folders_of.arranged(frame, schema, named=self._files.names_when_staging)
        writer = frame.write.format(self._format.source).options(**self._format.write_options)
        writer = writer.option("timeZone", "UTC")  # whatever the session's zone, names of folders and texts tell UTC
        if (rows := self._rows_of_a_file(table)) is not None:
            writer = writer.option("maxRecordsPerFile", rows)
        if columns:
            writer = writer.partitionBy(*columns)
        place = self._place(table)
        folders: dict[int, str] = {}
        if self._files.names_when_staging and not columns and not self._config.has_query:
            folders = self._folders_of(splits)
        self._files.begin(folder, place)
        options = self._files.writer_options(folder, place, folders)
        writer.options(**options).save(self._files.uri(folder))

    def _folders_of(self, splits: Sequence[OffsetRange]) -> dict[int, str]:
        return {number: self._partitioner.folder(split.partition, "") for number, split in enumerate(splits)}

    def _place(self, table: str) -> str:
        return "/".join(filter(None, (self._config.topics_dir, table)))

    def _folders(self, moves: Sequence[Move], tables: Collection[str]) -> dict[str, list[str]]:
        """Return the folders of files by table, as paths within it."""
        found: dict[str, list[str]] = {name: [] for name in tables}
        start = f"{self._config.topics_dir}/" if self._config.topics_dir else ""
        for move in moves:
            table, _, path = move.target.removeprefix(start).partition("/")
            if table in found:
                found[table].append(_folder_of(path))
        return found

    def _registration(self, connector: str) -> HiveRegistration:
        from connectors.spark.sink.hive.registration import HiveRegistration  # noqa: PLC0415 - only few have Hive

        source, files = self._format.source, self._files
        return HiveRegistration(
            self._config, connector, self._partitioner, source, lambda table: files.uri(self._place(table))
        )

    def _rows_of_a_file(self, table: str) -> int | None:
        """Return how many rows fit into a file, if its size is limited and the size of rows is known."""
        size = self._config.target_file_size_bytes
        if size is None and self._partitioner.gathers:
            size = DEFAULT_FILE_SIZE
        row = self._row_bytes.get(table)
        return None if size is None or not row else max(1, int(size / row))


def _folder_of(path: str) -> str:
    return path.rpartition("/")[0]


class _StagingFolder:
    """The :class:`~connectors.spark.sink.loading.request.Output` of a load of one topic: files that nobody sees yet."""

    commits = False

    def __init__(self, target: FilesTarget, folder: str, splits: Sequence[OffsetRange]) -> None:
        self._target = target
        self._folder = folder
        self._splits = splits

    def folder(self, table: str, attempt: int) -> str:
        """Return the folder for the files of a table; a cancelled attempt leaves its own behind."""
        return f"{self._folder}-{attempt}/{table}"

    def write(self, frame: DataFrame, table: str, schema: Schema, attempt: int) -> None:
        """Write the rows of a table."""
        self._target.write(frame, schema, table, self.folder(table, attempt), self._splits)

    def files(self, table: str, schema: Schema, attempt: int) -> PartFiles:
        """Return the files for executors to write for the rows of a table."""
        return self._target.files(schema, table, self.folder(table, attempt), self._splits)


def _warn_of_hidden_files(topic: str) -> None:
    """Warn at the first load of a topic whose files readers ignore."""
    logger.warning(
        "The files of topic %s have its name, and many readers (Spark, pyarrow) ignore files whose names begin with _ "
        "or '.'. Load it into Iceberg or Delta (table.format), or tell the readers not to ignore them.",
        topic,
    )


def _warn_of_hidden(table: str, schema: Schema, parts: Sequence[str]) -> None:
    """Warn at the first load of a table of fields that readers hide."""
    for name in parts:
        if schema.field(name) is not None:
            logger.warning(
                "Table %s has a field %s, which is also a part of the folder names: readers with columns from those "
                "show the folder's value in its place. Rename the field (ReplaceField) or the part (path.format).",
                table,
                name,
            )
