"""The format sluice in a Spark that knows nothing of it: found by itself, with neither worker nor broker."""

from __future__ import annotations

import json
import runpy
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from connectors.spark.session import start_session
from connectors.spark.stores.access import Access
from equipment.brokers.topics import read_topic
from equipment.fakes.http_api import paged, serving_api
from equipment.servers.s3 import running_moto
from equipment.workers.small_spark import SMALL_SPARK
from equipment.workers.standalone import StandaloneWorker

pytest.importorskip("pyspark.sql")

pytestmark = [
    pytest.mark.integration,
    pytest.mark.spark,
    # PySpark leaves the socket by which it brings rows to the driver to the garbage collector.
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

PLUGINS = Path(__file__).parents[2] / "contract" / "plugins"
EXAMPLE = Path(__file__).parents[3] / "examples" / "notebook" / "notebook.py"
SECRET = "correct-horse"


@pytest.fixture(scope="module")
def spark(shared_java: None) -> Iterator[Any]:
    """A session for this module. No plugin is known to it, and nothing is registered."""
    session = start_session({**SMALL_SPARK, "spark.sql.shuffle.partitions": "2"}, "datasource", Access())
    yield session
    session.stop()


@pytest.fixture
def shop(tmp_path: Path) -> dict[str, str]:
    """A database with orders, and what is needed to read them."""
    with closing(sqlite3.connect(tmp_path / "shop.db")) as database:
        database.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, price DECIMAL(10,2), at TIMESTAMP)")
        rows = [(n, n / 4, f"2026-01-02 03:04:{n:02}.500") for n in range(1, 9)]
        database.executemany("INSERT INTO orders VALUES (?, ?, ?)", rows)
        database.commit()
    return {
        "connector.class": "JdbcSource",
        "connection.url": f"jdbc:sqlite:{tmp_path / 'shop.db'}",
        "connection.password": SECRET,
        "mode": "incrementing",
        "incrementing.column.name": "id",
        "table.whitelist": "orders",
        "topic.prefix": "shop-",
        "poll.interval.ms": "1",
    }


@pytest.fixture
def target(tmp_path: Path) -> dict[str, str]:
    """A table that rows go to, which knows them by their number."""
    return {
        "connector.class": "JdbcSink",
        "connection.url": f"jdbc:sqlite:{tmp_path / 'target.db'}",
        "topics": "copies",
        "auto.create": "true",
        "pk.mode": "record_value",
        "pk.fields": "id",
        "insert.mode": "upsert",
    }


def copies(tmp_path: Path, query: str = "SELECT id, price FROM copies ORDER BY id") -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(tmp_path / "target.db")) as database:
        return database.execute(query).fetchall()


