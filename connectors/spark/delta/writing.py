"""Writes rows into a Delta table, so that they are committed with an application id and its version."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from connect.data import Schema
from connectors.spark.delta.log import quoted_path
from connectors.spark.tables.upsert import merge_statement

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["append_rows", "merge_changes"]

_APPLICATION: Final = "spark.databricks.delta.write.txnAppId"
_VERSION: Final = "spark.databricks.delta.write.txnVersion"
_SOURCE: Final = "sluice_changes"


def append_rows(frame: DataFrame, path: str, application: str, version: int) -> None:
    """Append rows, and add the columns that the table lacks."""
    writer = frame.write.format("delta").mode("append").option("mergeSchema", "true")
    writer.option("txnAppId", application).option("txnVersion", version).save(path)


def merge_changes(changes: DataFrame, path: str, schema: Schema, application: str, version: int) -> None:
    """Merge changes of that schema, one for each key."""
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
