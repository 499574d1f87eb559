"""The options that decide how the files of a table look: their format, their folders, their sizes."""

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
        doc="The format of the files: ParquetFormat, OrcFormat, AvroFormat, JsonFormat (an object a line), CsvFormat "
        "(with a header), or StringFormat (one column of text, a value a line). The Java classes of these names are "
        "accepted.",
    )
    parquet_codec: Literal["none", "gzip", "snappy", "zstd"] = option(
        default="snappy",
        importance=LOW,
        group=_LAYOUT,
        doc="Compression of the Parquet files.",
    )
    orc_codec: Literal["none", "snappy", "zlib", "zstd"] = option(
        default="snappy",
        importance=LOW,
        group=_LAYOUT,
        doc="Compression of the ORC files.",
    )
    avro_codec: Literal["null", "deflate", "snappy", "bzip2", "xz", "zstandard"] = option(
        default="null",
        importance=LOW,
        group=_LAYOUT,
        doc="Compression of the blocks of Avro files.",
    )
    s3_compression_type: Literal["none", "gzip"] = option(
        default="none",
        importance=LOW,
        group=_LAYOUT,
        doc="Compression of JSON, CSV and text files, in any store: none or gzip.",
    )
    partitioner_class: str = option(
        default="DefaultPartitioner",
        importance=HIGH,
        group=_LAYOUT,
        doc="How a table is divided into folders: DefaultPartitioner by the partition of the topic (partition=0), "
        "FieldPartitioner by the fields of partition.field.name (origin=EWR), TimeBasedPartitioner by path.format and "
        "partition.duration.ms, DailyPartitioner (year=2013/month=01/day=01) and HourlyPartitioner (.../hour=05). The "
        "Java classes of these names are accepted.",
    )
    partition_field_name: tuple[str, ...] = option(
        default=(),
        importance=MEDIUM,
        group=_LAYOUT,
        doc="The fields that FieldPartitioner divides by; a.b is the field b of the struct a. The values of fields "
        "that are not nested are only in the names of the folders.",
    )
    partition_duration_ms: Long = option(
        default=-1,
        importance=MEDIUM,
        group=_LAYOUT,
        doc="The span of time of a folder of TimeBasedPartitioner.",
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
        doc="Which time decides on the folder of a record: Wallclock, the time of its load; Record, its timestamp in "
        "Kafka; RecordField, timestamp.field. The Java classes of these names are accepted.",
    )
    timestamp_field: str = option(
        default="timestamp",
        importance=MEDIUM,
        validator=non_empty,
        group=_LAYOUT,
        doc="The field that RecordField takes the time from: a Timestamp or Date, milliseconds since 1970, or text in "
        "the form of ISO 8601, which is in UTC if it names no zone. a.b is the field b of the struct a.",
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
        doc="The language of names of months and days in path.format; only English ones are known. Patterns of numbers "
        "alone take any.",
    )
    filename_offset_zero_pad_width: int = option(
        default=10,
        importance=LOW,
        validator=at_least(0),
        group=_LAYOUT,
        doc="To how many digits offsets in file names are padded, so that names sort as offsets do.",
    )
    target_file_size_bytes: Long | None = option(
        default=None,
        importance=MEDIUM,
        validator=at_least(1024 * 1024),
        group=_LAYOUT,
        doc="About how large files should become: the records of a load that belong into a folder are brought together "
        "in one file, or in several of about this size. Without it that is done, with 134217728, for folders by the "
        "values and times of records, and when tables are compacted; where folders are the partitions of the topic, "
        "each task of Spark then writes a file of its own.",
    )
    compact_interval_ms: Long | None = option(
        default=None,
        importance=MEDIUM,
        validator=at_least(1),
        group=_LAYOUT,
        doc="How often the small files of the tables are merged, after a load. Without it they are when somebody calls "
        "`sluice compact`.",
    )

    def layout_mistakes(self) -> Iterable[ConfigError]:
        """Yield an error for each rule over several of these options that is broken."""
        if self.format not in FORMATS:
            yield _unknown("format.class", self.format_class, FORMATS)
        if self.partitioner not in PARTITIONERS:
            yield _unknown("partitioner.class", self.partitioner_class, PARTITIONERS)
        if self.partitioner == "FieldPartitioner" and not self.partition_field_name:
            reason = "FieldPartitioner needs the names of the fields to divide by."
            yield ConfigError("partition.field.name", "", reason)
        if self.partitioner not in PARTITIONERS[:2]:
            yield from self._time_mistakes()
        if self.compact_interval_ms is not None and self.format == "CsvFormat":
            reason = "CSV files are not compacted, for their columns are known by their order alone: remove the key."
            yield ConfigError("compact.interval.ms", self.compact_interval_ms, reason)

    def _time_mistakes(self) -> Iterable[ConfigError]:
        if self.extractor not in EXTRACTORS:
            yield _unknown("timestamp.extractor", self.timestamp_extractor, EXTRACTORS)
        try:
            ZoneInfo(self.timezone or "UTC")
        except (OSError, ValueError):
            reason = "There is no time zone of that name: use one like Europe/Paris, or UTC."
            yield ConfigError("timezone", self.timezone, reason)
            return
        if self.partitioner == "TimeBasedPartitioner":
            if self.partition_duration_ms <= 0:
                reason = "TimeBasedPartitioner needs the span of time of a folder, in milliseconds: 3600000 is an hour."
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
        """The folders of a partitioner by time."""
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
