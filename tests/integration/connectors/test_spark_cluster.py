"""The Spark sink on a standalone cluster: where its code comes from, and what becomes of loads when parts fail."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pyarrow.parquet as pq
import pytest

from connect.bulk import OffsetRange
from connect.errors import ConnectError, RetriableError
from connectors.spark.engine.config import SparkSinkEngineConfig, SparkSourceEngineConfig
from connectors.spark.engine.sink import SparkSinkEngine
from connectors.spark.engine.source import SparkSourceEngine
from connectors.spark.sink import SparkSinkTask
from connectors.spark.sink.config import SparkSinkConfig
from connectors.spark.sources.files.config import SparkFileSourceConfig
from connectors.spark.sources.files.source import SparkFileSourceTask
from equipment.brokers.topics import create_topic, produce, read_topic
from equipment.servers.spark_cluster import SparkCluster, running_spark_cluster
from equipment.waiting import wait_until
from equipment.workers.bulk_context import BulkContext
from equipment.workers.bulk_source_context import BulkSourceContext
from equipment.workers.claimed_offsets import ClaimedOffsets
from equipment.workers.small_spark import end_spark, sink_props

pytest.importorskip("pyspark")

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.integration,
    pytest.mark.spark,
    pytest.mark.timeout(900),
    # PySpark leaves sockets and pipes to the garbage collector.
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

_PLUGINS: Final = Path(__file__).with_name("spark_plugins")
_PATIENCE: Final = 240.0
_ROWS: Final = 10


@pytest.fixture(scope="module")
def spark_cluster() -> Iterator[SparkCluster]:
    """A cluster for the tests of this file, which end parts of it."""
    with running_spark_cluster() as cluster:
        yield cluster


class Load:
    """A topic of two partitions, a store, and a task that loads the one into the other on a cluster."""

    def __init__(self, bootstrap: str, topic: str, folder: Path, cluster: SparkCluster, **more: str) -> None:
        self.folder = folder
        self._bootstrap, self._topic = bootstrap, topic
        self._ends = [0, 0]
        create_topic(bootstrap, topic, partitions=2)
        props = {
            **sink_props({"store.url": str(folder / "store")}),
            **cluster.props,
            "spark.executor.pyspark.memory": "6g",
            "spark.task.maxFailures": "2",
            "name": "sink",
            "plugin.path": str(_PLUGINS),
            "transforms": "act",
            "transforms.act.type": "acts.Act",
            "transforms.act.folder": str(folder),
            "header.converter": "converters.simple_header.SimpleHeaderConverter",
            **{key.replace("_", "."): value for key, value in more.items()},
        }
        self.context = BulkContext("sink", bootstrap, props)
        self.task = SparkSinkTask(SparkSinkConfig.parse(props), self.context)

    def produce(self, *acts: str) -> None:
        """Produce some records to each partition, the first of which ask for something."""
        for partition in range(2):
            first = self._ends[partition]
            rows = [{"id": 2 * (first + n) + partition, "act": acts[n] if n < len(acts) else ""} for n in range(_ROWS)]
            produce(self._bootstrap, self._topic, [json.dumps(row).encode() for row in rows], partition)
            self._ends[partition] += _ROWS

    def run(self) -> None:
        """Load what is not loaded yet."""
        done = {tp.partition: offset for tp, offset in self.task.committed().items()}
        ranges = [OffsetRange(self._topic, n, done.get(n, 0), end) for n, end in enumerate(self._ends)]
        self.task.load([item for item in ranges if len(item)])

    def rows(self) -> list[dict[str, Any]]:
        """The rows that a reader sees, in order."""
        files = sorted((self.folder / "store" / "topics" / self._topic).rglob("*.parquet"))
        return sorted(
            (row for file in files for row in pq.ParquetFile(file).read().to_pylist()), key=lambda row: row["id"]
        )

    def assert_all_once(self) -> None:
        """Each record is there once."""
        assert [row["id"] for row in self.rows()] == list(range(sum(self._ends)))

    def begun(self) -> list[Path]:
        """The marks of the Pythons that wait for :meth:`go`."""
        return list(self.folder.glob("begun-*"))

    def go(self) -> None:
        """Let them go on."""
        (self.folder / "go").touch()


@pytest.fixture
def load(bootstrap: str, topic: str, tmp_path: Path, spark_cluster: SparkCluster) -> Load:
    load = Load(bootstrap, topic, tmp_path, spark_cluster)
    load.task.start()
    return load


@contextmanager
def under_way(load: Load, *acts: str) -> Iterator[Future[None]]:
    """A load that has begun in the executors, and that goes on when it is told to."""
    load.produce("wait", *acts)
    with ThreadPoolExecutor(1) as threads:
        running = threads.submit(load.run)
        try:
            wait_until("the load has begun", lambda: load.begun() or running.done(), seconds=_PATIENCE)
            yield running
        finally:
            load.go()


def driver_java() -> int:
    """The process of the driver's Java."""
    from pyspark import SparkContext  # noqa: PLC0415 - most tests never need it

    gateway: Any = SparkContext._gateway
    return int(gateway.proc.pid)


