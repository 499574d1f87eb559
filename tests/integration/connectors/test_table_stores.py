"""Iceberg and Delta tables in every store: loaded, taken over, and read back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import connectors.spark
from connect.jvm.home import sluice_home
from connect.jvm.jars import read_lock, resolve_jars
from connectors.spark.config import SparkSinkConfig
from connectors.spark.iceberg.catalog import IcebergCatalog, TableName
from connectors.spark.ledger.ledger import FencedError
from connectors.spark.options.store import StoreOptions
from connectors.spark.session import start_session
from connectors.spark.sink import SparkSinkTask
from connectors.spark.stores.access import store_access
from equipment.brokers.filled_topic import FilledTopic
from equipment.servers.s3 import S3Server, running_moto, running_versitygw, versitygw
from equipment.stores.contract import unique_prefix
from equipment.workers.bulk_context import BulkContext
from equipment.workers.small_spark import SMALL_DELTA, SMALL_SPARK, sink_props

pytestmark = [
    pytest.mark.integration,
    pytest.mark.spark,
    pytest.mark.timeout(1200),
    # Connections to Java of threads that have ended are left to the garbage collector by py4j.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


class Sink:
    """A topic of two partitions, and tasks that load it into a table."""

    def __init__(self, bootstrap: str, topic: str, props: Mapping[str, str]) -> None:
        self.topic = topic
        self.props = {**sink_props(props), "name": "sink", "topics": topic}
        self._bootstrap = bootstrap
        self.records = FilledTopic(bootstrap, topic)

    def task(self) -> SparkSinkTask:
        """A task that has started."""
        task = SparkSinkTask(SparkSinkConfig.parse(self.props), BulkContext("sink", self._bootstrap, self.props))
        task.start()
        return task


@pytest.fixture(scope="module")
def s3_server() -> Iterator[S3Server]:
    """One server that speaks S3."""
    program = versitygw()
    with running_versitygw(program) if program else running_moto() as server:
        yield server


@pytest.fixture(scope="module")
def spark(shared_java: None, s3_server: S3Server) -> Iterator[Any]:
    """Spark with the jars of both formats and of S3, kept for all tests of this file."""
    folder = Path(connectors.spark.__file__).parent / "iceberg"
    locks = [jar for name in ("iceberg", "sqlite") for jar in read_lock(folder / f"{name}.jars")]
    jars = ",".join(map(str, resolve_jars(locks, home=sluice_home())))
    access = store_access(StoreOptions.parse({"store.url": f"s3://{s3_server.bucket}/", **s3_server.props}))
    settings = {"table.format": "delta", "spark.jars": jars, **SMALL_DELTA}
    session = start_session({**SMALL_SPARK, **settings}, "stores", access)
    yield session
    session.stop()


@pytest.fixture(params=["s3", "hdfs"])
def store(request: pytest.FixtureRequest, s3_server: S3Server) -> dict[str, str]:
    """The keys that reach a store."""
    if request.param == "s3":
        return {"store.url": f"s3://{s3_server.bucket}/{unique_prefix()}", **s3_server.props}
    return {"store.url": f"{request.getfixturevalue('hdfs').url}/{unique_prefix()}"}


def load_twice(sink: Sink) -> None:
    """Load, have another driver take over and load the rest."""
    sink.records.produce([{"id": number} for number in range(10)])
    first = sink.task()
    sink.records.drain(first)
    second = sink.task()
    sink.records.produce([{"id": number} for number in range(10, 20)])
    with pytest.raises(FencedError):
        sink.records.drain(first)
    sink.records.drain(second)


def iceberg_ids(spark: Any, sink: Sink, name: TableName) -> list[int]:
    """The ids in a table, as a driver that starts now finds them in its catalog."""
    table = IcebergCatalog(spark, SparkSinkConfig.parse(sink.props)).table(name)
    assert table is not None
    now = table.change()
    with now.rows(now.planned("main", {})) as rows:
        return sorted(row.id for row in rows.collect())


def test_delta_tables(spark: Any, bootstrap: str, topic: str, store: dict[str, str]) -> None:
    sink = Sink(bootstrap, topic, {**store, "table.format": "delta"})
    load_twice(sink)
    place = SparkSinkConfig.parse(sink.props).location.uri
    found = spark.read.format("delta").load(f"{place}/topics/{topic}").collect()
    assert sorted(row.id for row in found) == list(range(20))


def test_iceberg_tables(spark: Any, bootstrap: str, topic: str, store: dict[str, str], tmp_path: Path) -> None:
    catalog = {}
    if store["store.url"].startswith("s3"):
        catalog = {"iceberg.catalog.type": "jdbc", "iceberg.catalog.uri": f"jdbc:sqlite:{tmp_path}/catalog.db"}
    sink = Sink(bootstrap, topic, {**store, "table.format": "iceberg", **catalog})
    load_twice(sink)
    assert iceberg_ids(spark, sink, TableName(("topics",), topic)) == list(range(20))


def test_of_two_that_write_the_same_version_of_a_log_in_s3_the_second_is_refused(
    spark: Any, s3_server: S3Server
) -> None:
    java, configuration = spark._jvm, spark._jsparkSession.sessionState().newHadoopConf()
    path = java.org.apache.hadoop.fs.Path(f"s3a://{s3_server.bucket}/{unique_prefix()}/_delta_log/{0:020}.json")
    log = java.sluice.ConditionalLogStore(configuration)

    def write(*lines: str, overwrite: bool = False) -> None:
        actions = java.java.util.ArrayList()
        for line in lines:
            actions.add(line)
        log.write(path, actions.iterator(), overwrite, configuration)

    def read() -> list[str]:
        lines = log.read(path, configuration)
        return list(iter(lambda: lines.next() if lines.hasNext() else "", ""))

    write("one", "two")
    with pytest.raises(Exception, match="FileAlreadyExistsException"):
        write("another")
    assert read() == ["one", "two"]
    # A put that is sent again, because its answer was lost, has been made.
    write("one", "two")
    write("another", overwrite=True)
    assert read() == ["another"]
