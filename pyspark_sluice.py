"""Lets PySpark find the format ``sluice`` by itself: it looks for modules whose names begin with ``pyspark_``."""

from __future__ import annotations

import logging

__all__ = ["DefaultSource"]

try:
    from connectors.spark.datasource.source import SluiceDataSource as DefaultSource
except ImportError as error:
    # Spark imports all such modules before any of them is used: the data sources of others are not to fail by this one.
    logging.getLogger(__name__).warning("The format sluice needs pyspark 4.1 and pyarrow: %s", error)
