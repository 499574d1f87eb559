"""Topics to Parquet tables with Spark, exactly once. Importing this does not import pyspark."""

from connectors.spark.sink import SparkSinkConnector

__all__ = ["SparkSinkConnector"]
