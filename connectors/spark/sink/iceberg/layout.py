"""Applies the options for files and folders to Iceberg tables."""

from __future__ import annotations

from typing import Final

from connect.errors import ConfigError
from connect.kits.files.time_folders import DAY_MS, HOUR_MS
from connectors.spark.iceberg.partitions import PartitionBy
from connectors.spark.options.layout import LayoutOptions

__all__ = ["FILE_FORMATS", "partitions_of", "write_options"]

FILE_FORMATS: Final = ("ParquetFormat", "OrcFormat", "AvroFormat")
_TRANSFORMS: Final = {
    ("DailyPartitioner", -1): "day",
    ("HourlyPartitioner", -1): "hour",
    ("TimeBasedPartitioner", DAY_MS): "day",
    ("TimeBasedPartitioner", HOUR_MS): "hour",
}
# Iceberg's names for codecs that the formats name differently.
_CODECS: Final = {"none": "uncompressed", "null": "uncompressed", "deflate": "gzip", "zstandard": "zstd"}


def partitions_of(config: LayoutOptions) -> tuple[PartitionBy, ...]:
    """Return an Iceberg table's partitioning for a partitioner: by fields and time, never by topic partition.

    Raises :class:`~connect.errors.ConfigError` for times that are not a column: Iceberg partitions rows by their
    columns.
    """
    if config.partitioner == "DefaultPartitioner":
        return ()
    if config.partitioner == "FieldPartitioner":
        return tuple(PartitionBy(name) for name in config.partition_field_name)
    if config.extractor != "RecordField":
        reason = (
            "An Iceberg table can only be divided by the time in a column: use RecordField and timestamp.field, or "
            "iceberg.tables.default-partition-by."
        )
        raise ConfigError("timestamp.extractor", config.timestamp_extractor, reason)
    if config.timezone not in ("", "UTC"):
        reason = "The days and hours of Iceberg are those of UTC: remove the key."
        raise ConfigError("timezone", config.timezone, reason)
    span = config.partition_duration_ms if config.partitioner == "TimeBasedPartitioner" else -1
    transform = _TRANSFORMS.get((config.partitioner, span))
    if transform is None:
        reason = "Name hours (3600000) or days (86400000), or use iceberg.tables.default-partition-by."
        raise ConfigError("partition.duration.ms", span, reason)
    return (PartitionBy(config.timestamp_field, transform),)


def write_options(config: LayoutOptions) -> dict[str, str]:
    """Return the options of Spark's writer for the files of a table."""
    names = {"ParquetFormat": "parquet", "OrcFormat": "orc", "AvroFormat": "avro"}
    codecs = {"parquet": config.parquet_codec, "orc": config.orc_codec, "avro": config.avro_codec}
    name = names[config.format]
    options = {"write-format": name, "compression-codec": _CODECS.get(codecs[name], codecs[name])}
    if config.target_file_size_bytes is not None:
        options["target-file-size-bytes"] = str(config.target_file_size_bytes)
    return options
