"""The options that decide how the files of a table look: their format, folders and sizes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Final, Literal

from connect.config import HIGH, LOW, MEDIUM, Config, Long, at_least, option
from connect.errors import ConfigError
from connect.kits.files.partition_options import PartitionOptions, unknown_class

__all__ = ["DEFAULT_FILE_SIZE", "FORMATS", "LayoutOptions"]

DEFAULT_FILE_SIZE: Final = 128 * 1024 * 1024

_LAYOUT = "Layout"
FORMATS: Final = ("ParquetFormat", "OrcFormat", "AvroFormat", "JsonFormat", "CsvFormat", "StringFormat")
_ALSO: Final = {"TextFormat": "StringFormat"}


class _FormatOptions(Config):
    """What comes first in the reference."""

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


class LayoutOptions(PartitionOptions, _FormatOptions):
    """The options of files and folders, under the names of the storage sinks."""

    sink_name: ClassVar[str] = "The Spark sink"

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
            yield unknown_class(self.sink_name, "format.class", self.format_class, FORMATS)
        yield from self.partition_mistakes()
        if self.compact_interval_ms is not None and self.format == "CsvFormat":
            reason = (
                "CSV files cannot be compacted, because their columns are known only by their order: remove the key."
            )
            yield ConfigError("compact.interval.ms", self.compact_interval_ms, reason)

    @property
    def format(self) -> str:
        """The simple name of the format."""
        name = self.format_class.rpartition(".")[2]
        return _ALSO.get(name, name)
