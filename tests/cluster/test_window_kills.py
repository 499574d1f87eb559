"""The proof by kills for windows: each is written once and whole, whenever the driver is killed, no record is lost."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from confluent_kafka.admin import NewTopic
from deltalake import DeltaTable
from pyiceberg.table import StaticTable

from equipment.brokers.topics import admin_client, ordered_producer
from equipment.proofs import EVERY_KILL
from equipment.servers.s3 import S3Server
from equipment.stores.lakes import s3_lake
from equipment.stores.objects import unique_prefix
from equipment.workers.small_spark import SMALL_DELTA, sink_props
from equipment.workers.spark_drivers import load_records

pytestmark = [pytest.mark.cluster, pytest.mark.integration, pytest.mark.spark, pytest.mark.timeout(3600)]

RECORDS, FLUSH, WINDOW = 600, 20, 30
POINTS = ("after-divide:2", "after-manifest:2", "after-hold:2")
"""`make test` leaves out the last one: what it leaves behind is there after the first one, too."""
SQL = "SELECT window(timestamp_millis(at), '30 seconds').start AS start, count(*) AS records FROM records GROUP BY 1"
WINDOWS = {
    "sql.window.ms": str(WINDOW * 1000),
    "sql.window.time": "at",
    "sql.window.delay.ms": "0",
    "sql.window.idle.ms": "0",
}


def load(
    bootstrap: str,
    topic: str,
    props: Mapping[str, str],
    flush: int,
    java: Mapping[str, str],
    crash: str | None = None,
) -> int:
    order = {"name": "windows", "topic": topic, "bootstrap": bootstrap, "flush": flush, "props": dict(props)}
    return load_records(order, java, crash)


def windows(table: Path) -> list[tuple[int, int]]:
    """The windows that a reader sees, and how many records each has."""
    return counted([row for file in table.rglob("*.parquet") for row in pq.read_table(file).to_pylist()])


def counted(rows: list[dict[str, Any]]) -> list[tuple[int, int]]:
    return sorted((int(row["start"].timestamp()) // WINDOW, row["records"]) for row in rows)


def fill(bootstrap: str, topic: str, records: int) -> None:
    admin = admin_client(bootstrap)
    admin.create_topics([NewTopic(topic, 2, 1)])[topic].result()
    # A batch that a new partition refuses at first must not come after the next one: its records would be late.
    producer = ordered_producer(bootstrap)
    for number in range(records):
        producer.produce(topic, json.dumps({"id": number, "at": number * 1000}).encode(), partition=number % 2)
    assert producer.flush(30) == 0


def test_each_window_is_written_once_whenever_the_driver_is_killed(
    bootstrap: str, topic: str, tmp_path: Path, spark_java: Mapping[str, str]
) -> None:
    fill(bootstrap, topic, RECORDS)
    table = tmp_path / "topics" / topic
    plain = {**sink_props({"store.url": str(tmp_path)}), "topics": topic, "sql": SQL}
    seen = 0
    for point in POINTS if EVERY_KILL else POINTS[:-1]:
        assert load(bootstrap, topic, {**plain, **WINDOWS}, FLUSH, spark_java, point) == -signal.SIGKILL, point
        found = windows(table)
        assert found == [(number, WINDOW) for number in range(len(found))], point
        assert len(found) >= seen
        seen = len(found)
    # The last load is without windows, so that it writes all that is left.
    assert load(bootstrap, topic, plain, RECORDS, spark_java) == 0
    assert seen
    assert windows(table) == [(number, WINDOW) for number in range(RECORDS // WINDOW)]


@pytest.mark.parametrize(("table_format", "point"), [("delta", "after-plan:4"), ("iceberg", "before-commit:4")])
@pytest.mark.thorough
def test_windows_of_table_formats_survive_a_kill(
    bootstrap: str, topic: str, tmp_path: Path, spark_java: Mapping[str, str], table_format: str, point: str
) -> None:
    place = tmp_path / "topics" / topic

    def look() -> list[tuple[int, int]]:
        found = DeltaTable(place).to_pyarrow_table() if table_format == "delta" else _iceberg(place)
        return counted(found.to_pylist())

    store = {"store.url": str(tmp_path), "table.format": table_format, **SMALL_DELTA}
    survive(bootstrap, topic, store, spark_java, point, look)


@pytest.mark.skipif(not EVERY_KILL, reason="make kills: other stores commit as folders do")
def test_windows_in_s3_survive_a_kill(bootstrap: str, topic: str, s3: S3Server, spark_java: Mapping[str, str]) -> None:
    folder = unique_prefix()
    schema = pa.schema([("start", pa.timestamp("us", "UTC")), ("records", pa.int64())])
    with s3_lake(s3, folder) as lake:
        read: Callable[[], pa.Table] = lambda: lake.read(f"topics/{topic}", schema)  # noqa: E731
        survive(bootstrap, topic, lake.props, spark_java, "after-manifest:4", lambda: counted(read().to_pylist()))


def survive(
    bootstrap: str,
    topic: str,
    store: Mapping[str, str],
    java: Mapping[str, str],
    point: str,
    look: Callable[[], list[tuple[int, int]]],
) -> None:
    """Kill a driver at its fourth load, when some windows are written and others open, and have another go on."""
    records = 6 * FLUSH
    fill(bootstrap, topic, 2 * records)
    plain = {**sink_props(store), "topics": topic, "sql": SQL}
    assert load(bootstrap, topic, {**plain, **WINDOWS}, FLUSH, java, point) == -signal.SIGKILL
    seen = look()
    assert seen == [(number, WINDOW) for number in range(len(seen))]
    # The last load is without windows, so that it writes all that is left.
    assert load(bootstrap, topic, plain, 2 * records, java) == 0
    assert look() == [(number, WINDOW) for number in range(2 * records // WINDOW)]


def _iceberg(place: Path) -> pa.Table:
    return StaticTable.from_metadata(place.as_uri()).scan().to_arrow()