def test_a_table_is_read_and_written(
    spark: Any, shop: dict[str, str], target: dict[str, str], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    orders = spark.read.format("sluice").options(**shop).load()
    assert orders.schema.simpleString() == "struct<id:bigint,price:decimal(10,2),at:timestamp>"
    cheap = orders.where("price < 1")
    cheap.explain(True)
    assert SECRET not in capfd.readouterr().out
    cheap.repartition(2).write.format("sluice").options(**target).mode("append").save()
    assert copies(tmp_path) == [(1, 0.25), (2, 0.5), (3, 0.75)]


def test_the_pages_of_an_api_are_partitions(spark: Any) -> None:
    with serving_api() as api:
        api.route("/items", paged([{"id": number} for number in range(40)], 2))
        reader = spark.read.format("sluice").option("connector.class", "HttpSource").option("kafka.topic", "items")
        reader = reader.option("http.request.url", f"{api.url}/items").option("http.response.list.pointer", "/items")
        reader = reader.option("http.paging", "page").option("http.request.params", "page=${page.number}")
        reader = reader.option("http.paging.size", "2").option("http.paging.total.header", "X-Total-Count")
        items = reader.option("tasks.max", "3").schema("id bigint").load()
        assert items.rdd.getNumPartitions() == 3
        assert sorted(row.id for row in items.collect()) == list(range(40))


def test_what_is_wrong_is_told_in_the_words_of_the_connector(spark: Any, shop: dict[str, str]) -> None:
    with pytest.raises(Exception, match=r"Invalid value sideways for configuration mode") as caught:
        spark.read.format("sluice").options(**{**shop, "mode": "sideways"}).load()
    assert SECRET not in str(caught.value)
    with pytest.raises(Exception, match=r"use mode append"):
        spark.range(1).write.format("sluice").options(**shop, topics="t").options(
            **{"connector.class": "FileStreamSink", "file": "/dev/null"}
        ).mode("overwrite").save()


def test_plugins_of_others_are_streams(spark: Any, tmp_path: Path) -> None:
    """A stream goes on where its checkpoint says, and a sink takes its micro-batches."""
    counter = {"connector.class": "Counter", "plugin.path": str(PLUGINS), "topic": "n", "seconds": "0"}
    lines = {"connector.class": "FileStreamSink", "topics": "n", "file": str(tmp_path / "out.txt")}

    def run() -> None:
        numbers = spark.readStream.format("sluice").options(**counter, **{"max.records.per.trigger": "5"})
        written = numbers.schema("value bigint").load().writeStream.format("sluice").options(**lines)
        query = written.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start()
        assert query.awaitTermination(120)

    run()
    run()
    numbers = [int(line) for line in (tmp_path / "out.txt").read_text().splitlines()]
    assert numbers == list(range(1, 11))


def test_the_notebook_runs(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The example reads a REST API and writes a database, with the session that there is."""
    monkeypatch.syspath_prepend(str(EXAMPLE.parent))
    notebook = runpy.run_path(str(EXAMPLE), init_globals={"spark": spark})
    assert notebook["totals"] == notebook["kept"] == [("north", 3), ("south", 2)]


PARTS = [
    "".join(json.dumps({"id": 10 * part + n, "name": f"n{n}", "at": {"lat": n / 4}}) + "\n" for n in range(10))
    for part in range(3)
]


@pytest.fixture(params=["folder", "bucket"])
def parts(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[dict[str, str]]:
    """The configuration of a source that reads three files, or three objects."""
    if request.param == "folder":
        folder = tmp_path / "in"
        folder.mkdir()
        for number, text in enumerate(PARTS):
            (folder / f"{number}.jsonl").write_text(text, encoding="utf-8")
        read = {"connector.class": "DirectorySource", "path": str(folder), "settle.ms": "0", "scan.interval.ms": "1"}
        yield read
        return
    with running_moto() as server:
        for number, text in enumerate(PARTS):
            server.client().put_object(Bucket=server.bucket, Key=f"in/{number}.jsonl", Body=text.encode())
        yield {"connector.class": "S3Source", "s3.bucket.name": server.bucket, "prefix": "in/", **server.props}


@pytest.mark.thorough
def test_a_connector_reads_the_same_in_every_engine(
    spark: Any, standalone: Callable[..., StandaloneWorker], topic: str, bootstrap: str, parts: dict[str, str]
) -> None:
    """One configuration: in a worker, on Spark by engine=spark, and as a DataFrame."""
    config = {
        **parts,
        "tasks.max": "2",
        "transforms": "Tag",
        "transforms.Tag.type": "InsertField$Value",
        "transforms.Tag.static.field": "Team",
        "transforms.Tag.static.value": "blue",
    }
    allowed = {"value.converter.schemas.enable": "false", "connector.spark.config.override.policy": "All"}
    worker = standalone(value_converter="JsonConverter", **allowed)
    worker.connector("by-worker", **config, topic=f"{topic}-worker", run_until="drained")
    worker.connector("by-spark", **config, topic=f"{topic}-spark", run_until="drained", engine="spark", **SMALL_SPARK)
    assert worker.run(seconds=240) == 0, worker.log()
    by_worker, by_spark = (values(bootstrap, f"{topic}-{engine}") for engine in ("worker", "spark"))
    frame = spark.read.format("sluice").options(**config, topic="rows").load()
    by_frame = [row.asDict(recursive=True) for row in frame.collect()]
    assert by_number(by_worker) == by_number(by_spark) == by_number(by_frame)
    assert [row["id"] for row in by_number(by_frame)] == list(range(30))


def values(bootstrap: str, topic: str) -> list[dict[str, Any]]:
    return [json.loads(message.value()) for message in read_topic(bootstrap, topic)]


def by_number(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: row["id"])
