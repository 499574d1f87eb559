"""The options of the SpoolDir sources, and of Confluent's SFTP sources, which are theirs on a server."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from enum import StrEnum
from functools import cached_property
from typing import ClassVar, Final

from connect.config import (
    HIGH,
    LOW,
    MEDIUM,
    ConfigRuleError,
    Long,
    at_least,
    non_empty,
    option,
)
from connect.errors import ConfigError, SchemaError
from connect.internals.java.regex import regex_from_java, valid_java_regex
from connect.kits.files.readers.options import ReadingOptions
from connect.kits.files.systems.address import Address, parse_address, place_beside
from connect.kits.files.systems.options import FileSystemOptions
from connect.kits.files.systems.sftp_options import SftpServerOptions
from connectors.directory.spool.schemas import ValueSchemas, parse_schema

__all__ = [
    "BehaviorOnError",
    "CleanupPolicy",
    "SftpOptions",
    "SpoolConfig",
    "SpoolCsvConfig",
    "SpoolJsonConfig",
    "SpoolSchemaConfig",
    "TimestampMode",
]

_SORTS: Final = ("NameAsc", "NameDesc", "LengthAsc", "LengthDesc", "LastModifiedAsc", "LastModifiedDesc")
_PLAIN: Final = "com.github.jcustenborder.kafka.connect.model"


class CleanupPolicy(StrEnum):
    """What happens to files whose records are all published."""

    NONE = "NONE"
    DELETE = "DELETE"
    MOVE = "MOVE"
    MOVEBYDATE = "MOVEBYDATE"


class TimestampMode(StrEnum):
    """Where the timestamps of records come from."""

    FIELD = "FIELD"
    FILE_TIME = "FILE_TIME"
    PROCESS_TIME = "PROCESS_TIME"


class MetadataLocation(StrEnum):
    """Where the facts about the file go."""

    HEADERS = "HEADERS"
    NONE = "NONE"


class BehaviorOnError(StrEnum):
    """What happens when a file cannot be read on."""

    FAIL = "FAIL"
    LOG = "LOG"
    IGNORE = "IGNORE"


class SpoolConfig(FileSystemOptions):
    """The options of all of these sources."""

    passed_keys = ()

    topic: str | None = option(default=None, importance=HIGH, doc="Topic to publish to; required.")
    input_path: str = option(
        importance=HIGH, validator=non_empty, doc="Folder of the files: a path, or a URL such as sftp://HOST/FOLDER."
    )
    input_file_pattern: str = option(
        importance=HIGH,
        validator=valid_java_regex,
        doc="Regular expression for the names of the files, as in Java; it must match the whole name.",
    )
    finished_path: str | None = option(
        default=None,
        importance=HIGH,
        doc="Folder for files whose records are all published, on the same file system; for cleanup.policy=MOVE and "
        "MOVEBYDATE.",
    )
    error_path: str = option(
        importance=HIGH, validator=non_empty, doc="Folder for files that cannot be read on, on the same file system."
    )
    halt_on_error: bool = option(
        default=True,
        importance=HIGH,
        doc="Whether the task fails once such a file is moved to error.path; otherwise the next file is read.",
    )
    cleanup_policy: CleanupPolicy = option(
        default=CleanupPolicy.MOVE,
        importance=MEDIUM,
        doc="What happens to files when the offsets of all their records are committed. MOVEBYDATE moves them into a "
        "folder of the day on which they were last modified. NONE leaves them; they are not read again.",
    )
    file_minimum_age_ms: Long = option(
        default=0, importance=LOW, validator=at_least(0), doc="How long a file must be unchanged before it is read."
    )
    batch_size: int = option(default=1000, importance=LOW, validator=at_least(1), doc="Most records of a poll.")
    empty_poll_wait_ms: Long = option(
        default=500,
        importance=LOW,
        validator=at_least(1),
        doc="How often to look for files when there is nothing to read.",
    )
    files_sort_attributes: tuple[str, ...] = option(
        default=("NameAsc",),
        importance=LOW,
        doc=f"The order in which the files that are there are read: {', '.join(_SORTS)}.",
    )
    input_path_walk_recursively: bool = option(
        default=False,
        importance=LOW,
        doc="Whether files in subfolders are read; they keep their subfolders when moved.",
    )
    timestamp_mode: TimestampMode = option(
        default=TimestampMode.PROCESS_TIME,
        importance=MEDIUM,
        doc="The timestamps of records: that of timestamp.field, the file's last modification, or the time of sending.",
    )
    metadata_location: MetadataLocation = option(
        default=MetadataLocation.HEADERS,
        importance=LOW,
        doc="Whether each record has headers about its file: file.name, file.path, file.length, file.offset and so on.",
    )
    record_max_bytes: int = option(
        default=16 * 1024 * 1024,
        importance=LOW,
        validator=at_least(1024),
        doc="Maximum length of a record in the file.",
    )
    files_notifications_enabled: bool = option(
        default=False, importance=LOW, doc="Must be false: records about files are not published."
    )
    task_partitioner: str = option(
        default="ByName", importance=LOW, doc="Must be ByName: the tasks share the files by a hash of their names."
    )
    cleanup_policy_maintain_relative_path: bool = option(
        default=True, importance=LOW, doc="Without effect: emptied subfolders of input.path stay."
    )
    processing_file_extension: str = option(
        default=".PROCESSING", importance=LOW, doc="Without effect: no flag files are made beside files that are read."
    )
    file_buffer_size_bytes: int = option(default=131_072, importance=LOW, doc="Without effect.")
    task_index: int = option(default=0, importance=LOW, internal=True, doc="The index of the task.")
    task_count: int = option(default=1, importance=LOW, internal=True, doc="The number of tasks.")

    form: ClassVar[str] = "text"
    """The format of the files, as :class:`ReadingOptions` has it."""

    def check(self) -> Iterable[ConfigError]:
        """Yield an error for each violated rule over several options."""
        if not self.topic_name:
            yield ConfigError(self.topic_key, None, "Name the topic to publish to.")
        moves = self.cleanup_policy in (CleanupPolicy.MOVE, CleanupPolicy.MOVEBYDATE)
        if moves and not self.finished_path:
            yield ConfigError("finished.path", None, f"cleanup.policy={self.cleanup_policy} needs a folder.")
        if self.files_notifications_enabled:
            yield ConfigError("files.notifications.enabled", True, "Records about files are not published: set false.")
        if self.task_partitioner != "ByName":
            yield ConfigError("task.partitioner", self.task_partitioner, "Only ByName is supported.")
        for name in self.files_sort_attributes:
            if name not in _SORTS:
                yield ConfigError("files.sort.attributes", name, f"Use {', '.join(_SORTS)}.")
        if self.timestamp_mode is TimestampMode.FIELD and not isinstance(self, SpoolSchemaConfig):
            yield ConfigError("timestamp.mode", "FIELD", "The values of these files have no fields: use FILE_TIME.")
        mistakes = list(self.system_mistakes("input.path", self.folder_text))
        yield from mistakes or self._place_mistakes()

    def _place_mistakes(self) -> Iterable[ConfigError]:
        """Yield an error for each folder to which files cannot be moved."""
        for key, folder in (("finished.path", self.finished_path), ("error.path", self.error_path)):
            try:
                place_beside(key, self.address, folder or "")
            except ConfigError as error:
                yield error
        if self.address.scheme in ("http", "https") and self.cleanup_policy is not CleanupPolicy.NONE:
            message = "Files at http:// can only be read: set NONE, or use DirectorySource, which needs no error.path."
            yield ConfigError("cleanup.policy", self.cleanup_policy, message)

    topic_key: ClassVar[str] = "topic"

    @property
    def topic_name(self) -> str:
        """The topic to publish to."""
        return self.topic or ""

    @property
    def halts(self) -> bool:
        """Whether the task fails once a file is moved to ``error.path``."""
        return self.halt_on_error

    @property
    def folder_text(self) -> str:
        """The folder as a path or URL."""
        return self.input_path

    @property
    def address(self) -> Address:
        """The address of the folder."""
        return parse_address("input.path", self.folder_text)

    @property
    def finished_place(self) -> str | None:
        """The folder for finished files, as the file system names it."""
        return place_beside("finished.path", self.address, self.finished_path) if self.finished_path else None

    @property
    def error_place(self) -> str:
        """The folder for files that cannot be read on, as the file system names it."""
        return place_beside("error.path", self.address, self.error_path)

    @cached_property
    def name_pattern(self) -> re.Pattern[str]:
        """The pattern of the names of files."""
        return regex_from_java(self.input_file_pattern)

    @property
    def reading(self) -> ReadingOptions:
        """How files are read."""
        own = {
            "format": self.form,
            "settle.ms": str(self.file_minimum_age_ms),
            "record.max.bytes": str(self.record_max_bytes),
            "empty.as.null": "false",
        }
        return ReadingOptions.parse({**own, **self.reading_props()})

    def reading_props(self) -> Mapping[str, str]:
        """Return the keys of :class:`ReadingOptions` that these files need."""
        return {}


class SpoolLinesConfig(SpoolConfig):
    """The options of lines of text."""

    file_charset: str = option(
        default="UTF-8", importance=LOW, validator=non_empty, doc="Character encoding of the files."
    )

    def reading_props(self) -> Mapping[str, str]:
        """Return the encoding."""
        return {"encoding": self.file_charset}


class SpoolBinaryConfig(SpoolConfig):
    """The options of files that are one value each."""

    form = "bytes"


class SpoolAvroConfig(SpoolConfig):
    """The options of Avro container files."""

    form = "avro"


class SpoolTextJsonConfig(SpoolConfig):
    """The options of JSON that is published as text."""

    form = "json"


class SpoolSchemaConfig(SpoolConfig):
    """The options of files whose rows have schemas."""

    key_schema: str | None = option(
        default=None,
        importance=HIGH,
        doc='Schema of the key as JSON, such as {"name": "Key", "type": "STRUCT", "isOptional": false, "fieldSchemas": '
        '{"id": {"type": "INT64", "isOptional": false}}}. Its fields are taken from those of the value.',
    )
    value_schema: str | None = option(default=None, importance=HIGH, doc="Schema of the value, in the same form.")
    schema_generation_enabled: bool = option(
        default=False,
        importance=MEDIUM,
        doc="Whether schemas are made from the files: a struct of optional strings, named as "
        "schema.generation.value.name says.",
    )
    schema_generation_key_fields: tuple[str, ...] = option(
        default=(), importance=MEDIUM, doc="The fields of the key, if schemas are made; without any there is no key."
    )
    schema_generation_key_name: str = option(
        default=f"{_PLAIN}.Key", importance=MEDIUM, doc="Name of the key's schema."
    )
    schema_generation_value_name: str = option(
        default=f"{_PLAIN}.Value", importance=MEDIUM, doc="Name of the value's schema."
    )
    timestamp_field: str | None = option(
        default=None, importance=MEDIUM, doc="The field for timestamp.mode=FIELD: a timestamp that is not optional."
    )
    parser_timestamp_timezone: str = option(
        default="UTC", importance=LOW, validator=non_empty, doc="Time zone of dates and times in the files."
    )
    parser_timestamp_date_formats: tuple[str, ...] = option(
        default=("yyyy-MM-dd'T'HH:mm:ss", "yyyy-MM-dd' 'HH:mm:ss"),
        importance=LOW,
        doc="Patterns of dates and times, as in Java's SimpleDateFormat; the first that matches a text is used.",
    )

    def check(self) -> Iterable[ConfigError]:
        """Yield an error for each violated rule over several options."""
        yield from super().check()
        if not self.schema_generation_enabled:
            for key, text in (("key.schema", self.key_schema), ("value.schema", self.value_schema)):
                if not text:
                    yield ConfigError(key, None, "Give the schema, or set schema.generation.enabled=true.")
        try:
            schemas = self.schemas
        except ConfigError as error:
            yield error
            return
        field = self.timestamp_field
        if self.timestamp_mode is TimestampMode.FIELD and not (field and schemas.is_timestamp(field)):
            yield ConfigRuleError(
                "timestamp.mode=FIELD needs timestamp.field: a field of value.schema, a Timestamp and not optional",
                "timestamp.field",
            )

    @cached_property
    def schemas(self) -> ValueSchemas:
        """The schemas of keys and values, and how texts become values of them."""
        given = not self.schema_generation_enabled
        try:
            key = parse_schema(self.key_schema) if given and self.key_schema else None
        except SchemaError as error:
            raise ConfigError("key.schema", self.key_schema, str(error)) from error
        try:
            value = parse_schema(self.value_schema) if given and self.value_schema else None
        except SchemaError as error:
            raise ConfigError("value.schema", self.value_schema, str(error)) from error
        return ValueSchemas(
            key,
            value,
            self.schema_generation_key_fields,
            (self.schema_generation_key_name, self.schema_generation_value_name),
            self.parser_timestamp_date_formats,
            self.parser_timestamp_timezone,
        )


class SpoolJsonConfig(SpoolSchemaConfig):
    """The options of JSON with schemas."""

    form = "json"


class SpoolCsvConfig(SpoolSchemaConfig):
    """The options of CSV."""

    form = "csv"

    csv_first_row_as_header: bool = option(
        default=False,
        importance=MEDIUM,
        doc="Whether the first row has the names of the columns; otherwise they are the fields of value.schema.",
    )
    csv_separator_char: int = option(default=44, importance=LOW, doc="Character between columns, as a number.")
    csv_quote_char: int = option(default=34, importance=LOW, doc="Character around values, as a number.")
    csv_escape_char: int = option(
        default=92,
        importance=LOW,
        doc="Character before a quote, or itself, within a quoted value, as a number; 0 for none.",
    )
    csv_skip_lines: int = option(
        default=0, importance=LOW, validator=at_least(0), doc="Lines to pass over at the beginning of a file."
    )
    csv_file_charset: str = option(default="UTF-8", importance=LOW, validator=non_empty, doc="Character encoding.")
    csv_null_field_indicator: str = option(
        default="NEITHER", importance=LOW, doc="BOTH: an empty value is null. NEITHER: it is an empty text."
    )
    csv_rfc_4180_parser_enabled: bool = option(
        default=False, importance=LOW, doc="Whether no character but the doubled quote escapes another."
    )
    csv_strict_quotes: bool = option(default=False, importance=LOW, doc="Must be false.")
    csv_ignore_quotations: bool = option(default=False, importance=LOW, doc="Must be false.")
    csv_keep_carriage_return: bool = option(default=False, importance=LOW, doc="Must be false.")
    csv_ignore_leading_whitespace: bool = option(
        default=True, importance=LOW, doc="Without effect: blanks before a quote make the row malformed."
    )
    csv_case_sensitive_field_names: bool = option(
        default=False, importance=LOW, doc="Without effect: names are told apart by their case."
    )
    csv_verify_reader: bool = option(default=True, importance=LOW, doc="Without effect.")

    def check(self) -> Iterable[ConfigError]:
        """Yield an error for each violated rule over several options."""
        yield from super().check()
        unsupported = {
            "csv.strict.quotes": self.csv_strict_quotes,
            "csv.ignore.quotations": self.csv_ignore_quotations,
            "csv.keep.carriage.return": self.csv_keep_carriage_return,
        }
        for key, value in unsupported.items():
            if value:
                yield ConfigError(key, True, "It is not supported: set false.")
        if self.csv_null_field_indicator not in ("BOTH", "NEITHER"):
            told = "Quoted and other empty values are not told apart: use BOTH or NEITHER."
            yield ConfigError("csv.null.field.indicator", self.csv_null_field_indicator, told)
        if self.schema_generation_enabled and not self.csv_first_row_as_header:
            yield ConfigError(
                "csv.first.row.as.header", False, "Schemas are made from the header: set true, or give value.schema."
            )
        try:
            mistakes = list(self.reading.reading_mistakes())
        except ConfigError as error:
            mistakes = [error]
        for mistake in mistakes:
            yield ConfigRuleError(f"The options of CSV do not go together: {mistake}", "csv.separator.char")

    def reading_props(self) -> Mapping[str, str]:
        """Return the options of CSV under their own names."""
        escapes = self.csv_escape_char and not self.csv_rfc_4180_parser_enabled
        names = () if self.schemas.value is None or self.csv_first_row_as_header else self.schemas.value.field_names
        tab = {"\t": "tab"}
        separator = chr(self.csv_separator_char)
        return {
            "header": str(self.csv_first_row_as_header).lower(),
            "columns": ",".join(names),
            "delimiter": tab.get(separator, separator),
            "quote": chr(self.csv_quote_char) if self.csv_quote_char else "",
            "escape": chr(self.csv_escape_char) if escapes and self.csv_escape_char != self.csv_quote_char else "",
            "skip.lines": str(self.csv_skip_lines),
            "encoding": self.csv_file_charset,
            "empty.as.null": str(self.csv_null_field_indicator == "BOTH").lower(),
        }


class SftpOptions(SftpServerOptions):
    """What Confluent's SFTP sources name otherwise."""

    kafka_topic: str | None = option(default=None, importance=HIGH, doc="Topic to publish to; required.")
    behavior_on_error: BehaviorOnError = option(
        default=BehaviorOnError.FAIL,
        importance=HIGH,
        doc="Whether the task fails once a file that cannot be read on is moved to error.path. LOG and IGNORE read the "
        "next one; both log the error.",
    )
