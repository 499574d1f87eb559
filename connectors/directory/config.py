"""The options of the directory source."""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterable
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from connect.config import (
    HIGH,
    LOW,
    MEDIUM,
    Config,
    ConfigRuleError,
    Long,
    at_least,
    between,
    invalid_value,
    non_empty,
    option,
    validator,
)
from connect.errors import ConfigError, SchemaError
from connectors.directory.column_type import ColumnType, column_type

__all__ = [
    "DirectorySourceConfig",
    "DirectoryTaskConfig",
    "FileFormat",
    "FineTimes",
    "FinishedAction",
    "PartitionFields",
]

_TAB_NAMES: Final = ("\\t", "tab")


class FileFormat(StrEnum):
    """The formats of files."""

    AUTO = "auto"
    CSV = "csv"
    TSV = "tsv"
    JSONL = "jsonl"
    TEXT = "text"
    AVRO = "avro"
    PARQUET = "parquet"
    ORC = "orc"

    @property
    def is_table(self) -> bool:
        """Whether the rows have a schema in the file itself, which is read only as a whole."""
        return self in (FileFormat.AVRO, FileFormat.PARQUET, FileFormat.ORC)


class FineTimes(StrEnum):
    """The treatment of columns of times that count micro- or nanoseconds."""

    REFUSE = "refuse"
    NUMBER = "number"


class PartitionFields(StrEnum):
    """The treatment of folders such as year=2013."""

    NONE = "none"
    STRING = "string"
    INFERRED = "inferred"


class FinishedAction(StrEnum):
    """The treatment of a file after the offset of its last record is committed."""

    LEAVE = "leave"
    MOVE = "move"
    DELETE = "delete"


@validator("one ASCII character, or \\t or tab for a tab")
def _one_character(key: str, value: str) -> None:
    if value not in _TAB_NAMES and not (len(value) == 1 and value.isascii() and value not in "\r\n"):
        raise invalid_value(key, value, "It must be one ASCII character, or tab")


@validator("one ASCII character, or nothing")
def _one_character_or_none(key: str, value: str) -> None:
    if value:
        _one_character(key, value)


@validator("encoding known to Python in which line ends and ASCII characters are the bytes they are in ASCII")
def _ascii_encoding(key: str, value: str) -> None:
    ascii_text = "".join(map(chr, range(128)))
    try:
        compatible = ascii_text.encode(value) == ascii_text.encode("ascii")
    except (LookupError, UnicodeError) as error:
        raise invalid_value(key, value, f"Name an encoding, such as utf-8 or cp1252: {error}") from error
    if not compatible:
        raise invalid_value(key, value, "Convert the files to UTF-8: this encoding is not compatible with ASCII")


@validator("list of name:type")
def _typed_columns(key: str, value: tuple[str, ...]) -> None:
    for item in value:
        name, colon, type_name = item.rpartition(":")
        if not (name and colon):
            raise invalid_value(key, item, "Write each column as name:type")
        try:
            column_type(type_name)
        except SchemaError as error:
            raise invalid_value(key, item, str(error)) from error


