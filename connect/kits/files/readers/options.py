"""The options that say how files are read: their format, columns, types and encoding."""

from __future__ import annotations

import codecs
from collections.abc import Iterable
from enum import StrEnum
from importlib.util import find_spec
from typing import ClassVar, Final

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
    option,
    validator,
)
from connect.errors import ConfigError, SchemaError
from connect.kits.files.readers.column_type import ColumnType, column_type

__all__ = ["FileFormat", "FineTimes", "PartitionFields", "ReadingOptions"]

_TAB_NAMES: Final = ("\\t", "tab")


class FileFormat(StrEnum):
    """The file formats."""

    AUTO = "auto"
    CSV = "csv"
    TSV = "tsv"
    JSONL = "jsonl"
    JSON = "json"
    TEXT = "text"
    BYTES = "bytes"
    AVRO = "avro"
    PARQUET = "parquet"
    ORC = "orc"

    @property
    def is_table(self) -> bool:
        """Whether files of this format contain their own schema and are read only when complete."""
        return self in (FileFormat.AVRO, FileFormat.PARQUET, FileFormat.ORC)


class FineTimes(StrEnum):
    """What to do with times in micro- or nanoseconds."""

    REFUSE = "refuse"
    NUMBER = "number"


class PartitionFields(StrEnum):
    """What to do with folders such as year=2013."""

    NONE = "none"
    STRING = "string"
    INFERRED = "inferred"


@validator("one ASCII character, or \\t or tab for a tab")
def _one_character(key: str, value: str) -> None:
    if value not in _TAB_NAMES and not (len(value) == 1 and value.isascii() and value not in "\r\n"):
        raise invalid_value(key, value, "Use one ASCII character, or tab")


@validator("one ASCII character, or nothing")
def _one_character_or_none(key: str, value: str) -> None:
    if value:
        _one_character(key, value)


@validator("text of at least one character, with the escapes \\n, \\t and so on")
def _separator(key: str, value: str) -> None:
    try:
        is_text = bool(value.encode("latin-1").decode("unicode_escape"))
    except UnicodeError:
        is_text = False
    if not is_text:
        raise invalid_value(key, value, "Write it as \\n")


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


