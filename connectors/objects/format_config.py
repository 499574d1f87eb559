"""The options that say what files look like: their format, their compression, and what of a record is in them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, Literal

from connect.config import HIGH, LOW, MEDIUM, Config, at_least, between, list_values, matches, option
from connect.errors import ConfigError
from connect.kits.avro.config import AvroDataConfig
from connect.kits.files.formats.arrow_files import OrcFormat, ParquetFormat
from connect.kits.files.formats.avro_container import AvroCodec, AvroFormat
from connect.kits.files.formats.compression import Compression
from connect.kits.files.formats.delimited import CsvFormat
from connect.kits.files.formats.record_writer import FileFormat
from connect.kits.files.formats.text_lines import ByteArrayFormat, JsonArrayFormat, JsonFormat, StringFormat
from connect.kits.files.partition_options import unknown_class

__all__ = ["FORMATS", "OUTPUT_FIELDS", "FormatOptions"]

FORMATS: Final = (
    "AvroFormat",
    "JsonFormat",
    "ParquetFormat",
    "ByteArrayFormat",
    "StringFormat",
    "CsvFormat",
    "TsvFormat",
    "OrcFormat",
)
OUTPUT_FIELDS: Final = ("key", "value", "offset", "timestamp", "headers")
_ALSO: Final = {"TextFormat": "StringFormat", "JsonLinesFormat": "JsonFormat"}
_ESCAPES: Final = {"\\n": "\n", "\\r": "\r", "\\t": "\t", "\\\\": "\\"}
_FORMAT: Final = "Format"
_RECORD: Final = "Records"


class FormatOptions(Config):
    """The options of formats, under the names of Confluent's and of Aiven's sinks."""

    format_class: str | None = option(
        default=None,
        importance=HIGH,
        group=_FORMAT,
        doc=(
            "The format of the files: AvroFormat, JsonFormat (a value per line), ParquetFormat, ByteArrayFormat (the "
            "bytes of each value and a separator), StringFormat (a line of text per value), CsvFormat (with a header), "
            "TsvFormat (the same, divided by tabs) "
            "or OrcFormat. The Java classes with these names are accepted. Required, unless format.output.type or "
            "another key of Aiven's sinks is set."
        ),
    )
    avro_codec: AvroCodec = option(
        default="null", importance=LOW, group=_FORMAT, doc="The compression of the blocks of Avro files."
    )
    parquet_codec: Literal["none", "gzip", "snappy", "lz4", "brotli", "zstd"] = option(
        default="snappy", importance=LOW, group=_FORMAT, doc="The compression of Parquet files."
    )
    orc_codec: Literal["none", "snappy", "zlib", "lz4", "zstd"] = option(
        default="snappy", importance=LOW, group=_FORMAT, doc="The compression of ORC files."
    )
    file_compression_type: Compression = option(
        default="none",
        importance=MEDIUM,
        group=_FORMAT,
        doc="The compression of files of JSON, CSV, text and bytes. Snappy is that of Java's SnappyOutputStream.",
    )
    s3_compression_type: Literal["none", "gzip"] = option(
        default="none",
        importance=LOW,
        group=_FORMAT,
        doc="The same as file.compression.type, under the name of Confluent's S3 sink.",
    )
    s3_compression_level: int = option(
        default=-1,
        importance=LOW,
        validator=between(-1, 9),
        group=_FORMAT,
        doc="How much gzip compresses, from 1, fast, to 9, small; -1 is its own choice.",
    )
    json_decimal_format: str = option(
        default="BASE64",
        importance=MEDIUM,
        ignore_case=True,
        validator=matches("(?i)BASE64|NUMERIC", "one of BASE64, NUMERIC (in any case)"),
        group=_FORMAT,
        doc="How JsonFormat writes decimals: BASE64 of the unscaled value, or NUMERIC, a number.",
    )
    format_bytearray_extension: str = option(
        default=".bin",
        importance=LOW,
        validator=matches(r"[^/]*", "end of a file's name"),
        group=_FORMAT,
        doc="The end of the names of files of ByteArrayFormat.",
    )
    format_bytearray_separator: str | None = option(
        default=None,
        importance=LOW,
        group=_FORMAT,
        doc=(
            "What ByteArrayFormat writes behind each value: a line feed without this key. \\n, \\r, \\t and \\\\ are "
            "understood. A value that contains it looks like several."
        ),
    )
    connect_meta_data: bool = option(
        default=True,
        importance=LOW,
        group=_FORMAT,
        doc="Whether Avro schemas keep in connect.* properties what Avro lacks, such as the names of logical types.",
    )
    enhanced_avro_schema_support: bool = option(
        default=True, importance=LOW, group=_FORMAT, doc="Whether AvroFormat writes enums as such."
    )
    allow_optional_map_keys: bool = option(
        default=False,
        importance=LOW,
        group=_FORMAT,
        doc="Whether AvroFormat writes maps whose keys are optional strings as Avro maps.",
    )
    store_kafka_keys: bool = option(
        default=False,
        importance=LOW,
        group=_RECORD,
        doc="Whether to write the keys, too, to files beside those of the values: NAME.keys.EXTENSION.",
    )
    store_kafka_headers: bool = option(
        default=False,
        importance=LOW,
        group=_RECORD,
        doc="Whether to write the headers, too, to files beside those of the values: NAME.headers.EXTENSION.",
    )
    keys_format_class: str = option(
        default="AvroFormat", importance=LOW, group=_RECORD, doc="The format of the files of keys."
    )
    headers_format_class: str = option(
        default="AvroFormat", importance=LOW, group=_RECORD, doc="The format of the files of headers."
    )
    format_output_type: Literal["csv", "json", "jsonl", "parquet", "avro"] | None = option(
        default=None,
        importance=MEDIUM,
        group=_FORMAT,
        doc=(
            "In place of format.class: records as Aiven's sinks write them, with the parts in format.output.fields. "
            "csv (without a header), json (an array per file), jsonl, parquet or avro."
        ),
    )
    format_output_fields: tuple[str, ...] = option(
        default=("value",),
        importance=MEDIUM,
        validator=list_values(*OUTPUT_FIELDS, ignore_case=True),
        group=_FORMAT,
        doc="With format.output.type: which parts of a record are written, in this order: key, value, offset, "
        "timestamp, headers. All five keep a record completely.",
    )
    format_output_fields_value_encoding: str = option(
        default="base64",
        importance=MEDIUM,
        ignore_case=True,
        validator=matches("(?i)none|base64", "one of none, base64 (in any case)"),
        group=_FORMAT,
        doc="With format.output.type=csv: how values are written, in base64 or as they are.",
    )
    format_output_envelope: bool = option(
        default=True,
        importance=MEDIUM,
        group=_FORMAT,
        doc="With format.output.type and one part: whether that is in an object or record, or stands for itself.",
    )
    schemas_cache_config: int = option(
        default=1000,
        importance=LOW,
        validator=at_least(1),
        group=_FORMAT,
        doc="Accepted for compatibility, without effect: schemas are kept as long as they are used.",
    )

    @property
    def has_output_type(self) -> bool:
        """Whether records are written as Aiven's sinks write them."""
        return self.format_output_type is not None

    def format_mistakes(self, sink_name: str) -> Iterable[ConfigError]:
        """Yield an error for each violated rule that involves several of these options."""
        given = {"keys.format.class": self.keys_format_class, "headers.format.class": self.headers_format_class}
        if self.format_class is not None:
            given["format.class"] = self.format_class
        for key, value in given.items():
            if _simple(value) not in FORMATS:
                yield unknown_class(sink_name, key, value, FORMATS)
        if self.format_class is not None and self.has_output_type:
            yield ConfigError(
                "format.output.type", self.format_output_type, "format.class says it: give one of the two."
            )
        beside = {"store.kafka.keys": self.store_kafka_keys, "store.kafka.headers": self.store_kafka_headers}
        for key in (key for key, is_set in beside.items() if is_set and self.has_output_type):
            yield ConfigError(key, "true", "With format.output.type, list keys and headers in format.output.fields.")
        if self.has_output_type and not self.format_output_envelope and len(self.format_output_fields) > 1:
            reason = "Several parts of a record need an envelope: set true, or one part in format.output.fields."
            yield ConfigError("format.output.envelope", "false", reason)

    def value_format(self) -> FileFormat:
        """Return the format of the values, or of what ``format.output.type`` makes of records."""
        if self.format_output_type is not None:
            return self._output_format(self.format_output_type)
        return self._format(self.format_class or "")

    def keys_format(self) -> FileFormat:
        """Return the format of keys."""
        return self._format(self.keys_format_class)

    def headers_format(self) -> FileFormat:
        """Return the format of headers."""
        return self._format(self.headers_format_class)

    @property
    def compression(self) -> Compression:
        """The compression of whole files."""
        return self.s3_compression_type if self.file_compression_type == "none" else self.file_compression_type

    def _format(self, name: str) -> FileFormat:
        whole: tuple[Compression, int] = (self.compression, self.s3_compression_level)
        makers: Mapping[str, Callable[[], FileFormat]] = {
            "AvroFormat": lambda: AvroFormat(self.avro_codec, self._avro),
            "JsonFormat": lambda: JsonFormat(*whole, numeric_decimals=self.json_decimal_format.upper() == "NUMERIC"),
            "ParquetFormat": lambda: ParquetFormat(self.parquet_codec),
            "ByteArrayFormat": lambda: ByteArrayFormat(*whole, self.format_bytearray_extension, self._separator),
            "StringFormat": lambda: StringFormat(*whole),
            "CsvFormat": lambda: CsvFormat(*whole),
            "TsvFormat": lambda: CsvFormat(*whole, suffix=".tsv", delimiter="\t"),
            "OrcFormat": lambda: OrcFormat(self.orc_codec),
        }
        return makers[_simple(name)]()

    def _output_format(self, kind: str) -> FileFormat:
        """Return a format whose files have no ending but that of their compression."""
        whole: tuple[Compression, int] = (self.compression, self.s3_compression_level)
        numeric = self.json_decimal_format.upper() == "NUMERIC"
        match kind:
            case "csv":
                return StringFormat(*whole, suffix="")
            case "json":
                return JsonArrayFormat(*whole, suffix="", numeric_decimals=numeric)
            case "jsonl":
                return JsonFormat(*whole, suffix="", numeric_decimals=numeric)
            case "avro":
                return AvroFormat(self.avro_codec, self._avro)
        return ParquetFormat(self.parquet_codec)

    @property
    def _avro(self) -> AvroDataConfig:
        return AvroDataConfig(
            connect_meta_data=self.connect_meta_data,
            enhanced_avro_schema_support=self.enhanced_avro_schema_support,
            allow_optional_map_keys=self.allow_optional_map_keys,
        )

    @property
    def _separator(self) -> bytes:
        text = "\n" if self.format_bytearray_separator is None else self.format_bytearray_separator
        for escape, meant in _ESCAPES.items():
            text = text.replace(escape, meant)
        return text.encode()


def _simple(name: str) -> str:
    last = name.rpartition(".")[2]
    return _ALSO.get(last, last)
