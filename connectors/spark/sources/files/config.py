"""The configuration of the file source."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Final

from connect.bulk_source import BulkSourceConfig
from connect.config import HIGH, LOW, MEDIUM, ConfigRuleError, Long, at_least, matches, non_empty, option
from connect.errors import ConfigError
from connect.internals.extras import missing_extra
from connectors.spark.options.layout import FORMATS
from connectors.spark.options.store import StoreOptions
from connectors.spark.sources.options import RowOptions

__all__ = ["PartitionFields", "SparkFileSourceConfig"]

_FILES: Final = "Files"
_GIB: Final = 1 << 30
_HOUR_MS: Final = 3_600_000
_OWN_OPTIONS: Final = frozenset({"path", "paths", "pathglobfilter", "recursivefilelookup", "basepath", "__globpaths__"})
_SOURCES: Final[Mapping[str, tuple[str, Mapping[str, str]]]] = {
    "ParquetFormat": ("parquet", {"mergeSchema": "true"}),
    "OrcFormat": ("orc", {"mergeSchema": "true"}),
    "AvroFormat": ("avro", {}),
    "JsonFormat": ("json", {"mode": "FAILFAST"}),
    # Same as the Spark sink writes them: values may contain line breaks.
    "CsvFormat": ("csv", {"mode": "FAILFAST", "header": "true", "escape": '"', "multiLine": "true"}),
    "StringFormat": ("text", {}),
}
"""Spark's name for each format, and the options that keep Spark from misreading lines."""


class PartitionFields(StrEnum):
    """How to treat folders such as year=2013."""

    NONE = "none"
    STRING = "string"
    INFERRED = "inferred"


class SparkFileSourceConfig(BulkSourceConfig, StoreOptions, RowOptions):
    """The options of the file source. Keys that begin with ``spark.`` are Spark's own and are passed to its session."""

    writes = False

    store_url: str | None = option(
        default=None,
        importance=HIGH,
        group=_FILES,
        doc=(
            "The folder with the files: a path or a file: URL; hdfs://HOST:PORT/FOLDER; s3://BUCKET/FOLDER; "
            "or abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/FOLDER. A relative path starts at the worker's "
            "working directory."
        ),
    )
    topics_dir: str = option(
        default="",
        importance=LOW,
        validator=matches(r"([^_./][^/]*(/[^_./][^/]*)*)?", "relative path whose parts do not begin with _ or ."),
        group=_FILES,
        doc=(
            "The folder in the store with the files, as for the tables of the Spark sink. If empty, the top "
            "of the store."
        ),
    )
    format_class: str = option(
        default="ParquetFormat",
        importance=HIGH,
        group=_FILES,
        doc=(
            "The format of the files: ParquetFormat, OrcFormat, AvroFormat, JsonFormat (one object per line), "
            "CsvFormat, or StringFormat (each line of text is a value)."
        ),
    )
    pattern: str = option(
        default="*",
        importance=MEDIUM,
        validator=non_empty,
        group=_FILES,
        doc=(
            "The files to read: a pattern for their names with *, ? and [...], or, if it contains a slash, "
            "for their paths below the folder. Names that begin with _ or . are never read."
        ),
    )
    recursive: bool = option(
        default=True, importance=MEDIUM, group=_FILES, doc="Whether to read files in subfolders too."
    )
    schema: str | None = option(
        default=None,
        importance=MEDIUM,
        validator=non_empty,
        group=_FILES,
        doc=(
            "The columns of the files and their types, as in CREATE TABLE: id BIGINT, at TIMESTAMP. Without "
            "it, the files decide; then CSV columns are strings, and JSON columns are inferred for each load."
        ),
    )
    partition_fields: PartitionFields = option(
        default=PartitionFields.NONE,
        importance=MEDIUM,
        group=_FILES,
        doc=(
            "How folders such as year=2013 become columns: string, as strings; inferred, as integers, dates "
            "and the like if all values in a load are."
        ),
    )
    file_age_ms: Long = option(
        default=5_000,
        importance=MEDIUM,
        validator=at_least(0),
        group=_FILES,
        doc="The time since a file's last modification before it is read, so that its writer has finished.",
    )
    file_late_ms: Long = option(
        default=_HOUR_MS,
        importance=LOW,
        validator=at_least(0),
        group=_FILES,
        doc=(
            "How far the modification time of a file may be behind that of the newest file sent. A file that "
            "appears later than this allows is not sent, and the log says so."
        ),
    )
    load_max_files: int = option(
        default=1_000,
        importance=LOW,
        validator=at_least(1),
        group=_FILES,
        doc="The maximum number of files in one load, after which the offset is committed.",
    )
    load_max_bytes: Long = option(
        default=10 * _GIB,
        importance=LOW,
        validator=at_least(1),
        group=_FILES,
        doc="The maximum size of the files in one load, in bytes, if there is more than one.",
    )

    @property
    def format(self) -> str:
        """The format, by its simple name."""
        simple = re.split(r"[.$]", self.format_class)[-1]
        return {"TextFormat": "StringFormat"}.get(simple, simple)

    @property
    def source(self) -> str:
        """Spark's name for the format."""
        return _SOURCES[self.format][0]

    @property
    def read_options(self) -> dict[str, str]:
        """The options for Spark's reader: Sluice's, overridden by the keys ``read.option.*``."""
        given = {key: value for key, value in self.originals_with_prefix("read.option.").items() if value is not None}
        known = {key.lower() for key in given}
        ours = {key: value for key, value in _SOURCES[self.format][1].items() if key.lower() not in known}
        return ours | given

    @property
    def folder(self) -> str:
        """The folder, as Hadoop names it."""
        return "/".join(filter(None, (self.location.uri, self.topics_dir)))

    def check(self) -> Iterable[ConfigError]:
        """Yield an error for each violated rule that involves several options."""
        if reason := missing_extra("spark", "pyspark", "pandas", "pyarrow"):
            yield ConfigRuleError(f"The source of files cannot run here. {reason}", "connector.class")
        yield from self.store_mistakes()
        yield from self.topic_mistakes("folder")
        if self.format not in FORMATS:
            yield ConfigError("format.class", self.format_class, f"Use one of {', '.join(FORMATS)}.")
            return
        for key in self.originals_with_prefix("read.option."):
            if key.lower() in _OWN_OPTIONS:
                reason = "Which files are read is said by store.url, pattern and recursive: remove the key."
                yield ConfigError(f"read.option.{key}", self.originals[f"read.option.{key}"], reason)
        if self.format == "StringFormat" and (self.columns or self.key_columns or self.timestamp_column):
            reason = "A line of text has no columns: remove columns, key.columns and timestamp.column."
            yield ConfigRuleError(reason, "columns", "key.columns", "timestamp.column")
