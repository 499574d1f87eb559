"""Topics to Parquet tables with Spark, exactly once, and any connector as a data source of PySpark.

Importing this does not import pyspark.
"""

from connectors.spark.datasource import register
from connectors.spark.sink import SparkSinkConnector

__all__ = ["SparkSinkConnector", "register"]
