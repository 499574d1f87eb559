"""A folder of HDFS is a store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from connect.errors import ConnectError, RetriableError
from connectors.spark.options.store import StoreOptions
from connectors.spark.session import start_session
from connectors.spark.stores.access import store_access
from connectors.spark.stores.opening import open_store
from connectors.spark.stores.store import Store
from equipment.servers.hdfs import HdfsServer
from equipment.stores.contract import TABLE, StoreContract, unique_prefix
from equipment.workers.small_spark import SMALL_SPARK

pytestmark = pytest.mark.spark
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


class TestHadoopStore(StoreContract):
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
