"""Topics to tables and back with Spark, exactly once to tables, and any connector as a data source of PySpark.

Importing this does not import pyspark.
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
