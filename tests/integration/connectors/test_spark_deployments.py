"""Connectors with Spark where that takes long to set up: on YARN, in an environment that is sent, on a full cluster.

``make spark-deployments`` runs them.
"""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from importlib.metadata import requires, version
from pathlib import Path
from typing import Final

import pytest
from packaging.requirements import Requirement

from connect.bulk import OffsetRange
from connect.errors import ConnectError
from connect.internals.jvm.home import sluice_home
from connect.internals.jvm.java import find_java
from connectors.spark.engine.config import SparkSinkEngineConfig, SparkSourceEngineConfig
from connectors.spark.engine.sink import SparkSinkEngine
from connectors.spark.engine.source import SparkSourceEngine
from connectors.spark.session import java_home
from equipment.brokers.topics import create_topic, produce, read_topic
from equipment.ports import own_port
from equipment.scripts import spark_connect, spark_holder
from equipment.servers.spark_cluster import running_spark_cluster
from equipment.servers.yarn import running_yarn
from equipment.waiting import wait_until
from equipment.workers.bulk_context import BulkContext
from equipment.workers.bulk_source_context import BulkSourceContext
from equipment.workers.small_spark import end_spark, sink_props
from worker.embedded.ports import HOST

pytest.importorskip("pyspark")

pytestmark = [
    pytest.mark.integration,
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.skipif("SLUICE_SPARK_DEPLOYMENTS" not in os.environ, reason="make spark-deployments runs it"),
    # PySpark leaves sockets and pipes to the garbage collector.
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

_ROWS: Final = 10
_PATIENCE: Final = 240.0
_WAITS: Final = "waiting for executors"


@pytest.fixture(autouse=True)
def own_java() -> None:
    """A Java has the master and the Python of its first session."""
    end_spark()


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    """An environment as docs/spark/cluster.md tells to pack it, but without Sluice: its code is sent by the driver."""
    python, archive = tmp_path / "environment" / "bin" / "python", tmp_path / "environment.tar.gz"
    needed = [item.name for item in map(Requirement, requires("sluice-connect") or ()) if item.marker is None]
    packages = [f"{name}=={version(name)}" for name in (*needed, "pyarrow", "pandas")]
    commands = (
        [sys.executable, "-m", "venv", str(tmp_path / "environment")],
        [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages, "venv-pack>=0.2,<1"],
        [str(python.with_name("venv-pack")), "--quiet", "--compress-level", "1", "--output", str(archive)],
    )
    for command in commands:
        subprocess.run(command, check=True, env={**os.environ, "VIRTUAL_ENV": str(tmp_path / "environment")})
    return archive


def _there_and_back(bootstrap: str, topic: str, folder: Path, cluster: dict[str, str]) -> None:
    """Run a sink and a source on a cluster, and see that every record comes through once."""
    create_topic(bootstrap, topic, partitions=2)
    for partition in range(2):
        produce(bootstrap, topic, [f"{partition} {number}".encode() for number in range(_ROWS)], partition)
    expected = sorted(f"{partition} {number}" for partition in range(2) for number in range(_ROWS))
    props = {**sink_props({}), **cluster, "value.converter": "StringConverter", "name": "engine"}
    props |= {"header.converter": "SimpleHeaderConverter", "engine": "spark", "tasks.max": "1"}
    lines = folder / "in" / "lines.txt"
    lines.parent.mkdir()

    sunk = {**props, "connector.class": "FileStreamSink", "file": str(lines)}
    sink = SparkSinkEngine(SparkSinkEngineConfig.parse(sunk), BulkContext("engine", bootstrap, sunk))
    sink.start()
    sink.load([OffsetRange(topic, partition, 0, _ROWS) for partition in range(2)])
    assert sorted(lines.read_text().splitlines()) == expected

    back = {**props, "connector.class": "DirectorySource", "path": str(lines.parent), "topic": f"{topic}-back"}
    back |= {"settle.ms": "0", "scan.interval.ms": "10"}
    source = SparkSourceEngine(SparkSourceEngineConfig.parse(back), BulkSourceContext("engine", bootstrap, back))
    source.start()
    assert source.load()
    assert not source.load()
    assert sorted((message.value() or b"").decode() for message in read_topic(bootstrap, f"{topic}-back")) == expected


def test_a_sink_and_a_source_run_on_yarn(bootstrap: str, topic: str, tmp_path: Path) -> None:
    with running_yarn() as yarn:
        _there_and_back(bootstrap, topic, tmp_path, yarn.props)
        assert yarn.running_applications() == 1
        end_spark()


def test_executors_run_the_python_of_an_environment_that_is_sent(
    bootstrap: str, topic: str, tmp_path: Path, environment: Path
) -> None:
    sent = {"spark.archives": f"{environment}#environment", "spark.pyspark.python": "./environment/bin/python"}
    with running_spark_cluster() as cluster:
        _there_and_back(bootstrap, topic, tmp_path, {**cluster.props, **sent})
        end_spark()


def test_a_load_waits_while_another_application_has_the_whole_cluster(
    bootstrap: str, topic: str, tmp_path: Path
) -> None:
    create_topic(bootstrap, topic, partitions=1)
    produce(bootstrap, topic, [b"a line"], 0)
    with running_spark_cluster() as cluster:
        context, sink = _sink(bootstrap, tmp_path, cluster.props)
        command = [sys.executable, str(Path(spark_holder.__file__)), json.dumps({**sink_props({}), **cluster.props})]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
            assert holder.stdout is not None
            assert holder.stdout.readline() == "holding\n"
            assert cluster.free_cores() == 0
            sink.start()
            with ThreadPoolExecutor(1) as threads:
                load = threads.submit(sink.load, [OffsetRange(topic, 0, 0, 1)])
                wait_until(
                    "the status says so", lambda: context.last_progress.stage.startswith(_WAITS), seconds=_PATIENCE
                )
                holder.communicate("")
                load.result(_PATIENCE)
        end_spark()
    assert (tmp_path / "lines.txt").read_text() == "a line\n"


def test_a_master_that_is_not_there_is_told_with_what_to_look_at(bootstrap: str, tmp_path: Path) -> None:
    master = {"spark.master": f"spark://{HOST}:{own_port()}", "spark.driver.host": HOST}
    _, sink = _sink(bootstrap, tmp_path, master)
    with pytest.raises(ConnectError, match=r"Spark did not start .*spark\.master"):
        sink.start()


def test_connectors_are_data_sources_through_spark_connect(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "shop.db")) as database:
        database.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY)")
        database.executemany("INSERT INTO orders VALUES (?)", [(number,) for number in range(3)])
        database.commit()
    table = {"connection.url": f"jdbc:sqlite:{tmp_path / 'shop.db'}", "table.whitelist": "orders"}
    read = {**table, "connector.class": "JdbcSource", "mode": "bulk", "topic.prefix": "shop-"}
    write = {"connector.class": "JdbcSink", "connection.url": table["connection.url"], "topics": "copies"}
    orders = {"read": read, "write": {**write, "auto.create": "true"}}
    home = java_home(find_java(minimum=17), sluice_home())
    told = subprocess.run(
        [sys.executable, str(Path(spark_connect.__file__)), json.dumps(orders)],
        env={**os.environ, "JAVA_HOME": str(home), "PYSPARK_PYTHON": sys.executable},
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    ).stdout
    assert told.splitlines() == ["struct<id:bigint>", "0", "1", "2"]
    with closing(sqlite3.connect(tmp_path / "shop.db")) as database:
        assert database.execute("SELECT id FROM copies ORDER BY id").fetchall() == [(0,), (1,), (2,)]


def _sink(bootstrap: str, folder: Path, cluster: dict[str, str]) -> tuple[BulkContext, SparkSinkEngine]:
    """A sink of lines that runs on a cluster."""
    props = {
        **sink_props({}),
        **cluster,
        "connector.class": "FileStreamSink",
        "file": str(folder / "lines.txt"),
        "value.converter": "StringConverter",
        "header.converter": "SimpleHeaderConverter",
        "name": "engine",
    }
    context = BulkContext("engine", bootstrap, props)
    return context, SparkSinkEngine(SparkSinkEngineConfig.parse(props), context)
