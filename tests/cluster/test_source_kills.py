"""Sources of Spark whose driver is killed, in the midst of rows and before it stores offsets."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
from collections import Counter
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from equipment.brokers.topics import create_topic, read_topic
from equipment.scripts import spark_source_driver
from equipment.workers.small_spark import SMALL_DELTA, SMALL_SPARK
from equipment.workers.spark_drivers import running

pytestmark = [pytest.mark.cluster, pytest.mark.integration, pytest.mark.spark, pytest.mark.timeout(900)]

PLUGINS = Path(__file__).parents[1] / "integration" / "connectors" / "spark_plugins"
ROWS = [{"id": n, "act": {5: "kill driver once", 8: "die once"}.get(n, "")} for n in range(12)]
JSON = {
    "key.converter": "JsonConverter",
    "value.converter": "JsonConverter",
    "value.converter.schemas.enable": "false",
    "header.converter": "SimpleHeaderConverter",
}
SESSION = {**SMALL_SPARK, **SMALL_DELTA, "table.format": "delta", "connection.url": "jdbc:sqlite:/none"}


class Sources:
    """Some sources, and drivers that run all of them, one source after the other."""

    def __init__(self, bootstrap: str, topic: str, folder: Path, java: Mapping[str, str]) -> None:
        self.bootstrap, self.topic, self.folder = bootstrap, topic, folder
        self._java = java
        self._offsets = f"{topic}-offsets"
        self._sources: dict[str, dict[str, Any]] = {}
        create_topic(bootstrap, self._offsets, 1, **{"cleanup.policy": "compact"})

    def add(self, name: str, class_name: str, *, exactly_once: bool = True, **more: Any) -> None:
        """A source, in whose rows some ask for kills."""
        place = self.place(name)
        (place / "alive").mkdir()
        acting = {"plugin.path": str(PLUGINS), "transforms": "act", "transforms.act.type": "acts.Act"}
        props = {**SESSION, **JSON, **acting, "transforms.act.folder": str(place), **more.pop("props")}
        props |= {"name": f"{self.topic}-{name}", "topic": f"{self.topic}-{name}"}
        kept = {"transactions": self._offsets} if exactly_once else {"offsets": str(place / "offsets")}
        self._sources[name] = {"class": class_name, "props": props, **kept, **more}

    def place(self, name: str) -> Path:
        """The folder of a source."""
        place = self.folder / name
        place.mkdir(exist_ok=True)
        return place

    def run(self, *, kill_at: str = "", crash: str = "", to: str = "") -> int:
        """Run a driver, which is killed by a row of one source, or at a point; what it ends with.

        With ``to``, the sources after that one do not run.
        """
        names = list(self._sources)[: list(self._sources).index(to) + 1] if to else list(self._sources)
        order = {"bootstrap": self.bootstrap, "session": SESSION, "sources": [self._sources[name] for name in names]}
        with running(spark_source_driver.run, order, self._java, crash) as driver:
            if kill_at:
                (self.place(kill_at) / "driver").write_text(str(driver.pid))
            code = driver.wait()
        for name in names:
            # What a driver has made is there for the next.
            self._sources[name] |= {"first": [], "then": []}
        return code

    def ids(self, name: str) -> list[int]:
        """The rows of a source that whoever reads what is committed sees."""
        found = read_topic(self.bootstrap, f"{self.topic}-{name}")
        return sorted(json.loads(message.value() or b"")["id"] for message in found)


@pytest.fixture
def sources(bootstrap: str, topic: str, tmp_path: Path, spark_java: Mapping[str, str]) -> Sources:
    return Sources(bootstrap, topic, tmp_path, spark_java)


def values(rows: list[dict[str, Any]]) -> str:
    return ", ".join(f"({row['id']}, '{row['act']}')" for row in rows)


def add_files(sources: Sources) -> None:
    lake = sources.place("files") / "lake"
    lake.mkdir()
    for number in range(3):
        pq.write_table(
            pa.Table.from_pylist([{**row, "act": ""} for row in ROWS[4 * number :][:4]]), lake / f"{number}.parquet"
        )
        os.utime(lake / f"{number}.parquet", (number, number))
    props = {"store.url": str(lake), "file.age.ms": "0", "load.max.files": "1"}
    sources.add("files", "SparkFileSourceConnector", exactly_once=False, props=props)


def add_database(sources: Sources) -> None:
    path = sources.place("database") / "shop.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE orders (id INTEGER, act TEXT)")
        connection.executemany("INSERT INTO orders VALUES (?, ?)", [tuple(row.values()) for row in ROWS])
    props = {"connection.url": f"jdbc:sqlite:{path}", "tables": "orders", "partition.column": "id"}
    props |= {"partition.count": "3", "load.max.partitions": "3"}
    sources.add("database", "SparkJdbcSourceConnector", props=props)


def add_iceberg(sources: Sources) -> None:
    """A table of three files."""
    lake = str(sources.place("iceberg"))
    table = "CREATE TABLE c.lake.t (id BIGINT, act STRING) USING iceberg"
    first = [table, *(f"INSERT INTO c.lake.t VALUES {values(ROWS[number::3])}" for number in range(3))]
    props = {"table.format": "iceberg", "tables": "lake.t", "store.url": lake}
    sources.add("iceberg", "SparkTableSourceConnector", props=props, first=first, warehouse=lake)


def add_delta(sources: Sources) -> None:
    """A table of one row, to which versions with the others are added."""
    lake = sources.place("delta")
    table = f"delta.`{lake}/topics/t`"
    first = [f"CREATE TABLE {table} (id LONG, act STRING) USING delta", f"INSERT INTO {table} VALUES (100, '')"]
    then = [f"INSERT INTO {table} VALUES {values(ROWS[number::2])}" for number in range(2)]
    props = {"table.format": "delta", "tables": "t", "store.url": str(lake)}
    sources.add("delta", "SparkTableSourceConnector", props=props, first=first, then=then)


def test_rows_of_a_database_are_sent_once_though_drivers_and_executors_are_killed(sources: Sources) -> None:
    add_database(sources)
    assert sources.run(kill_at="database") == -signal.SIGKILL
    assert sources.run(crash="before-offset-commit") == -signal.SIGKILL
    assert sources.run() == 0
    assert sources.ids("database") == list(range(12))
    assert not (sources.place("database") / "alive").exists()


@pytest.mark.thorough
def test_rows_are_sent_once_though_drivers_and_executors_are_killed(sources: Sources) -> None:
    """What is at least once comes again by a load; what is exactly once never does."""
    add_files(sources)
    add_database(sources)
    add_iceberg(sources)
    add_delta(sources)
    assert sources.run(crash="before-offset-commit:2", to="files") == -signal.SIGKILL
    assert sources.run(kill_at="database", to="database") == -signal.SIGKILL
    assert sources.run(crash="before-offset-commit", to="database") == -signal.SIGKILL
    assert sources.run(kill_at="iceberg", to="iceberg") == -signal.SIGKILL
    assert sources.run(kill_at="delta") == -signal.SIGKILL
    assert sources.run() == 0
    assert Counter(sources.ids("files")) == {number: 2 if 4 <= number < 8 else 1 for number in range(12)}
    assert sources.ids("database") == sources.ids("iceberg") == list(range(12))
    assert sources.ids("delta") == [*range(12), 100]
    assert [name for name in ("database", "iceberg", "delta") if (sources.place(name) / "alive").exists()] == []
