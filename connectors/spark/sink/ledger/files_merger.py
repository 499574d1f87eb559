"""Rewrites files of a table: as larger ones, or with columns of other types."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql import Observation
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import from_arrow_schema

from connect.data import Schema
from connect.data.arrow import conform
from connect.errors import ConnectError
from connect.internals.chain.stack_trace import error_text
from connectors.spark.arrow_types import table_type
from connectors.spark.errors import root_cause
from connectors.spark.formats import FileFormat, paths_of
from connectors.spark.options.layout import LayoutOptions
from connectors.spark.sink.ledger.manifest import Move
from connectors.spark.sink.ledger.merge_groups import DataFile, MergeGroup, data_file
from connectors.spark.sink.ledger.staging import counted_rows
from connectors.spark.stores.store import StagedFile, Store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from connectors.spark.sink.config import SparkSinkConfig

__all__ = ["FilesMerger"]

_FILES_THEMSELVES: Final = {"recursiveFileLookup": "true", "__globPaths__": "false"}
"""Makes Spark read neither columns from the folders in a file's path nor patterns from its name."""
_EXTENSION: Final = re.compile(r"part-[^/]*?c\d+\.(.+)")
_SUFFIXES: Final = {"parquet": "parquet", "orc": "orc", "avro": "avro", "json": "json", "text": "txt"}
_REFUSED: Final = re.compile(r"DataError: (.+?)(?: Cast the column.*)?$", re.MULTILINE)
_ROWS: Final = "rows"


