"""Tables of the Spark sink in a Hive metastore, from a record on the broker to a SELECT."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.table import StaticTable

import connectors.spark
from connect.bulk import OffsetRange
from connect.data import TopicPartition
from connect.errors import ConnectError
from connect.internals.crash import CRASH_POINT_VARIABLE
from connect.internals.jvm.home import sluice_home
from connect.internals.jvm.jars import read_lock, resolve_jars
from connectors.spark.sink import SparkSinkTask
from connectors.spark.sink.config import SparkSinkConfig
from connectors.spark.sink.target import FencedError
from equipment.brokers.dead_letters import dead_letters
from equipment.brokers.topics import create_topic, ordered_producer
from equipment.servers.hive import hive_metastore
from equipment.workers.bulk_context import BulkContext
from equipment.workers.small_spark import DRIVER, sink_props

SparkSession = pytest.importorskip("pyspark.sql").SparkSession

# A metastore and a Spark start for the first of them.
pytestmark = [
    pytest.mark.thorough,
    pytest.mark.integration,
    pytest.mark.spark,
    pytest.mark.timeout(900),
    # PySpark leaves the socket by which it brings rows to the driver to the garbage collector.
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@dataclass
class Hive:
    """A metastore, and a Spark that has it as its catalog."""

    uris: str

    def select(self, sql: str) -> list[tuple[Any, ...]]:
        spark = SparkSession.getActiveSession()
        assert spark is not None
        spark.catalog.clearCache()
        return [tuple(row) for row in spark.sql(sql).collect()]

    def refreshed(self, table: str, columns: str = "*", order: str = "id") -> list[tuple[Any, ...]]:
        self.select(f"REFRESH TABLE {table}")
        return self.select(f"SELECT {columns} FROM {table} ORDER BY {order}")


@pytest.fixture(scope="module")
def hive(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hive]:
    with hive_metastore(tmp_path_factory.mktemp("hive") / "home") as uris:
        yield Hive(uris)
        active = SparkSession.getActiveSession()
        if active is not None:
            active.stop()


def _iceberg_jars() -> Sequence[Path]:
    return resolve_jars(read_lock(Path(connectors.spark.__file__).parent / "iceberg/iceberg.jars"), home=sluice_home())


class Sink:
    """A topic of one partition and a connector that loads it."""

    def __init__(self, bootstrap: str, topic: str, store: Path, hive: Hive) -> None:
        self.bootstrap = bootstrap
        self.topic = topic
        self.table = "flights_" + topic.rpartition("-")[2]
        self.end = 0
        self.props = {
            **sink_props({"store.url": str(store)}),
            "name": "hive",
            "hive.integration": "true",
            "hive.metastore.uris": hive.uris,
            "hive.database": "lake",
            "hive.table.name": f"{self.table}_${{topic}}",
            "spark.sql.catalogImplementation": "hive",
            "spark.hadoop.hive.metastore.uris": hive.uris,
            "spark.jars": ",".join(map(str, _iceberg_jars())),
        }
        self.producer = ordered_producer(bootstrap)
        create_topic(bootstrap, topic, 1)

    @property
    def name(self) -> str:
        return f"lake.{self.table}_{''.join(c if c.isalnum() else '_' for c in self.topic)}".lower()

    def produce(self, values: Sequence[Mapping[str, Any]]) -> None:
        for value in values:
            self.producer.produce(self.topic, json.dumps(value).encode(), partition=0)
            self.end += 1
        assert self.producer.flush(30) == 0

    def task(self, **props: str) -> SparkSinkTask:
        return self.started(self.props | {key.replace("_", "."): value for key, value in props.items()})

    def iceberg_task(self, uri: str) -> SparkSinkTask:
        """A task that writes an Iceberg table of a catalog in a metastore."""
        catalog = {"table.format": "iceberg", "iceberg.catalog.type": "hive", "iceberg.catalog.uri": uri}
        named = {"iceberg.tables": f"lake.{self.table}_iceberg"}
        return self.started({key: value for key, value in self.props.items() if key[:5] != "hive."} | catalog | named)

    def started(self, own: Mapping[str, str]) -> SparkSinkTask:
        task = SparkSinkTask(SparkSinkConfig.parse(own), BulkContext("hive", self.bootstrap, own))
        task.start()
        return task

    def drain(self, task: SparkSinkTask) -> None:
        first = task.committed().get(TopicPartition(self.topic, 0), 0)
        task.load([OffsetRange(self.topic, 0, first, self.end)])


@pytest.fixture
def sink(bootstrap: str, topic: str, tmp_path: Path, hive: Hive) -> Sink:
    return Sink(bootstrap, topic, tmp_path, hive)


def test_a_column_added_in_the_source_shows_up_in_hive(sink: Sink, hive: Hive) -> None:
    task = sink.task(partition_field_name="origin", partitioner_class="FieldPartitioner")
    sink.produce([{"id": n, "origin": ("EWR", "J/K")[n % 2], "gate": {"floor": n}} for n in range(4)])
    sink.drain(task)
    assert hive.refreshed(sink.name, "id, origin, gate.floor") == [(n, ("EWR", "J/K")[n % 2], n) for n in range(4)]

    sink.produce(
        [{"id": 4, "origin": "EWR", "delay": 1.5, "gate": {"floor": 4, "name": "B"}}, {"id": 5, "origin": "LGA"}]
    )
    sink.drain(task)
    rows = hive.refreshed(sink.name, "id, origin, delay, gate.name")
    assert rows == [(n, ("EWR", "J/K")[n % 2], None, None) for n in range(4)] + [
        (4, "EWR", 1.5, "B"),
        (5, "LGA", None, None),
    ]
    # Hive reads each partition by the columns it has: all of them have the new one.
    for origin in ("EWR", "J/K"):
        described = hive.select(f"DESCRIBE EXTENDED {sink.name} PARTITION (origin='{origin}')")
        assert ("delay", "double") in {row[:2] for row in described}


def test_what_was_committed_and_not_registered_is_registered_at_the_next_start(sink: Sink, hive: Hive) -> None:
    sink.produce([{"id": n} for n in range(3)])
    # As a kill between the commit and the registration leaves it.
    sink.drain(sink.task(hive_integration="false"))
    with pytest.raises(Exception, match="cannot be found"):
        hive.select(f"SELECT * FROM {sink.name}")
    task = sink.task()
    assert hive.refreshed(sink.name, "id, `partition`") == [(n, "0") for n in range(3)]
    sink.produce([{"id": 3}])
    sink.drain(task)
    sink.task()
    assert Counter(hive.refreshed(sink.name)) == Counter((n, "0") for n in range(4))


def test_names_that_hive_cannot_hold_are_refused_before_anything_is_written(sink: Sink) -> None:
    sink.produce([{"id": 1, "Gate": 1, "gate": 2}])
    with pytest.raises(ConnectError, match="cannot distinguish the fields Gate, gate"):
        sink.drain(sink.task())


BY_FIELD = {"partitioner_class": "FieldPartitioner", "partition_field_name": "k"}


@pytest.mark.parametrize(
    ("props", "bad", "columns"),
    [
        ({}, [{"id": 2, "a-b": 1}, {"id": 3, ".x": 1}, {"id": 4, "of": {"a b": 1}}, {"id": 5, "partition": "p"}], "k"),
        (BY_FIELD, [{"id": 2, "k": ""}, {"id": 3, "k": "__HIVE_DEFAULT_PARTITION__"}, {"id": 4, "k.": 1}], "k"),
    ],
)
def test_a_record_that_hive_cannot_hold_is_bad_alone(
    sink: Sink, hive: Hive, props: dict[str, str], bad: Sequence[Mapping[str, Any]], columns: str
) -> None:
    queue = f"{sink.topic}-dlq"
    task = sink.task(**props, errors_tolerance="all", errors_deadletterqueue_topic_name=queue)
    for load in range(2):
        sink.produce([*bad, {"id": 10 + load, "k": "x", "_x": 1}, {"id": 20 + load, "k": None}])
        sink.drain(task)
    rows = hive.refreshed(sink.name, f"id, {columns}, _x")
    assert rows == [(10, "x", 1), (11, "x", 1), (20, None, None), (21, None, None)]
    assert len(dead_letters(sink.bootstrap, queue)) == 2 * len(bad)
    sink.produce(bad[:1])
    with pytest.raises(ConnectError, match=r"Bad record in topic .*, partition 0, offset"):
        sink.drain(sink.task(**props))


def test_a_table_of_another_place_is_left_alone(sink: Sink, hive: Hive, tmp_path: Path) -> None:
    sink.produce([{"id": 1}])
    sink.drain(sink.task())
    with pytest.raises(ConnectError, match=f"{sink.name} is in"):
        sink.drain(sink.task(store_url=str(tmp_path / "other")))
    assert hive.refreshed(sink.name, "id") == [(1,)]


def test_without_a_metastore_there_is_one_in_derby(sink: Sink) -> None:
    sink.produce([{"id": 1}])
    task = sink.task(hive_metastore_uris="", name="derby")
    sink.drain(task)
    sink.produce([{"id": 2, "new": "x"}])
    sink.drain(task)


def test_a_metastore_is_an_iceberg_catalog(sink: Sink, hive: Hive) -> None:
    sink.produce([{"id": n} for n in range(10)])
    task = sink.iceberg_task(hive.uris)
    sink.drain(task)
    other = sink.iceberg_task(hive.uris)
    sink.produce([{"id": n, "gate": f"B{n}"} for n in range(10, 20)])
    with pytest.raises(FencedError):
        sink.drain(task)
    sink.drain(other)
    properties = hive.select(f"SHOW TBLPROPERTIES lake.{sink.table}_iceberg ('metadata_location')")
    found = StaticTable.from_metadata(properties[0][1]).scan().to_arrow().to_pylist()
    assert sorted((row["id"], row["gate"]) for row in found) == [(n, f"B{n}" if n > 9 else None) for n in range(20)]


def test_an_iceberg_catalog_whose_metastore_does_not_answer_is_an_error(sink: Sink) -> None:
    with pytest.raises(ConnectError, match=r"The Iceberg (catalog iceberg cannot be reached|tables cannot be opened)"):
        sink.iceberg_task("thrift://127.0.0.1:1")


def test_folders_of_a_load_that_hive_was_not_told_of_are_there_after_the_next_start(sink: Sink, hive: Hive) -> None:
    divided = {"partitioner.class": "FieldPartitioner", "partition.field.name": "origin"}
    sink.produce([{"id": 0, "origin": "EWR"}])
    sink.drain(sink.started(sink.props | divided))
    sink.produce([{"id": 1, "origin": "JFK"}])
    # The driver tells Hive of what is there when it starts, and is killed when it is about to do so after its load.
    props = sink.props | divided
    order = {"name": "hive", "topic": sink.topic, "bootstrap": sink.bootstrap, "flush": 10, "props": props}
    environ = {**os.environ, CRASH_POINT_VARIABLE: "before-hive:2"}
    command = [sys.executable, str(DRIVER), json.dumps(order)]
    done = subprocess.run(command, env=environ, stdout=subprocess.DEVNULL, timeout=300, check=False)
    assert done.returncode == -signal.SIGKILL
    assert hive.select(f"SHOW PARTITIONS {sink.name}") == [("origin=EWR",)]
    task = sink.started(sink.props | divided)
    assert sorted(hive.select(f"SHOW PARTITIONS {sink.name}")) == [("origin=EWR",), ("origin=JFK",)]
    assert hive.refreshed(sink.name, "id, origin") == [(0, "EWR"), (1, "JFK")]
    assert task.committed() == {TopicPartition(sink.topic, 0): 2}
