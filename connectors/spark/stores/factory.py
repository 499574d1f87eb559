"""Opens the store that a configuration names."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from connectors.spark.options.store import StoreOptions
from connectors.spark.stores.azure import AzureStore
from connectors.spark.stores.gcs import GcsStore
from connectors.spark.stores.hadoop import HadoopStore, Java
from connectors.spark.stores.local import LocalStore
from connectors.spark.stores.s3 import S3Store
from connectors.spark.stores.store import Store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["open_store"]


def open_store(config: StoreOptions, spark: Callable[[], SparkSession]) -> Store:
    """Open a connector's store. ``spark`` returns its session, for stores that are reached through Spark's Hadoop.

    No request is made to the store yet.
    """
    location = config.location
    match location.kind:
        case "local":
            return LocalStore(Path(location.path))
        case "hdfs":
            return HadoopStore(lambda: _java_of(spark()), location)
        case "s3":
            return S3Store(config.s3_account, location, config.s3_part_size)
        case "gcs":
            return GcsStore(config.google_account, location)
        case "azure":
            return AzureStore(config.azure_account, location)


def _java_of(spark: SparkSession) -> Java:
    context: Any = spark.sparkContext
    return Java(context._jvm, context._jsc.hadoopConfiguration())
