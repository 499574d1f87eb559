"""File formats: how Spark writes and reads them, what they cannot hold, and how to count their rows."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO, Final

from connect.data import Schema, Type
from connect.data.logical import LOGICAL_NAMES
from connect.errors import SchemaError
from connectors.spark import file_metadata
from connectors.spark.options.layout import LayoutOptions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["FileFormat", "make_format", "paths_of"]

_AVRO_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_CONTAINERS: Final = (Type.STRUCT, Type.ARRAY, Type.MAP)
_KEYS_OF_TEXT: Final = (Type.STRING, Type.BOOLEAN, Type.INT8, Type.INT16, Type.INT32, Type.INT64)
_MICROSECONDS: Final = "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"

Rule = Callable[[str, Schema], "str | None"]
"""Says why a format cannot hold a field, given its own name and its schema; a table, items and keys have no name."""


@dataclass(frozen=True, slots=True)
class FileFormat:
    """A file format, as Spark's data source of that name writes it."""

    name: str
    source: str
    write_options: Mapping[str, str]
    count_rows: Callable[[BinaryIO], int]
    """Counts the rows of a file without decoding them; raises ``ValueError`` or ``OSError`` if it is broken."""
    rule: Rule
    lines: bool = False
    """Whether a file consists only of lines, one for each row, which can be read and written as they are."""
    fills_single: bool = False
    """Whether a row with a single column needs a value there, because files cannot tell null from no row."""
    compacts: bool = True
    field_paths: Callable[[BinaryIO], frozenset[str]] | None = None
    """Returns the field paths of a file, if it has a schema."""

    def check(self, table: Schema) -> None:
        """Raise :class:`~connect.errors.SchemaError` if files of this format cannot hold the rows of a table."""
        for path, name, schema in _fields(table):
            reason = self.rule(name, schema)
            if reason is not None:
                raise SchemaError(f"format.class={self.name} cannot hold the field {path}, {reason}")

    @property
    def holds_lines(self) -> bool:
        """Whether a row is a text that must be a line."""
        return self.source == "text"

    def prepared(self, frame: DataFrame, folders: Sequence[str]) -> DataFrame:
        """Return the rows as Spark should write them; the columns ``folders`` will not be in the files.

        Spark's job fails for a value that files cannot hold: those of a query's result are of no record.
        """
        names = [name for name in frame.columns if name not in folders]
        if not self.fills_single or len(names) != 1:
            return frame
        return _checked(frame, names[0], self)


def make_format(config: LayoutOptions) -> FileFormat:
    """Return the format that ``format.class`` names."""
    text: dict[str, str] = {"compression": config.s3_compression_type}
    times = {"timestampFormat": _MICROSECONDS, "dateFormat": "yyyy-MM-dd"}
    match config.format:
        case "OrcFormat":
            return _columnar("OrcFormat", "orc", config.orc_codec, file_metadata.orc_rows, file_metadata.orc_fields)
        case "AvroFormat":
            codec = "uncompressed" if config.avro_codec == "null" else config.avro_codec
            return _columnar(
                "AvroFormat", "avro", codec, file_metadata.avro_rows, file_metadata.avro_fields, _avro_rule
            )
        case "JsonFormat":
            options = {**text, **times, "ignoreNullFields": "false"}
            return FileFormat("JsonFormat", "json", options, file_metadata.line_rows, _json_rule, lines=True)
        case "CsvFormat":
            options = {**text, **times, "header": "true", "escape": '"', "lineSep": "\n"}
            options |= {"ignoreLeadingWhiteSpace": "false", "ignoreTrailingWhiteSpace": "false"}
            return FileFormat(
                "CsvFormat", "csv", options, file_metadata.csv_rows, _csv_rule, fills_single=True, compacts=False
            )
        case "StringFormat":
            return FileFormat(
                "StringFormat", "text", text, file_metadata.line_rows, _text_rule, lines=True, fills_single=True
            )
    return _columnar(
        "ParquetFormat", "parquet", config.parquet_codec, file_metadata.parquet_rows, file_metadata.parquet_fields
    )


def paths_of(table: Schema) -> frozenset[str]:
    """Return the paths of all fields of a table, in the form that :mod:`~connectors.spark.file_metadata` uses."""
    return frozenset(path for path, _, _ in _fields(table))


def _fields(schema: Schema, path: str = "", name: str = "") -> Iterator[tuple[str, str, Schema]]:
    """Yield all fields of a schema with their paths and names, nested ones too; the schema itself has the path ``""``.

    A name may have dots and brackets of its own, so that it does not follow from the path.
    """
    yield path, name, schema
    for each in schema.fields:
        yield from _fields(each.schema, f"{path}.{each.name}" if path else each.name, each.name)
    for inner in (schema.key_schema, schema.value_schema):
        if inner is not None:
            yield from _fields(inner, f"{path}[]")


def _columnar(
    name: str,
    source: str,
    codec: str,
    count_rows: Callable[[BinaryIO], int],
    paths: Callable[[BinaryIO], frozenset[str]],
    rule: Rule | None = None,
) -> FileFormat:
    """Return a format whose files have a schema."""
    return FileFormat(name, source, {"compression": codec}, count_rows, rule or _anything, field_paths=paths)


def _anything(_name: str, _schema: Schema) -> str | None:
    return None


def _avro_rule(name: str, schema: Schema) -> str | None:
    if schema.key_schema is not None and schema.key_schema.type is not Type.STRING:
        return "a map whose keys are not strings: use another format."
    if name and not _AVRO_NAME.fullmatch(name):
        return (
            "because Avro names may only contain letters, digits and _, and may not start with a digit: "
            "rename it (ReplaceField), or use another format."
        )
    return None


def _json_rule(_name: str, schema: Schema) -> str | None:
    key = schema.key_schema
    if key is not None and (key.type not in _KEYS_OF_TEXT or key.name in LOGICAL_NAMES):
        return "a map whose keys are neither strings nor integers: use another format."
    return None


def _csv_rule(name: str, schema: Schema) -> str | None:
    if name and schema.type in _CONTAINERS:
        return f"which is of type {schema.type.value}: flatten the records (Flatten), or use another format."
    if schema.type is Type.BYTES and schema.name not in LOGICAL_NAMES:
        return "which is of type bytes: use another format, or drop the field (ReplaceField)."
    return None


def _text_rule(name: str, schema: Schema) -> str | None:
    if not name:
        if len(schema.fields) != 1:
            names = ", ".join(schema.field_names)
            return f"because the records have {len(schema.fields)} fields ({names}), and a line holds a single text."
        return None
    if schema.type is not Type.STRING:
        return f"which is of type {schema.type.value}: it must be a string, as StringConverter produces."
    return None


def _checked(frame: DataFrame, name: str, file_format: FileFormat) -> DataFrame:
    """Return the rows, so that Spark's job fails for a value of their only column that files cannot hold."""
    from pyspark.sql import functions  # noqa: PLC0415 - only the driver has pyspark

    column = functions.col(f"`{name.replace('`', '``')}`")
    bad, what = column.isNull(), "is null"
    if file_format.holds_lines:
        bad, what = bad | column.rlike("[\r\n]"), "is null or contains a line break"
    reason = functions.lit(
        f"A value of column {name} {what}, which files of format.class={file_format.name} with this column alone "
        "cannot hold: use JsonFormat, or leave such rows out in the query (sql)."
    )
    return frame.withColumn(name, functions.when(bad, functions.raise_error(reason)).otherwise(column))
