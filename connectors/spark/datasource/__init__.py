"""Any connector as a data source of PySpark. Importing this does not import pyspark."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["register"]


def register(spark: SparkSession) -> None:
    """Register the format ``sluice`` with a session, where PySpark does not find the module ``pyspark_sluice`` by
    itself.
    """
    from connectors.spark.datasource.source import SluiceDataSource  # noqa: PLC0415 - only who calls this has Spark

    spark.dataSource.register(SluiceDataSource)
