"""A Spark sink in a real worker: what is shown of its loads, its log, and how it goes on when its Java is killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pytest

from equipment.brokers.topics import create_topic, produce
from equipment.waiting import wait_until
from equipment.workers.processes import descendants
from equipment.workers.small_spark import sink_props
from equipment.workers.standalone import StandaloneWorker

pytestmark = [pytest.mark.cluster, pytest.mark.integration, pytest.mark.spark, pytest.mark.timeout(600)]

_PLUGINS = Path(__file__).with_name("plugins")
_PATIENCE = 240.0
_IDS = pa.schema([("id", pa.int64())])


class Lake:
    """A worker that loads a topic of two partitions into Parquet files."""

    def __init__(self, bootstrap: str, topic: str, folder: Path) -> None:
        self._bootstrap = bootstrap
        self._topic = topic
        self._store = folder / "store"
        self._watched = folder / "watched"
        self._watched.mkdir()
        self._produced = 0
        create_topic(bootstrap, topic, partitions=2)
        keys = {"connector.spark.config.override.policy": "All", "plugin.path": str(_PLUGINS)}
        self.worker = StandaloneWorker(folder, bootstrap, **keys)
        props = sink_props({"store.url": str(self._store)}) | {
            "connector.class": "Lake",
            "watch.folder": str(self._watched),
            "topics": topic,
            "rotate.interval.ms": "0",
            "poll.interval.ms": "50",
            # Spark warns of this one.
            "spark.yarn.executor.memoryOverhead": "1",
        }
        self.worker.connector("lake", **props)

    def produce(self, count: int) -> None:
        """Produce records with the next ids, by turns to the two partitions."""
        ids = range(self._produced, self._produced + count)
        for partition in range(2):
            values = [json.dumps({"id": number}).encode() for number in ids if number % 2 == partition]
            produce(self._bootstrap, self._topic, values, partition)
        self._produced += count

    def has_all(self) -> bool:
        """Whether each record is there once."""
        table = self._store / "topics" / self._topic
        found: list[int] = ds.dataset(table, schema=_IDS).to_table()["id"].to_pylist() if table.exists() else []
        assert len(found) == len(set(found)), "a record is there twice"
        return sorted(found) == list(range(self._produced))

    def loads(self) -> dict[str, Any]:
        """The loads of the task, as the REST API shows them."""
        (task,) = self.worker.get("connectors/lake/loads").json()["tasks"]
        assert task["id"] == 0
        return dict(task)

    def starts(self) -> int:
        """How many times a task was started."""
        assert not (self._watched / "overlaps").exists()
        return len((self._watched / "starts").read_text().splitlines())

    def java(self) -> int:
        """The process of Spark's Java."""
        (found,) = [pid for pid in descendants(self.worker.pid) if _is_java(pid)]
        return found


def _is_java(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/exe").readlink().name == "java"
    except OSError:
        return False


@pytest.fixture
def lake(bootstrap: str, topic: str, tmp_path: Path) -> Iterator[Lake]:
    lake = Lake(bootstrap, topic, tmp_path)
    yield lake
    lake.worker.close()


def test_loads_are_shown_and_go_on_when_java_is_killed(lake: Lake) -> None:
    lake.produce(100)
    lake.worker.start()
    wait_until("the first records are loaded", lake.has_all, seconds=_PATIENCE)
    first = wait_until("the load is shown", lambda: lake.loads()["last"], seconds=_PATIENCE)[-1]
    assert (first["topics"], first["error"], first["reason"]) == (1, None, "rotate.interval.ms")
    assert sum(item["end"] - item["first"] for item in first["ranges"]) == first["records"] == first["progress"]["rows"]
    assert first["progress"]["files"] == first["partitions"]
    assert first["progress"]["bytes"] > 0
    log = lake.worker.log()
    assert "WARNING [lake|task-0] SparkConf: The configuration key 'spark.yarn.executor.memoryOverhead'" in log
    assert f"Loaded {first['records']} records of {first['partitions']} partition" in log

    os.kill(lake.java(), signal.SIGKILL)
    lake.produce(50)
    wait_until("the records that came after the kill are loaded", lake.has_all, seconds=_PATIENCE)
    failed = [load for load in lake.loads()["last"] if load["error"]]
    assert [load["error"].split(":")[0] for load in failed] == ["Spark's Java process ended during a load"]
    status = lake.worker.get("connectors/lake/status").json()
    assert [task["state"] for task in status["tasks"]] == ["RUNNING"]
    assert status["tasks"][0]["metrics"]["load-failure-total"] == 1
    assert lake.starts() == 1, "the task, which runs on, is started once"

    shown = subprocess.run(
        [str(Path(sys.executable).parent / "sluice"), "status", "lake", "--url", lake.worker.url()],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    ).stdout
    assert "lake, a sink: RUNNING on " in shown
    assert "rotate.interval.ms" in shown
    assert "Spark's Java process ended during a load" in shown
