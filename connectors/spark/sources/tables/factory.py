"""Opens the tables that a configuration names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from connectors.spark.iceberg.catalog import TableName, load_driver
from connectors.spark.sources.tables.config import SparkTableSourceConfig
from connectors.spark.sources.tables.delta import DeltaSource
from connectors.spark.sources.tables.iceberg import IcebergSource, use_catalog
from connectors.spark.sources.tables.lake_table import LakeTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["open_tables"]


def open_tables(spark: SparkSession, config: SparkTableSourceConfig) -> Mapping[str, LakeTable]:
    """Return the tables of the configuration, by the names it gives them."""
    if config.table_format == "delta":
        folder = "/".join(filter(None, (config.location.uri, config.topics_dir)))
        return {name: DeltaSource(spark, name, f"{folder}/{name}") for name in config.tables}
    load_driver(spark._jvm, config.iceberg_catalog_uri or "")
    catalog = use_catalog(spark, config)
    return {name: IcebergSource(spark, catalog, _table_name(name, config.topics_dir)) for name in config.tables}


def _table_name(text: str, topics_dir: str) -> TableName:
    *namespace, name = text.split(".")
    return TableName(tuple(namespace or filter(None, topics_dir.split("/"))), name)
