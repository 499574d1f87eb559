"""Compaction of a Delta table by Delta's own statements."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from connect.sink import CompactedTable
from connectors.spark.delta.log import is_conflict, quoted_path

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["compact_table"]

_LARGEST: Final = "spark.databricks.delta.optimize.maxFileSize"
_SMALL: Final = "spark.databricks.delta.optimize.minFileSize"


def compact_table(spark: SparkSession, name: str, path: str, target_size: int | None) -> CompactedTable | None:
    """Merge the small files of a table, and delete those that nobody has needed for a week; ``None`` if none is small.

    Another writer that changes the same files at the same time wins: then they are merged the next time.
    """
    if target_size is not None:
        spark.conf.set(_LARGEST, target_size)
        spark.conf.set(_SMALL, target_size)
    try:
        metrics = spark.sql(f"OPTIMIZE {quoted_path(path)}").collect()[0]["metrics"]
    except Exception as error:
        if not is_conflict(error):
            raise
        return None
    if not metrics["numFilesRemoved"]:
        return None
    spark.sql(f"VACUUM {quoted_path(path)}")
    before, after = metrics["filesRemoved"], metrics["filesAdded"]
    return CompactedTable(name, before["totalFiles"], after["totalFiles"], before["totalSize"], after["totalSize"])
