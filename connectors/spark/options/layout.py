"""The options that decide how the files of a table look: their format, folders and sizes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal
from zoneinfo import ZoneInfo

from connect.config import HIGH, LOW, MEDIUM, Config, Long, at_least, non_empty, option
from connect.errors import ConfigError
from connectors.spark.time_folders import DAY_MS, HOUR_MS, TimeFolders

__all__ = ["DEFAULT_FILE_SIZE", "EXTRACTORS", "FORMATS", "PARTITIONERS", "LayoutOptions"]

DEFAULT_FILE_SIZE: Final = 128 * 1024 * 1024

_LAYOUT = "Layout"
_DAILY: Final = "'year'=YYYY/'month'=MM/'day'=dd"

PARTITIONERS: Final = (
    "DefaultPartitioner",
    "FieldPartitioner",
    "TimeBasedPartitioner",
    "DailyPartitioner",
    "HourlyPartitioner",
)
EXTRACTORS: Final = ("Wallclock", "Record", "RecordField")
FORMATS: Final = ("ParquetFormat", "OrcFormat", "AvroFormat", "JsonFormat", "CsvFormat", "StringFormat")
_ALSO: Final = {"TextFormat": "StringFormat"}


class LayoutOptions(Config):
    """The options of files and folders, under the names of the storage sinks."""

    format_class: str = option(
        default="ParquetFormat",
        importance=HIGH,
        group=_LAYOUT,
        doc=(
            "The format of the files: ParquetFormat, OrcFormat, AvroFormat, JsonFormat (one object per line), "
            "CsvFormat (with a header), or StringFormat (a single text column, one value per line). The Java "
            "classes with these names are accepted."
        ),
    )
    parquet_codec: Literal["none", "gzip", "snappy", "zstd"] = option(
        default="snappy",
        importance=LOW,
        group=_LAYOUT,
        doc="The compression of Parquet files.",
    )
    orc_codec: Literal["none", "snappy", "zlib", "zstd"] = option(
        default="snappy",
        importance=LOW,
        group=_LAYOUT,
        doc="The compression of ORC files.",
    )
    avro_codec: Literal["null", "deflate", "snappy", "bzip2", "xz", "zstandard"] = option(
        default="null",
        importance=LOW,
        group=_LAYOUT,
        doc="The compression of the blocks of Avro files.",
    )
    s3_compression_type: Literal["none", "gzip"] = option(
        default="none",
        importance=LOW,
        group=_LAYOUT,
        doc="The compression of JSON, CSV and text files, in any store: none or gzip.",
    )
    partitioner_class: str = option(
        default="DefaultPartitioner",
        importance=HIGH,
        group=_LAYOUT,
        doc=(
            "How a table is divided into folders: DefaultPartitioner by the partition of the topic "
            "(partition=0), FieldPartitioner by the fields in partition.field.name (origin=EWR), "
            "TimeBasedPartitioner by path.format and partition.duration.ms, DailyPartitioner "
            "(year=2013/month=01/day=01) and HourlyPartitioner (.../hour=05). The Java classes with these "
            "names are accepted."
        ),
    )
    partition_field_name: tuple[str, ...] = option(
        default=(),
        importance=MEDIUM,
        group=_LAYOUT,
        doc=(
            "The fields for FieldPartitioner; a.b is the field b of the struct a. The values of top-level "
            "fields appear only in the folder names, not in the files."
        ),
    )
    partition_duration_ms: Long = option(
        default=-1,
        importance=MEDIUM,
        group=_LAYOUT,
        doc="The length of time that one folder of TimeBasedPartitioner covers.",
    )
    path_format: str = option(
        default="",
        importance=MEDIUM,
        group=_LAYOUT,
        doc="How TimeBasedPartitioner names folders: a pattern of Joda-Time, such as 'year'=YYYY/'month'=MM/'day'=dd.",
    )
    timestamp_extractor: str = option(
        default="Wallclock",
        importance=MEDIUM,
        group=_LAYOUT,
        doc=(
            "Which time decides the folder of a record: Wallclock, the time of its load; Record, its "
            "timestamp in Kafka; RecordField, the field timestamp.field. The Java classes with these names "
            "are accepted."
        ),
    )
    timestamp_field: str = option(
        default="timestamp",
        importance=MEDIUM,
        validator=non_empty,
        group=_LAYOUT,
        doc=(
            "The field that RecordField reads the time from: a Timestamp or Date, milliseconds since 1970, or "
            "ISO 8601 text, which is in UTC unless it names a zone. a.b is the field b of the struct a."
        ),
    )
    timezone: str = option(
        default="UTC",
        importance=MEDIUM,
        group=_LAYOUT,
        doc="The time zone of the folders, such as Europe/Paris.",
    )
    locale: str = option(
        default="en",
        importance=MEDIUM,
        group=_LAYOUT,
        doc=(
            "The language of the names of months and days in path.format. Only English is supported; patterns "
            "with numbers only accept any locale."
        ),
    )
    filename_offset_zero_pad_width: int = option(
        default=10,
        importance=LOW,
        validator=at_least(0),
        group=_LAYOUT,
        doc=(
            "The number of digits that offsets in file names are padded to, so that names sort in the order of offsets."
        ),
    )
    target_file_size_bytes: Long | None = option(
        default=None,
        importance=MEDIUM,
        validator=at_least(1024 * 1024),
        group=_LAYOUT,
        doc=(
            "The approximate size that files should have. The records of a load that belong in one folder are "
            "brought together into one file, or into several of about this size. Without this key, 134217728 "
            "is used for folders by field or time and for compaction; where folders are topic partitions, "
            "each Spark task then writes a file of its own."
        ),
    )
    compact_interval_ms: Long | None = option(
        default=None,
        importance=MEDIUM,
        validator=at_least(1),
        group=_LAYOUT,
        doc=(
            "How often to merge the small files of the tables, after a load. Without it, files are merged "
            "only by `sluice compact`."
        ),
    )

    def layout_mistakes(self) -> Iterable[ConfigError]:
        """Yield an error for each violated rule that involves several of these options."""
        if self.format not in FORMATS:
            yield _unknown("format.class", self.format_class, FORMATS)
        if self.partitioner not in PARTITIONERS:
            yield _unknown("partitioner.class", self.partitioner_class, PARTITIONERS)
        if self.partitioner == "FieldPartitioner" and not self.partition_field_name:
            reason = "FieldPartitioner needs the names of the fields to partition by: list them here."
            yield ConfigError("partition.field.name", "", reason)
        if self.partitioner not in PARTITIONERS[:2]:
            yield from self._time_mistakes()
        if self.compact_interval_ms is not None and self.format == "CsvFormat":
            reason = (
                "CSV files cannot be compacted, because their columns are known only by their order: remove the key."
            )
            yield ConfigError("compact.interval.ms", self.compact_interval_ms, reason)

    def _time_mistakes(self) -> Iterable[ConfigError]:
        if self.extractor not in EXTRACTORS:
            yield _unknown("timestamp.extractor", self.timestamp_extractor, EXTRACTORS)
        try:
            ZoneInfo(self.timezone or "UTC")
        except (OSError, ValueError):
            reason = "There is no such time zone: use a name like Europe/Paris, or UTC."
            yield ConfigError("timezone", self.timezone, reason)
            return
        if self.partitioner == "TimeBasedPartitioner":
            if self.partition_duration_ms <= 0:
                reason = (
                    "TimeBasedPartitioner needs the length of time that a folder covers, in "
                    "milliseconds: 3600000 is an hour."
                )
                yield ConfigError("partition.duration.ms", self.partition_duration_ms, reason)
            yield from self._path_mistakes()

    def _path_mistakes(self) -> Iterable[ConfigError]:
        try:
            folders = TimeFolders(self.path_format, HOUR_MS, self.timezone or "UTC")
            written, has_text = folders.folder(0), folders.format.has_text
        except ValueError as error:
            reason = f"{error}. Write it like {_DAILY}; text stands in quotes."
            yield ConfigError("path.format", self.path_format, reason)
            return
        if any(not part or part.startswith(("_", ".")) for part in written.split("/")):
            reason = f"It makes the folder {written!r}: its parts must not be empty or begin with _ or '.'."
            yield ConfigError("path.format", self.path_format, reason)
        language = self.locale.replace("_", "-").partition("-")[0].lower()
        if has_text and language not in ("", "en"):
            reason = (
                f"path.format={self.path_format} writes names, and only English ones are known: use numbers, or en."
            )
            yield ConfigError("locale", self.locale, reason)

    @property
    def format(self) -> str:
        """The simple name of the format."""
        name = self.format_class.rpartition(".")[2]
        return _ALSO.get(name, name)

    @property
    def partitioner(self) -> str:
        """The simple name of the partitioner."""
        return self.partitioner_class.rpartition(".")[2]

    @property
    def extractor(self) -> str:
        """The simple name of the extractor; Java's class is ``TimeBasedPartitioner$RecordTimestampExtractor``."""
        name = self.timestamp_extractor.replace("$", ".").rpartition(".")[2]
        return name.removesuffix("TimestampExtractor")

    @property
    def time_folders(self) -> TimeFolders | None:
        """The folders of a time-based partitioner."""
        zone = self.timezone or "UTC"
        match self.partitioner:
            case "DailyPartitioner":
                return TimeFolders(_DAILY, DAY_MS, zone)
            case "HourlyPartitioner":
                return TimeFolders(f"{_DAILY}/'hour'=HH", HOUR_MS, zone)
            case "TimeBasedPartitioner":
                return TimeFolders(self.path_format, self.partition_duration_ms, zone)
        return None


def _unknown(key: str, value: str, known: Iterable[str]) -> ConfigError:
    return ConfigError(key, value, f"The Spark sink has {', '.join(known)}; use one of them.")