class DirectorySourceConfig(Config):
    """The options of the directory source."""

    path: str = option(importance=HIGH, validator=non_empty, doc="Folder of the files.")
    pattern: str = option(
        default="*",
        importance=HIGH,
        validator=non_empty,
        doc="Which files to read: a pattern of their names with *, ? and [...]; if it contains a slash, of their paths "
        "in the folder. Files whose names begin with a dot are never read. Of a zip archive of several files "
        "those are read whose names match, either as they are or with .zip appended.",
    )
    recursive: bool = option(default=False, importance=MEDIUM, doc="Whether files in subfolders are read too.")
    topic: str = option(importance=HIGH, validator=non_empty, doc="Topic to publish the rows to.")
    format: FileFormat = option(
        default=FileFormat.AUTO,
        importance=HIGH,
        doc="The format of the files. With auto it depends on the name: .csv, .tsv, .tab, .jsonl, .ndjson, .json, .txt "
        "or .log, each also with .gz or .zip appended, .avro, .parquet, .orc; other files are skipped with a warning.",
    )
    header: bool = option(
        default=True,
        importance=MEDIUM,
        doc="Whether the first row of a CSV or TSV file contains the names of the columns.",
    )
    columns: tuple[str, ...] = option(
        default=(),
        importance=MEDIUM,
        doc="Names of the columns, in order, instead of those in the header. Without them and without a header the "
        "columns are named column_1, column_2 and so on.",
    )
    types: tuple[str, ...] = option(
        default=(),
        importance=MEDIUM,
        validator=_typed_columns,
        doc="Types of columns, as name:type: string, boolean, int8, int16, int32, int64, float32, float64, "
        "decimal(SCALE), date, time, timestamp. Other columns are strings unless infer.rows says otherwise.",
    )
    infer_rows: int = option(
        default=0,
        importance=MEDIUM,
        validator=between(0, 100_000),
        doc="From how many rows at the beginning of each file to infer the types of columns that are not in types. "
        "With 0 they are strings. The inferred types are boolean, int64, float64, date and timestamp.",
    )
    delimiter: str | None = option(
        default=None,
        importance=MEDIUM,
        validator=_one_character,
        doc="Character between columns: by default a comma in CSV, a tab in TSV. Write a tab as \\t or tab.",
    )
    quote: str = option(
        default='"',
        importance=LOW,
        validator=_one_character_or_none,
        doc="Character around values that contain delimiters, line ends or (doubled) quotes. Empty: no quoting.",
    )
    null_tokens: tuple[str, ...] = option(
        default=(),
        importance=MEDIUM,
        doc="Values of CSV and TSV files that stand for null in every column, such as NA.",
    )
    empty_as_null: bool = option(
        default=True,
        importance=LOW,
        doc="Whether an empty value of a CSV or TSV file, quoted or not, is null. If not, it is an empty string in a "
        "column of strings and a malformed row elsewhere.",
    )
    partition_fields: PartitionFields = option(
        default=PartitionFields.NONE,
        importance=MEDIUM,
        doc="Whether folders such as year=2013 become fields of the rows in them, after their own: string, as texts; "
        "inferred, of the type that infer.rows would find in this value. A type in types goes first. No value, and "
        "__HIVE_DEFAULT_PARTITION__, are null. It needs recursive=true.",
    )
    fine_times: FineTimes = option(
        default=FineTimes.REFUSE,
        importance=LOW,
        doc="What to do with times and timestamps that Parquet and ORC files count in micro- or nanoseconds, which "
        "Connect's types lack: with refuse a value that is not whole milliseconds makes its row malformed; with number "
        "these columns are int64, the numbers in the file.",
    )
    encoding: str = option(
        default="utf-8", importance=LOW, validator=_ascii_encoding, doc="Character encoding of the files."
    )
    batch_size: int = option(default=5000, importance=LOW, validator=at_least(1), doc="Most records in one poll.")
    record_max_bytes: int = option(
        default=16 * 1024 * 1024,
        importance=LOW,
        validator=at_least(1024),
        doc="Longest row in bytes. A file with a longer row is reported and not read any further, an Avro file with a "
        "block of more than four times as much not at all.",
    )
    scan_interval_ms: Long = option(
        default=1000,
        importance=LOW,
        validator=at_least(1),
        doc="How often to scan the folder while there is nothing to read.",
    )
    settle_ms: Long = option(
        default=5000,
        importance=MEDIUM,
        validator=at_least(0),
        doc="How long a file must be unchanged to count as complete. Only then is a last row without a line end "
        "read, a compressed file or a table (Avro, Parquet, ORC) opened, and a file moved or deleted.",
    )
    finished_action: FinishedAction = option(
        default=FinishedAction.LEAVE,
        importance=MEDIUM,
        doc="What to do with a file after all its records are published and its offset is committed.",
    )
    finished_folder: str | None = option(
        default=None,
        importance=MEDIUM,
        doc="Where finished.action=move puts files, on the same file system. Its subfolders are created as needed.",
    )

    def check(self) -> Iterable[ConfigError]:
        """Yield an error for each rule over several options that is broken."""
        if self.finished_action is FinishedAction.MOVE and not self.finished_folder:
            yield ConfigRuleError("finished.action=move needs finished.folder: name a folder", "finished.folder")
        if self.finished_folder and Path(self.finished_folder).absolute() == Path(self.path).absolute():
            yield ConfigRuleError("finished.folder must not be the same folder as path", "finished.folder")
        if self.partition_fields is not PartitionFields.NONE and not self.recursive:
            yield ConfigRuleError("partition.fields needs recursive=true, to read the folders", "partition.fields")
        if self._needs_arrow and find_spec("pyarrow") is None:
            yield ConfigRuleError(
                "Parquet and ORC files need pyarrow, which is not installed: pip install 'sluice-connect[arrow]'",
                "format",
            )
        if len(set(self.columns)) < len(self.columns):
            yield ConfigRuleError("columns must not have a name twice", "columns")
        if self.quote and self.quote == (self.delimiter or ","):
            yield ConfigRuleError("quote and delimiter must be different characters", "quote")

    @property
    def _needs_arrow(self) -> bool:
        by_name = self.format is FileFormat.AUTO and self.pattern.lower().endswith((".parquet", ".orc"))
        return by_name or self.format in (FileFormat.PARQUET, FileFormat.ORC)

    @property
    def column_types(self) -> dict[str, ColumnType]:
        """The types given by ``types``, by the names of the columns."""
        pairs = (item.rpartition(":") for item in self.types)
        return {name: column_type(type_name) for name, _, type_name in pairs}

    @property
    def null_texts(self) -> frozenset[str]:
        """The texts that stand for null."""
        return frozenset((*self.null_tokens, "") if self.empty_as_null else self.null_tokens)

    def delimiter_of(self, file_format: FileFormat) -> str:
        """The delimiter of CSV or TSV files."""
        if self.delimiter is None:
            return "\t" if file_format is FileFormat.TSV else ","
        return "\t" if self.delimiter in _TAB_NAMES else self.delimiter

    @property
    def is_utf8(self) -> bool:
        """Whether files are in UTF-8, or in the part of it that is ASCII."""
        return codecs.lookup(self.encoding).name in ("utf-8", "ascii")


class DirectoryTaskConfig(DirectorySourceConfig):
    """The options of one task: those of the connector, and which files are its share."""

    task_index: int = option(default=0, importance=LOW, internal=True, doc="Which of the tasks this is.")
    task_count: int = option(default=1, importance=LOW, internal=True, doc="How many tasks there are.")
    split_files: str = option(
        default="", importance=LOW, internal=True, doc="The files of a split by their paths in the folder, as JSON."
    )

    @property
    def names_of_split(self) -> frozenset[str] | None:
        """The files of a split, which is read to its present end; ``None`` for a task that goes on."""
        return frozenset(json.loads(self.split_files)) if self.split_files else None
