"""Tables in a lake, and topics: the one to the other with Spark. Importing this does not import pyspark."""

from connectors.spark.sink import SparkSinkConnector
from connectors.spark.sources.files.source import SparkFileSourceConnector
from connectors.spark.sources.jdbc.source import SparkJdbcSourceConnector
from connectors.spark.sources.tables.source import SparkTableSourceConnector

__all__ = [
    "SparkFileSourceConnector",
    "SparkJdbcSourceConnector",
    "SparkSinkConnector",
    "SparkTableSourceConnector",
]
