"""A sink that Spark runs exactly once: Python workers, Java and the driver are killed, one after the other."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from equipment.brokers.topics import committed, create_topic, produce
from equipment.workers.small_spark import SMALL_SPARK, prepare_spark
from equipment.workers.standalone import StandaloneWorker

pytest.importorskip("pyspark")
pytestmark = [pytest.mark.cluster, pytest.mark.integration, pytest.mark.spark, pytest.mark.timeout(600)]

ROWS = 1000
SCHEMA = {"type": "struct", "fields": [{"field": "id", "type": "int64"}]}
KILLS = ("1-put-python", "2-flush-python", "3-put-java", "4-put-driver")
PLUGIN = '''\
import os
import signal
from contextlib import suppress

from connectors.jdbc.sink.sink import JdbcSinkConnector, JdbcSinkTask

FOLDER = os.environ["ENGINE_KILLS"]


def parent(pid):
    with open(f"/proc/{pid}/stat") as stat:
        return int(stat.read().rpartition(")")[2].split()[1])


def victim(name):
    """An executor's Python is a child of a daemon, that of Java, and Java of the driver.

    There is no victim if another executor has just killed Java: the parent is a stranger then.
    """
    java = parent(os.getppid())
    with open(f"/proc/{java}/comm") as comm:
        if comm.read() != "java\\n":
            return None
    return {"python": os.getpid(), "java": java, "driver": parent(java)}[name]


def kill_at(moment):
    for name in sorted(os.listdir(FOLDER))[:1]:
        _, when, who = name.split("-")
        with suppress(FileNotFoundError):
            if when == moment and (pid := victim(who)):
                os.unlink(os.path.join(FOLDER, name))
                os.kill(pid, signal.SIGKILL)


class KillingTask(JdbcSinkTask):
    """Kills after it has written some records, or all of its load."""

    def put(self, records):
        super().put(records)
        kill_at("put")

    def flush(self, offsets):
        super().flush(offsets)
        kill_at("flush")


class KillingSinkConnector(JdbcSinkConnector):
    """Kills."""

    task_class = KillingTask
'''


@pytest.fixture
def kills(tmp_path: Path) -> Path:
    """The kills to come, as files that are taken away by whoever kills."""
    folder = tmp_path / "kills"
    folder.mkdir()
    for name in KILLS:
        (folder / name).touch()
    return folder


@pytest.fixture
def plugin_path(tmp_path: Path) -> Path:
    folder = tmp_path / "plugins"
    folder.mkdir()
    (folder / "engine_killing_sink.py").write_text(PLUGIN)
    listed = '[[connector]]\nclass = "engine_killing_sink.KillingSinkConnector"\ntype = "sink"\n'
    (folder / "plugins.toml").write_text(listed)
    return folder


def test_each_row_is_there_once_whatever_is_killed(
    standalone: Callable[..., StandaloneWorker],
    bootstrap: str,
    topic: str,
    tmp_path: Path,
    kills: Path,
    plugin_path: Path,
) -> None:
    create_topic(bootstrap, topic, partitions=2)
    rows = [json.dumps({"schema": SCHEMA, "payload": {"id": number}}).encode() for number in range(ROWS)]
    for partition in range(2):
        produce(bootstrap, topic, rows[partition::2], partition)
    prepare_spark()
    worker = standalone(value_converter="JsonConverter", plugin_path=str(plugin_path))
    props = {
        "connector.class": "KillingSink",
        "topics": topic,
        "engine": "spark",
        "tasks.max": "2",
        "connection.url": f"jdbc:sqlite:{tmp_path / 'rows.db'}",
        "table.name.format": "rows",
        "auto.create": "true",
        "delivery": "exactly-once",
        "batch.size": "40",
        "run.until": "drained",
        "engine.rotate.interval.ms": "0",
        "engine.poll.interval.ms": "50",
        **SMALL_SPARK,
        "consumer.override.max.poll.records": "80",
    }
    worker.connector("engine-kills", **{key: value for key, value in props.items() if "extraJavaOptions" not in key})
    environ = {"ENGINE_KILLS": str(kills)}
    # The driver is the task: the connector has failed with it.
    assert worker.run(environ, seconds=240) != 0
    assert list(kills.iterdir()) == [], worker.log()
    assert worker.run(environ, seconds=120) == 0, worker.log()
    with sqlite3.connect(tmp_path / "rows.db") as connection:
        assert connection.execute("SELECT id FROM rows ORDER BY id").fetchall() == [(n,) for n in range(ROWS)]
    assert committed(bootstrap, "connect-engine-kills", topic, 2) == [ROWS // 2] * 2
    assert "The load is repeated; nothing is lost" in worker.log()
