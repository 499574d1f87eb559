"""Spark connectors: a sink that loads topics into tables exactly once, sources that publish files and tables, and a
PySpark data source for any connector.

Each is a room of its own, imported on first use and without the others; importing none of them imports pyspark.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
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

_HOMES: Final = {
    "SparkFileSourceConnector": "sources.files.source",
    "SparkJdbcSourceConnector": "sources.jdbc.source",
    "SparkSinkConnector": "sink",
    "SparkTableSourceConnector": "sources.tables.source",
    "register": "datasource",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__} has no attribute {name}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