class FilesMerger:
    """Lets Spark write groups of files as one staged file each. The results are not committed yet."""

    def __init__(self, config: SparkSinkConfig, files: Store, file_format: FileFormat, spark: SparkSession) -> None:
        self._config = config
        self._files = files
        self._format = file_format
        self._spark = spark

    def place(self, table: str) -> str:
        """Return the folder of a table in the store."""
        return "/".join(filter(None, (self._config.topics_dir, table)))

    def data_files(self, table: str) -> list[DataFile]:
        """Return the table's files in this format that Sluice has named; others are left alone."""
        place, named = self.place(table), not self._files.names_when_staging
        found = (
            data_file(path, self._files.size(f"{place}/{path}") or 0, named=named) for path in self._files.files(place)
        )
        suffix = re.compile(rf"(.*\.)?{_SUFFIXES[self._format.source]}(\.gz)?")
        return [file for file in found if file is not None and suffix.fullmatch(file.extension)]

    def unknown_field(self, table: str, schema: Schema, group: MergeGroup) -> str | None:
        """Return a field of one of the files that would be lost because the table does not know it."""
        paths_in = self._format.field_paths
        if paths_in is None:
            return None
        known = paths_of(schema)
        for file in group.files:
            with self._files.open(f"{self.place(table)}/{file.path}") as content:
                unknown = paths_in(content) - known
            if unknown:
                return f"{min(unknown)} in {file.path}"
        return None

    def merge(
        self,
        table: str,
        schema: Schema,
        groups: Sequence[MergeGroup],
        staging: str,
        number: int,
        changed: Mapping[str, Schema] | None = None,
    ) -> list[Move]:
        """Write each group of files of ``schema`` into one file, for the manifest with this number.

        ``changed`` are columns that get another type. Raises :class:`~connect.errors.ConnectError` if one of their
        values cannot be converted exactly.
        """
        folders = [f"{staging}/merged/{table}/{index}" for index in range(len(groups))]
        with ThreadPoolExecutor(max(1, self._spark.sparkContext.defaultParallelism)) as threads:
            merge = partial(self._merged, table, schema, changed or {})
            merged = list(threads.map(lambda each: merge(*each), zip(groups, folders, strict=True)))
        return [
            Move(
                source, file.target or self._target(table, group, source, number, counter), file.size, rows, file.upload
            )
            for counter, (group, (source, file, rows)) in enumerate(zip(groups, merged, strict=True))
        ]

    def removals(self, table: str, groups: Iterable[MergeGroup]) -> list[str]:
        """Return the files of these groups by their paths in the store."""
        return [f"{self.place(table)}/{file.path}" for group in groups for file in group.files]

    def _target(self, table: str, group: MergeGroup, source: str, number: int, counter: int) -> str:
        match = _EXTENSION.fullmatch(source.rpartition("/")[2])
        assert match is not None
        # Spark uses the extension txt for all line formats.
        extension = match[1].replace("txt", _SUFFIXES[self._format.source])
        path = group.merged_path(self._config.filename_offset_zero_pad_width, number, counter, extension)
        return f"{self.place(table)}/{path}"

    # -- Spark ---------------------------------------------------------------------------------------------------

    def _merged(
        self, table: str, schema: Schema, changed: Mapping[str, Schema], group: MergeGroup, folder: str
    ) -> tuple[str, StagedFile, int]:
        """Write the rows of a group into one staged file; return its path, its staged description, and its number of
        rows.
        """
        place = self.place(table)
        count = self._format.count_rows
        rows = sum(counted_rows(self._files, f"{place}/{file.path}", count) for file in group.files)
        uris = [self._files.uri(f"{place}/{file.path}") for file in group.files]
        self._files.begin(folder, place)
        source = "text" if self._format.lines else self._format.source
        options = {key: value for key, value in self._format.write_options.items() if key == "compression"}
        options |= self._files.writer_options(folder, place, {0: group.folder})
        written = Observation()
        try:
            frame = self._rows(schema, changed, uris).observe(written, f.count(f.lit(1)).alias(_ROWS)).coalesce(1)
            frame.write.format(source).options(**options).save(self._files.uri(folder))
        except Exception as error:
            raise _refusal(table, error) from error
        staged = list(self._files.staged(folder))
        found = int(written.get[_ROWS])
        if not self._files.names_when_staging:
            found = sum(counted_rows(self._files, f"{folder}/{file.path}", count) for file in staged)
        if len(staged) != 1 or found != rows:
            raise ConnectError(
                f"The merged files of table {table} have {found} rows in {len(staged)} files; expected were "
                f"{rows} rows in one file. Nothing has changed. Make sure that nothing else writes into the "
                "table."
            )
        return f"{folder}/{staged[0].path}", staged[0], rows

    def _rows(self, schema: Schema, changed: Mapping[str, Schema], uris: list[str]) -> DataFrame:
        # Folders are ignored here: their values are not stored in the files, and stay in the folder names.
        if self._format.lines:
            return self._spark.read.options(**_FILES_THEMSELVES).text(uris)
        names = _file_columns(schema, self._config)
        reader = self._spark.read.schema(_fields(schema, names)).options(**_FILES_THEMSELVES)
        frame = reader.format(self._format.source).load(uris)
        if not changed:
            return frame
        after = Schema.struct({field.name: changed.get(field.name, field.schema) for field in schema.fields})
        return frame.mapInArrow(partial(_converted, changed), _fields(after, names))


def _fields(schema: Schema, names: frozenset[str]) -> Any:
    columns = table_type(schema).columns
    return from_arrow_schema(pa.schema([columns.field(name) for name in columns.names if name in names]))


def _converted(changed: Mapping[str, Schema], batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Convert some columns to other types; runs in an executor."""
    for batch in batches:
        columns = {name: batch.column(name) for name in batch.schema.names}
        old = pa.StructArray.from_arrays([columns[name] for name in changed], list(changed))
        new: Any = conform(old, Schema.struct(changed))
        columns |= {name: new.field(name) for name in changed}
        yield pa.RecordBatch.from_arrays(list(columns.values()), list(columns))


def _refusal(table: str, error: Exception) -> ConnectError:
    if (match := _REFUSED.search(error_text(error))) is None:
        return ConnectError(f"Spark failed to merge files of table {table}: {root_cause(error)}")
    return ConnectError(
        f"Table {table} cannot be rewritten with wider columns (schema.conflict=rewrite), because not all of "
        f"its values can be kept exactly: {match[1]} Nothing has changed. Set schema.conflict=new-column to "
        "give values of the new type a column of their own."
    )


def _file_columns(schema: Schema, config: LayoutOptions) -> frozenset[str]:
    """Return the columns stored in the files rather than in the names of their folders."""
    divided = config.partition_field_name if config.partitioner == "FieldPartitioner" else ()
    return frozenset(schema.field_names) - frozenset(divided)
