"""The proof by kills for windows: each is written once and whole, whenever the driver is killed, no record is lost."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from connect.crash import CRASH_POINT_VARIABLE
from equipment.workers.small_spark import DRIVER, sink_props, spark_java_for

pytestmark = [pytest.mark.cluster, pytest.mark.integration, pytest.mark.spark, pytest.mark.timeout(3600)]

RECORDS, FLUSH, WINDOW = 600, 20, 30
POINTS = (
    "after-hold:2",
    "after-divide:2",
    "after-manifest:2",
    "before-done:2",
    "before-offset-commit:2",
)
SQL = "SELECT window(timestamp_millis(at), '30 seconds').start AS start, count(*) AS records FROM records GROUP BY 1"
WINDOWS = {
    "sql.window.ms": str(WINDOW * 1000),
    "sql.window.time": "at",
    "sql.window.delay.ms": "0",
    "sql.window.idle.ms": "0",
}


def driver(bootstrap: str, topic: str, props: Mapping[str, str], flush: int, environ: Mapping[str, str]) -> int:
    order = {"name": "windows", "topic": topic, "bootstrap": bootstrap, "flush": flush, "props": dict(props)}
    command = [sys.executable, str(DRIVER), json.dumps(order)]
    done = subprocess.run(command, env={**os.environ, **environ}, stdout=subprocess.DEVNULL, timeout=300, check=False)
    return done.returncode


def windows(table: Path) -> list[tuple[int, int]]:
    """The windows that a reader sees, and how many records each has."""
    rows: list[dict[str, Any]] = [row for file in table.rglob("*.parquet") for row in pq.read_table(file).to_pylist()]
    return sorted((int(row["start"].timestamp()) // WINDOW, row["records"]) for row in rows)


def test_each_window_is_written_once_whenever_the_driver_is_killed(bootstrap: str, topic: str, tmp_path: Path) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, 2, 1)])[topic].result()
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in range(RECORDS):
        producer.produce(topic, json.dumps({"id": number, "at": number * 1000}).encode(), partition=number % 2)
    assert producer.flush(30) == 0
    table = tmp_path / "topics" / topic
    plain = {**sink_props({"store.url": str(tmp_path)}), "topics": topic, "sql": SQL}
    seen = 0
    with spark_java_for(plain) as java:
        for point in POINTS:
            crash = {**java, CRASH_POINT_VARIABLE: point}
            assert driver(bootstrap, topic, {**plain, **WINDOWS}, FLUSH, crash) == -signal.SIGKILL, point
            found = windows(table)
            assert found == [(number, WINDOW) for number in range(len(found))], point
            assert len(found) >= seen
            seen = len(found)
        # The last load is without windows, so that it writes all that is left.
        assert driver(bootstrap, topic, plain, RECORDS, java) == 0
    assert seen > len(POINTS) // 2
    assert windows(table) == [(number, WINDOW) for number in range(RECORDS // WINDOW)]