class ReadingOptions(Config):
    """How the rows of files are read."""

    format: FileFormat = option(
        default=FileFormat.AUTO,
        importance=HIGH,
        doc="Format of the files. auto decides by the name: .csv, .tsv, .tab, .jsonl, .ndjson, .json, .txt or .log, "
        "each also with .gz or .zip appended, .avro, .parquet or .orc; other files are skipped with a warning. "
        "json: JSON values one after the other, on any number of lines, or in an array. bytes: each file is one value, "
        "or as many as bytes.chunk.size says.",
    )
    header: bool = option(
        default=True,
        importance=MEDIUM,
        doc="Whether the first row of a CSV or TSV file contains the column names.",
    )
    columns: tuple[str, ...] = option(
        default=(),
        importance=MEDIUM,
        doc="Column names, in order, in place of those in the header. Without names and without a header, the columns "
        "are named column_1, column_2 and so on.",
    )
    types: tuple[str, ...] = option(
        default=(),
        importance=MEDIUM,
        validator=_typed_columns,
        doc="Column types, as name:type. The types are string, boolean, int8, int16, int32, int64, float32, float64, "
        "decimal(SCALE), date, time and timestamp. Columns not listed are strings, unless infer.rows is set.",
    )
    infer_rows: int = option(
        default=0,
        importance=MEDIUM,
        validator=between(0, 100_000),
        doc="Number of rows at the beginning of each file from which to infer the types of columns that are not in "
        "types. With 0 they are strings. The inferred types are boolean, int64, float64, date and timestamp.",
    )
    delimiter: str | None = option(
        default=None,
        importance=MEDIUM,
        validator=_one_character,
        doc="Character between columns; by default a comma in CSV and a tab in TSV files. Write a tab as \\t or tab.",
    )
    quote: str = option(
        default='"',
        importance=LOW,
        validator=_one_character_or_none,
        doc="Character around values that contain delimiters, line endings or (doubled) quotes. If empty, there is no "
        "quoting.",
    )
    escape: str = option(
        default="",
        importance=LOW,
        validator=_one_character_or_none,
        doc="Character that, before a quote or before itself within a quoted value of a CSV or TSV file, makes it part "
        "of the value. Doubled quotes are always read as one.",
    )
    skip_lines: int = option(
        default=0,
        importance=LOW,
        validator=at_least(0),
        doc="Number of lines to pass over at the beginning of each CSV, TSV, text or JSON lines file.",
    )
    bytes_chunk_size: int = option(
        default=0,
        importance=LOW,
        validator=at_least(0),
        doc="With format=bytes, the number of bytes of a value; the last of a file has fewer. With 0 a file is one "
        "value, which record.max.bytes limits.",
    )
    bytes_separator: str | None = option(
        default=None,
        importance=LOW,
        validator=_separator,
        doc="With format=bytes, what ends each value, such as \\n, with the escapes of Python; the last may lack it.",
    )
    null_tokens: tuple[str, ...] = option(
        default=(),
        importance=MEDIUM,
        doc="Values of CSV and TSV files that mean null in every column, such as NA.",
    )
    empty_as_null: bool = option(
        default=True,
        importance=LOW,
        doc="Whether an empty value of a CSV or TSV file, quoted or not, is null. Otherwise it is an empty string in "
        "a string column, and makes the row malformed in other columns.",
    )
    partition_fields: PartitionFields = option(
        default=PartitionFields.NONE,
        importance=MEDIUM,
        doc="Whether folders such as year=2013 become fields of the rows in them, after the fields of the file: as "
        "strings (string), or in the type that infer.rows would infer from the value (inferred). types takes "
        "precedence. An empty value and __HIVE_DEFAULT_PARTITION__ mean null. Requires recursive=true.",
    )
    fine_times: FineTimes = option(
        default=FineTimes.REFUSE,
        importance=LOW,
        doc="What to do with times and timestamps that Parquet and ORC files store in micro- or nanoseconds, while "
        "Connect's types have milliseconds. refuse: a value that is not a whole number of milliseconds makes its "
        "row malformed. number: such columns become int64, with the numbers in the file.",
    )
    encoding: str = option(
        default="utf-8", importance=LOW, validator=_ascii_encoding, doc="Character encoding of the files."
    )
    record_max_bytes: int = option(
        default=16 * 1024 * 1024,
        importance=LOW,
        validator=at_least(1024),
        doc="Maximum length of a row in bytes. A file with a longer row is reported and not read any further; an Avro "
        "file with a block of more than four times this size is not read at all.",
    )
    settle_ms: Long = option(
        default=5000,
        importance=MEDIUM,
        validator=at_least(0),
        doc="How long a file must be unchanged to count as complete. Only then does the connector read a last row "
        "without a line ending, open a compressed, Avro, Parquet or ORC file, and move or delete a file.",
    )

    def reading_mistakes(self, pattern: str = "") -> Iterable[ConfigError]:
        """Yield an error for each violated rule over several of these options, for files of these names."""
        if self._needs_arrow(pattern) and find_spec("pyarrow") is None:
            yield ConfigRuleError(
                "Parquet and ORC files need pyarrow, which is not installed: pip install 'sluice-connect[arrow]'",
                "format",
            )
        if len(set(self.columns)) < len(self.columns):
            yield ConfigRuleError("columns must not have a name twice", "columns")
        if self.quote and self.quote == (self.delimiter or ","):
            yield ConfigRuleError("quote and delimiter must be different characters", "quote")

    @property
    def struct_name(self) -> str:
        """The name of the schema of rows that have none of their own."""
        return "Row"

    def _needs_arrow(self, pattern: str) -> bool:
        if self.format is FileFormat.AUTO and pattern.lower().endswith((".parquet", ".orc")):
            return True
        return self.format in (FileFormat.PARQUET, FileFormat.ORC)

    @property
    def column_types(self) -> dict[str, ColumnType]:
        """The types given by ``types``, by column name."""
        pairs = (item.rpartition(":") for item in self.types)
        return {name: column_type(type_name) for name, _, type_name in pairs}

    @property
    def null_texts(self) -> frozenset[str]:
        """The values that mean null."""
        return frozenset((*self.null_tokens, "") if self.empty_as_null else self.null_tokens)

    def delimiter_of(self, file_format: FileFormat) -> str:
        """Return the delimiter of CSV or TSV files."""
        if self.delimiter is None:
            return "\t" if file_format is FileFormat.TSV else ","
        return "\t" if self.delimiter in _TAB_NAMES else self.delimiter

    @property
    def separator(self) -> bytes:
        """What ends each value of ``format=bytes``; empty if nothing does."""
        return (self.bytes_separator or "").encode("latin-1").decode("unicode_escape").encode("latin-1", "replace")

    has_mark: ClassVar[bool] = True
    """Whether a byte order mark at the beginning of a file is none of its text."""

    @property
    def is_utf8(self) -> bool:
        """Whether files are in UTF-8 or in ASCII, a subset of it."""
        return codecs.lookup(self.encoding).name in ("utf-8", "ascii")
