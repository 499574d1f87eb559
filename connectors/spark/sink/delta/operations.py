"""Delta's own operations on a table: merge and compact."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from connect.data import Schema
from connect.sink import CompactedTable
from connectors.spark.delta.log import is_conflict, quoted_path
from connectors.spark.sink.tables.upsert import merge_statement

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["compact_table", "merge_changes"]

_APPLICATION: Final = "spark.databricks.delta.write.txnAppId"
_VERSION: Final = "spark.databricks.delta.write.txnVersion"
_SOURCE: Final = "sluice_changes"
_LARGEST: Final = "spark.databricks.delta.optimize.maxFileSize"
_SMALL: Final = "spark.databricks.delta.optimize.minFileSize"


def merge_changes(changes: DataFrame, path: str, schema: Schema, application: str, version: int) -> None:
    """Merge changes of this schema, one for each key, and commit an application id and its version with them."""
    spark = changes.sparkSession
    changes.createOrReplaceTempView(_SOURCE)
    # A statement takes these from the session, which belongs to this connector alone.
    spark.conf.set(_APPLICATION, application)
    spark.conf.set(_VERSION, version)
    try:
        spark.sql(merge_statement(quoted_path(path), _SOURCE, schema, evolve=True))
    finally:
        spark.conf.unset(_APPLICATION)
        spark.conf.unset(_VERSION)
        spark.catalog.dropTempView(_SOURCE)


def compact_table(spark: SparkSession, name: str, path: str, target_size: int | None) -> CompactedTable | None:
    """Merge the small files of a table, and delete files unused for a week; return ``None`` if no file is small.

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
