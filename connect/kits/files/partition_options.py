"""The options that divide files into folders, under the names of the storage sinks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Final
from zoneinfo import ZoneInfo

from connect.config import HIGH, MEDIUM, Config, Long, non_empty, option
from connect.errors import ConfigError
from connect.kits.files.time_folders import DAY_MS, HOUR_MS, TimeFolders

__all__ = ["PARTITIONERS", "PartitionOptions", "unknown_class"]

_LAYOUT = "Layout"
_DAILY: Final = "'year'=YYYY/'month'=MM/'day'=dd"
PARTITIONERS: Final = (
    "DefaultPartitioner",
    "FieldPartitioner",
    "TimeBasedPartitioner",
    "DailyPartitioner",
    "HourlyPartitioner",
)
_EXTRACTORS: Final = ("Wallclock", "Record", "RecordField")


class PartitionOptions(Config):
    """The options of partitioners."""

    sink_name: ClassVar[str] = "The sink"
    """What errors call the sink."""

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

    def partition_mistakes(self) -> Iterable[ConfigError]:
        """Yield an error for each violated rule that involves several of these options."""
        if self.partitioner not in PARTITIONERS:
            yield unknown_class(self.sink_name, "partitioner.class", self.partitioner_class, PARTITIONERS)
        if self.partitioner == "FieldPartitioner" and not self.partition_field_name:
            reason = "FieldPartitioner needs the names of the fields to partition by: list them here."
            yield ConfigError("partition.field.name", "", reason)
        if self.partitioner not in PARTITIONERS[:2]:
            yield from self._time_mistakes()

    def _time_mistakes(self) -> Iterable[ConfigError]:
        if self.extractor not in _EXTRACTORS:
            yield unknown_class(self.sink_name, "timestamp.extractor", self.timestamp_extractor, _EXTRACTORS)
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


def unknown_class(sink: str, key: str, value: str, known: Iterable[str]) -> ConfigError:
    """Say that a sink has no such class."""
    return ConfigError(key, value, f"{sink} has {', '.join(known)}; use one of them.")
