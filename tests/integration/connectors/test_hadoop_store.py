"""A folder of HDFS is a store."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from connect.errors import ConnectError, RetriableError
from connectors.spark.options.store import StoreOptions
from connectors.spark.session import start_session
from connectors.spark.sources.files.config import SparkFileSourceConfig
from connectors.spark.sources.files.source import SparkFileSourceTask
from connectors.spark.stores.access import store_access
from connectors.spark.stores.factory import open_store
from connectors.spark.stores.store import Store
from equipment.brokers.topics import read_topic
from equipment.servers.hdfs import HDFS_PAGE, HdfsServer
from equipment.stores.contract import TABLE, StoreContract
from equipment.stores.objects import ObjectContract, unique_prefix
from equipment.workers.bulk_source_context import BulkSourceContext
from equipment.workers.small_spark import SMALL_SPARK

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.spark,
    # PySpark leaves the socket by which it brings rows to the driver to the garbage collector.
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
NAMESERVICE = "lake-nodes"


@pytest.fixture(scope="module")
def conf_dir(hdfs: HdfsServer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The configuration of a cluster that has a name."""
    folder = tmp_path_factory.mktemp("hadoop-conf")
    hdfs.write_configuration(folder, NAMESERVICE)
    return folder


@pytest.fixture(scope="module")
def spark(conf_dir: Path) -> Iterator[SparkSession]:
    """A session for this module."""
    options = StoreOptions.parse({"store.url": f"hdfs://{NAMESERVICE}/lake", "hadoop.conf.dir": str(conf_dir)})
    settings = {**SMALL_SPARK, "spark.hadoop.ipc.client.connect.max.retries": "1"}
    session = start_session(settings, "hadoop-store", store_access(options))
    yield session
    session.stop()


class TestHadoopStore(ObjectContract, StoreContract):
    page = HDFS_PAGE
    has_colons = False

    @pytest.fixture
    def store(self, hdfs: HdfsServer, spark: SparkSession) -> Store:
        return open_store(StoreOptions.parse({"store.url": f"{hdfs.url}/{unique_prefix()}/lake"}), lambda: spark)

    def stage(self, store: Store, folder: str, name: str, data: bytes, attempt: int = 0) -> None:
        store.create(f"{folder}/{name}", data)

    def test_a_name_stands_for_the_name_node_that_answers(self, spark: SparkSession) -> None:
        url = f"hdfs://{NAMESERVICE}/{unique_prefix()}"
        store = open_store(StoreOptions.parse({"store.url": url}), lambda: spark)
        self.commit(store, self.opened(store), 1)
        assert list(store.files(TABLE)) == ["t+1"]

    def test_what_a_kill_cuts_off_is_no_manifest(self, store: Store) -> None:
        """A file that is begun has a hidden name until it is whole."""
        self.commit(store, self.opened(store), 1)
        store.create("_sluice/sink/manifests/.0000000003.json.cut", b"{")
        assert self.opened(store).offsets == {("t", 0): 1}


def test_a_name_node_that_does_not_answer_is_tried_again(spark: SparkSession) -> None:
    store = open_store(StoreOptions.parse({"store.url": "hdfs://127.0.0.1:1/lake"}), lambda: spark)
    with pytest.raises(RetriableError, match="cannot be reached"):
        store.read("a")


def test_a_name_that_no_configuration_knows_is_told(spark: SparkSession) -> None:
    store = open_store(StoreOptions.parse({"store.url": "hdfs://no-such-nodes/lake"}), lambda: spark)
    with pytest.raises(ConnectError, match=r"hadoop\.conf\.dir"):
        store.read("a")


def test_files_are_sent_once(spark: SparkSession, hdfs: HdfsServer, bootstrap: str, topic: str, tmp_path: Path) -> None:
    url = f"{hdfs.url}/{unique_prefix()}"
    props = {**SMALL_SPARK, "name": "back", "store.url": url, "topic": f"{topic}-${{folder}}", "file.age.ms": "0"}
    props |= {"key.converter": "StringConverter", "value.converter": "JsonConverter"}
    props |= {"value.converter.schemas.enable": "false", "header.converter": "SimpleHeaderConverter"}

    def sent(first: int) -> list[int]:
        spark.range(first, first + 10, 1, 2).write.mode("append").parquet(f"{url}/a/day=01")
        context = BulkSourceContext("back", bootstrap, props, tmp_path / "offsets")
        task = SparkFileSourceTask(SparkFileSourceConfig.parse(props), context)
        task.start()
        while task.load():
            pass
        found = read_topic(bootstrap, f"{topic}-a")
        return sorted(json.loads(message.value() or b"")["id"] for message in found)

    assert sent(0) == list(range(10))
    assert sent(10) == list(range(20))
