"""The options that say how files are named, when they end, and how much memory they may take."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Final, Literal
from zoneinfo import ZoneInfo

from connect.config import HIGH, LOW, MEDIUM, Config, Long, at_least, matches, non_empty, option
from connect.errors import ConfigError
from connect.kits.files.name_template import NameTemplate, TemplateError
from connect.kits.files.partition_options import PartitionOptions
from connect.kits.files.record_time import RecordTimes
from connect.kits.files.rotation import RotationRules

__all__ = ["LayoutOptions"]

_LAYOUT: Final = "Layout"
_ROTATION: Final = "Rotation"
_NAMES: Final = "File names"
_DEFAULT_TEMPLATE: Final = "{{topic}}-{{partition}}-{{start_offset}}"
_MIB: Final = 1 << 20


class _RotationOptions(Config):
    """When files end."""

    flush_size: int | None = option(
        default=None,
        importance=HIGH,
        validator=at_least(1),
        group=_ROTATION,
        doc="How many records of a topic partition end its files.",
    )
    rotate_interval_ms: Long = option(
        default=-1,
        importance=HIGH,
        group=_ROTATION,
        doc="How far apart in time, by timestamp.extractor, the records of a file may be. By the records' own times it "
        "is repeatable; with Wallclock it also ends files to which no record comes. -1: no limit.",
    )
    rotate_schedule_interval_ms: Long = option(
        default=-1,
        importance=MEDIUM,
        group=_ROTATION,
        doc="How often all files end, by the clock, counted from midnight in timezone; exactly once, too. -1: never.",
    )
    rotate_idle_interval_ms: Long = option(
        default=-1,
        importance=MEDIUM,
        group=_ROTATION,
        doc="After how long without a record of a topic partition its files end. -1: never.",
    )
    rotate_file_on_partition_change: bool = option(
        default=True,
        importance=LOW,
        group=_ROTATION,
        doc="With rotate.interval.ms and a time-based partitioner: whether a record of another folder ends the files.",
    )
    partitioner_max_open_files: int = option(
        default=-1,
        importance=LOW,
        group=_ROTATION,
        doc="How many folders of a topic partition may have open files before all of them end. -1: no limit.",
    )
    file_max_bytes: Long = option(
        default=0,
        importance=MEDIUM,
        validator=at_least(0),
        group=_ROTATION,
        doc="How many bytes, before compression by Parquet or ORC, end the files of a topic partition. 0: no limit.",
    )
    file_max_records: int = option(
        default=0,
        importance=MEDIUM,
        validator=at_least(0),
        group=_ROTATION,
        doc="The same as flush.size, under the name of Aiven's sinks. 0: no limit.",
    )
    rotate_on_offset_commit: bool = option(
        default=False,
        importance=LOW,
        group=_ROTATION,
        doc="Whether all files end whenever offsets are committed (offset.flush.interval.ms of the worker). Files of "
        "format.output.type or file.name.template do, unless flush.size or a rotate key is set. With "
        "run.until=drained, this writes the last records.",
    )
    buffer_max_bytes: Long = option(
        default=64 * _MIB,
        importance=MEDIUM,
        validator=at_least(_MIB),
        group=_ROTATION,
        doc="How many bytes all open files of a task may hold in memory. Beyond that, the files that are open longest "
        "end.",
    )
    schema_compatibility: Literal["NONE", "BACKWARD", "FORWARD", "FULL"] = option(
        default="NONE",
        importance=HIGH,
        group=_ROTATION,
        doc="What a change of schema does. NONE: each schema has files of its own. BACKWARD, FULL: a newer version "
        "ends the files, records of an older one are projected to it. FORWARD: the other way round.",
    )


class _NameOptions(Config):
    """How files are named."""

    topics_dir: str = option(
        default="topics",
        importance=HIGH,
        validator=matches(r"([^/]+(/[^/]+)*)?", "relative path"),
        group=_NAMES,
        doc="The folder that has those of the topics.",
    )
    directory_delim: str = option(
        default="/",
        importance=MEDIUM,
        validator=non_empty,
        group=_NAMES,
        doc="What divides the parts of a path.",
    )
    file_delim: str = option(
        default="+",
        importance=MEDIUM,
        validator=matches(r"[^/]+", "text without a slash"),
        group=_NAMES,
        doc="What divides the parts of a file's name.",
    )
    filename_offset_zero_pad_width: int = option(
        default=10,
        importance=LOW,
        validator=at_least(0),
        group=_NAMES,
        doc="How many digits the offsets in file names have at least.",
    )
    combine_partitions: bool = option(
        default=False,
        importance=MEDIUM,
        group=_NAMES,
        doc="Whether the partitions of a topic share files: TOPIC+all+NUMBER-MARK, without a folder for each. "
        "The rules by which files end count the records of all partitions then. The connector has a single task.",
    )
    s3_schema_partition_affix_type: Literal["NONE", "PREFIX", "SUFFIX"] = option(
        default="NONE",
        importance=LOW,
        group=_NAMES,
        doc="Whether the name of the record's schema is a folder before or behind those of the partitioner: "
        "schema_name=NAME.",
    )
    tombstone_encoded_partition: str = option(
        default="tombstone",
        importance=LOW,
        validator=matches(r"[^/]+", "name of a folder"),
        group=_NAMES,
        doc="The folder of records without a value, with behavior.on.null.values=write.",
    )
    file_name_template: str | None = option(
        default=None,
        importance=MEDIUM,
        group=_NAMES,
        doc="In place of folders and partitioners: the names of files as in Aiven's sinks, with {{topic}}, "
        "{{partition}}, {{start_offset}} (both also with :padding=true), {{timestamp:unit=yyyy|MM|dd|HH}} and {{key}}. "
        "With {{key}}, a file has the last record of its key.",
    )
    file_name_prefix: str = option(
        default="",
        importance=MEDIUM,
        group=_NAMES,
        doc="What is put before the names of file.name.template.",
    )
    file_name_timestamp_timezone: str = option(
        default="UTC", importance=LOW, group=_NAMES, doc="The time zone of {{timestamp}}."
    )
    file_name_timestamp_source: str = option(
        default="WALLCLOCK",
        importance=LOW,
        ignore_case=True,
        validator=matches("(?i)WALLCLOCK|EVENT", "one of WALLCLOCK, EVENT (in any case)"),
        group=_NAMES,
        doc="What {{timestamp}} is: the time by the clock, or that of the record in Kafka.",
    )


class LayoutOptions(_RotationOptions, _NameOptions, PartitionOptions):
    """The options of files, under the names of Confluent's and of Aiven's sinks."""

    sink_name: ClassVar[str] = "The sink"

    def layout_mistakes(self, *, has_output_type: bool) -> Iterable[ConfigError]:
        """Yield an error for each violated rule that involves several of these options."""
        yield from self.partition_mistakes()
        yield from self._template_mistakes()
        if self.extractor not in ("Wallclock", "Record", "RecordField"):
            reason = "It must be Wallclock, Record or RecordField, or the Java class of one of them."
            yield ConfigError("timestamp.extractor", self.timestamp_extractor, reason)
        if self.directory_delim != "/" and "/" in self.directory_delim:
            yield ConfigError("directory.delim", self.directory_delim, "Use a slash, or a text without one.")
        rules = self.rotation_rules()
        ends = (rules.records, rules.time_ms, rules.schedule_ms, rules.idle_ms, rules.most_bytes)
        on_commit = self.rotates_on_commit(has_output_type=has_output_type)
        if not on_commit and all(end is None for end in ends):
            reason = (
                "It says how many records a file has. Set it, or another rule by which files end: rotate.interval.ms, "
                "rotate.schedule.interval.ms, rotate.idle.interval.ms or file.max.bytes."
            )
            yield ConfigError("flush.size", None, reason)

    def _template_mistakes(self) -> Iterable[ConfigError]:
        try:
            ZoneInfo(self.file_name_timestamp_timezone)
        except (OSError, ValueError):
            reason = "There is no such time zone: use a name like Europe/Paris, or UTC."
            yield ConfigError("file.name.timestamp.timezone", self.file_name_timestamp_timezone, reason)
            return
        if self.file_name_template is None:
            return
        if self.combine_partitions:
            reason = "Files of several partitions are named TOPIC+all+NUMBER: remove the key, or combine.partitions."
            yield ConfigError("file.name.template", self.file_name_template, reason)
        try:
            self.template.check()
        except TemplateError as error:
            yield ConfigError("file.name.template", self.file_name_template, f"It cannot be used: {error}.")
            return
        if self.template.by_key and self.file_max_records not in (0, 1):
            reason = "A file of a key has one record: remove the key, or set 1."
            yield ConfigError("file.max.records", self.file_max_records, reason)

    @property
    def has_template(self) -> bool:
        """Whether a template names the files."""
        return self.file_name_template is not None

    @property
    def template(self) -> NameTemplate:
        """The template of names."""
        text = self.file_name_template or _DEFAULT_TEMPLATE
        return NameTemplate(self.file_name_prefix + text, self.file_name_timestamp_timezone)

    @property
    def record_times(self) -> RecordTimes:
        """What tells the times by which records get their folders, and files end."""
        kind: Literal["Wallclock", "Record", "RecordField"] = "Wallclock"
        if self.has_template:
            return RecordTimes("Record" if self.file_name_timestamp_source.upper() == "EVENT" else kind)
        if self.extractor == "Record":
            kind = "Record"
        elif self.extractor == "RecordField":
            kind = "RecordField"
        return RecordTimes(kind, self.timestamp_field)

    def rotation_rules(self) -> RotationRules:
        """Return when files end."""
        time_ms = _positive(self.rotate_interval_ms)
        return RotationRules(
            records=self.flush_size or self._records_of_aiven,
            time_ms=time_ms,
            on_folder_change=time_ms is not None
            and self.rotate_file_on_partition_change
            and self.time_folders_are_used,
            most_files=_positive(self.partitioner_max_open_files),
            most_bytes=_positive(self.file_max_bytes),
            schedule_ms=_positive(self.rotate_schedule_interval_ms),
            timezone=self.timezone or "UTC",
            idle_ms=_positive(self.rotate_idle_interval_ms),
        )

    @property
    def _records_of_aiven(self) -> int | None:
        # With a file for each key, the number is of records in each of them.
        return None if self.template.by_key else _positive(self.file_max_records)

    def rotates_on_commit(self, *, has_output_type: bool) -> bool:
        """Whether files end when offsets are committed."""
        own = (self.rotate_interval_ms, self.rotate_schedule_interval_ms, self.rotate_idle_interval_ms)
        is_aivens = has_output_type or self.has_template
        ruled = self.flush_size is not None or any(number > 0 for number in own)
        return self.rotate_on_offset_commit or (is_aivens and not ruled)

    @property
    def time_folders_are_used(self) -> bool:
        """Whether folders go by time."""
        return not self.has_template and self.partitioner not in ("DefaultPartitioner", "FieldPartitioner")


def _positive(number: int) -> int | None:
    return number if number > 0 else None
