"""The Spark sink into S3: what Spark leaves there, in any format and layout, and what readers see."""

from __future__ import annotations

import io
import json
import os
import signal
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from connect.data import TopicPartition
from connect.errors import DataError
from connectors.spark.sink import SparkSinkConnector, SparkSinkTask
from connectors.spark.sink.config import SparkSinkConfig
from connectors.spark.sources.files.config import SparkFileSourceConfig
from connectors.spark.sources.files.source import SparkFileSourceTask
from equipment.brokers.filled_topic import FilledTopic
from equipment.brokers.topics import read_topic
from equipment.scripts import spark_driver
from equipment.servers.s3 import S3Server
from equipment.stores.lakes import s3_lake
from equipment.stores.objects import unique_prefix
from equipment.workers.bulk_context import BulkContext
from equipment.workers.bulk_source_context import BulkSourceContext
from equipment.workers.processes import command_line, descendants
from equipment.workers.small_spark import sink_props
from equipment.workers.spark_drivers import running

SparkSession = pytest.importorskip("pyspark.sql").SparkSession

pytestmark = [
    pytest.mark.integration,
    pytest.mark.spark,
    # PySpark leaves the socket by which it brings rows to the driver to the garbage collector.
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
ROWS = [{"id": number, "origin": ("EWR", "JFK", "LGA")[number % 3]} for number in range(60)]


@pytest.fixture(scope="module", autouse=True)
def session(shared_java: None) -> Iterator[None]:
    """Spark, started by the first task and kept for all tests of this file."""
    yield
    active = SparkSession.getActiveSession()
    if active is not None:
        active.stop()


class Sink:
    """A topic of two partitions, a prefix of a bucket, and tasks that load the one into the other."""

    def __init__(self, bootstrap: str, topic: str, server: S3Server) -> None:
        self.bootstrap = bootstrap
        self.topic = topic
        self.server = server
        self.folder = unique_prefix()
        self.url = f"s3://{server.bucket}/{self.folder}"
        self.records = FilledTopic(bootstrap, topic)

    def props(self, more: Mapping[str, str]) -> dict[str, str]:
        return {**sink_props({"store.url": self.url, **self.server.props}), "name": "sink", **more}

    def task(self, **more: str) -> SparkSinkTask:
        props = self.props({key.replace("_", "."): value for key, value in more.items()})
        task = SparkSinkTask(SparkSinkConfig.parse(props), BulkContext("sink", self.bootstrap, props))
        task.start()
        return task

    def objects(self) -> list[str]:
        """All objects of the store."""
        pages = self.server.client().get_paginator("list_objects_v2")
        found = pages.paginate(Bucket=self.server.bucket, Prefix=f"{self.folder}/")
        return [item["Key"].removeprefix(f"{self.folder}/") for page in found for item in page.get("Contents", ())]

    def file(self, path: str) -> pq.ParquetFile:
        """A file of a table."""
        place = {"Bucket": self.server.bucket, "Key": f"{self.folder}/{path}"}
        return pq.ParquetFile(io.BytesIO(self.server.client().get_object(**place)["Body"].read()))

    def uploads(self) -> list[Any]:
        """All uploads to the store that are not completed."""
        found = self.server.client().list_multipart_uploads(Bucket=self.server.bucket).get("Uploads", [])
        return [item for item in found if item["Key"].startswith(self.folder)]

    def read(self, id_type: Any = None) -> list[dict[str, Any]]:
        """The rows, as pyarrow reads them."""
        schema = pa.schema([("id", id_type or pa.int64()), ("origin", pa.string())])
        with s3_lake(self.server, self.folder) as lake:
            return by_id(lake.read(f"topics/{self.topic}", schema).to_pylist())


def by_id(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: row["id"])


@pytest.fixture
def sink(bootstrap: str, topic: str, s3: S3Server) -> Sink:
    return Sink(bootstrap, topic, s3)


def test_tables_grow_and_nothing_else_is_left(sink: Sink) -> None:
    sink.records.produce(ROWS[:20])
    task = sink.task()
    sink.records.drain(task)
    sink.records.produce(ROWS[20:])
    sink.records.drain(sink.task())
    assert sink.read() == ROWS
    folders = {key.rpartition("/")[0] for key in sink.objects()}
    table = f"topics/{sink.topic}"
    owners = "_sluice/tables/topics"
    assert folders == {f"{table}/partition=0", f"{table}/partition=1", "_sluice/sink/manifests", owners}
    assert sink.uploads() == []
    # The executors have written them, and not Spark's Java.
    assert {sink.file(key).metadata.created_by.partition(" ")[0] for key in sink.objects() if "part-" in key} == {
        "parquet-cpp-arrow"
    }


@pytest.mark.thorough
def test_folders_of_values_and_other_formats(sink: Sink) -> None:
    sink.records.produce(ROWS)
    by_field = {"partitioner_class": "FieldPartitioner", "partition_field_name": "origin"}
    sink.records.drain(sink.task(format_class="JsonFormat", **by_field))
    spark = SparkSession.getActiveSession()
    frame = spark.read.schema("id long, origin string").json(f"s3a://{sink.url[5:]}/topics/{sink.topic}")
    assert by_id([row.asDict() for row in frame.collect()]) == ROWS
    places = {key.split("/")[2] for key in sink.objects() if key.startswith("topics/")}
    assert places == {"origin=EWR", "origin=JFK", "origin=LGA"}


@pytest.mark.thorough
def test_small_files_are_merged_and_columns_made_wider(sink: Sink) -> None:
    for start in (0, 20, 40):
        sink.records.produce(ROWS[start : start + 20])
        sink.records.drain(sink.task())
    (done,) = SparkSinkConnector.compact(SparkSinkConfig.parse(sink.props({})), None)
    assert (done.table, done.files_before, done.files_after) == (sink.topic, 6, 2)
    assert sink.read() == ROWS
    places = {key.rpartition("/")[0] for key in sink.objects() if key.startswith("topics/")}
    assert places == {f"topics/{sink.topic}/partition={number}" for number in (0, 1)}
    sink.records.produce([{"id": 60.5, "origin": "BOS"}])
    sink.records.drain(sink.task(schema_conflict="rewrite"))
    assert sink.read(pa.float64()) == [*ROWS, {"id": 60.5, "origin": "BOS"}]
    folders = {key.rpartition("/")[0] for key in sink.objects()}
    assert folders == {*places, "_sluice/sink/manifests", "_sluice/tables/topics"}
    assert sink.uploads() == []


@pytest.mark.thorough
def test_a_load_that_fails_leaves_nothing_after_the_next(sink: Sink) -> None:
    sink.records.produce(ROWS[:20])
    task = sink.task()
    sink.records.drain(task)
    sink.records.produce([b"{"])
    sink.records.produce(ROWS[20:])
    with pytest.raises(DataError, match=f"{sink.topic}"):
        sink.records.drain(task)
    assert sink.read() == ROWS[:20]
    sink.records.drain(sink.task(errors_tolerance="all"))
    assert sink.read() == ROWS
    assert sink.uploads() == []


def test_offsets_are_set_forward_without_spark(sink: Sink) -> None:
    config = SparkSinkConfig.parse(sink.props({}))
    assert SparkSinkConnector.alter_offsets(config, {TopicPartition(sink.topic, 0): 10})
    sink.records.produce(ROWS[:40])
    sink.records.drain(sink.task())
    assert [row["id"] for row in sink.read()] == [row["id"] for row in ROWS[:40] if row["id"] % 2 or row["id"] >= 20]


def test_the_secret_is_in_no_command_line_and_no_setting_of_spark(sink: Sink) -> None:
    sink.task()
    secret = sink.server.props["aws.secret.access.key"]
    spark = SparkSession.getActiveSession()
    assert secret not in str(spark.sparkContext.getConf().getAll())

    sink.records.produce(ROWS[:1])
    order = {"name": "sink", "topic": sink.topic, "bootstrap": sink.bootstrap, "flush": 1, "props": sink.props({})}
    # The Java process of this file knows no store; the one of a driver is started with all of its configuration.
    with running(spark_driver.run, order) as driver:
        assert driver.has_started()
        os.kill(driver.pid, signal.SIGSTOP)
        commands = list(map(command_line, descendants(driver.pid)))
    assert any("SparkSubmit" in command for command in commands)
    assert not any(secret in command for command in commands)


@pytest.mark.thorough
def test_windows_are_held_in_the_bucket(sink: Sink) -> None:
    windows = {"sql_window_ms": "1000", "sql_window_time": "at", "sql_window_delay_ms": "0", "sql_window_idle_ms": "0"}
    query = {"sql": "SELECT min(id) AS id, CAST(count(*) AS STRING) AS origin FROM records GROUP BY at DIV 1000"}
    sink.records.produce([{"id": n, "at": n * 100} for n in range(8)])
    sink.records.drain(sink.task(**query, **windows))
    assert [key for key in sink.objects() if key.startswith("topics/")] == []
    sink.records.produce([{"id": n, "at": n * 100} for n in range(8, 24)])
    sink.records.drain(sink.task(**query, **windows))
    assert sink.read() == [{"id": 0, "origin": "10"}, {"id": 10, "origin": "10"}]
    sink.records.produce([{"id": n, "at": n * 100} for n in range(24, 26)])
    sink.records.drain(sink.task(**query))
    assert sink.read()[2:] == [{"id": 20, "origin": "6"}]
    assert [key for key in sink.objects() if "/windows/" in key] == []
    assert sink.uploads() == []


@pytest.mark.thorough
def test_what_the_sink_wrote_is_sent_back_once(sink: Sink, tmp_path: Path) -> None:
    sink.records.produce(ROWS[:20])
    sink.records.drain(sink.task())
    back = f"{sink.topic}-back"
    more = {"topic": back, "topics.dir": f"topics/{sink.topic}", "file.age.ms": "0"}
    more["header.converter"] = "SimpleHeaderConverter"

    def sent() -> list[int]:
        props = sink.props(more)
        task = SparkFileSourceTask(
            SparkFileSourceConfig.parse(props), BulkSourceContext("back", sink.bootstrap, props, tmp_path / "offsets")
        )
        task.start()
        while task.load():
            pass
        return sorted(json.loads(message.value() or b"")["id"] for message in read_topic(sink.bootstrap, back))

    assert sent() == list(range(20))
    sink.records.produce(ROWS[20:])
    sink.records.drain(sink.task())
    assert sent() == list(range(60))
