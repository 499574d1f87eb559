"""Iceberg and Delta tables in every store: loaded, taken over, and read back."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog.sql import SqlCatalog

import connectors.spark
from connect.internals.jvm.home import sluice_home
from connect.internals.jvm.jars import read_lock, resolve_jars
from connectors.spark.iceberg.catalog import IcebergCatalog, TableName
from connectors.spark.options.store import StoreOptions
from connectors.spark.session import start_session
from connectors.spark.sink import SparkSinkTask
from connectors.spark.sink.config import SparkSinkConfig
from connectors.spark.sink.target import FencedError
from connectors.spark.stores.access import store_access
from equipment.brokers.filled_topic import FilledTopic
from equipment.brokers.topics import produce
from equipment.proofs import thorough
from equipment.servers.s3 import S3Server, running_moto, running_versitygw, versitygw
from equipment.stores.objects import unique_prefix
from equipment.workers.bulk_context import BulkContext
from equipment.workers.small_spark import SMALL_DELTA, SMALL_SPARK, sink_props
from equipment.workers.standalone import StandaloneWorker

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
def spark(table_java: None, s3_server: S3Server) -> Iterator[Any]:
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


def iceberg_files(spark: Any, sink: Sink, name: TableName) -> list[str]:
    """The places of the files of a table."""
    table = IcebergCatalog(spark, SparkSinkConfig.parse(sink.props)).table(name)
    assert table is not None
    return [str(task.file().location()) for task in table.change().planned("main", {})]


@pytest.mark.thorough
def test_delta_tables(spark: Any, bootstrap: str, topic: str, store: dict[str, str]) -> None:
    sink = Sink(bootstrap, topic, {**store, "table.format": "delta"})
    load_twice(sink)
    place = SparkSinkConfig.parse(sink.props).location.uri
    found = spark.read.format("delta").load(f"{place}/topics/{topic}").collect()
    assert sorted(row.id for row in found) == list(range(20))


@pytest.mark.thorough
def test_iceberg_tables(spark: Any, bootstrap: str, topic: str, store: dict[str, str], tmp_path: Path) -> None:
    catalog = {}
    if store["store.url"].startswith("s3"):
        catalog = {"iceberg.catalog.type": "jdbc", "iceberg.catalog.uri": f"jdbc:sqlite:{tmp_path}/catalog.db"}
    sink = Sink(bootstrap, topic, {**store, "table.format": "iceberg", **catalog})
    load_twice(sink)
    assert iceberg_ids(spark, sink, TableName(("topics",), topic)) == list(range(20))
    # The executors reach S3 themselves; of HDFS only Java can write the files.
    by_executors = {"-c000" in name for name in iceberg_files(spark, sink, TableName(("topics",), topic))}
    assert by_executors == {store["store.url"].startswith("s3")}


@pytest.mark.parametrize("has_store", [*thorough(False), True])
def test_a_configuration_of_icebergs_own_sink_with_icebergs_own_client_of_s3(
    has_store: bool,
    s3_server: S3Server,
    standalone: Callable[..., StandaloneWorker],
    bootstrap: str,
    topic: str,
    tmp_path: Path,
) -> None:
    warehouse = f"s3://{s3_server.bucket}/{unique_prefix()}"
    produce(bootstrap, topic, [json.dumps({"id": number}).encode() for number in range(10)])
    catalog = {
        "type": "jdbc",
        "uri": f"jdbc:sqlite:{tmp_path}/catalog.db",
        "jdbc.schema-version": "V1",
        "warehouse": warehouse,
        "io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
        "client.region": s3_server.props["s3.region"],
        "s3.endpoint": s3_server.endpoint,
        "s3.path-style-access": "true",
        "s3.access-key-id": s3_server.props["aws.access.key.id"],
        "s3.secret-access-key": s3_server.props["aws.secret.access.key"],
    }
    worker = standalone(connector_spark_config_override_policy="All")
    worker.connector(
        "lake",
        **{f"iceberg.catalog.{key}": value for key, value in catalog.items()},
        **({"store.url": warehouse, **s3_server.props} if has_store else {}),
        **{
            "connector.class": "org.apache.iceberg.connect.IcebergSinkConnector",
            "topics": topic,
            "iceberg.tables": "lake.events",
            "iceberg.tables.auto-create-enabled": "true",
            "value.converter": "org.apache.kafka.connect.json.JsonConverter",
            "value.converter.schemas.enable": "false",
            "run.until": "drained",
            **SMALL_SPARK,
        },
    )
    assert worker.run(seconds=300) == 0, worker.log()
    properties = {key: catalog[f"s3.{key}"] for key in ("endpoint", "access-key-id", "secret-access-key")}
    properties["region"] = catalog["client.region"]
    reading = SqlCatalog(
        "iceberg",
        uri=f"sqlite:///{tmp_path}/catalog.db",
        warehouse=warehouse,
        **{f"s3.{key}": value for key, value in properties.items()},
    )
    rows = reading.load_table(("lake", "events")).scan().to_arrow()["id"].to_pylist()
    assert sorted(rows) == list(range(10))


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
