"""Spark connectors: a sink that loads topics into tables exactly once, sources that publish files and tables, and a
PySpark data source for any connector.

Importing this package does not import pyspark.
"""

from connectors.spark.datasource import register
from connectors.spark.sink import SparkSinkConnector
from connectors.spark.sources.files.source import SparkFileSourceConnector
from connectors.spark.sources.jdbc.source import SparkJdbcSourceConnector
from connectors.spark.sources.tables.source import SparkTableSourceConnector

__all__ = [
    "SparkFileSourceConnector",
    "SparkJdbcSourceConnector",
    "SparkSinkConnector",
    "SparkTableSourceConnector",
    "register",
]
