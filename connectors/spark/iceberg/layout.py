"""Applies the options for files and folders to Iceberg tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from connect.errors import ConfigError
from connectors.spark.iceberg.partitions import PartitionBy
from connectors.spark.options.layout import LayoutOptions
from connectors.spark.stores.s3_objects import service_of
from connectors.spark.stores.s3_parts import ObjectFolder
from connectors.spark.time_folders import DAY_MS, HOUR_MS

if TYPE_CHECKING:
    from connectors.spark.config import SparkSinkConfig
    from connectors.spark.iceberg.data_files import DataWriting

__all__ = ["FILE_FORMATS", "data_writing", "partitions_of", "write_options"]

FILE_FORMATS: Final = ("ParquetFormat", "OrcFormat", "AvroFormat")
_TRANSFORMS: Final = {
    ("DailyPartitioner", -1): "day",
    ("HourlyPartitioner", -1): "hour",
    ("TimeBasedPartitioner", DAY_MS): "day",
    ("TimeBasedPartitioner", HOUR_MS): "hour",
}
_OF_S3: Final = ("spark.hadoop.fs.s3a.", "iceberg.hadoop.", "iceberg.catalog.io-impl", "iceberg.catalog.s3.")
_OF_SPARK: Final = ("spark.sql.parquet.", "spark.hadoop.parquet.", "spark.sql.iceberg.")
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
    """The options of Spark's writer for the files of a table."""
    names = {"ParquetFormat": "parquet", "OrcFormat": "orc", "AvroFormat": "avro"}
    codecs = {"parquet": config.parquet_codec, "orc": config.orc_codec, "avro": config.avro_codec}
    name = names[config.format]
    options = {"write-format": name, "compression-codec": _CODECS.get(codecs[name], codecs[name])}
    if config.target_file_size_bytes is not None:
        options["target-file-size-bytes"] = str(config.target_file_size_bytes)
    return options


def data_writing(config: SparkSinkConfig) -> DataWriting | None:
    """How the executors write files themselves; ``None`` if a key is set that only Spark's writer respects."""
    from connectors.spark.iceberg.data_files import DataWriting  # noqa: PLC0415 - brings pyarrow

    if any(key.startswith(_OF_SPARK) for key in config.originals):
        return None
    if config.format != "ParquetFormat" or config.has_query or config.changes is not None:
        return None
    return DataWriting(config.parquet_codec, config.target_file_size_bytes, _bucket(config))


def _bucket(config: SparkSinkConfig) -> ObjectFolder | None:
    """The store in S3, unless the catalog or Hadoop has its own keys for it."""
    own = any(key.startswith(_OF_S3) for key in config.originals) or config.hadoop_conf_dir is not None
    if own or not config.has_store or config.location.kind != "s3":
        return None
    place = config.location
    return ObjectFolder(service_of(config), place.authority, place.path, config.s3_part_size)
