"""Prints the rows of the lake as JSON, as anybody's Spark reads them: by the name of the table, from Hive's metastore.

``python lake.py thrift://HOST:PORT TABLE...``
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pyspark.sql import SparkSession

import connectors.spark
from connect.internals.jvm.home import sluice_home
from connect.internals.jvm.jars import read_lock, resolve_jars


def main(metastore: str, *tables: str) -> None:
    """Print an object with the rows of each table."""
    lock = read_lock(Path(connectors.spark.__file__).parent / "iceberg" / "iceberg.jars")
    jars = ",".join(map(str, resolve_jars(lock, home=sluice_home())))
    catalog = "spark.sql.catalog.lake"
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.jars", jars)
        .config("spark.ui.enabled", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config(catalog, "org.apache.iceberg.spark.SparkCatalog")
        .config(f"{catalog}.type", "hive")
        .config(f"{catalog}.uri", metastore)
        .getOrCreate()
    )
    found = {table: [row.asDict() for row in spark.table(f"lake.shop.{table}").collect()] for table in tables}
    print(json.dumps(found, default=str))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
