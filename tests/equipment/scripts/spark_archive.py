"""Makes Spark do what the sinks in tests need, and stores an archive of the classes that it loads.

It does not block its caller: it continues in the background.

python spark_archive.py ARCHIVE '-XX:+UseSerialGC ...'
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa

from connectors.spark.session import start_session
from connectors.spark.sink.config import SparkSinkConfig
from connectors.spark.stores.access import store_access


def same(batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
    """Return the input of a map unchanged."""
    return batches


def main() -> None:
    if os.fork():
        return
    archive = Path(sys.argv[1])
    partial = archive.with_suffix(".partial")
    partial.unlink(missing_ok=True)
    work(f"{sys.argv[2]} -XX:ArchiveClassesAtExit={partial}")
    # A JVM that reads an incomplete archive crashes.
    partial.replace(archive)


def work(java_options: str) -> None:
    """Start Spark, use it briefly, and shut its JVM down cleanly."""
    with tempfile.TemporaryDirectory() as folder:
        props = {
            "name": "job",
            "topics": "none",
            "store.url": folder,
            "spark.master": "local[1]",
            "spark.driver.memory": "512m",
            "spark.driver.extraJavaOptions": java_options,
        }
        spark = start_session(props, "job", store_access(SparkSinkConfig.parse(props)))
        rows = spark.range(10).selectExpr(
            "id", "cast(id as string) as text", "id % 2 as part", "current_timestamp() as at"
        )
        mapped = rows.mapInArrow(same, rows.schema)
        mapped.write.partitionBy("part").parquet(f"{folder}/table")
        spark.read.parquet(f"{folder}/table").groupBy("part").count().orderBy("part").collect()
        gateway: Any = spark.sparkContext._gateway
        spark.stop()
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait()


if __name__ == "__main__":
    main()
