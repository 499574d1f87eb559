"""The compaction of tables that are folders of files: Spark merges, the ledger replaces."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema

from connect.compaction import CompactedTable
from connect.crash import crash_point
from connect.data import Schema
from connect.errors import ConnectError
from connectors.spark.failure import root_cause
from connectors.spark.formats import FileFormat, paths_of
from connectors.spark.ledger.ledger import Ledger
from connectors.spark.ledger.manifest import Move
from connectors.spark.ledger.merging import DataFile, MergeGroup, data_file, merge_groups
from connectors.spark.ledger.staging import counted_rows
from connectors.spark.options.layout import DEFAULT_FILE_SIZE, LayoutOptions
from connectors.spark.stores.store import Store
from connectors.spark.types import table_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from connectors.spark.config import SparkSinkConfig

__all__ = ["FilesCompaction"]

logger = logging.getLogger(__name__)

_AT_ONCE: Final = 64
"""How many files are made in one entry of the ledger: what is done stays done, and readers miss little at a time."""
_FILES_THEMSELVES: Final = {"recursiveFileLookup": "true", "__globPaths__": "false"}
"""Spark is to look neither for folders in the paths of the files nor for patterns."""
_EXTENSION: Final = re.compile(r"part-[^/]*?c\d+\.(.+)")


@dataclass(frozen=True, slots=True)
class _Merged:
    """A group and its staged file, with the number of rows."""

    group: MergeGroup
    source: str
    size: int
    rows: int


class FilesCompaction:
    """Merges the small files of each folder of the tables of one connector."""

    def __init__(
        self, config: SparkSinkConfig, files: Store, ledger: Ledger, file_format: FileFormat, spark: SparkSession
    ) -> None:
        self._config = config
        self._files = files
        self._ledger = ledger
        self._format = file_format
        self._spark = spark

    def run(self, tables: Collection[str] | None, stopping: Callable[[], bool]) -> Iterator[CompactedTable]:
        """Compact these tables, or all that the ledger knows; each is done when it is yielded."""
        if not self._format.compacts:
            raise ConnectError(f"Files in {self._format.name} are not compacted, for they have no schema.")
        known = self._ledger.tables
        for name in sorted(known) if tables is None else tables:
            if name not in known:
                raise ConnectError(f"There is no table {name}: there are {', '.join(sorted(known)) or 'none'}.")
            if stopping():
                return
            done = self._compact(name, known[name], stopping)
            if done is not None:
                yield done

    def _compact(self, table: str, schema: Schema, stopping: Callable[[], bool]) -> CompactedTable | None:
        before = self._data_files(table)
        groups = list(merge_groups(before, self._config.target_file_size_bytes or DEFAULT_FILE_SIZE))
        merged = False
        for start in range(0, len(groups), _AT_ONCE):
            if stopping():
                break
            merged |= self._replace(table, schema, groups[start : start + _AT_ONCE])
        if not merged:
            return None
        after = self._data_files(table)
        sizes = [sum(file.size for file in files) for files in (before, after)]
        return CompactedTable(table, len(before), len(after), *sizes)

    def _data_files(self, table: str) -> list[DataFile]:
        """The files of the table in this format that Sluice has named; others are left alone."""
        place = self._place(table)
        found = (data_file(path, self._files.size(f"{place}/{path}") or 0) for path in self._files.files(place))
        suffix = re.compile(rf"(.*\.)?{_SUFFIXES[self._format.source]}(\.gz)?")
        return [file for file in found if file is not None and suffix.fullmatch(file.extension)]

    def _replace(self, table: str, schema: Schema, groups: Sequence[MergeGroup]) -> bool:
        """Merge some groups, and let their files be replaced by the merged ones."""
        groups = [group for group in groups if self._is_known(table, schema, group)]
        if not groups:
            return False
        staging = self._ledger.new_staging()
        try:
            with ThreadPoolExecutor(max(1, self._spark.sparkContext.defaultParallelism)) as threads:
                folders = [f"{staging}/{index}" for index in range(len(groups))]
                merged = list(
                    threads.map(lambda each: self._merge(table, schema, *each), zip(groups, folders, strict=True))
                )
        except Exception:
            self._ledger.check_fence()
            raise
        crash_point("after-compaction-staging")
        place, number = self._place(table), self._ledger.next_number
        moves = [
            Move(item.source, f"{place}/{self._name(item, number, index)}", item.size, item.rows)
            for index, item in enumerate(merged)
        ]
        removals = [f"{place}/{file.path}" for group in groups for file in group.files]
        self._ledger.commit(staging, moves, {}, {}, removals=removals)
        return True

    def _name(self, item: _Merged, number: int, counter: int) -> str:
        match = _EXTENSION.fullmatch(item.source.rpartition("/")[2])
        assert match is not None
        # Spark calls all lines txt.
        extension = match[1].replace("txt", _SUFFIXES[self._format.source])
        return item.group.merged_path(self._config.filename_offset_zero_pad_width, number, counter, extension)

    def _is_known(self, table: str, schema: Schema, group: MergeGroup) -> bool:
        """Whether the table has every field of the files: one that it does not know of would be lost."""
        paths_in = self._format.field_paths
        if paths_in is None:
            return True
        known = paths_of(schema)
        for file in group.files:
            with self._files.open(f"{self._place(table)}/{file.path}") as content:
                unknown = paths_in(content) - known
            if unknown:
                logger.warning(
                    "The files in %s/%s are not merged: %s has the field %s, which the table does not know.",
                    table,
                    group.folder,
                    file.path,
                    min(unknown),
                )
                return False
        return True

    # -- Spark ---------------------------------------------------------------------------------------------------

    def _merge(self, table: str, schema: Schema, group: MergeGroup, folder: str) -> _Merged:
        """Write the rows of a group into one staged file."""
        place = self._place(table)
        count = self._format.count_rows
        rows = sum(counted_rows(self._files, f"{place}/{file.path}", count) for file in group.files)
        uris = [self._files.uri(f"{place}/{file.path}") for file in group.files]
        self._files.begin(folder, f"{place}/{group.folder}")
        source = "text" if self._format.lines else self._format.source
        options = {key: value for key, value in self._format.write_options.items() if key == "compression"}
        try:
            frame = self._rows(schema, uris).coalesce(1)
            frame.write.format(source).options(**options).save(self._files.uri(folder))
        except Exception as error:
            raise ConnectError(f"Spark failed to merge files of table {table}: {root_cause(error)}") from error
        staged = list(self._files.staged(folder))
        found = sum(counted_rows(self._files, f"{folder}/{file.path}", count) for file in staged)
        if len(staged) != 1 or found != rows:
            raise ConnectError(
                f"The merged files of table {table} have {found} rows in {len(staged)} files, and {rows} in one were "
                "to be expected. Nothing is changed; make sure that nothing else writes into the table."
            )
        return _Merged(group, f"{folder}/{staged[0].path}", staged[0].size, rows)

    def _rows(self, schema: Schema, uris: list[str]) -> DataFrame:
        # Folders mean nothing here: what they say is not in the files, and stays so.
        if self._format.lines:
            return self._spark.read.options(**_FILES_THEMSELVES).text(uris)
        columns = table_type(schema).columns
        names = _file_columns(schema, self._config)
        fields = pa.schema([columns.field(name) for name in columns.names if name in names])
        reader = self._spark.read.schema(from_arrow_schema(fields)).options(**_FILES_THEMSELVES)
        return reader.format(self._format.source).load(uris)

    def _place(self, table: str) -> str:
        return "/".join(filter(None, (self._config.topics_dir, table)))


_SUFFIXES: Final = {"parquet": "parquet", "orc": "orc", "avro": "avro", "json": "json", "text": "txt"}


def _file_columns(schema: Schema, config: LayoutOptions) -> frozenset[str]:
    """The columns that are in the files, and not in the names of their folders."""
    divided = config.partition_field_name if config.partitioner == "FieldPartitioner" else ()
    return frozenset(schema.field_names) - frozenset(divided)
