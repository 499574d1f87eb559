"""Two Spark sinks of one worker that share an application: one Java, which both use, and which survives either."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
import requests
from deltalake import DeltaTable

from equipment.brokers.topics import create_topic, produce, read_topic
from equipment.waiting import wait_until
from equipment.workers.processes import descendants
from equipment.workers.small_spark import sink_props
from equipment.workers.standalone import StandaloneWorker

pytestmark = [pytest.mark.cluster, pytest.mark.integration, pytest.mark.spark, pytest.mark.timeout(900)]

_PATIENCE: Final = 300.0
_IDS: Final = pa.schema([("id", pa.int64())])
_NAMES: Final = ("one", "two")


class Sharing:
    """A worker with two sinks in one application; they start with the worker."""

    def __init__(self, bootstrap: str, topic: str, folder: Path) -> None:
        self._bootstrap, self._topic, self._folder = bootstrap, topic, folder
        self._produced = 0
        create_topic(bootstrap, topic)
        self.worker = StandaloneWorker(folder, bootstrap, connector_spark_config_override_policy="All")
        for name in _NAMES:
            self.worker.connector(name, **self.props(name))

    def props(self, name: str) -> dict[str, str]:
        """The configuration of a sink."""
        return sink_props({"store.url": str(self._folder / name)}) | {
            "connector.class": "SparkSink",
            "topics": self._topic,
            "spark.session": "lake",
            "rotate.interval.ms": "0",
            "poll.interval.ms": "50",
        }

    def load(self, *names: str) -> None:
        """Produce records, and wait until these sinks have loaded all that there are."""
        ids = range(self._produced, self._produced + 10)
        produce(self._bootstrap, self._topic, [json.dumps({"id": number}).encode() for number in ids])
        self._produced += 10
        for name in names:
            wait_until(f"{name} has loaded", lambda store=name: self._has_all(store), seconds=_PATIENCE)

    def _has_all(self, name: str) -> bool:
        table = self._folder / name / "topics" / self._topic
        found: list[int] = ds.dataset(table, schema=_IDS).to_table()["id"].to_pylist() if table.exists() else []
        assert len(found) == len(set(found)), "a record is there twice"
        return sorted(found) == list(range(self._produced))

    def javas(self) -> list[int]:
        """The processes of Java below the worker."""
        return [pid for pid in descendants(self.worker.pid) if _is_java(pid)]

    def create(self, name: str, config: dict[str, str]) -> None:
        """Create a connector in the same application."""
        body = {"name": name, "config": {**sink_props({}), "spark.session": "lake", **config}}
        requests.post(f"{self.worker.url()}connectors", json=body, timeout=60).raise_for_status()

    def delete(self, name: str) -> None:
        """Delete a connector."""
        requests.delete(f"{self.worker.url()}connectors/{name}", timeout=60).raise_for_status()


def _is_java(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/exe").readlink().name == "java"
    except OSError:
        return False


@pytest.fixture
def sharing(bootstrap: str, topic: str, tmp_path: Path) -> Iterator[Sharing]:
    sharing = Sharing(bootstrap, topic, tmp_path)
    yield sharing
    sharing.worker.close()


def test_connectors_share_an_application_that_comes_back_when_killed_and_outlives_each_of_them(
    sharing: Sharing, bootstrap: str, topic: str, tmp_path: Path
) -> None:
    sharing.worker.start()
    sharing.load(*_NAMES)
    (java,) = sharing.javas()

    # One of them has started it; it goes on without that one, whichever it is.
    sharing.create("three", sharing.props("three") | {"spark.driver.memory": "600m"})
    failed = sharing.worker.wait_for_states("three", "RUNNING", "FAILED")
    assert (
        "cannot share a Spark application: their settings differ in spark.driver.memory" in failed["tasks"][0]["trace"]
    )
    starter = (
        "one" if "[one|task-0] connectors.spark.cluster.shared_session: Starting" in sharing.worker.log() else "two"
    )
    (left,) = {*_NAMES} - {starter}
    sharing.delete(starter)
    sharing.load(left)
    assert sharing.javas() == [java]

    # Sources and engines share it as well.
    back, copy = f"{topic}-back", tmp_path / "copy.txt"
    files = {"store.url": str(tmp_path / left / "topics" / topic), "topic": back, "file.age.ms": "0"}
    sharing.create("back", {"connector.class": "SparkFileSource", "pattern": "*.parquet", **files})
    sharing.create(
        "copy",
        {"connector.class": "FileStreamSink", "engine": "spark", "topics": topic, "file": str(copy)}
        | {"engine.rotate.interval.ms": "0", "engine.poll.interval.ms": "50"},
    )
    wait_until("the rows are on a topic again", lambda: len(sent(bootstrap, back)) == 20, seconds=_PATIENCE)
    wait_until(
        "the engine has put them", lambda: copy.exists() and len(copy.read_text().splitlines()) == 20, seconds=_PATIENCE
    )
    assert sent(bootstrap, back) == list(range(20))
    assert sharing.javas() == [java]

    os.kill(java, signal.SIGKILL)
    sharing.load(left)
    wait_until("the new rows are on it too", lambda: set(sent(bootstrap, back)) == set(range(30)), seconds=_PATIENCE)
    wait_until("the engine has put them too", lambda: len(set(copy.read_text().splitlines())) == 30, seconds=_PATIENCE)
    (again,) = sharing.javas()
    assert again != java
    for name in (left, "back", "copy"):
        assert [task["state"] for task in sharing.worker.status(name)["tasks"]] == ["RUNNING"]

    for name in ("back", "copy", left):
        assert sharing.javas() == [again]
        sharing.delete(name)
    wait_until("the application has ended with its last connector", lambda: not sharing.javas(), seconds=_PATIENCE)


@pytest.mark.thorough
def test_tables_of_every_format_are_written_through_a_shared_session(
    bootstrap: str, topic: str, tmp_path: Path
) -> None:
    """Each format has the application that needs its classes, and all connectors of the format share that."""
    create_topic(bootstrap, topic)
    produce(bootstrap, topic, [b'{"id": 1, "s": "a"}'])
    formats = {"delta": "delta", "delta2": "delta", "parquet": "parquet", "iceberg": "iceberg"}
    worker = StandaloneWorker(tmp_path, bootstrap, connector_spark_config_override_policy="All")
    for name, table_format in formats.items():
        store = {"store.url": str(tmp_path / name), "table.format": table_format, "spark.session": "lake"}
        catalog = {"iceberg.catalog.type": "hadoop"} if table_format == "iceberg" else {}
        more = {"connector.class": "SparkSink", "topics": topic, "rotate.interval.ms": "0"}
        worker.connector(name, **{**sink_props(store), **catalog, **more})
    worker.start()
    try:

        def written(column: str) -> None:
            for name in formats:
                wait_until(
                    f"{name} has {column}",
                    lambda name=name: has_column(tmp_path / name, topic, column),
                    seconds=_PATIENCE,
                )

        written("s")
        # The columns of a Delta table grow in the commit of the rows, for which its session has settings.
        produce(bootstrap, topic, [b'{"id": 2, "s": "b", "more": 1.5}'])
        written("more")
        javas = [pid for pid in descendants(worker.pid) if _is_java(pid)]
        assert len(javas) == len(set(formats.values()))
        states = [task["state"] for name in formats for task in worker.status(name)["tasks"]]
        assert states == ["RUNNING"] * len(formats)
    finally:
        worker.close()
    for name in ("delta", "delta2"):
        rows = DeltaTable(tmp_path / name / "topics" / topic).to_pyarrow_table().to_pylist()
        assert sorted(rows, key=lambda row: row["id"]) == [
            {"id": 1, "s": "a", "more": None},
            {"id": 2, "s": "b", "more": 1.5},
        ]


def has_column(store: Path, topic: str, column: str) -> bool:
    """Whether a table of Delta, or a file of another one, has a column."""
    folder = store / "topics" / topic
    if DeltaTable.is_deltatable(str(folder)):
        return column in [field.name for field in DeltaTable(folder).schema().fields]
    return any(column in columns_of(path) for path in folder.rglob("*.parquet"))


def columns_of(file: Path) -> list[str]:
    """The columns of a file, which may still be written."""
    try:
        return pq.read_schema(file).names
    except pa.ArrowInvalid:
        return []


def sent(bootstrap: str, topic: str) -> list[int]:
    """The ids of a topic's records."""
    return sorted(json.loads(message.value())["id"] for message in read_topic(bootstrap, topic))
