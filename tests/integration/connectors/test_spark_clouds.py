"""The Spark sink into Google Cloud Storage and into Azure: by the executors' Python, by Spark's Java, and merged."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from connectors.spark.sink import SparkSinkConnector, SparkSinkTask
from connectors.spark.sink.config import SparkSinkConfig
from equipment.brokers.filled_topic import FilledTopic
from equipment.stores.lakes import Lake, azure_lake, gcs_lake
from equipment.stores.objects import unique_prefix
from equipment.workers.bulk_context import BulkContext
from equipment.workers.small_spark import sink_props

SparkSession = pytest.importorskip("pyspark.sql").SparkSession

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.integration,
    pytest.mark.spark,
    # PySpark leaves the socket by which it brings rows to the driver to the garbage collector.
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
ROWS = [{"id": number, "origin": ("EWR", "JFK", "LGA")[number % 3]} for number in range(60)]
SCHEMA = pa.schema([("id", pa.int64()), ("origin", pa.string())])


def by_id(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: row["id"])


@pytest.fixture(params=["gcs", "azure"])
def lake(request: pytest.FixtureRequest, shared_java: None) -> Iterator[Lake]:
    """A prefix of a store of each kind, and afterwards the end of the session with the settings for it."""
    opened = {"gcs": gcs_lake, "azure": azure_lake}[request.param]
    with opened(request.getfixturevalue(request.param), unique_prefix()) as lake:
        yield lake
    active = SparkSession.getActiveSession()
    if active is not None:
        active.stop()


def test_executors_and_java_write_and_small_files_are_merged(bootstrap: str, topic: str, lake: Lake) -> None:
    props = {**sink_props(lake.props), "name": "sink"}

    def task(**more: str) -> SparkSinkTask:
        own = {**props, **{key.replace("_", "."): value for key, value in more.items()}}
        made = SparkSinkTask(SparkSinkConfig.parse(own), BulkContext("sink", bootstrap, own))
        made.start()
        return made

    records = FilledTopic(bootstrap, topic)
    # A key of Spark's own for Parquet has its Java write the files.
    java = {"spark.sql.parquet.compression.codec": "snappy"}
    for start, more in ((0, {}), (20, java), (40, {})):
        records.produce(ROWS[start : start + 20])
        records.drain(task(**more))
    table = f"topics/{topic}"
    assert by_id(lake.read(table, SCHEMA).to_pylist()) == ROWS
    assert {path.rpartition("/")[0] for place in ("topics", "_sluice") for path in lake.paths(place)} == {
        f"{table}/partition=0",
        f"{table}/partition=1",
        "_sluice/sink/manifests",
    }
    writers = {pq.read_metadata(lake.store.open(path)).created_by.partition(" ")[0] for path in lake.paths(table)}
    assert writers == {"parquet-cpp-arrow", "parquet-mr"}
    spark = SparkSession.getActiveSession()
    assert spark.read.parquet(f"{lake.props['store.url']}/{table}").count() == len(ROWS)
    # It ends Spark.
    (done,) = SparkSinkConnector.compact(SparkSinkConfig.parse(props), None)
    assert (done.table, done.files_before, done.files_after) == (topic, 6, 2)
    assert by_id(lake.read(table, SCHEMA).to_pylist()) == ROWS