def test_executors_run_the_code_of_the_driver_and_the_loss_of_all_costs_only_time(
    load: Load, spark_cluster: SparkCluster
) -> None:
    with under_way(load, "tell") as running:
        executors = spark_cluster.executors()
        assert executors
        for executor in executors:
            os.kill(executor, signal.SIGKILL)
    running.result(_PATIENCE)
    load.assert_all_once()
    told = [row for row in load.rows() if row["act"] == "tell"]
    assert len(told) == 2
    for row in told:
        assert "sluice-code/connect/" in row["code"]
        assert "sluice-code/plugins/" in row["plugin"]


def test_a_load_waits_for_executors_and_says_so(load: Load, spark_cluster: SparkCluster) -> None:
    with under_way(load) as running:
        spark_cluster.kill_workers()
        said = "waiting for executors"
        wait_until("the status says so", lambda: load.context.last_progress.stage.startswith(said), seconds=_PATIENCE)
        spark_cluster.start_workers()
    running.result(_PATIENCE)
    load.assert_all_once()


def test_a_python_that_is_killed_is_told_with_its_remedy(load: Load) -> None:
    load.produce("die")
    with pytest.raises(
        ConnectError, match=r"Python process of an executor was killed.*spark\.executor\.memoryOverhead"
    ):
        load.run()
    assert load.rows() == []


def test_a_python_without_memory_is_told_with_its_remedy(load: Load, bootstrap: str, topic: str) -> None:
    load.produce("grow")
    with pytest.raises(ConnectError, match=r"ran out of memory.*spark\.executor\.pyspark\.memory"):
        load.run()
    assert load.rows() == []

    lines = load.folder / "lines.txt"
    props = {**load.context.connector_properties, "connector.class": "FileStreamSink", "file": str(lines)}
    sink = SparkSinkEngine(SparkSinkEngineConfig.parse(props), BulkContext("engine", bootstrap, props))
    sink.start()
    with pytest.raises(ConnectError, match=r"ran out of memory.*spark\.executor\.pyspark\.memory"):
        sink.load([OffsetRange(topic, partition, 0, _ROWS) for partition in range(2)])


def test_a_load_goes_on_while_the_master_is_away(load: Load, spark_cluster: SparkCluster) -> None:
    with under_way(load) as running:
        spark_cluster.kill_master()
    running.result(_PATIENCE)
    load.assert_all_once()
    spark_cluster.start_master()
    load.produce()
    load.run()
    load.assert_all_once()


def test_a_driver_that_is_killed_starts_again(load: Load) -> None:
    with under_way(load) as running:
        os.kill(driver_java(), signal.SIGKILL)
    with pytest.raises(RetriableError, match="started again"):
        running.result(_PATIENCE)
    load.run()
    load.assert_all_once()


def test_it_runs_sinks_and_sources_that_are_not_sparks_own(
    bootstrap: str, topic: str, tmp_path: Path, spark_cluster: SparkCluster
) -> None:
    create_topic(bootstrap, topic, partitions=2)
    for partition in range(2):
        produce(bootstrap, topic, [f"{partition} {number}".encode() for number in range(_ROWS)], partition)
    props = {**sink_props({}), **spark_cluster.props, "value.converter": "StringConverter", "name": "engine"}
    props |= {"header.converter": "SimpleHeaderConverter", "engine": "spark", "tasks.max": "1"}
    lines = tmp_path / "in" / "lines.txt"
    lines.parent.mkdir()
    sunk = {**props, "connector.class": "FileStreamSink", "file": str(lines)}
    sink = SparkSinkEngine(SparkSinkEngineConfig.parse(sunk), BulkContext("engine", bootstrap, sunk))
    sink.start()
    sink.load([OffsetRange(topic, partition, 0, _ROWS) for partition in range(2)])
    expected = sorted(f"{partition} {number}" for partition in range(2) for number in range(_ROWS))
    assert sorted(lines.read_text().splitlines()) == expected

    back = {**props, "connector.class": "DirectorySource", "path": str(lines.parent), "topic": f"{topic}-back"}
    back |= {"settle.ms": "0", "scan.interval.ms": "10"}
    source = SparkSourceEngine(SparkSourceEngineConfig.parse(back), BulkSourceContext("engine", bootstrap, back))
    source.start()
    assert source.load()
    assert _values(bootstrap, f"{topic}-back") == expected

    create_topic(bootstrap, f"{topic}-offsets", 1, **{"cleanup.policy": "compact"})
    own = {**props, "store.url": str(lines.parent), "topic": f"{topic}-own", "format.class": "StringFormat"}
    own |= {"file.age.ms": "0"}
    transactions = ClaimedOffsets(bootstrap, topic, f"{topic}-offsets")
    context = BulkSourceContext("engine", bootstrap, own, transactions=transactions)
    files = SparkFileSourceTask(SparkFileSourceConfig.parse(own), context)
    files.start()
    assert files.load()
    assert not files.load()
    assert _values(bootstrap, f"{topic}-own") == expected


def _values(bootstrap: str, topic: str) -> list[str]:
    return sorted((message.value() or b"").decode() for message in read_topic(bootstrap, topic))


def test_a_cluster_without_the_right_python_is_refused(
    bootstrap: str, topic: str, tmp_path: Path, spark_cluster: SparkCluster
) -> None:
    end_spark()
    load = Load(bootstrap, topic, tmp_path, spark_cluster, spark_pyspark_python="/nowhere/python")
    load.task.start()
    load.produce()
    with pytest.raises(ConnectError, match=r"no Python at /nowhere/python.*spark\.archives"):
        load.run()
